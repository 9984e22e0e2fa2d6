// Opens the device, and switches between the tabs.

import init, * as wasm from "./sparsek_web.js";
import { setUpNeighbors } from "./neighbors.js";
import { setUpTopk } from "./topk.js";
import { setUpTraining } from "./training.js";

const $ = (selector) => document.querySelector(selector);

/** Runs one action at a time in a panel, and shows its outcome. */
function actions(panel) {
  const check = panel.querySelector(".check");
  return async function run(busy, action) {
    if (panel.dataset.state === "busy") return;
    panel.dataset.state = "busy";
    check.textContent = busy;
    // Lets the browser paint.
    await new Promise((next) => setTimeout(next, 30));
    let state = "done";
    let text;
    try {
      const outcome = await action();
      text = outcome.text;
      if (!outcome.equal) state = "failed";
    } catch (error) {
      [state, text] = ["failed", `Failed: ${error.message ?? error}`];
    }
    const errors = wasm.take_errors();
    if (errors.length > 0) [state, text] = ["failed", `WebGPU: ${errors.join("; ")}`];
    check.textContent = text;
    panel.dataset.state = state;
    document.documentElement.dataset.first ??= Math.round(performance.now());
  };
}

function setUpTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const select = (tab) => {
    for (const other of tabs) {
      const selected = other === tab;
      other.setAttribute("aria-selected", selected);
      other.tabIndex = selected ? 0 : -1;
      $(`#${other.getAttribute("aria-controls")}`).hidden = !selected;
    }
    history.replaceState(null, "", `#${tab.id.slice(4)}`);
  };
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: at + 1, ArrowLeft: at + tabs.length - 1, Home: 0, End: tabs.length - 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const next = tabs[steps[event.key] % tabs.length];
      select(next);
      next.focus();
    });
  });
  const named = tabs.find((tab) => tab.id === `tab-${location.hash.slice(1)}`);
  if (named) select(named);
}

/** Shows the values of sliders; `data-power` means powers of two. */
function setUpSliders() {
  for (const slider of document.querySelectorAll("input[type=range]")) {
    const show = () => {
      const output = slider.parentElement.querySelector("output");
      const value = value_of(slider);
      output.textContent = slider.name === "stop" && value === 0 ? "exact" : value.toLocaleString("en");
    };
    slider.addEventListener("input", show);
    slider.addEventListener("sync", show);
    show();
  }
}

export function value_of(slider) {
  return "power" in slider.dataset ? 2 ** slider.valueAsNumber : slider.valueAsNumber;
}

/** What the browser says about the GPU; nothing if it has none. */
async function adapter() {
  const found = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!found) return undefined;
  const { vendor, architecture, description } = found.info;
  return [vendor, architecture, description].filter(Boolean).join(" ") || "unnamed";
}

/** After a panic a promise may never settle, and the module cannot go on. */
addEventListener("error", ({ message }) => {
  const text = `Failed: ${globalThis.sparsekPanic ?? message}. Reload the page to go on.`;
  for (const panel of document.querySelectorAll("[data-state=busy]")) {
    panel.querySelector(".check").textContent = text;
    panel.dataset.state = "failed";
  }
});

async function open() {
  const about = $("#backend");
  setUpTabs();
  setUpSliders();
  await init({ module_or_path: new URL("sparsek_web_bg.wasm", import.meta.url) });
  const wanted = !new URLSearchParams(location.search).has("flex");
  let webgpu = false;
  let reason = "as asked";
  if (wanted) {
    const gpu = navigator.gpu ? await adapter() : undefined;
    reason = navigator.gpu ? "the browser offers no GPU" : "the browser lacks it";
    if (gpu) {
      const backend = await wasm.open_webgpu();
      webgpu = backend.webgpu;
      reason = webgpu ? `${gpu}; ${backend.about}` : backend.about;
    }
  }
  about.dataset.backend = webgpu ? "webgpu" : "flex";
  about.textContent = webgpu
    ? `WebGPU: ${reason}`
    : `No WebGPU (${reason}): all runs on the CPU, with Flex in WebAssembly`;
  const other = $("#switch");
  if (!wanted) [other.href, other.textContent] = [location.pathname, "Run with WebGPU"];
  other.hidden = wanted && !webgpu;
  const device = webgpu ? "WebGPU" : "Flex";
  const panel = (name) => $(`#panel-${name}`);
  setUpNeighbors(wasm, panel("neighbors"), actions(panel("neighbors")), device);
  setUpTraining(wasm, panel("training"), actions(panel("training")), device);
  await setUpTopk(wasm, panel("topk"), actions(panel("topk")), device);
  document.documentElement.dataset.ready = device;
}

open().catch((error) => {
  const about = $("#backend");
  about.dataset.backend = "failed";
  about.textContent = `The page cannot start: ${error.message ?? error}`;
  throw error;
});
