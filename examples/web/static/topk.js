// The tab of top-k.

import { value_of } from "./app.js";
import { color, show } from "./draw.js";

/** Rows drawn. */
const SHOWN = 24;

/** Most elements: 2^22. */
const MOST = 22;

/** The k greatest of each row with the sort of typed arrays: values only. Returns milliseconds. */
async function sortRows(data, rows, cols, k) {
  let [total, kept] = [0, 0];
  for (let row = 0; row < rows; ) {
    const begin = performance.now();
    for (; row < rows && performance.now() - begin < 40; row++) {
      const sorted = data.slice(row * cols, (row + 1) * cols).sort();
      kept += sorted.subarray(cols - k).length;
    }
    total += performance.now() - begin;
    await new Promise((next) => setTimeout(next));
  }
  if (kept !== rows * k) throw new Error("the sort lost elements");
  return total;
}

const milliseconds = (ms) => `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;

export async function setUpTopk(wasm, panel, run, device) {
  const form = panel.querySelector("form");
  const { rows, cols, k, stop } = form.elements;
  const bars = panel.querySelector(".bars");
  const canvas = panel.querySelector("canvas");
  let seed = 1;

  const draw = (data, indices, N, M, K) => (context, width, height) => {
    const down = Math.min(N, SHOWN);
    const across = Math.min(M, Math.floor(width / 6));
    const [w, h] = [width / across, height / down];
    const [lit, ground] = [color("accent"), color("ink")];
    for (let row = 0; row < down; row++) {
      const selected = new Set(indices.subarray(row * K, (row + 1) * K));
      for (let col = 0; col < across; col++) {
        const value = data[row * M + col];
        context.fillStyle = selected.has(col) ? lit : ground;
        // Brighter if greater.
        context.globalAlpha = selected.has(col) ? 1 : 0.03 + 0.1 * Math.min(Math.max(value + 2, 0), 4) / 4;
        context.fillRect(col * w + 0.5, row * h + 0.5, w - 1, h - 1);
      }
    }
    context.globalAlpha = 1;
    panel.querySelector("figcaption").textContent =
      `${down} of ${N.toLocaleString("en")} rows, ${across} of ${M} columns: the ${K} greatest are lit`;
  };

  const select = () => run("Selecting …", async () => {
    const [N, M] = [value_of(rows), value_of(cols)];
    const K = Math.min(value_of(k), M);
    const iterations = value_of(stop);
    const found = await wasm.topk(N, M, K, iterations || undefined, seed++);
    const { data, indices } = found;
    const sort = await sortRows(data, N, M, K);
    const entries = [[`sparsek on ${device}`, found.ms, "own"], ["JavaScript sort", sort, ""]];
    if (device === "WebGPU") entries.push(["sparsek on the CPU", found.flex, ""]);
    const most = Math.max(...entries.map(([, ms]) => ms));
    bars.replaceChildren(...entries.flatMap(([name, ms, style]) => {
      const [label, value, bar] = [document.createElement("span"), document.createElement("div"), document.createElement("i")];
      label.textContent = name;
      bar.className = style;
      bar.style.width = `${(100 * ms) / most * 0.75}%`;
      value.append(bar, milliseconds(ms));
      return [label, value];
    }));
    show(canvas, draw(data, indices, N, M, K));
    const first = `first run ${milliseconds(found.first)}`;
    const text = device === "WebGPU"
      ? `${found.equal ? "Equal to the CPU, bit for bit" : "NOT equal to the CPU"}; ${first} with compiling`
      : `Computed on the CPU; ${first}`;
    return { equal: found.equal, text };
  });

  // k is at most M, and memory bounds N.
  const limit = () => {
    k.max = value_of(cols);
    rows.max = Math.min(14, MOST - cols.valueAsNumber);
    for (const slider of [rows, k]) slider.dispatchEvent(new Event("sync"));
  };
  cols.addEventListener("input", limit);
  for (const slider of [rows, cols, k, stop]) slider.addEventListener("change", select);
  form.elements.run.addEventListener("click", select);
  limit();
  await select();
}
