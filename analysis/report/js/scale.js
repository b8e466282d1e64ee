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
