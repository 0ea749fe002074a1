// Charts as SVG: stacked bars, a line, one bar of parts, a waterfall. Each has its figures as text. Knows no view.

const SPACE = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Stacked bars. `bars` are {label, values: [number], href?}; `names` name the values. The same figures are in the table
 * beside it, so the drawing itself is one picture with a sentence.
 */
export function bars({ title, bars: found, names, unit, format }) {
  const [width, height, left, bottom, top] = [720, 210, 80, 34, 12];
  const most = Math.max(1, ...found.map((each) => sum(each.values)));
  const ceiling = nice(most);
  const inner = height - bottom - top;
  const step = (width - left) / Math.max(1, found.length);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": described(title, found, unit, format) });
  for (const share of [0, 0.5, 1]) {
    const y = top + inner * (1 - share);
    drawing.append(
      svg("line", { x1: left, x2: width, y1: y, y2: y, class: "grid" }),
      svg("text", { x: left - 6, y: y + 4, class: "axis end" }, format(ceiling * share)),
    );
  }
  found.forEach((bar, index) => {
    const group = svg("g", {});
    let y = top + inner;
    bar.values.forEach((value, part) => {
      const tall = (inner * value) / ceiling;
      y -= tall;
      group.append(svg("rect", { x: left + index * step + step * 0.12, y, width: Math.max(1, step * 0.76), height: tall, class: `part-${part}` }));
    });
    group.append(svg("title", {}, `${bar.label}: ${names.map((name, part) => `${format(bar.values[part])} ${name}`).join(", ")}`));
    drawing.append(group);
    const every = Math.ceil(found.length / 8);
    if (index % every === 0) drawing.append(svg("text", { x: left + (index + 0.5) * step, y: height - 6, class: "axis middle" }, bar.label));
  });
  return framed(drawing, names);
}

/** A line of the last figures, without axes. */
export function spark(values) {
  const [width, height] = [120, 28];
  const most = Math.max(1e-9, ...values);
  const points = values.map((value, index) => `${(index * width) / Math.max(1, values.length - 1)},${height - 2 - ((height - 4) * value) / most}`);
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" }, svg("polyline", { points: points.join(" ") }));
}

/** One bar whose parts are {name, value, className?}; a list below it names them. */
export function stripe({ title, parts, format }) {
  const [width, height] = [720, 26];
  const all = sum(parts.map((part) => part.value)) || 1;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "stripe", role: "img", preserveAspectRatio: "none",
    "aria-label": `${title}: ${parts.map((part) => `${part.name} ${format(part.value)}`).join(", ")}` });
  let x = 0;
  parts.forEach((part, index) => {
    const wide = (width * part.value) / all;
    drawing.append(svg("rect", { x, y: 0, width: wide, height, class: `part-${part.color ?? index}` }, svg("title", {}, `${part.name}: ${format(part.value)}`)));
    x += wide;
  });
  return framed(drawing, parts.map((part) => `${part.name} ${format(part.value)}`), parts.map((part, index) => part.color ?? index));
}

/** Spans under each other: {name, depth, start, seconds, note}. */
export function waterfall({ title, spans, format, color }) {
  const [width, tall, left] = [760, 24, 210];
  const height = spans.length * tall + 4;
  const end = Math.max(1e-9, ...spans.map((each) => each.start + each.seconds));
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "waterfall", role: "img", "aria-label": title });
  spans.forEach((span, index) => {
    const y = index * tall + 4;
    const x = left + ((width - left - 80) * span.start) / end;
    const wide = Math.max(1.5, ((width - left - 80) * span.seconds) / end);
    drawing.append(
      svg("text", { x: span.depth * 14, y: y + 14, class: "axis" }, span.name),
      svg("rect", { x, y: y + 3, width: wide, height: tall - 9, class: `part-${color(span)}` }, svg("title", {}, `${span.name}: ${format(span.seconds)} ${span.note || ""}`)),
      svg("text", { x: Math.min(width - 76, x + wide + 6), y: y + 14, class: "axis" }, format(span.seconds)),
    );
  });
  return drawing;
}

function framed(drawing, names, colors = names.map((_, index) => index)) {
  const figure = document.createElement("figure");
  const list = document.createElement("ul");
  list.className = "legend";
  names.forEach((name, index) => {
    const line = document.createElement("li");
    const dot = svg("svg", { viewBox: "0 0 10 10", class: "dot", "aria-hidden": "true" }, svg("rect", { width: 10, height: 10, rx: 2, class: `part-${colors[index]}` }));
    line.append(dot, name);
    list.append(line);
  });
  figure.append(drawing, list);
  return figure;
}

function described(title, found, unit, format) {
  if (!found.length) return `${title}: nothing yet.`;
  const total = sum(found.map((each) => sum(each.values)));
  return `${title}: ${format(total)} ${unit} from ${found[0].label} to ${found.at(-1).label}.`;
}

export function sum(values) {
  return values.reduce((one, other) => one + other, 0);
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((each) => each * power).find((each) => each >= value);
}
