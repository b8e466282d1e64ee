// SPDX-License-Identifier: Apache-2.0
// What Grafana's own libraries make of the dashboards' panels: transformations, field overrides, units, colours.
//
//   node check.cjs FOLDER oldest|pinned|current < input.json > output.json
//
// FOLDER holds node_modules. input: a list of {title, type, transformations, fieldConfig, frames: [{refId, fields: [{name, type, values}]}]};
// output: as many of {errors: [text], frames: [{fields: [{name, type, values, drawn, texts, config, text}]}], unmatched: [matcher]}.
"use strict";

const Module = require("node:module");
const path = require("node:path");

globalThis.navigator ??= { language: "en-US", languages: ["en-US"] }; // a browser's; Node has it from 21 on

const [folder, version] = process.argv.slice(2);
Object.assign(console, { log: console.error, info: console.error }); // the output is the answer
const load = Module._load; // hooks of React would look for a browser's page, and nothing here draws
Module._load = (name, ...rest) => (/^react-use/.test(name) ? {} : load(name, ...rest));
globalThis.window ??= { addEventListener: () => {}, __grafanaSceneContext: {} }; // since 11 dashboards are scenes, which put variables in themselves
const grafana = require(path.join(folder, "node_modules", `grafana-${version}`));

// Grafana's application fills these registries; the transformers themselves are in the library.
const transformers = new Map(Object.values(grafana.standardTransformers).map((one) => [one.id, one])); // some stand there twice
grafana.standardTransformersRegistry.setInit(() =>
  [...transformers.values()].map((transformation) => ({
    id: transformation.id,
    name: transformation.name,
    transformation: version === "current" ? async () => transformation : transformation,
    editor: () => null,
  })),
);

const STANDARD = ["unit", "color", "mappings", "noValue", "links", "displayName", "min", "max", "decimals", "thresholds"];

/** Options of a panel kind: the standard ones, and whatever the panel's own overrides name. */
function options(fieldConfig) {
  const named = fieldConfig.overrides.flatMap((override) => override.properties.map((property) => property.id));
  const custom = Object.keys(fieldConfig.defaults.custom ?? {}).map((name) => `custom.${name}`);
  return new grafana.FieldConfigOptionsRegistry(() =>
    [...new Set([...STANDARD, ...named, ...custom])].map((id) => {
      const isCustom = id.startsWith("custom.");
      return { id, path: isCustom ? id.slice("custom.".length) : id, name: id, isCustom, process: (value) => value, shouldApply: () => true };
    }),
  );
}

const units = new Set(grafana.getValueFormats().flatMap((group) => group.submenu.map((unit) => unit.value)));

/** A unit of a panel's own, which Grafana writes behind the number. */
function own(unit) {
  const [, suffix] = /^suffix:(.+)$/.exec(unit) ?? [];
  return suffix !== undefined && grafana.getValueFormat(unit)(1.5, 1).suffix.trim() === suffix.trim();
}

function* problems(panel) {
  const properties = [
    ...Object.entries(panel.fieldConfig.defaults).map(([id, value]) => ({ id, value })),
    ...panel.fieldConfig.overrides.flatMap((override) => override.properties),
  ];
  for (const { id, value } of properties) {
    if (!STANDARD.includes(id) && !id.startsWith("custom")) yield `no option ${id}`;
    if (id === "unit" && !units.has(value) && !/^time:./.test(value) && !own(value)) yield `no unit ${value}`;
    if (id === "color" && !grafana.fieldColorModeRegistry.getIfExists(value.mode)) yield `no colour mode ${value.mode}`;
  }
  for (const { id } of panel.transformations) {
    if (!grafana.standardTransformersRegistry.getIfExists(id)) yield `no transformation ${id}`;
  }
  for (const { matcher } of panel.fieldConfig.overrides) {
    if (!grafana.fieldMatchers.getIfExists(matcher.id)) yield `no matcher ${matcher.id}`;
  }
}

/** The last of what an observable gives. */
function last(observable) {
  return new Promise((resolve, reject) => {
    let seen;
    observable.subscribe({ next: (value) => (seen = value), error: reject, complete: () => resolve(seen) });
  });
}

async function check(panel) {
  const errors = [...problems(panel)];
  if (errors.length) return { errors, frames: [], unmatched: [] };
  const given = panel.frames.map((frame) => grafana.toDataFrame(frame));
  const transformed = await last(grafana.transformDataFrame(panel.transformations, given));
  const frames = grafana.applyFieldOverrides({
    data: transformed, fieldConfig: panel.fieldConfig, fieldConfigRegistry: options(panel.fieldConfig),
    replaceVariables: (text) => text, theme: grafana.createTheme(), timeZone: "utc",
  });
  const unmatched = panel.fieldConfig.overrides.map(({ matcher }) => matcher).filter((matcher) => {
    const matches = grafana.fieldMatchers.get(matcher.id).get(matcher.options);
    return ![transformed, frames].some((some) => some.some((frame) => frame.fields.some((field) => matches(field, frame, some))));
  });
  const shown = frames.map((frame) => ({
    fields: frame.fields.map((field) => {
      const values = Array.from({ length: frame.length }, (_, row) => (field.values.get ? field.values.get(row) : field.values[row]));
      const texts = values.map((value) => field.display(value).text);
      const first = values.find((value) => value !== null && value !== undefined);
      const display = field.display(first);
      const drawn = values.map((value) => value >= (field.config.min ?? -Infinity)); // as an XY chart decides: null is 0 here
      return {
        name: grafana.getFieldDisplayName(field, frame, frames), type: field.type, values, drawn, texts,
        config: { unit: field.config.unit, color: field.config.color, custom: field.config.custom, noValue: field.config.noValue, min: field.config.min,
          displayName: field.config.displayName },
        text: (display.prefix ?? "") + display.text + (display.suffix ?? ""), colour: display.color,
      };
    }),
  }));
  return { errors, frames: shown, unmatched };
}

async function main() {
  let input = "";
  for await (const part of process.stdin) input += part;
  const found = [];
  for (const panel of JSON.parse(input)) {
    try {
      found.push(await check(panel));
    } catch (error) {
      found.push({ errors: [String(error.stack ?? error)], frames: [], unmatched: [] });
    }
  }
  process.stdout.write(JSON.stringify(found));
}

main();
