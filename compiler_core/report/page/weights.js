// The weights: how their values spread, over their true range.
import { h, number, percent, shapeText, svg } from './dom.js';

const HIST_WIDTH = 220;
const HIST_HEIGHT = 70;

/** @param {any} weight @param {boolean} log counts by their logarithm, so that rare values show */
function histogram(weight, log) {
  const { counts, low, high, min, max, values } = weight.histogram;
  const height = (/** @type {number} */ count) => (log ? Math.log1p(count) : count);
  const most = Math.max(1e-9, ...counts.map(height));
  const step = HIST_WIDTH / counts.length;
  const bars = svg('svg', { viewBox: `0 0 ${HIST_WIDTH} ${HIST_HEIGHT}`, width: '100%', role: 'img', 'aria-label':
    `${number(values)} values of ${weight.name} from ${number(min)} to ${number(max)}` });
  counts.forEach((/** @type {number} */ count, /** @type {number} */ i) => {
    if (count === 0) return;
    const tall = Math.max(1, (HIST_HEIGHT - 16) * height(count) / most);
    const from = low + (high - low) * i / counts.length;
    bars.append(svg('rect', { class: 'r-c0', x: i * step, y: HIST_HEIGHT - 16 - tall, width: Math.max(0.5, step * 0.92), height: tall },
      svg('title', {}, `${number(count)} values from ${number(from)} to ${number(from + (high - low) / counts.length)}`)));
  });
  const zero = low < 0 && high > 0 ? HIST_WIDTH * -low / (high - low) : -1;
  if (zero >= 0) bars.append(svg('line', { class: 'r-axis', x1: zero, x2: zero, y1: 0, y2: HIST_HEIGHT - 16 }));
  bars.append(svg('text', { x: 0, y: HIST_HEIGHT - 3 }, number(low)), svg('text', { x: HIST_WIDTH, y: HIST_HEIGHT - 3, 'text-anchor': 'end' }, number(high)));
  if (zero > 40 && zero < HIST_WIDTH - 40) bars.append(svg('text', { x: zero, y: HIST_HEIGHT - 3, 'text-anchor': 'middle' }, '0'));
  return bars;
}

/** @param {any} weight @param {boolean} log @param {import('./selection.js').Selection} selection */
function card(weight, log, selection) {
  const line = (/** @type {string} */ text) => h('div', { class: 'soft' }, text);
  const range = weight.histogram ? [weight.histogram.min, weight.histogram.max] : [weight.min, weight.max];
  const element = h('article', { class: 'r-hist', 'data-key': weight.name, 'aria-label': weight.name },
    h('div', { class: 'mono r-wrap' }, weight.name),
    line(`${shapeText(weight.shape)}, ${weight.bits} bits, ${number(weight.bytes)} bytes`),
    weight.histogram ? histogram(weight, log) : null,
    line(`values ${number(range[0])} to ${number(range[1])}`),
    weight.step > 0 && (weight.min !== range[0] || weight.max !== range[1])
      ? line(`coded from ${number(weight.min)} to ${number(weight.max)} by steps of ${number(weight.step)}`) : null,
    line(`largest error ${number(weight.max_abs_error)}, rms ${number(weight.rms_error)}, zeros ${percent(weight.sparsity)}`));
  if (weight.used_by) {
    element.append(h('button', { type: 'button', class: 'r-link mono r-wrap', click: () => selection.chooseIn('nodes', weight.used_by) }, `of ${weight.used_by}`));
  }
  return element;
}

const ORDERS = /** @type {Record<string, (a: any, b: any) => number>} */ ({
  'in the model\'s order': () => 0,
  'largest first': (a, b) => b.bytes - a.bytes,
  'largest error first': (a, b) => b.max_abs_error - a.max_abs_error,
  'widest range first': (a, b) => (b.max - b.min) - (a.max - a.min),
  'most zeros first': (a, b) => b.sparsity - a.sparsity,
});

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export function drawWeights(report, selection) {
  const box = h('div', { class: 'r-hists' });
  const order = h('select', { 'aria-label': 'Order of weights', change: () => show() }, ...Object.keys(ORDERS).map((name) => h('option', { value: name }, name)));
  const search = h('input', { type: 'search', placeholder: 'Filter weights', 'aria-label': 'Filter weights', input: () => show() });
  const log = h('input', { type: 'checkbox', change: () => show() });
  const count = h('span', { class: 'soft', role: 'status' });
  const show = () => {
    const text = search.value.toLowerCase();
    const list = report.weights.filter((/** @type {any} */ one) => `${one.name} ${one.used_by}`.toLowerCase().includes(text))
      .sort(ORDERS[order.value] ?? (() => 0));
    const sum = list.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + one.bytes, 0);
    count.textContent = `${list.length} weights, ${number(sum)} bytes`;
    box.replaceChildren(...list.map((/** @type {any} */ one) => card(one, log.checked, selection)));
  };
  show();
  selection.listen((name) => {
    for (const one of /** @type {HTMLElement[]} */ ([...box.children])) {
      const on = one.dataset.key === name;
      one.classList.toggle('r-on', on);
      if (on && one.offsetParent) one.scrollIntoView({ block: 'nearest' });
    }
  });
  return h('div', {}, h('div', { class: 'r-bar' }, search, order, h('label', {}, log, ' logarithmic counts'), count), box);
}
