// SPDX-License-Identifier: Apache-2.0
// The frame that every panel has: title, axes with labels and units, grid.

const MARGIN = { top: 26, right: 12, bottom: 40, left: 58 };
const FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif";
const PRINT_PX = 690; // A4 less margins
let clipNumber = 0;

// Width of one of a figure's panels, as the style sheet's grid will make it.
function panelWidth(panels, least, gap, count) {
  const room = printing ? PRINT_PX : Math.min(panels.clientWidth || 560, 1160);
  const fitting = printing ? 2 : Math.max(1, Math.floor((room + gap) / (least + gap)));
  const columns = Math.min(fitting, count);
  return Math.max(280, (room - gap * (columns - 1)) / columns);
}

function frame({ width, height, title, x, y, xTicks, yTicks, xLabel, yLabel, label }) {
  const paint = theme();
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
    "font-family": FONT, "font-size": 12, fill: paint.soft,
  });
  const right = width - MARGIN.right;
  const bottom = height - MARGIN.bottom;
  for (const tick of yTicks) {
    const at = y(tick.value);
    root.append(svg("line", { x1: MARGIN.left, x2: right, y1: at, y2: at, stroke: paint.grid }),
      svg("text", { x: MARGIN.left - 7, y: at + 4, "text-anchor": "end" }, tick.text));
  }
  root.append(svg("line", { x1: MARGIN.left, x2: right, y1: bottom, y2: bottom, stroke: paint.soft }));
  for (const tick of xTicks) {
    const at = x(tick.value);
    root.append(svg("line", { x1: at, x2: at, y1: bottom, y2: bottom + 4, stroke: paint.soft }),
      svg("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, tick.text));
  }
  root.append(svg("text", { x: (MARGIN.left + right) / 2, y: height - 5, "text-anchor": "middle" }, xLabel));
  const middle = (MARGIN.top + bottom) / 2;
  root.append(svg("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, yLabel));
  if (title) root.append(svg("text", { x: MARGIN.left, y: 16, fill: paint.ink, "font-weight": 600, "font-size": 13 }, title));
  clipNumber += 1;
  const clip = `clip${clipNumber}`;
  root.append(svg("clipPath", { id: clip },
    svg("rect", { x: MARGIN.left, y: MARGIN.top - 4, width: Math.max(0, right - MARGIN.left), height: bottom - MARGIN.top + 5 })));
  const plot = svg("g", { "clip-path": `url(#${clip})` });
  root.append(plot);
  return { root, plot, right, bottom };
}

// As many decimals as the step needs, so that neighbours never read the same.
function numbered(low, high, most) {
  const values = ticks(low, high, most);
  const step = values.length > 1 ? values[1] - values[0] : 1;
  const decimals = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const exact = (value) => Math.abs(value * 10 ** decimals - Math.round(value * 10 ** decimals)) < 1e-6;
  const digits = values.every(exact) ? decimals : decimals + 1;
  return values.map((value) => ({ value, text: Math.abs(value) >= 1e5 || step < 1e-8 ? format(value) : String(+value.toFixed(digits)) }));
}

// A figure: heading, what it shows, export buttons, legend, panels in a grid.
function figure(id, title, about, small) {
  const legendBox = html("div", {});
  const panels = html("div", { class: small ? "panels small" : "panels" });
  const heading = html("h3", { id: `${id}-h` }, title);
  const box = html("figure", { class: "chart", id, "aria-labelledby": `${id}-h` });
  const tools = html("div", { class: "tools" }, ["SVG", "PNG"].map((kind) =>
    html("button", { type: "button", class: "quiet", "aria-label": `Save ${title} as ${kind}`, onclick: () => save(box, kind) }, kind)));
  box.append(html("div", { class: "head" }, heading, tools), about ? html("p", { class: "about" }, about) : "", legendBox, panels);
  return { box, panels, setLegend: (entries) => { box.legendEntries = entries; legendBox.replaceChildren(entries.length ? legend(entries) : ""); } };
}
