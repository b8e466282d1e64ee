// SPDX-License-Identifier: Apache-2.0
// Cumulative distributions (round-trip times, goodputs, completion times) for the runs that the figures against time show.

function distribution(data, kind, items, target) {
  const one = figure(`fig-${kind.name}`, kind.title, kind.about, false);
  target.append(one.box);
  return ({ shown, style, entriesOf, groups, panels }) => {
    const mine = items.filter(shown);
    one.setLegend(entriesOf(mine));
    if (!mine.length) { one.panels.replaceChildren(html("p", { class: "empty" }, "No samples in the chosen runs.")); return; }
    const range = extent(mine.flatMap((item) => [item.x[0], item.x[item.x.length - 1]]), false);
    one.panels.replaceChildren(...groups.map((group) => {
      const inside = mine.filter((item) => group === null || item.attributes[panels] === group);
      const width = panelWidth(one.panels, 440, 24, groups.length);
      const height = 250;
      const x = linear(range[0], range[1], MARGIN.left, width - MARGIN.right);
      const y = linear(0, 1, height - MARGIN.bottom, MARGIN.top);
      const name = group === null ? "" : `${panels} ${group}`;
      const { root, plot } = frame({
        width, height, x, y, title: name, xLabel: kind.label, yLabel: kind.share,
        xTicks: numbered(range[0], range[1], width / 80), yTicks: numbered(0, 1, 5), label: `${kind.title}: ${kind.label} ${name}`,
      });
      inside.forEach((item, index) => {
        const { colour, shape } = style(item);
        const points = item.x.map((value, step) => `${x(value).toFixed(1)},${y(data.quantiles[step]).toFixed(1)}`);
        plot.append(svg("path", { d: `M${points.join("L")}`, fill: "none", stroke: colour, "stroke-width": 1.6, opacity: inside.length > 12 ? 0.55 : 0.95 }));
        for (const step of shape ? [30, 90, 150] : []) {
          const at = step + (index % 5) * 6;
          plot.append(marker(shape, x(item.x[at]), y(data.quantiles[at]), 3.6, colour, theme().paper));
        }
      });
      return html("div", { class: "panel" }, root);
    }));
  };
}
