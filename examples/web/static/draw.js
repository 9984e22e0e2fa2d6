// Drawing on canvases, in the colors of the style sheet.

/** Colors of classes, from light to dark ground. */
const CLASSES = [
  ["#0b6e99", "#5cc1ec"], ["#c2570c", "#ffa25c"], ["#1f7a3d", "#6fd08c"], ["#8e3aa8", "#d79cec"],
  ["#8a6d00", "#e3c64e"], ["#b3261e", "#ff8f86"], ["#4f5d75", "#a9b8d1"], ["#00796b", "#4fd1c0"],
];

const dark = matchMedia("(prefers-color-scheme: dark)");
const redraws = new Map();

/** Draws now, and again when the size or the color scheme changes. */
export function show(canvas, draw) {
  if (!redraws.has(canvas)) new ResizeObserver(() => redraw(canvas)).observe(canvas);
  redraws.set(canvas, draw);
  redraw(canvas);
}

function redraw(canvas) {
  const draw = redraws.get(canvas);
  const width = canvas.clientWidth;
  if (!draw || width === 0) return;
  const height = Number(canvas.getAttribute("data-height") ?? canvas.getAttribute("height"));
  canvas.setAttribute("data-height", height);
  const scale = devicePixelRatio;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  draw(context, width, height);
}

dark.addEventListener("change", () => [...redraws.keys()].forEach(redraw));

export const classColor = (of) => CLASSES[of % CLASSES.length][dark.matches ? 1 : 0];

/** A color of the style sheet. */
export function color(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Where a node is drawn. */
export function place(positions, node, width, height, margin = 14) {
  const side = Math.min(width, height) - 2 * margin;
  const stretch = (width - 2 * margin) / side;
  return [
    margin + positions[2 * node] * side * stretch,
    margin + positions[2 * node + 1] * (height - 2 * margin),
  ];
}

/** The node nearest to a point, if one is near. */
export function nodeAt(positions, x, y, width, height) {
  let [best, least] = [-1, 24 ** 2];
  for (let node = 0; node < positions.length / 2; node++) {
    const [a, b] = place(positions, node, width, height);
    const square = (a - x) ** 2 + (b - y) ** 2;
    if (square < least) [best, least] = [node, square];
  }
  return best;
}

/** Lines between pairs of nodes. */
export function drawEdges(context, width, height, positions, edges, stroke, thickness = 1) {
  context.strokeStyle = stroke;
  context.lineWidth = thickness;
  context.beginPath();
  for (let at = 0; at < edges.length; at += 2) {
    context.moveTo(...place(positions, edges[at], width, height));
    context.lineTo(...place(positions, edges[at + 1], width, height));
  }
  context.stroke();
}

export function drawNode(context, [x, y], radius, fill, ring) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.fill();
  if (ring) {
    context.strokeStyle = ring;
    context.lineWidth = 2;
    context.stroke();
  }
}

/** Curves over epochs: `{ values, stroke }`. */
export function drawChart(context, width, height, curves, epochs, top) {
  const [left, right, above, below] = [40, 8, 10, 20];
  const most = top ?? Math.max(1e-6, ...curves.flatMap(({ values }) => values));
  const x = (at) => left + ((width - left - right) * at) / Math.max(1, epochs - 1);
  const y = (value) => above + (height - above - below) * (1 - Math.min(value / most, 1));
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = color("soft");
  context.strokeStyle = color("line");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    const level = Math.round(y(part * most)) + 0.5;
    context.beginPath();
    context.moveTo(left, level);
    context.lineTo(width - right, level);
    context.stroke();
    context.fillText((part * most).toFixed(2), left - 6, level + 4);
  }
  context.fillText(`epoch ${epochs}`, width - right, height - 5);
  context.lineWidth = 2;
  for (const { values, stroke } of curves) {
    context.strokeStyle = stroke;
    context.beginPath();
    values.forEach((value, at) => context[at ? "lineTo" : "moveTo"](x(at), y(value)));
    context.stroke();
  }
}
