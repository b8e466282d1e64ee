// SPDX-License-Identifier: Apache-2.0
// Metric against parameter: means with intervals, one small panel per metric.

const FIRST_METRICS = 6;

function sweep(data, controls, target) {
  const cells = data.cells.filter((cell) => Object.keys(cell.metrics).length);
  const attributes = attributesOf(cells);
  const one = figure("fig-sweep", "Metric against parameter", "Intervals that are wider than the frame are cut at it.", true);
  target.append(one.box);
  const names = attributes.map((attribute) => attribute.name);
  const valuesOf = (name) => attributes.find((attribute) => attribute.name === name)?.values || [];
  // A quantity makes the axis, a word (the algorithm) makes the colours.
  const numeric = names.filter((name) => valuesOf(name).every((value) => quantity(value) !== null));
  const state = { x: numeric[0] || names[0] || "", colour: "", all: false, fixed: new Map() };
  state.colour = names.find((name) => name !== state.x && ["cca", "algorithm"].includes(name)) || names.find((name) => name !== state.x) || "";
  const withNumbers = data.metrics.filter((metric) => cells.some((cell) => cell.metrics[metric.name]));

  function build() {
    controls.replaceChildren();
    const options = names.map((name) => [name, name]);
    if (names.length > 1) {
      controls.append(choice("Against", options, state.x, (value) => { if (value === state.colour) state.colour = state.x; state.x = value; build(); }),
        choice("Colour by", [["", "none"], ...options.filter(([name]) => name !== state.x)], state.colour, (value) => { state.colour = value; build(); }));
    }
    for (const name of names) {
      if (name === state.x || name === state.colour) continue;
      if (!state.fixed.has(name)) state.fixed.set(name, valuesOf(name)[0]);
      controls.append(choice(name, valuesOf(name).map((value) => [value, value]), state.fixed.get(name), (value) => { state.fixed.set(name, value); draw(); }));
    }
    if (withNumbers.length > FIRST_METRICS) {
      controls.append(html("button", { type: "button", "aria-pressed": String(state.all), onclick: () => { state.all = !state.all; build(); } }, state.all ? "Fewer metrics" : "All metrics"));
    }
    draw();
  }

  function draw() {
    const shown = cells.filter((cell) => names.every((name) => name === state.x || name === state.colour || cell.attributes[name] === state.fixed.get(name)));
    const places = state.x ? valuesOf(state.x) : ["all runs"];
    const groups = state.colour ? valuesOf(state.colour) : [null];
    one.setLegend(state.colour ? groups.map((value, index) => ({ label: value, ...lookOf(value, index) })) : []);
    if (!shown.length || !withNumbers.length) { one.panels.replaceChildren(html("p", { class: "empty" }, "No numbers in these runs.")); return; }
    one.panels.replaceChildren(...withNumbers.slice(0, state.all ? undefined : FIRST_METRICS).map((metric) => panel(metric, shown, places, groups)));
  }

  function panel(metric, shown, places, groups) {
    const width = panelWidth(one.panels, 300, 24, withNumbers.length);
    const height = 240;
    const found = shown.map((cell) => ({ cell, value: cell.metrics[metric.name] })).filter(({ value }) => value);
    const low = Math.min(...found.flatMap(({ value }) => value.values));
    const high = Math.max(...found.flatMap(({ value }) => value.values));
    // An interval from two runs can be far wider than the data; beyond one span of the data it is cut at the frame.
    const reach = (high - low) || Math.abs(high) * 0.1 || 1;
    const ends = found.flatMap(({ value }) => [...value.values, ...(value.interval || []).map((end) => Math.min(high + reach * 0.5, Math.max(low - reach * 0.5, end)))]);
    // Points need no zero line: where all are far from it, it would flatten what differs.
    const range = extent(low >= 0 ? ends.map((end) => Math.max(0, end)) : ends, low >= 0 && low < high / 2);
    // Differences far below a percent are not worth a whole axis.
    const least = Math.abs(high) * 0.02;
    if (range[1] - range[0] < least) { const centre = (range[0] + range[1]) / 2; range[0] = centre - least / 2; range[1] = centre + least / 2; }
    if (!metric.unit && high <= 1) range[1] = Math.min(range[1], 1.005);
    const y = linear(range[0], range[1], height - MARGIN.bottom, MARGIN.top);
    const x = linear(-0.5, places.length - 0.5, MARGIN.left, width - MARGIN.right);
    const { root, plot } = frame({
      width, height, x, y, title: metric.label, xLabel: state.x || "", yLabel: metric.unit || "ratio",
      xTicks: places.map((text, value) => ({ value, text })).filter((_, index) => index % Math.ceil(places.length / (width / 60)) === 0),
      yTicks: numbered(range[0], range[1], 5), label: `${metric.label} against ${state.x || "runs"}: ${metric.about}`,
    });
    groups.forEach((group, index) => {
      const { colour, shape } = lookOf(group, index);
      const shift = groups.length > 1 ? (index / (groups.length - 1) - 0.5) * 0.36 : 0;
      const line = [];
      for (const { cell, value } of found) {
        if (group !== null && cell.attributes[state.colour] !== group) continue;
        const place = state.x ? places.indexOf(cell.attributes[state.x]) : 0;
        const at = x(place + shift);
        const tip = svg("title", {}, `${group === null ? "" : `${group}, `}${state.x} ${places[place]}: mean ${format(value.mean)} ${metric.unit}${value.interval ? `, 95 % ${format(value.interval[0])} … ${format(value.interval[1])}` : ""}, n = ${value.values.length}`);
        if (value.interval) {
          const [top, bottom] = [y(value.interval[1]), y(value.interval[0])];
          plot.append(svg("path", { d: `M${at},${top}V${bottom}M${at - 4},${top}h8M${at - 4},${bottom}h8`, stroke: colour, "stroke-width": 1.5, fill: "none" }));
        }
        for (const run of value.values) plot.append(svg("circle", { cx: at + 7, cy: y(run), r: 1.8, fill: colour, opacity: 0.7 }));
        const mark = marker(shape, at, y(value.mean), 4.4, colour, theme().paper);
        mark.append(tip);
        line.push({ place, at, y: y(value.mean), mark });
      }
      line.sort((a, b) => a.place - b.place);
      if (line.length > 1 && numeric.includes(state.x)) plot.append(svg("path", { d: `M${line.map((point) => `${point.at},${point.y}`).join("L")}`, stroke: colour, "stroke-width": 1.2, opacity: 0.6, fill: "none" }));
      for (const { mark } of line) plot.append(mark);
    });
    return html("div", { class: "panel" }, root);
  }
  build();
  return draw;
}
