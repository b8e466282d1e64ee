// SPDX-License-Identifier: Apache-2.0
// Output gap against input gap of packet pairs; on the diagonal the path leaves a gap as it was.

const MOST_GAP_LINES = 12;

function gapsFigure(data, target) {
  const lines = data.gaps.slice(0, MOST_GAP_LINES);
  const varying = Object.keys(lines[0].attributes).filter((name) => new Set(lines.map((line) => line.attributes[name])).size > 1);
  const nameOf = (line) => [line.flow, ...varying.map((name) => `${name} ${line.attributes[name]}`)].join(", ");
  const one = figure("fig-gaps", "Output gap against input gap",
    `Packet pairs: mean output gap, from the smallest to the largest; dashed: output gap = input gap.${data.gaps.length > lines.length ? ` The first ${lines.length} of ${data.gaps.length} probers.` : ""}`, false);
  target.append(one.box);
  return () => {
    one.setLegend(lines.map((line, index) => ({ label: nameOf(line), ...look(index) })));
    const width = panelWidth(one.panels, 440, 24, 1);
    const height = 300;
    const all = lines.flatMap((line) => line.points);
    const xs = extent(all.map((point) => point.input), true);
    const ys = extent([...all.map((point) => point.high), ...all.map((point) => point.input)], true);
    const x = linear(xs[0], xs[1], MARGIN.left, width - MARGIN.right);
    const y = linear(ys[0], ys[1], height - MARGIN.bottom, MARGIN.top);
    const { root, plot } = frame({
      width, height, x, y, title: "", xLabel: "Input gap, ms", yLabel: "Output gap, ms",
      xTicks: numbered(xs[0], xs[1], width / 80), yTicks: numbered(ys[0], ys[1], 5), label: "Output gap against input gap of packet pairs, in milliseconds",
    });
    const end = Math.min(xs[1], ys[1]);
    plot.append(svg("path", { d: `M${x(0)},${y(0)}L${x(end)},${y(end)}`, stroke: theme().soft, "stroke-dasharray": "4 4", fill: "none" }));
    lines.forEach((line, index) => {
      const { colour, shape } = look(index);
      plot.append(svg("path", { d: `M${line.points.map((point) => `${x(point.input).toFixed(1)},${y(point.output).toFixed(1)}`).join("L")}`, stroke: colour, "stroke-width": 1.4, fill: "none" }));
      for (const point of line.points) {
        plot.append(svg("path", { d: `M${x(point.input)},${y(point.low)}V${y(point.high)}`, stroke: colour, "stroke-width": 1, opacity: 0.6 }));
        const mark = marker(shape, x(point.input), y(point.output), 4, colour, theme().paper);
        mark.append(svg("title", {}, `${nameOf(line)}: input ${format(point.input)} ms, output ${format(point.output)} ms (${format(point.low)} … ${format(point.high)}), ${format(point.pairs)} pairs`));
        plot.append(mark);
      }
    });
    one.panels.replaceChildren(html("div", { class: "panel" }, root));
  };
}
