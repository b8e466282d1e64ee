// SPDX-License-Identifier: Apache-2.0
// What the variables of Grafana 12 put into texts, by its own library of dashboards (@grafana/scenes).
//
//   node scenes.cjs FOLDER < input.json > output.json
//
// FOLDER holds node_modules. input: a list of {variables: [{name, multi, includeAll, options: [text], current, url}], texts: [text]}, where url is
// what an address says of the variable (a text, a list) or null; output: as many lists of texts.
"use strict";

const Module = require("node:module");
const path = require("node:path");

Object.assign(console, { log: console.error, info: console.error }); // the output is the answer
const modules = path.join(process.argv[2], "node_modules");
const NEEDED = /^(@grafana\/(data|schema)|(rxjs|lodash)(\/.*)?|uuid|react)$/;

/** Something that can be called, created and asked for anything: stands for what draws. */
function nothing() {
  const known = { __esModule: true, then: undefined, [Symbol.toPrimitive]: () => "" };
  return new Proxy(function () {}, {
    get: (target, name) => (name in known ? known[name] : name === "prototype" ? target.prototype : nothing()),
    apply: () => nothing(),
    construct: () => ({}),
  });
}

const load = Module._load;
Module._load = function (name, parent, ...rest) {
  const from = parent?.filename ?? "";
  if (/^react-use/.test(name) || /^@grafana\/schema\/./.test(name)) return nothing();
  if (from.startsWith(path.join(modules, "grafana-scenes")) && !/^[./]/.test(name)) {
    if (!NEEDED.test(name)) return nothing();
    if (name === "@grafana/data") return load.call(this, path.join(modules, "grafana-pinned"), parent, ...rest);
    if (name === "@grafana/schema") {
      const pinned = require.resolve(name, { paths: [path.join(modules, "grafana-pinned")] });
      return load.call(this, pinned, parent, ...rest);
    }
  }
  return load.call(this, name, parent, ...rest);
};

class Observer {
  observe() {}
  unobserve() {}
  disconnect() {}
}
const listener = { addEventListener: () => {}, removeEventListener: () => {} };
Object.assign(globalThis, {
  window: { ...listener, location: { pathname: "/", search: "", href: "http://127.0.0.1/" } },
  document: { ...listener, createElement: () => ({ style: {} }), documentElement: { style: {} } },
  localStorage: { getItem: () => null, setItem: () => {} },
  IntersectionObserver: Observer,
  ResizeObserver: Observer,
});
globalThis.navigator ??= { language: "en-US", languages: ["en-US"] };

const scenes = require(path.join(modules, "grafana-scenes"));

async function shown({ variables, texts }) {
  const made = variables.map(({ name, multi, includeAll, options, current, url }) => {
    const variable = new scenes.TestVariable({
      name, query: "", isMulti: multi, includeAll, delayMs: 0, value: current?.value ?? "", text: current?.text ?? "",
      optionsToReturn: options.map((value) => ({ label: value, value })),
    });
    if (url !== null) variable.urlSync.updateFromUrl({ [`var-${name}`]: url });
    return variable;
  });
  const set = new scenes.SceneVariableSet({ variables: made });
  const scene = new scenes.EmbeddedScene({ $variables: set, body: undefined });
  const off = set.activate();
  for (let tries = 0; made.some((one) => set.isVariableLoadingOrWaitingToUpdate(one)); tries += 1) {
    if (tries > 1000) throw new Error("a variable does not come to an end");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const found = texts.map((text) => scenes.sceneGraph.interpolate(scene, text));
  off();
  return found;
}

async function main() {
  let input = "";
  for await (const part of process.stdin) input += part;
  const found = [];
  for (const one of JSON.parse(input)) found.push(await shown(one));
  process.stdout.write(JSON.stringify(found));
}

main();
