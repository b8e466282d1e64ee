// SPDX-License-Identifier: Apache-2.0
// Where a Grafana serves this page, from public/warpbed/EXPERIMENT/ (dashboards/addresses.py), its runs lead to the dashboards there.

const ZERO_MS = 946684800000; // dashboards over a run's own time start at 2000-01-01 00:00:00 UTC

function toDashboards() {
  const place = /^(.*)\/public\/warpbed\/([^/]+)\/report\.html$/.exec(location.pathname);
  if (!place || !location.protocol.startsWith("http")) return;
  const [, base, experiment] = place; // its name is encoded there already
  for (const name of document.querySelectorAll("code[data-run]")) {
    const end = Math.round(ZERO_MS + Number(name.dataset.length) * 1000);
    const chosen = `var-experiment=${experiment}&var-run=${encodeURIComponent(name.dataset.run)}&from=${ZERO_MS}&to=${end}`;
    const link = html("a", { href: `${base}/d/warpbed-run?${chosen}`, title: "Open this run in the dashboards" });
    name.replaceWith(link);
    link.append(name);
  }
  document.querySelector("nav[aria-label=Sections]").append(
    html("a", { href: `${base}/d/warpbed-experiments?var-experiments=${experiment}` }, "Dashboards"));
}
