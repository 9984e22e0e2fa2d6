// The tab of MaxK-GNN.

import { value_of } from "./app.js";
import { classColor, color, drawChart, drawEdges, drawNode, place, show } from "./draw.js";

const WIDTH = 32;
const NAMES = ["ReLU", "MaxK"];

export function setUpTraining(wasm, panel, run, device) {
  const form = panel.querySelector("form");
  const { graph, k, epochs, train, stop } = form.elements;
  const graphs = [...panel.querySelectorAll("canvas.graph")];
  const charts = [...panel.querySelectorAll("canvas.chart")];
  const captions = [...panel.querySelectorAll("figcaption span")];
  let [network, positions, curves, stopped] = [undefined, undefined, [], false];

  const drawGraph = (predictions) => (context, width, height) => {
    const radius = network.nodes > 100 ? 4 : 8;
    drawEdges(context, width, height, positions, network.edges, color("edge"), network.nodes > 100 ? 0.4 : 1);
    const ink = color("ink");
    for (let node = 0; node < network.nodes; node++) {
      const at = place(positions, node, width, height);
      const known = predictions.length > 0;
      drawNode(context, at, radius, known ? classColor(predictions[node]) : color("soft"),
        network.train.has(node) && network.nodes <= 100 && ink);
      if (known && predictions[node] !== network.labels[node]) {
        context.strokeStyle = ink;
        context.lineWidth = 2;
        context.beginPath();
        for (const side of [-1, 1]) {
          context.moveTo(at[0] - radius, at[1] - side * radius);
          context.lineTo(at[0] + radius, at[1] + side * radius);
        }
        context.stroke();
      }
    }
  };

  const drawCurves = () => {
    const strokes = ["first", "second"];
    const of = (what) => curves.map((steps, at) =>
      ({ values: steps.map((step) => step[what]), stroke: color(strokes[at]) }));
    const length = Math.max(2, ...curves.map((steps) => steps.length));
    show(charts[0], (context, width, height) => drawChart(context, width, height, of("loss"), length));
    show(charts[1], (context, width, height) => drawChart(context, width, height, of("test"), length, 1));
  };

  const open = () => {
    const found = wasm.network(graph.value);
    network = {
      nodes: found.nodes,
      edges: found.edges,
      labels: found.labels,
      train: new Set(found.train),
    };
    positions = wasm.layout(network.nodes, network.edges, 3);
    curves = [[], []];
    captions.forEach((caption) => { caption.textContent = ""; });
    graphs.forEach((canvas) => show(canvas, drawGraph([])));
    drawCurves();
  };

  const progress = async (step) => {
    curves[step.model].push({ loss: step.loss, test: step.test, ms: step.ms });
    captions[step.model].textContent =
      `epoch ${step.epoch}: loss ${step.loss.toFixed(3)}, training ${(100 * step.train).toFixed(0)} %, test ${(100 * step.test).toFixed(0)} %`;
    if (step.predictions.length > 0) show(graphs[step.model], drawGraph(step.predictions));
    if (step.model === 1) drawCurves();
    step.free();
    // Lets the browser paint.
    await new Promise((next) => setTimeout(next));
    return stopped;
  };

  train.addEventListener("click", () => run("Training …", async () => {
    open();
    stopped = false;
    [train.disabled, stop.disabled, graph.disabled] = [true, false, true];
    try {
      const found = await wasm.train(graph.value, WIDTH, value_of(k), value_of(epochs), progress);
      const ms = curves.map((steps) => {
        const sorted = steps.map((step) => step.ms).sort((a, b) => a - b);
        return sorted[Math.floor(sorted.length / 2)] ?? 0;
      });
      const times = `an epoch takes ${NAMES.map((name, at) => `${ms[at].toFixed(1)} ms with ${name}`).join(", ")}`;
      const text = device === "WebGPU"
        ? `${found.equal ? "Equal to the CPU" : "NOT equal to the CPU"} (losses of ${found.epochs} epochs to ${found.losses.toExponential(1)}, trained scores to ${found.scores.toExponential(1)}); ${times}`
        : `Trained on the CPU; ${times}`;
      return { equal: found.equal, text };
    } finally {
      [train.disabled, stop.disabled, graph.disabled] = [false, true, false];
    }
  }));
  stop.addEventListener("click", () => { stopped = true; });
  graph.addEventListener("change", open);
  open();
}
