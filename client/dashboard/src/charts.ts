// Charts as SVG. Each has its numbers in words for who does not see it.
import { svg } from "./dom";

const WIDTH = 600;
const HEIGHT = 150;
const LEFT = 46;
const BOTTOM = 20;

export interface Series { values: number[]; second?: boolean; label: string }

const short = (value: number) => value.toLocaleString([], { notation: "compact", maximumFractionDigits: 1 });
const hour = (time: number) =>
  new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });

function frame(max: number, from: number, to: number, label: string): SVGElement {
  const box = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const share of [0, 0.5, 1]) {
    const y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 10);
    box.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: y, y2: y }),
      svg("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, short(max * share)));
  }
  box.append(svg("text", { x: LEFT, y: HEIGHT - 4 }, hour(from)),
    svg("text", { x: WIDTH, y: HEIGHT - 4, "text-anchor": "end" }, hour(to)));
  return box;
}

const top = (values: number[]) => Math.max(2, Math.ceil(Math.max(...values) / 2) * 2);
const yOf = (value: number, max: number) => HEIGHT - BOTTOM - (value / max) * (HEIGHT - BOTTOM - 10);

/** Values at equal steps from `from` to `to` (ms since 1970), as steps. */
export function lines(series: Series[], from: number, to: number, label: string): SVGElement {
  const max = top(series.flatMap((s) => s.values));
  const box = frame(max, from, to, label);
  for (const one of series) {
    const step = (WIDTH - LEFT) / one.values.length;
    const path = one.values.map((v, i) =>
      `${i ? "V" : `M${LEFT},`}${yOf(v, max).toFixed(1)}H${(LEFT + (i + 1) * step).toFixed(1)}`).join("");
    box.append(svg("path", { class: one.second ? "line second" : "line", d: path }));
  }
  return box;
}

export function bars(values: number[], from: number, to: number, label: string): SVGElement {
  const max = top(values);
  const box = frame(max, from, to, label);
  const step = (WIDTH - LEFT) / values.length;
  values.forEach((value, i) => {
    if (value) {
      const y = yOf(value, max);
      box.append(svg("rect", { class: "c0", x: LEFT + i * step + 1, width: Math.max(1, step - 2), y, height: HEIGHT - BOTTOM - y }));
    }
  });
  return box;
}

export interface Share { name: string; value: number }

/** One bar, cut into shares of the whole. */
export function shares(parts: Share[], label: string): SVGElement {
  const sum = parts.reduce((all, part) => all + part.value, 0) || 1;
  const box = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} 26`, role: "img", "aria-label": label, preserveAspectRatio: "none" });
  let x = 0;
  parts.forEach((part, i) => {
    const width = (part.value / sum) * WIDTH;
    box.append(svg("rect", { class: `c${i % 5}`, x, y: 0, width: Math.max(0, width - 1.5), height: 26 }));
    x += width;
  });
  return box;
}

export const swatch = (index: number): SVGElement =>
  svg("svg", { width: 12, height: 12, "aria-hidden": "true" },
    svg("rect", { class: `c${index % 5}`, width: 12, height: 12, rx: 3 }));

export interface Point { value: number; text: string; href: string; marked: boolean }

/** Values in their order at equal steps, joined by a line; those that are marked stand out. The scale
 *  begins near the least value, since a change of one per cent must show. */
export function points(list: Point[], text: (value: number) => string, label: string): SVGElement {
  const values = list.map((point) => point.value);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const pad = (most - least) * 0.15 || Math.abs(most) * 0.05 || 1;
  const [low, high] = [least - pad, most + pad];
  const x = (i: number) => 100 + (i + 0.5) * ((WIDTH - 110) / list.length);
  const y = (value: number) => HEIGHT - 10 - ((value - low) / (high - low)) * (HEIGHT - 20);
  const box = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": label });
  for (const value of new Set([least, most])) {
    box.append(svg("line", { class: "axis", x1: 100, x2: WIDTH, y1: y(value), y2: y(value) }),
      svg("text", { x: 94, y: y(value) + 4, "text-anchor": "end" }, text(value)));
  }
  box.append(svg("path", { class: "line", d: values.map((value, i) => `${i ? "L" : "M"}${x(i).toFixed(1)},${y(value).toFixed(1)}`).join("") }));
  list.forEach((point, i) => box.append(svg("a", { href: point.href, "aria-label": point.text },
    svg("title", {}, point.text), svg("circle", { class: point.marked ? "mark worse" : "mark", cx: x(i), cy: y(point.value), r: point.marked ? 6 : 4 }))));
  return box;
}
