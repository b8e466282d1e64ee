// SPDX-License-Identifier: Apache-2.0
// Save a figure as it stands, with title and legend, for a slide or a paper.

function composed(box) {
  const paint = theme();
  const panels = [...box.querySelectorAll(".panel > svg")];
  const width = Math.max(...panels.map((panel) => panel.viewBox.baseVal.width));
  const height = panels[0].viewBox.baseVal.height;
  const columns = Math.min(panels.length, panels.length > 4 ? 3 : 2);
  const rows = Math.ceil(panels.length / columns);
  const head = 58;
  const root = svg("svg", { xmlns: SVG, width: width * columns, height: head + height * rows, viewBox: `0 0 ${width * columns} ${head + height * rows}`, "font-family": FONT, "font-size": 13 });
  root.append(svg("rect", { width: "100%", height: "100%", fill: paint.paper }),
    svg("text", { x: 12, y: 22, "font-weight": 600, "font-size": 16, fill: paint.ink }, box.querySelector("h3").textContent));
  let x = 12;
  for (const { label, colour, shape, dash } of box.legendEntries || []) {
    root.append(svg("line", { x1: x, x2: x + 28, y1: 42, y2: 42, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }));
    if (shape) root.append(marker(shape, x + 14, 42, 4, colour, paint.paper));
    root.append(svg("text", { x: x + 34, y: 46, fill: paint.ink }, label));
    x += 58 + label.length * 7.4;
  }
  panels.forEach((panel, index) => {
    const copy = panel.cloneNode(true);
    copy.querySelectorAll(".cursor").forEach((node) => node.remove());
    put(copy, { x: (index % columns) * width, y: head + Math.floor(index / columns) * height }, []);
    root.append(copy);
  });
  return root;
}

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = html("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function save(box, kind) {
  if (!box.querySelector(".panel > svg")) return;
  const root = composed(box);
  const blob = new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
  if (kind === "SVG") { download(blob, `${box.id}.svg`); return; }
  const image = new Image();
  const url = URL.createObjectURL(blob);
  image.onload = () => {
    const canvas = html("canvas", { width: root.getAttribute("width") * 2, height: root.getAttribute("height") * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((png) => download(png, `${box.id}.png`), "image/png");
  };
  image.src = url;
}
