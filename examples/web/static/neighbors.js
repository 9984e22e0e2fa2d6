// The tab of nearest neighbors.

import { value_of } from "./app.js";
import { color, drawEdges, drawNode, nodeAt, place, show } from "./draw.js";

export function setUpNeighbors(wasm, panel, run, device) {
  const form = panel.querySelector("form");
  const { file, sample, metric, k } = form.elements;
  const canvas = panel.querySelector("canvas");
  const caption = panel.querySelector("figcaption");
  const [title, list] = [panel.querySelector("h2"), panel.querySelector("ol")];
  /** Matrix, names of rows, neighbors, positions, edges and the selected row. */
  let state;

  for (const name of wasm.metrics()) metric.append(new Option(name));
  metric.value = "cosine";

  const name = (row) => state.names[row] ?? `Row ${row + 1}`;

  const nearest = (row) => {
    const { found } = state;
    return found.indices.slice(row * found.k, (row + 1) * found.k);
  };

  const draw = (context, width, height) => {
    const { positions, edges, selected } = state;
    const near = new Set(nearest(selected));
    const lines = [...near].flatMap((other) => [selected, other]);
    const count = positions.length / 2;
    const radius = count > 300 ? 3 : 5;
    drawEdges(context, width, height, positions, edges, color("edge"), 0.7);
    drawEdges(context, width, height, positions, lines, color("accent"), 2);
    for (let row = 0; row < count; row++) {
      const at = place(positions, row, width, height);
      const fill = row === selected || near.has(row) ? color("accent") : color("soft");
      drawNode(context, at, row === selected ? radius + 3 : radius, fill, row === selected && color("ink"));
    }
  };

  const select = (row) => {
    state.selected = row;
    title.textContent = name(row);
    const { found } = state;
    const items = [...nearest(row)].map((other, at) => {
      const [item, button, label, distance] =
        ["li", "button", "b", "span"].map((tag) => document.createElement(tag));
      label.textContent = name(other);
      distance.textContent = found.distances[row * found.k + at].toPrecision(4);
      button.append(label, distance);
      button.addEventListener("click", () => {
        select(other);
        list.querySelector("button")?.focus();
      });
      item.append(button);
      return item;
    });
    list.replaceChildren(...items);
    show(canvas, draw);
  };

  const find = async (keepPlaces) => {
    const { matrix } = state;
    const found = await wasm.neighbors(metric.value, value_of(k));
    state.found = { k: found.k, indices: found.indices, distances: found.distances };
    const pairs = new Set();
    state.found.indices.forEach((other, at) => {
      const row = Math.floor(at / found.k);
      pairs.add(Math.min(row, other) * matrix.searched + Math.max(row, other));
    });
    state.edges = Uint32Array.from([...pairs].flatMap((pair) =>
      [Math.floor(pair / matrix.searched), pair % matrix.searched]));
    state.positions = wasm.layout(matrix.searched, state.edges, 1);
    if (!keepPlaces) state.selected = 0;
    select(state.selected);
    const left = matrix.rows > matrix.searched ? `, of ${matrix.rows} in the file` : "";
    caption.textContent =
      `${matrix.searched} rows${left}, ${matrix.cols} columns, ${matrix.entries} entries. Select a row to see its nearest.`;
    const times = `${found.ms.toFixed(1)} ms on ${device}`;
    const text = device === "WebGPU"
      ? `${found.equal ? "Equal to the CPU" : "NOT equal to the CPU"} (largest difference ${found.difference.toExponential(1)}); ${times}, ${found.flex.toFixed(1)} ms on the CPU`
      : `Computed on the CPU; ${times}`;
    return { equal: found.equal, text };
  };

  const search = (keepPlaces) => run("Searching …", () => find(keepPlaces));

  // A file that is no matrix leaves the last one.
  const load = (read) => run("Loading …", async () => {
    const { bytes, names } = await read();
    state = { matrix: wasm.load_matrix(new Uint8Array(bytes)), names, selected: 0 };
    return find(false);
  });

  const loadSample = () => load(async () => {
    const get = (path) => fetch(new URL(path, import.meta.url));
    const [matrix, names] = await Promise.all([get("sample.npz"), get("sample.txt")]);
    return { bytes: await matrix.arrayBuffer(), names: (await names.text()).trimEnd().split("\n") };
  });

  const loadFile = (chosen) =>
    chosen && load(async () => ({ bytes: await chosen.arrayBuffer(), names: [] }));

  sample.addEventListener("click", loadSample);
  file.addEventListener("change", () => loadFile(file.files[0]));
  metric.addEventListener("change", () => state && search(true));
  k.addEventListener("change", () => state && search(true));

  const drop = panel.querySelector(".drop");
  panel.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  panel.addEventListener("dragleave", () => drop.classList.remove("over"));
  panel.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    loadFile(event.dataTransfer.files[0]);
  });

  canvas.addEventListener("click", (event) => {
    if (!state?.positions) return;
    const row = nodeAt(state.positions, event.offsetX, event.offsetY, canvas.clientWidth, canvas.clientHeight);
    if (row >= 0) select(row);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !state?.positions) return;
    event.preventDefault();
    const count = state.matrix.searched;
    select((state.selected + step + count) % count);
  });
}
