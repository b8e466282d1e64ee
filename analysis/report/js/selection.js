// SPDX-License-Identifier: Apache-2.0
// What can be told apart (parameters, flow, algorithm, seed) and which of it is shown, coloured and split into panels.

// The number in "50p" or "48ms", in base units and as the data has it; null for a word.
const quantity = (text) => (Object.hasOwn(data.numbers, text) ? data.numbers[text] : null);

// Attributes with their values in order; those with one value for everything do not help to choose.
function attributesOf(items) {
  const found = new Map();
  for (const item of items) {
    for (const [name, value] of Object.entries(item.attributes)) {
      if (!found.has(name)) found.set(name, new Set());
      found.get(name).add(value);
    }
  }
  const list = [];
  for (const [name, values] of found) {
    if (values.size < 2) continue;
    const sorted = [...values];
    if (sorted.every((value) => quantity(value) !== null)) sorted.sort((a, b) => quantity(a) - quantity(b));
    list.push({ name, values: sorted });
  }
  return list;
}

// Two attributes that always change together say the same thing.
function samePartition(items, a, b) {
  const seen = new Map();
  const back = new Map();
  for (const { attributes } of items) {
    if (seen.has(attributes[a]) && seen.get(attributes[a]) !== attributes[b]) return false;
    if (back.has(attributes[b]) && back.get(attributes[b]) !== attributes[a]) return false;
    seen.set(attributes[a], attributes[b]);
    back.set(attributes[b], attributes[a]);
  }
  return true;
}

function choice(caption, options, value, onchange) {
  const select = html("select", { onchange: (event) => onchange(event.target.value) },
    options.map(([key, label]) => html("option", { value: key, selected: key === value }, label)));
  return html("label", {}, html("span", { class: "caption" }, caption), select);
}

function chips(name, values, chosen, onchange) {
  return html("fieldset", {}, html("legend", {}, name), html("div", { class: "chips" }, values.map((value) =>
    html("label", {}, html("input", {
      type: "checkbox", checked: chosen.has(value),
      onchange: (event) => { if (event.target.checked) chosen.add(value); else chosen.delete(value); onchange(); },
    }), value))));
}
