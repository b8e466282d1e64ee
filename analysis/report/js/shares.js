// SPDX-License-Identifier: Apache-2.0
// Friendliness: how the algorithms of a run divide the goodput, beside the share of flows that each has.

const SHARES_PER_PANEL = 8;

function sharesFigure(data, target) {
  const one = figure("fig-shares", "Share of the goodput by algorithm",
    "Bars: mean over the runs with 95 % intervals; dark lines: the share that equal flows would have.", false);
  target.append(one.box);
  const names = [...new Set(data.shares.flatMap((cell) => cell.parts.map((part) => part.algorithm)))];
  const varying = Object.keys(data.shares[0].attributes).filter((name) => new Set(data.shares.map((cell) => cell.attributes[name])).size > 1);
  const nameOf = (cell) => varying.map((name) => cell.attributes[name]).join(" ") || "all runs";
  const parts = [];
  for (let at = 0; at < data.shares.length; at += SHARES_PER_PANEL) parts.push(data.shares.slice(at, at + SHARES_PER_PANEL));

  function panel(cells) {
    const width = panelWidth(one.panels, 440, 24, parts.length);
    const height = 270;
    const x = linear(-0.5, cells.length - 0.5, MARGIN.left, width - MARGIN.right);
    const y = linear(0, 1, height - MARGIN.bottom, MARGIN.top);
    const { root, plot, bottom } = frame({
      width, height, x, y, title: "", xLabel: varying.join(", ") || " ", yLabel: "Share of goodput",
      xTicks: cells.map((cell, value) => ({ value, text: nameOf(cell).slice(0, Math.max(4, Math.floor(width / cells.length / 7))) })),
      yTicks: numbered(0, 1, 5), label: `Share of the goodput by algorithm: ${cells.map((cell) => `${nameOf(cell)}: ${cell.parts.map((part) => `${part.algorithm} ${format(part.mean)}`).join(", ")}`).join("; ")}`,
    });
    const slot = x(1) - x(0);
    cells.forEach((cell, index) => {
      const wide = Math.min(34, (slot * 0.8) / cell.parts.length);
      cell.parts.forEach((part, place) => {
        const { colour } = lookOf(part.algorithm, names.indexOf(part.algorithm));
        const left = x(index) + (place - cell.parts.length / 2) * wide;
        const bar = svg("rect", { x: left + 1, y: y(part.mean), width: wide - 2, height: Math.max(0, bottom - y(part.mean)), fill: colour, opacity: 0.85 },
          svg("title", {}, `${nameOf(cell)}: ${part.algorithm} (${part.flows} flows) ${format(part.mean)}, fair ${format(part.fair)}`));
        plot.append(bar, svg("line", { x1: left, x2: left + wide, y1: y(part.fair), y2: y(part.fair), stroke: theme().ink, "stroke-width": 2.2 }));
        if (part.interval) {
          const middle = left + wide / 2;
          plot.append(svg("path", { d: `M${middle},${y(Math.min(1, part.interval[1]))}V${y(Math.max(0, part.interval[0]))}`, stroke: theme().ink, "stroke-width": 1.2 }));
        }
      });
    });
    return html("div", { class: "panel" }, root);
  }

  return () => {
    one.setLegend(names.map((label, index) => ({ label, colour: lookOf(label, index).colour })));
    one.panels.replaceChildren(...parts.map(panel));
  };
}
