// SPDX-License-Identifier: Apache-2.0
// The frame that every panel has: title, axes with labels and units, grid.

const MARGIN = { top: 26, right: 12, bottom: 40, left: 58 };
const FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif";
let clipNumber = 0;

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

const numbered = (low, high, most) => ticks(low, high, most).map((value) => ({ value, text: format(value) }));

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
