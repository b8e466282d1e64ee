// SPDX-License-Identifier: Apache-2.0
// Figures against time: one panel per value of an attribute, one colour per value of another, one time axis for all.

function timeline(data, items, controls, target, afterDraw) {
  const attributes = attributesOf(items);
  const bucket_s = data.duration_s / data.buckets;
  const names = attributes.map((attribute) => attribute.name);
  const useful = names.filter((name, index) => !names.slice(0, index).some((before) => samePartition(items, before, name)));
  const split = useful.filter((name) => name !== "seed");
  const preferred = ["cca", "algorithm"].find((name) => split.includes(name));
  const state = { colour: preferred || split[0] || useful[0] || "", panels: "", from: 0, to: data.duration_s, cursor: null, chosen: new Map() };
  state.panels = split.find((name) => name !== state.colour && name !== "flow" && valuesOf(name).length <= 6) || "";
  for (const name of useful) {
    const all = name === state.colour || name === state.panels || name === "flow" || name === "algorithm";
    state.chosen.set(name, new Set(all ? valuesOf(name) : valuesOf(name).slice(0, 1)));
  }
  function valuesOf(name) { return attributes.find((attribute) => attribute.name === name)?.values || []; }
  const visible = (item) => useful.every((name) => item.attributes[name] === undefined || state.chosen.get(name).has(item.attributes[name]));

  const figures = data.figures.map((kind) => ({ kind, ...figure(`fig-${kind.name}`, kind.title, kind.about, false), drawn: [] }));
  const extra = html("details", {}, html("summary", {}, "In flight and sequence number"));
  for (const one of figures) {
    if (one.kind.name === "in_flight" || one.kind.name === "sequence") extra.append(one.box);
    else target.append(one.box);
  }
  extra.addEventListener("toggle", draw);
  target.append(extra);
  const announcement = html("p", { class: "unseen", "aria-live": "polite" });
  target.append(announcement);

  const from = html("input", { type: "number", min: 0, max: data.duration_s, step: "any", onchange: fromInputs });
  const to = html("input", { type: "number", min: 0, max: data.duration_s, step: "any", onchange: fromInputs });
  const options = [["", "none"], ...useful.map((name) => [name, name])];
  if (useful.length) {
    controls.append(choice("Colour by", options, state.colour, (value) => { state.colour = value; draw(); }),
      choice("Panels by", options, state.panels, (value) => { state.panels = value; draw(); }));
  }
  for (const name of useful) if (valuesOf(name).length <= 40) controls.append(chips(name, valuesOf(name), state.chosen.get(name), draw));
  controls.append(html("label", {}, html("span", { class: "caption" }, "From, s"), from), html("label", {}, html("span", { class: "caption" }, "To, s"), to),
    html("button", { type: "button", onclick: () => zoom(0, data.duration_s) }, "Whole run"));

  function fromInputs() { zoom(+from.value, +to.value); }
  function zoom(a, b) {
    const low = Math.max(0, Math.min(a, b));
    const high = Math.min(data.duration_s, Math.max(a, b));
    if (high - low >= 4 * bucket_s) { state.from = low; state.to = high; }
    draw();
  }

  function draw() {
    from.value = format(state.from);
    to.value = format(state.to);
    const shown = items.filter(visible);
    const colours = new Map(valuesOf(state.colour).map((value, index) => [value, lookOf(value, index)]));
    // A queue belongs to no flow: coloured by flow, it is one plain line.
    const plain = { colour: theme().colours[0], shape: "" };
    const style = (item) => colours.get(item.attributes[state.colour]) || plain;
    const entriesOf = (some) => [...colours].filter(([value]) => some.some((item) => item.attributes[state.colour] === value))
      .map(([value, one]) => ({ label: value, ...one }));
    const groups = state.panels ? valuesOf(state.panels).filter((value) => state.chosen.get(state.panels).has(value)) : [null];
    for (const one of figures) {
      const mine = shown.filter((item) => item.figure === one.kind.name);
      const second = mine.some((item) => item.lo2) ? [{ label: one.kind.second, colour: theme().soft, dash: "5 4" }] : [];
      one.setLegend([...entriesOf(mine), ...second]);
      one.drawn = [];
      if (extra.contains(one.box) && !extra.open) { one.panels.replaceChildren(); continue; }
      if (!mine.length) { one.panels.replaceChildren(html("p", { class: "empty" }, "No data of this kind in the chosen runs.")); continue; }
      const first = Math.floor(state.from / bucket_s);
      const last = Math.ceil(state.to / bucket_s);
      const values = mine.flatMap((item) => (item.hi || item.lo).slice(first, last).concat(item.hi ? item.lo.slice(first, last) : []));
      const range = extent(values, one.kind.zero);
      one.panels.replaceChildren(...groups.map((group) => {
        const inside = mine.filter((item) => group === null || item.attributes[state.panels] === undefined || item.attributes[state.panels] === group);
        return panel(one, group, inside, range, style, groups.length);
      }));
    }
    showCursor();
    afterDraw({ shown: visible, style, entriesOf, groups, panels: state.panels });
  }

  function panel(one, group, inside, range, style, count) {
    const box = html("div", { class: "panel", tabindex: 0, role: "group", "aria-label": `${one.kind.title}${group === null ? "" : `, ${state.panels} ${group}`}: ${inside.length} lines; arrow keys move the cursor` });
    const width = panelWidth(one.panels, 440, 24, count);
    const height = width < 600 ? 250 : 300;
    const x = linear(state.from, state.to, MARGIN.left, width - MARGIN.right);
    const y = linear(range[0], range[1], height - MARGIN.bottom, MARGIN.top);
    const { root, plot, right, bottom } = frame({
      width, height, x, y, title: group === null ? "" : `${state.panels} ${group}`, xLabel: "Time, s", yLabel: `${one.kind.title}, ${one.kind.unit}`,
      xTicks: numbered(state.from, state.to, width / 80), yTicks: numbered(range[0], range[1], 5),
      label: `${one.kind.title} in ${one.kind.unit} against time in seconds${group === null ? "" : `, ${state.panels} ${group}`}`,
    });
    inside.forEach((item, index) => {
      const { colour, shape } = style(item);
      const dim = inside.length > 12 ? 0.55 : 0.95;
      plot.append(svg("path", { d: trace(item.lo, item.hi, x, y), fill: "none", stroke: colour, "stroke-width": inside.length > 6 ? 1.1 : 1.5, "stroke-linejoin": "round", opacity: dim }));
      if (item.lo2) plot.append(svg("path", { d: trace(item.lo2, item.hi2, x, y), fill: "none", stroke: colour, "stroke-width": 1.1, "stroke-dasharray": "5 4", opacity: dim * 0.8 }));
      const span = (state.to - state.from) / 6;
      for (let step = 0; shape && step < 6; step += 1) {
        const at = near(item, Math.floor((state.from + span * (step + 0.25 + 0.5 * ((index % 5) / 5))) / bucket_s));
        const value = at === null ? null : (item.lo[at] + (item.hi || item.lo)[at]) / 2;
        if (value !== null) plot.append(marker(shape, x((at + 0.5) * bucket_s), y(value), 3.6, colour, theme().paper));
      }
    });
    const cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: bottom, stroke: theme().ink, "stroke-width": 1, visibility: "hidden" });
    const brush = svg("rect", { class: "cursor", y: MARGIN.top, height: bottom - MARGIN.top, width: 0, fill: theme().ink, opacity: 0.12 });
    root.append(brush, cursor);
    const readout = html("div", { class: "readout", hidden: true });
    box.append(root, readout);
    one.drawn.push({ box, cursor, readout, inside, x, width, style, one });
    pointer(box, root, brush, x, width, right);
    box.addEventListener("keydown", keys);
    box.addEventListener("focus", () => { if (state.cursor === null) moveCursor((state.from + state.to) / 2); });
    box.addEventListener("blur", () => moveCursor(null));
    return box;
  }

  // The nearest bucket with a value: where samples are rarer than buckets, most are empty.
  function near(item, index) {
    for (let step = 0; step <= data.buckets / 40; step += 1) {
      for (const candidate of [index - step, index + step]) if (Number.isFinite(item.lo[candidate] ?? NaN)) return candidate;
    }
    return null;
  }

  function trace(lo, hi, x, y) {
    const parts = [];
    let gap = 0;
    let up = true;
    const first = Math.max(0, Math.floor(state.from / bucket_s) - 2);
    const last = Math.min(lo.length, Math.ceil(state.to / bucket_s) + 2);
    for (let index = first; index < last; index += 1) {
      if (lo[index] === null) { gap += 1; continue; }
      const at = x((index + 0.5) * bucket_s).toFixed(1);
      const start = parts.length && gap * bucket_s < 0.5 + 4 * bucket_s ? "L" : "M";
      gap = 0;
      if (!hi || hi[index] === lo[index]) { parts.push(`${start}${at},${y(lo[index]).toFixed(1)}`); continue; }
      const pair = up ? [lo[index], hi[index]] : [hi[index], lo[index]];
      up = !up;
      parts.push(`${start}${at},${y(pair[0]).toFixed(1)}L${at},${y(pair[1]).toFixed(1)}`);
    }
    return parts.join("");
  }

  function pointer(box, root, brush, x, width, right) {
    let anchor = null;
    const at = (event) => {
      const area = root.getBoundingClientRect();
      return Math.min(right, Math.max(MARGIN.left, ((event.clientX - area.left) / area.width) * width));
    };
    box.addEventListener("pointermove", (event) => {
      const pixel = at(event);
      if (anchor !== null) put(brush, { x: Math.min(anchor, pixel), width: Math.abs(pixel - anchor) }, []);
      moveCursor(x.invert(pixel));
    });
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      anchor = at(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointerup", (event) => {
      if (anchor === null) return;
      const [a, b] = [anchor, at(event)];
      anchor = null;
      put(brush, { width: 0 }, []);
      if (Math.abs(a - b) > 6) refocus(box, () => zoom(x.invert(a), x.invert(b)));
    });
    box.addEventListener("pointerleave", () => { if (anchor === null && document.activeElement !== box) moveCursor(null); });
    box.addEventListener("dblclick", () => zoom(0, data.duration_s));
  }

  function keys(event) {
    const span = state.to - state.from;
    const here = state.cursor ?? (state.from + state.to) / 2;
    const step = span / (event.shiftKey ? 20 : 200);
    const around = (factor) => refocus(event.currentTarget, () => zoom(here - (span * factor) / 2, here + (span * factor) / 2));
    const actions = {
      ArrowLeft: () => moveCursor(Math.max(state.from, here - step), true),
      ArrowRight: () => moveCursor(Math.min(state.to, here + step), true),
      Home: () => moveCursor(state.from, true),
      End: () => moveCursor(state.to - bucket_s / 2, true),
      "+": () => around(0.5),
      "=": () => around(0.5),
      "-": () => around(2),
      Escape: () => refocus(event.currentTarget, () => zoom(0, data.duration_s)),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  // Zooming draws the panels anew; the keyboard stays on the one it was on.
  function refocus(box, action) {
    const one = figures.find((candidate) => candidate.box.contains(box));
    const index = [...one.panels.children].indexOf(box);
    const cursor = state.cursor;
    action();
    one.panels.children[index]?.focus({ preventScroll: true });
    moveCursor(cursor);
  }

  function moveCursor(time, speak) {
    state.cursor = time;
    showCursor();
    if (speak) {
      const open = figures.flatMap((one) => one.drawn).find(({ box }) => box === document.activeElement);
      announcement.textContent = open ? open.readout.textContent : "";
    }
  }

  function showCursor() {
    for (const { box, cursor, readout, inside, x, width, style, one } of figures.flatMap((candidate) => candidate.drawn)) {
      const active = state.cursor !== null && state.cursor >= state.from && state.cursor <= state.to;
      const live = active && (box.matches(":hover") || document.activeElement === box);
      cursor.setAttribute("visibility", active ? "visible" : "hidden");
      readout.hidden = !live;
      if (!active) continue;
      const pixel = x(state.cursor);
      put(cursor, { x1: pixel, x2: pixel }, []);
      if (!live) continue;
      const index = Math.min(data.buckets - 1, Math.floor(state.cursor / bucket_s));
      readout.replaceChildren(html("div", {}, html("strong", {}, `${format(state.cursor)} s`), one.kind.unit),
        ...inside.slice(0, 14).map((item) => html("div", {}, keyed(style(item)), html("span", {}, told(item)), html("span", {}, spoken(item, near(item, index))))),
        inside.length > 14 ? html("div", {}, `and ${inside.length - 14} more`) : "");
      const share = pixel / width;
      readout.style.left = share > 0.5 ? "auto" : `${share * 100 + 2}%`;
      readout.style.right = share > 0.5 ? `${(1 - share) * 100 + 2}%` : "auto";
    }
  }
  const told = (item) => useful.filter((name) => name !== state.panels).filter((name) => item.attributes[name] !== undefined)
    .map((name) => (/^[a-z]/i.test(item.attributes[name]) ? item.attributes[name] : `${name} ${item.attributes[name]}`)).join(" ") || item.run;
  const keyed = ({ colour, shape }) => svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, marker(shape || "square", 6, 6, 4, colour, "none"));
  const spoken = (item, index) => (index === null ? "–" : !item.hi || item.hi[index] === item.lo[index] ? format(item.lo[index]) : `${format(item.lo[index])}–${format(item.hi[index])}`);

  return draw;
}
