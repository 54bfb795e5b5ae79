"use strict";

// Numbers as people read them, and the way from data to pixels.

const MINUS = "\u2212";

function grouped(value, decimals) {
  const text = Math.abs(value).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

// A single value, for tooltips: four digits are enough to tell two of them apart.
function valueText(value, axis) {
  if (value === null) return "–";
  if (axis.categories) return axis.categories[Math.round(value)];
  if (axis.style === "percent") return `${grouped(100 * value, 1)} %`;
  if (axis.style === "count") return grouped(value, 0);
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (size < -5 || size > 11) return value.toExponential(2).replace("-", MINUS);
  return grouped(value, Math.min(8, Math.max(0, 3 - size)));
}

function decimalsOf(step) {
  return Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
}

// Ticks at round steps, 1, 2 or 5 times a power of ten, with labels that agree on their decimals.
function ticksOf(low, high, wanted, style) {
  const raw = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw));
  const candidates = [1, 2, 5, 10].map((factor) => factor * power);
  const distance = (step) => Math.abs(Math.log(step / raw));
  let step = candidates.reduce((best, candidate) => (distance(candidate) < distance(best) ? candidate : best));
  if (style === "count") step = Math.max(1, step);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    const value = i * step;
    let text;
    if (style === "percent") text = `${grouped(100 * value, decimalsOf(100 * step))} %`;
    else if (Math.abs(Math.log10(step)) > 6) text = value.toExponential(1).replace("-", MINUS);
    else text = grouped(value, decimalsOf(step));
    ticks.push({ value, text });
  }
  return ticks;
}

// The range of an axis: as given, or that of the values with a little room.
function domainOf(axis, values) {
  if (axis.categories) return [-0.5, axis.categories.length - 0.5];
  if (axis.domain) return axis.domain;
  const known = values.filter((value) => value !== null);
  let low = Math.min(...known);
  let high = Math.max(...known);
  if (axis.zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const room = 0.05 * (high - low);
  return [axis.zero && low === 0 ? 0 : low - room, axis.zero && high === 0 ? 0 : high + room];
}

function linear([low, high], [from, to]) {
  return (value) => from + ((value - low) / (high - low)) * (to - from);
}
