// SPDX-License-Identifier: Apache-2.0
// From values to pixels, and where the ticks go.

function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index += 1) found.push(+(index * step).toPrecision(12));
  return found;
}

function linear(low, high, from, to) {
  const factor = high > low ? (to - from) / (high - low) : 0;
  const scale = (value) => from + (value - low) * factor;
  scale.low = low;
  scale.high = high;
  scale.invert = (pixel) => (factor ? low + (pixel - from) / factor : low);
  return scale;
}

// Room above the largest value, and zero below where the figure is a quantity of something.
function extent(values, fromZero) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low === Infinity) return [0, 1];
  if (fromZero) low = Math.min(0, low);
  if (high === low) { high += Math.abs(high) * 0.1 || 1; if (!fromZero) low -= Math.abs(low) * 0.1 || 1; }
  const room = (high - low) * 0.06;
  return [fromZero && low === 0 ? 0 : low - room, high + room];
}

// The number in "50p", "48ms", "10mbit"; null for a word. Units differ only in factors that are applied here.
const FACTORS = {
  "": 1, p: 1, "%": 0.01, B: 1, KB: 1e3, KiB: 1024, MB: 1e6, MiB: 2 ** 20, GB: 1e9, GiB: 2 ** 30,
  ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9,
};
function quantity(text) {
  const match = /^(-?[0-9.]+(?:e-?[0-9]+)?)\s*([A-Za-z%]*)$/.exec(String(text).trim());
  return match && Object.hasOwn(FACTORS, match[2]) && Number.isFinite(+match[1]) ? +match[1] * FACTORS[match[2]] : null;
}
