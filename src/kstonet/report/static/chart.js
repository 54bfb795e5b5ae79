// Charts as inline SVG: a description from Python (charts.py) becomes axes, marks, a legend and tooltips.

const SVG = "http://www.w3.org/2000/svg";
const TILTED = 64; // pixels for a label that does not fit below its mark
const REACH = 32; // pixels from the pointer to the nearest mark that still answers

function svg(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent?.append(node);
  return node;
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size = 12) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function shortened(text, room) {
  if (textWidth(text) <= room) return text;
  let kept = text;
  while (kept.length > 1 && textWidth(`${kept}…`) > room) kept = kept.slice(0, -1);
  return `${kept.trimEnd()}…`;
}

// All values that an axis has to show.
function valuesOn(marks, axis) {
  const along = { x: ["x", "x0", "x1"], y: ["y", "y0", "y1"] }[axis];
  return marks.flatMap((mark) => {
    if (mark.kind === "span") return [];
    // Bars of uncertainty lie across the axis they have no position on; tooltips alone may know bounds that are not drawn.
    const across = mark.kind === "segments" ? (mark.x ? "y" : "x") : "y";
    const drawn = ["line", "band", "segments"].includes(mark.kind) && axis === across;
    return [...along, ...(drawn ? ["low", "high"] : [])].flatMap((key) => mark[key] ?? []);
  });
}

function sizeOf(spec, width) {
  if (spec.shape === "rows") return 54 + 30 * spec.y.categories.length;
  const share = spec.shape === "square" ? 0.9 : 0.62;
  return Math.round(Math.min(Math.max(share * width, 220), spec.shape === "square" ? 380 : 330));
}

// Whether the categories on the x axis are too long to stand side by side.
function labelsTilt(spec, width) {
  if (!spec.x.categories) return false;
  const room = (width - 60) / spec.x.categories.length - 8;
  return spec.x.categories.some((text) => textWidth(text) > room);
}

// Axes with their labels; returns the scales.
function drawAxes(spec, width, height, root) {
  const domains = { x: domainOf(spec.x, valuesOn(spec.marks, "x")), y: domainOf(spec.y, valuesOn(spec.marks, "y")) };
  const rows = spec.y.categories;
  const top = rows ? 6 : 30;
  const tilted = labelsTilt(spec, width);
  const bottom = height - (tilted ? 52 : 26) - (spec.x.silent ? 0 : 18);
  const yTicks = rows
    ? rows.map((text, value) => ({ value, text: shortened(text, 0.38 * width) }))
    : ticksOf(...domains.y, (bottom - top) / 52, spec.y.style);
  const left = Math.ceil(Math.max(...yTicks.map((tick) => textWidth(tick.text)), 8)) + 12;
  const right = width - 10;
  const y = linear(domains.y, rows ? [top, bottom] : [bottom, top]);
  const x = linear(domains.x, [left, right]);
  const axes = svg("g", { class: "axes", "aria-hidden": "true" }, root);
  for (const tick of yTicks) {
    if (!rows) svg("line", { class: "gridline", x1: left, x2: right, y1: y(tick.value), y2: y(tick.value) }, axes);
    svg("text", { class: "tick", x: left - 8, y: y(tick.value) + 4, "text-anchor": "end" }, axes, tick.text);
  }
  if (!rows) svg("text", { class: "label", x: 0, y: 14 }, axes, shortened(spec.y.label, width - 8));
  drawXTicks(spec, domains.x, x, { left, right, top, bottom, rows, tilted }, axes);
  if (!spec.x.silent) {
    svg("text", { class: "label", x: right, y: height - 4, "text-anchor": "end" }, axes, shortened(spec.x.label, width - 8));
  }
  return { x, y, left, right, top, bottom };
}

function drawXTicks(spec, domain, x, box, axes) {
  const { left, right, top, bottom } = box;
  if (spec.x.categories) {
    spec.x.categories.forEach((text, value) => {
      const place = box.tilted
        ? { transform: `translate(${x(value) + 4}, ${bottom + 14}) rotate(-35)`, "text-anchor": "end" }
        : { x: x(value), y: bottom + 18, "text-anchor": "middle" };
      svg("text", { class: "tick", ...place }, axes, box.tilted ? shortened(text, TILTED) : text);
    });
  } else {
    const ticks = ticksOf(...domain, (right - left) / 84, spec.x.style);
    for (const tick of ticks) {
      if (box.rows) svg("line", { class: "gridline", x1: x(tick.value), x2: x(tick.value), y1: top, y2: bottom }, axes);
      const half = textWidth(tick.text) / 2;
      const place = Math.min(Math.max(x(tick.value), half), right + 10 - half); // the outermost stay inside the picture
      svg("text", { class: "tick", x: place, y: bottom + 18, "text-anchor": "middle" }, axes, tick.text);
    }
  }
  svg("line", { class: "baseline", x1: left, x2: right, y1: bottom, y2: bottom }, axes);
}

