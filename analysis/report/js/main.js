// SPDX-License-Identifier: Apache-2.0
// Start: read the data, draw, and draw again when the width, the theme or the medium changes.

const redraws = [];

function itemsOf(key) {
  return data.runs.flatMap((run) => run[key].map((entry) => {
    const ccas = Object.values(run.ccas);
    const own = {};
    if (entry.algorithm) {
      own.algorithm = entry.algorithm;
    } else if (entry.flow !== null) {
      own.flow = entry.flow;
      if (run.ccas[entry.flow] !== undefined) own.algorithm = run.ccas[entry.flow];
    } else if (ccas.length && ccas.every((cca) => cca === ccas[0])) {
      [own.algorithm] = ccas;
    }
    return { ...entry, attributes: { ...own, ...run.attributes }, run: run.run }; // a parameter's name goes before ours
  }));
}

if (data.runs.length) {
  redraws.push(sweep(data, document.getElementById("sweep-controls"), document.getElementById("sweep-figure")));
  if (data.shares.length) redraws.push(sharesFigure(data, document.getElementById("shares-figure")));
  if (data.gaps.length) redraws.push(gapsFigure(data, document.getElementById("gaps-figure")));
  const series = itemsOf("series");
  const controls = document.getElementById("time-controls");
  const target = document.getElementById("time-figures");
  const told = data.runs.filter((run) => run.problem).map((run) => html("p", { class: "notice" }, `${run.run}: ${run.problem}`));
  target.append(...told.slice(0, 2));
  if (told.length > 2) target.append(html("details", {}, html("summary", {}, `${told.length - 2} more runs that cannot be drawn`), ...told.slice(2)));
  if (series.length) {
    const spread = itemsOf("distributions");
    const place = document.getElementById("distribution-figure");
    const drawn = data.distributions.map((kind) => [kind, spread.filter((item) => item.figure === kind.name)])
      .filter(([, items]) => items.length).map(([kind, items]) => distribution(data, kind, items, place));
    const drawDistribution = (shown) => { for (const draw of drawn) draw(shown); };
    redraws.push(timeline(data, series, controls, target, drawDistribution));
  } else {
    target.append(html("p", { class: "empty" }, "The complete runs hold no records to draw."));
  }
}

toDashboards();

const redraw = () => { for (const draw of redraws) draw(); };
const button = document.getElementById("theme");
const modes = ["system", "light", "dark"];
let mode = 0;
button.hidden = false;
button.addEventListener("click", () => {
  mode = (mode + 1) % modes.length;
  if (mode) document.documentElement.dataset.theme = modes[mode];
  else delete document.documentElement.dataset.theme;
  button.querySelector("span").textContent = modes[mode];
  redraw();
});
media.addEventListener("change", redraw);
addEventListener("beforeprint", () => { printing = true; redraw(); });
addEventListener("afterprint", () => { printing = false; redraw(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
redraw();
