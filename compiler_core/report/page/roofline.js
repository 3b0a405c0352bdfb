// The roofline: what each layer computes in a cycle, against what the core could.
import { h, number, svg } from './dom.js';
import { coresOf } from './facts.js';

const PLOT_WIDTH = 900;
const PLOT_HEIGHT = 380;
const PLOT_LEFT = 60;
const PLOT_BOTTOM = 40;
const PLOT_TOP = 26;
const NAMED = 5;
const NAME_SPACE = 240;

/** @param {number[]} values @returns {[number, number]} powers of ten around them */
const decades = (values) => [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)))];

/** A scale of logarithms. @param {[number, number]} range @param {number} from @param {number} to */
const logScale = ([low, high], from, to) => (/** @type {number} */ value) =>
  from + (to - from) * (Math.log10(value) - low) / Math.max(1, high - low);

/** @param {any} report @returns {boolean} */
export const hasRoofline = (report) => Boolean(report.cycle_model) && (report.nodes ?? []).some((/** @type {any} */ row) => row.cycles > 0 && row.macs > 0);

/** @param {SVGElement} picture @param {[number, number]} xs @param {[number, number]} ys
 *  @param {(v: number) => number} x @param {(v: number) => number} y */
function grid(picture, xs, ys, x, y) {
  for (let e = xs[0]; e <= xs[1]; ++e) {
    picture.append(svg('line', { class: 'r-axis', x1: x(10 ** e), x2: x(10 ** e), y1: PLOT_TOP, y2: PLOT_HEIGHT - PLOT_BOTTOM }),
      svg('text', { x: x(10 ** e), y: PLOT_HEIGHT - PLOT_BOTTOM + 14, 'text-anchor': 'middle' }, String(10 ** e)));
  }
  for (let e = ys[0]; e <= ys[1]; ++e) {
    picture.append(svg('line', { class: 'r-axis', x1: PLOT_LEFT, x2: PLOT_WIDTH - 10, y1: y(10 ** e), y2: y(10 ** e) }),
      svg('text', { x: PLOT_LEFT - 6, y: y(10 ** e) + 4, 'text-anchor': 'end' }, String(10 ** e)));
  }
  picture.append(svg('text', { x: PLOT_WIDTH - 10, y: PLOT_HEIGHT - 6, 'text-anchor': 'end' }, 'multiply-adds a byte moved'),
    svg('text', { x: 4, y: 11 }, 'multiply-adds a cycle'));
}

/** The points that take most cycles, of those whose names would not lie on each other.
 *  @param {any[]} points @param {(v: number) => number} x @param {(v: number) => number} y */
function pointsToName(points, x, y) {
  /** @type {Set<any>} */
  const named = new Set();
  for (const point of [...points].sort((a, b) => b.row.cycles - a.row.cycles)) {
    const covers = [...named].some((one) => Math.abs(x(one.x) - x(point.x)) < NAME_SPACE && Math.abs(y(one.y) - y(point.y)) < 14);
    if (!covers) named.add(point);
    if (named.size === NAMED) break;
  }
  return named;
}

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export function drawRoofline(report, selection) {
  const model = report.cycle_model;
  const points = report.nodes.filter((/** @type {any} */ row) => row.cycles > 0 && row.macs > 0)
    .map((/** @type {any} */ row) => ({ row, x: row.macs / Math.max(1, row.read_bytes + row.written_bytes), y: row.macs / row.cycles }));
  const cores = coresOf(report, points[0]?.row);
  const peak = model.macs_per_cycle * cores;
  const port = model.bytes_per_cycle * cores;
  const ridge = peak / port;
  const xs = decades([...points.map((/** @type {any} */ p) => p.x), ridge / 2, ridge * 2]);
  const ys = decades([...points.map((/** @type {any} */ p) => p.y), peak]);
  const x = logScale(xs, PLOT_LEFT, PLOT_WIDTH - 10);
  const y = logScale(ys, PLOT_HEIGHT - PLOT_BOTTOM, PLOT_TOP);
  const picture = svg('svg', { viewBox: `0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`, width: '100%', role: 'group', 'aria-label': 'Roofline of the layers that multiply' });
  grid(picture, xs, ys, x, y);
  const start = Math.max(10 ** xs[0], 10 ** ys[0] / port);
  picture.append(svg('path', { class: 'r-roof', d: `M${x(start)},${y(Math.min(peak, start * port))}L${x(ridge)},${y(peak)}L${x(10 ** xs[1])},${y(peak)}` }));
  const named = pointsToName(points, x, y);
  const most = Math.max(...points.map((/** @type {any} */ p) => p.row.cycles));
  const dots = new Map();
  for (const point of points) {
    const text = `${point.row.node}: ${number(point.y)} a cycle, ${number(point.x)} a byte, ${number(point.row.cycles)} cycles`;
    const choose = () => selection.chooseIn('nodes', point.row.node);
    const dot = svg('circle', { class: 'r-dot', cx: x(point.x), cy: y(point.y), r: 4 + 6 * Math.sqrt(point.row.cycles / most), tabindex: 0, role: 'button', 'aria-label': text,
      click: choose, keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter') choose(); } }, svg('title', {}, text));
    dots.set(point.row.node, dot);
    picture.append(dot);
    if (!named.has(point)) continue;
    const left = x(point.x) > PLOT_WIDTH / 2;
    const name = point.row.node.length > 34 ? `…${point.row.node.slice(-33)}` : point.row.node;
    picture.append(svg('text', { class: 'r-name', x: x(point.x) + (left ? -12 : 12), y: y(point.y) + 4, 'text-anchor': left ? 'end' : 'start' }, name));
  }
  selection.listen((name) => { for (const [of, dot] of dots) dot.classList.toggle('r-on', of === name); });
  return h('div', {}, h('p', {}, `The roof: ${peak} multiply-adds and ${port} bytes a cycle. A layer far below it waits for its commands. ` +
    `Larger dots take more cycles; some that take most are named.`), h('div', { class: 'r-frame r-plot' }, picture));
}