function path(xs, ys, scale) {
  return xs.map((x, i) => `${i ? "L" : "M"}${scale.x(x).toFixed(1)},${scale.y(ys[i]).toFixed(1)}`).join("");
}

function area(mark, scale) {
  const back = [...mark.x].reverse();
  return `${path(mark.x, mark.high, scale)}${path(back, [...mark.low].reverse(), scale).replace("M", "L")}Z`;
}

// One drawing function for every kind of mark; each adds elements to a group.
const DRAW = {
  line(mark, scale, group) {
    if (mark.low) svg("path", { class: "mark area", d: area(mark, scale) }, group);
    if (mark.x.length > 1) svg("path", { class: `mark line${mark.dash ? " dash" : ""}`, d: path(mark.x, mark.y, scale) }, group);
    if (mark.dots || mark.x.length === 1) DRAW.points(mark, scale, group);
  },
  points(mark, scale, group) {
    const r = mark.big ? 4.5 : mark.small ? 2 : 3;
    mark.x.forEach((x, i) => svg("circle", { class: "mark point", cx: scale.x(x), cy: scale.y(mark.y[i]), r }, group));
  },
  band(mark, scale, group) {
    svg("path", { class: "mark area", d: area(mark, scale) }, group);
  },
  segments(mark, scale, group) {
    mark.low.forEach((low, i) => {
      const ends = mark.x
        ? { x1: scale.x(mark.x[i]), x2: scale.x(mark.x[i]), y1: scale.y(low), y2: scale.y(mark.high[i]) }
        : { x1: scale.x(low), x2: scale.x(mark.high[i]), y1: scale.y(mark.y[i]), y2: scale.y(mark.y[i]) };
      svg("line", { class: "mark segment", ...ends }, group);
    });
  },
  bars(mark, scale, group) {
    mark.x0.forEach((_, i) => {
      const { x, y, width, height } = barBox(mark, i, scale);
      svg("rect", { class: "mark bar", x, y, width, height }, group);
    });
  },
  rug(mark, scale, group) {
    for (const x of mark.x) {
      svg("line", { class: "mark stroke", x1: scale.x(x), x2: scale.x(x), y1: scale.bottom - 6, y2: scale.bottom }, group);
    }
  },
  span(mark, scale, group) {
    const [from, to] = [Math.max(scale.x(mark.x0), scale.left), Math.min(scale.x(mark.x1), scale.right)];
    svg("rect", { class: "mark span", x: from, y: scale.top, width: to - from, height: scale.bottom - scale.top }, group);
  },
};

function barBox(mark, i, scale) {
  const [x, right] = [scale.x(mark.x0[i]), scale.x(mark.x1[i])].sort((a, b) => a - b);
  const [y, bottom] = [scale.y(mark.y0[i]), scale.y(mark.y1[i])].sort((a, b) => a - b);
  return { x, y, width: right - x, height: bottom - y };
}

// What the pointer and the arrow keys can reach: a place, and the lines of its tooltip.
function targetsOf(spec, scale) {
  const targets = [];
  for (const mark of spec.marks) {
    if (mark.silent || !["line", "points", "bars"].includes(mark.kind)) continue;
    const bar = mark.kind === "bars";
    (bar ? mark.x0 : mark.x).forEach((x, i) => {
      const place = bar ? (mark.x0[i] + mark.x1[i]) / 2 : x;
      const level = bar ? (mark.y0[i] + mark.y1[i]) / 2 : mark.y[i];
      const value = bar ? mark.value[i] : mark.y[i];
      const lines = spec.y.categories
        ? [["", valueText(level, spec.y)], [spec.x.label, valueText(bar ? value : x, spec.x)]]
        : [[spec.x.label, bar && spec.x.style === "percent" ? barRange(mark, i, spec.x) : valueText(place, spec.x)], [spec.y.label, valueText(value, spec.y)]];
      if (spec.x.rank) lines.shift(); // a place in an order tells nothing
      if (mark.low) {
        const across = spec.y.categories ? spec.x : spec.y;
        lines.push([mark.range, `${valueText(mark.low[i], across)} to ${valueText(mark.high[i], across)}`]);
      }
      const title = mark.tips?.[i] ?? mark.name;
      if (title) lines.unshift(["", title]);
      targets.push({ x: scale.x(place), y: scale.y(level), box: bar ? barBox(mark, i, scale) : null, lines });
    });
  }
  return targets;
}

