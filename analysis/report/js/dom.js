// SPDX-License-Identifier: Apache-2.0
// The data, elements and themes. Text goes in as text nodes only: titles and parameters are not to be trusted.

const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}
const html = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

// Okabe and Ito's colours, darkened or lightened to stand 3:1 against the paper; shapes tell them apart without colour. By day those of
// the dashboards (SCREEN in analysis/palette.py), by night lighter ones of the same hues.
const THEMES = {
  light: {
    ink: "#15191e", soft: "#55606c", rule: "#d5dae0", grid: "#e9ecef", paper: "#ffffff",
    colours: ["#0072b2", "#d55e00", "#00896b", "#b5538c", "#8a6d00", "#3b8fc4", "#8463c8", "#777777"],
  },
  dark: {
    ink: "#e8ebee", soft: "#a3adb8", rule: "#48525d", grid: "#262d35", paper: "#12161b",
    colours: ["#5ab4f0", "#ff9147", "#35c9a0", "#ec9cc9", "#e6c02e", "#9bd4ff", "#b9a3ff", "#cfcfcf"],
  },
};
const media = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
function theme() {
  if (printing) return THEMES.light;
  const chosen = document.documentElement.dataset.theme;
  return THEMES[chosen || (media.matches ? "dark" : "light")];
}

const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"];
function marker(shape, x, y, size, colour, paper) {
  const s = size;
  const filled = { fill: colour, stroke: paper, "stroke-width": 1 };
  const path = {
    square: `M${x - s},${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    triangle: `M${x},${y - 1.2 * s}l${1.2 * s},${2.1 * s}h${-2.4 * s}z`,
    diamond: `M${x},${y - 1.4 * s}l${1.4 * s},${1.4 * s}l${-1.4 * s},${1.4 * s}l${-1.4 * s},${-1.4 * s}z`,
    down: `M${x},${y + 1.2 * s}l${1.2 * s},${-2.1 * s}h${-2.4 * s}z`,
    cross: `M${x - s},${y - s}l${2 * s},${2 * s}M${x + s},${y - s}l${-2 * s},${2 * s}`,
  }[shape];
  if (shape === "circle") return svg("circle", { cx: x, cy: y, r: s * 1.1, ...filled });
  if (shape === "cross") return svg("path", { d: path, stroke: colour, "stroke-width": 2, fill: "none" });
  return svg("path", { d: path, ...filled });
}
const look = (index) => {
  const colours = theme().colours;
  return { colour: colours[index % colours.length], shape: SHAPES[(index + Math.floor(index / colours.length)) % SHAPES.length] };
};
// An algorithm has its own place, the same in every report and in the dashboards (analysis/palette.py).
const lookOf = (name, index) => look(Object.hasOwn(data.places, name) ? data.places[name] : index);

function legend(entries) {
  return html("ul", { class: "legend" }, entries.map(({ label, colour, shape, dash }) => {
    const key = svg("svg", { width: 30, height: 14, "aria-hidden": "true" },
      svg("line", { x1: 1, x2: 29, y1: 7, y2: 7, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
    if (shape) key.append(marker(shape, 15, 7, 4, colour, theme().paper));
    return html("li", {}, key, label);
  }));
}

const format = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e5) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(+value.toPrecision(4));
};