function barRange(mark, i, axis) {
  return `${valueText(mark.x0[i], axis)} to ${valueText(mark.x1[i], axis)}`;
}

function inside(box, x, y) {
  return box && x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
}

function nearest(targets, x, y) {
  const hit = targets.find((target) => inside(target.box, x, y));
  if (hit) return hit;
  let best = null;
  let reach = REACH;
  for (const target of targets) {
    const away = Math.hypot(target.x - x, target.y - y);
    if (away < reach) [best, reach] = [target, away];
  }
  return best;
}

const shown = { root: null, byKeys: false }; // the chart that the tooltip belongs to, and what called it

function showTooltip(root, target, byKeys = false) {
  const tooltip = document.getElementById("tooltip");
  if (!target && shown.root !== root) return;
  shown.root?.querySelector(".halo")?.remove();
  Object.assign(shown, { root, byKeys });
  tooltip.hidden = !target;
  if (!target) return;
  if (!target.box) svg("circle", { class: "halo", cx: target.x, cy: target.y, r: 7 }, root);
  tooltip.replaceChildren(
    ...target.lines.map(([label, value]) => {
      const line = document.createElement("div");
      const strong = document.createElement("b");
      strong.textContent = value;
      line.append(...(label ? [`${label} `, strong] : [strong]));
      return line;
    }),
  );
  const frame = root.getBoundingClientRect();
  const zoom = frame.width / root.viewBox.baseVal.width;
  const [x, y] = [frame.left + target.x * zoom, frame.top + target.y * zoom];
  const { offsetWidth: width, offsetHeight: height } = tooltip;
  const left = Math.min(Math.max(8, x - width / 2), document.documentElement.clientWidth - width - 8);
  const top = y - height - 14 > 8 ? y - height - 14 : y + 18;
  tooltip.style.left = `${left + scrollX}px`;
  tooltip.style.top = `${top + scrollY}px`;
}

function listen(root, targets) {
  let active = -1;
  root.addEventListener("pointermove", (event) => {
    if (shown.byKeys && !event.movementX && !event.movementY) return; // the page has moved, not the pointer
    const frame = root.getBoundingClientRect();
    const zoom = frame.width / root.viewBox.baseVal.width;
    showTooltip(root, nearest(targets, (event.clientX - frame.left) / zoom, (event.clientY - frame.top) / zoom));
  });
  root.addEventListener("pointerleave", () => shown.byKeys || showTooltip(root, null));
  root.addEventListener("blur", () => showTooltip(root, null));
  root.addEventListener("keydown", (event) => {
    const last = targets.length - 1;
    const step = { ArrowRight: active + 1, ArrowLeft: active - 1, Home: 0, End: last, Escape: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    active = event.key === "Escape" ? -1 : Math.min(Math.max(step, 0), last);
    showTooltip(root, targets[active] ?? null, active >= 0);
  });
}

function legend(marks) {
  const named = marks.filter((mark) => mark.name);
  if (!named.length) return null;
  const list = document.createElement("ul");
  list.className = "legend";
  for (const mark of named) {
    const entry = document.createElement("li");
    const swatch = document.createElement("i");
    swatch.className = `swatch role-${mark.role} ${mark.kind}${mark.dash ? " dash" : ""}`;
    entry.append(swatch, mark.name);
    list.append(entry);
  }
  return list;
}

function drawChart(plot, spec) {
  const width = Math.max(240, Math.floor(plot.clientWidth));
  const height = sizeOf(spec, width);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0, "aria-label": spec.alt });
  const scale = drawAxes(spec, width, height, root);
  for (const mark of spec.marks) DRAW[mark.kind](mark, scale, svg("g", { class: `role-${mark.role} ${mark.kind}` }, root));
  listen(root, targetsOf(spec, scale));
  plot.replaceChildren(...[legend(spec.marks), root].filter(Boolean));
}
