// The graph of a report: search, cost in colours, attributes, zoom and pan, repeated blocks folded.
import { button, definitions, h, number, percent, shapeText, shorten, svg } from './dom.js';
import { layersOf } from './facts.js';
import { edgePath, itemsOf, NODE_HEIGHT, NODE_WIDTH, place, repeatsOf } from './graph_layout.js';
import { PanZoom } from './pan_zoom.js';

const COLOURS = /** @type {[string, string, (layer: any) => number | undefined][]} */ ([
  ['cycles', 'more cycles', (layer) => layer.cycles],
  ['multiply-adds', 'more multiply-adds', (layer) => layer.macs],
  ['bytes moved', 'more bytes moved', (layer) => layer.read_bytes + layer.written_bytes],
  ['weights', 'more bytes of weights', (layer) => layer.weight_bytes],
  ['error', 'less like float', (layer) => layer.similarity === undefined ? layer.max_abs_error : 1 - layer.similarity],
  ['bits', 'the number of bits', (layer) => layer.bits],
]);
const PLAIN = 'no colour';

class GraphView {
  /** @param {any} report @param {import('./selection.js').Selection} selection */
  constructor(report, selection) {
    this.nodes = report.graph;
    this.selection = selection;
    this.layers = new Map(layersOf(report).map((/** @type {any} */ layer) => [layer.node, layer]));
    this.weights = new Map();
    for (const weight of report.weights ?? []) this.weights.set(weight.used_by, [...(this.weights.get(weight.used_by) ?? []), weight]);
    /** @type {number[][]} */
    this.readers = this.nodes.map(() => []);
    this.nodes.forEach((/** @type {any} */ node, /** @type {number} */ i) => { for (const f of node.from) this.readers[f]?.push(i); });
    this.repeats = repeatsOf(this.nodes);
    this.open = new Set();
    this.colours = COLOURS.filter(([, , figure]) => [...this.layers.values()].some((layer) => (figure(layer) ?? 0) > 0));
    this.content = svg('g');
    this.picture = svg('svg', { width: '100%', height: '100%', role: 'group', 'aria-label': `Graph of ${this.nodes.length} operators` }, this.content);
    this.frame = h('div', { class: 'r-frame r-graph', tabindex: 0, role: 'region', 'aria-label': 'Graph: drag or arrow keys move it, plus and minus zoom, 0 shows all' }, this.picture);
    this.details = h('div', { class: 'r-details', 'aria-live': 'polite' }, h('p', { class: 'soft' }, 'Choose a node for its figures and attributes.'));
    this.legend = h('span', { class: 'soft' });
    this.found = h('span', { class: 'soft', role: 'status' });
    this.colour = h('select', { 'aria-label': 'Colour by', change: () => this.paint() },
      ...[...this.colours.map(([name]) => name), PLAIN].map((name) => h('option', { value: name }, `colour: ${name}`)));
    this.search = h('input', { type: 'search', placeholder: 'Search nodes', 'aria-label': 'Search nodes', input: () => this.find(false),
      keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter') this.find(true); } });
    this.size = { width: 1, height: 1 };
    this.panZoom = new PanZoom(this.frame, this.content, () => this.size);
    this.element = h('div', {}, this.bar(), h('div', { class: 'r-split' }, this.frame, this.details));
    this.at = -1;
    this.draw();
    // Only a frame that is seen has a size to fit.
    const seen = new ResizeObserver(() => { if (this.frame.clientWidth === 0) return; seen.disconnect(); this.onSeen(); });
    seen.observe(this.frame);
    selection.listen((name) => this.onChosen(name));
  }

  bar() {
    const fold = this.repeats.length === 0 ? null : button('Fold blocks', 'Fold blocks: fold or unfold all that repeat', () => {
      this.open = new Set(this.open.size ? [] : this.repeats);
      this.draw();
      this.panZoom.fit(false);
    });
    return h('div', { class: 'r-bar' }, this.search, this.found, this.colour, button('+', 'Zoom in', () => this.panZoom.zoomBy(1.25)),
      button('−', 'Zoom out', () => this.panZoom.zoomBy(0.8)), button('Fit', 'Fit: show all', () => this.panZoom.fit()), fold, this.legend);
  }

  onSeen() {
    this.panZoom.fit(false);
    if (this.selection.name) this.onChosen(this.selection.name);
  }

  draw() {
    const { items, itemOf } = itemsOf(this.nodes, this.repeats.filter((one) => !this.open.has(one)));
    this.items = items;
    this.itemOf = itemOf;
    const { rows, width, height } = place(items);
    this.rows = rows;
    this.size = { width, height };
    /** @type {SVGElement[]} */
    const edges = [];
    for (const item of items) {
      for (const f of item.from) edges.push(svg('path', { class: 'r-edge', d: edgePath(/** @type {any} */ (items[f]), item) }));
      for (const f of item.back) edges.push(svg('path', { class: 'r-edge r-back', d: edgePath(/** @type {any} */ (items[f]), item) }));
    }
    this.groups = items.map((item, i) => (item.repeat ? this.blockGroup(item) : this.nodeGroup(item, i)));
    this.content.replaceChildren(...edges, ...this.groups);
    this.groups[0]?.setAttribute('tabindex', '0');
    this.paint();
    this.find(false);
  }

  /** @param {import('./graph_layout.js').Item} item @param {number} i */
  nodeGroup(item, i) {
    const node = this.nodes[item.index];
    const block = this.repeats.find((one) => this.open.has(one) && one.start === item.index);
    const group = svg('g', { class: 'r-node', tabindex: -1, role: 'button', transform: `translate(${item.x},${item.y})`,
      click: () => this.selection.choose(node.name), keydown: (/** @type {KeyboardEvent} */ event) => this.onNodeKey(event, i) },
      svg('rect', { class: 'r-box', width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 }),
      svg('rect', { class: 'r-heat', width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 }),
      svg('text', { x: 9, y: 17, class: 'r-op' }, shorten(`${node.operator} ${shapeText(node.shape)}`, 29)),
      svg('text', { x: 9, y: 33 }, shorten(node.name, 29)), svg('title', {}, `${node.operator} ${node.name}`));
    if (block) group.append(svg('text', { class: 'r-fold', x: NODE_WIDTH - 8, y: 17, 'text-anchor': 'end' }, `×${block.times}`));
    return group;
  }

  /** @param {import('./graph_layout.js').Item} item */
  blockGroup(item) {
    const repeat = /** @type {import('./graph_layout.js').Repeat} */ (item.repeat);
    const unfold = () => { this.open.add(repeat); this.draw(); this.panZoom.show(); };
    return svg('g', { class: 'r-node r-block', tabindex: -1, role: 'button', transform: `translate(${item.x},${item.y})`,
      click: unfold, keydown: (/** @type {KeyboardEvent} */ event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); unfold(); } } },
      svg('rect', { class: 'r-box', width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 }), svg('rect', { class: 'r-heat', width: NODE_WIDTH, height: NODE_HEIGHT, rx: 5 }),
      svg('text', { x: 9, y: 17, class: 'r-op' }, `× ${repeat.times - 1} more`), svg('text', { x: 9, y: 33 }, `of ${repeat.period === 1 ? 'this node' : `these ${repeat.period} nodes`}; unfold`));
  }

  /** The layers that an item stands for. @param {import('./graph_layout.js').Item} item */
  layersOfItem(item) {
    const count = item.repeat ? item.repeat.period * (item.repeat.times - 1) : 1;
    return this.nodes.slice(item.index, item.index + count).map((/** @type {any} */ node) => this.layers.get(node.name)).filter(Boolean);
  }

  paint() {
    const colour = this.colours.find(([name]) => name === this.colour.value);
    const items = /** @type {import('./graph_layout.js').Item[]} */ (this.items);
    const figures = items.map((item) => colour ? Math.max(0, ...this.layersOfItem(item).map((/** @type {any} */ layer) => colour[2](layer) ?? 0)) : 0);
    const most = Math.max(0, ...figures);
    const bits = colour?.[0] === 'bits';
    (this.groups ?? []).forEach((group, i) => {
      const heat = /** @type {SVGElement} */ (group.querySelector('.r-heat'));
      const figure = figures[i] ?? 0;
      heat.setAttribute('class', `r-heat r-c${bits ? [4, 8, 16, 32].findIndex((width) => figure <= width) : 2}`);
      heat.setAttribute('fill-opacity', String(figure === 0 || most === 0 ? 0 : bits ? 0.35 : 0.08 + 0.62 * figure / most));
    });
    this.legend.textContent = !colour ? '' : bits ? `colours: ${[...new Set(figures)].filter(Boolean).sort((a, b) => a - b).join(', ')} bits`
      : `stronger: ${colour[1]}; the most is ${number(most)}`;
  }

  /** Marks what the search finds; goes on to the next one. @param {boolean} next */
  find(next) {
    const text = this.search.value.trim().toLowerCase();
    /** @type {number[]} */
    const hits = [];
    if (text) this.nodes.forEach((/** @type {any} */ node, /** @type {number} */ i) => { if (`${node.name} ${node.operator}`.toLowerCase().includes(text)) hits.push(i); });
    const items = new Set(hits.map((i) => this.itemOf?.[i]));
    (this.groups ?? []).forEach((group, i) => { group.classList.toggle('r-hit', items.has(i)); group.classList.toggle('r-miss', text !== '' && !items.has(i)); });
    this.found.textContent = text ? `${hits.length} found${hits.length > 1 ? ', Enter: next' : ''}` : '';
    if (!next || hits.length === 0) return;
    this.at = hits.find((i) => i > this.at) ?? /** @type {number} */ (hits[0]);
    this.selection.choose(this.nodes[this.at].name);
  }

  /** @param {string} name */
  onChosen(name) {
    const index = this.nodes.findIndex((/** @type {any} */ node) => node.name === name);
    if (index < 0) { this.mark(-1); return; }
    const hidden = this.repeats.find((one) => !this.open.has(one) && index >= one.start + one.period && index < one.start + one.period * one.times);
    if (hidden) { this.open.add(hidden); this.draw(); }
    const item = this.itemOf?.[index] ?? -1;
    this.mark(item);
    this.showDetails(index);
    const place = this.items?.[item];
    if (place && this.frame.clientWidth > 0 && !this.isInSight(place)) this.panZoom.centre(place.x + NODE_WIDTH / 2, place.y + NODE_HEIGHT / 2);
  }

  /** @param {import('./graph_layout.js').Item} item */
  isInSight(item) {
    const { x, y, zoom } = this.panZoom;
    const [left, top] = [x + item.x * zoom, y + item.y * zoom];
    return zoom > 0.3 && left >= 0 && top >= 0 && left + NODE_WIDTH * zoom <= this.frame.clientWidth && top + NODE_HEIGHT * zoom <= this.frame.clientHeight;
  }

  /** @param {number} item */
  mark(item) {
    (this.groups ?? []).forEach((group, i) => { group.classList.toggle('r-on', i === item); group.setAttribute('tabindex', i === item || (item < 0 && i === 0) ? '0' : '-1'); });
  }

  /** @param {number} index */
  showDetails(index) {
    const node = this.nodes[index];
    const layer = this.layers.get(node.name);
    const go = (/** @type {number} */ to) => h('button', { type: 'button', class: 'r-link mono r-wrap', click: () => this.selection.choose(this.nodes[to].name) }, this.nodes[to].name);
    const list = (/** @type {number[]} */ of) => of.length ? h('span', {}, ...of.map((to) => h('div', {}, go(to)))) : '';
    const figures = layer ? [['cycles', layer.share === undefined ? '' : `${number(layer.cycles)}, ${percent(layer.share)} of all`], ['utilisation', layer.utilisation === undefined ? '' : percent(layer.utilisation)],
      ['commands', number(layer.commands)], ['multiply-adds', number(layer.macs)], ['read, bytes', number(layer.read_bytes)], ['written, bytes', number(layer.written_bytes)],
      ['weights, bytes', layer.weight_bytes ? number(layer.weight_bytes) : ''], ['bits', layer.bits], ['largest error', layer.max_abs_error === undefined ? '' : number(layer.max_abs_error)],
      ['similarity to float', layer.similarity === undefined ? '' : number(layer.similarity)]] : [['commands', 'none of its own']];
    const constants = (this.weights.get(node.name) ?? []).map((/** @type {any} */ one) => h('div', { class: 'r-wrap' }, `${one.name} ${shapeText(one.shape)}, ${one.bits} bits`));
    this.details.replaceChildren(h('b', { class: 'mono r-wrap' }, node.name), definitions([['operator', node.operator], ['result', shapeText(node.shape)],
      ['reads', list(node.from)], ['read by', list(this.readers[index] ?? [])], ['weights', constants.length ? h('span', {}, ...constants) : ''],
      ...Object.entries(node.attributes ?? {}).map(([name, value]) => /** @type {[string, string]} */ ([name, String(value)])), .../** @type {[string, any][]} */ (figures)]),
      layer ? h('button', { type: 'button', click: () => this.selection.chooseIn('nodes', node.name) }, 'Its row in the list of layers') : '');
  }

  /** @param {KeyboardEvent} event @param {number} i of the item */
  onNodeKey(event, i) {
    const items = /** @type {import('./graph_layout.js').Item[]} */ (this.items);
    const item = /** @type {import('./graph_layout.js').Item} */ (items[i]);
    const row = this.rows?.[item.row] ?? [];
    const beside = (/** @type {number} */ step) => items.indexOf(/** @type {any} */ (row[row.indexOf(item) + step]));
    const to = { ArrowUp: item.from[0] ?? -1, ArrowDown: items.findIndex((one) => one.from.includes(i)), ArrowLeft: beside(-1), ArrowRight: beside(1) }[event.key];
    if (event.key === 'Enter' || event.key === ' ') this.selection.choose(this.nodes[item.index].name);
    else if (to === undefined) return;
    else if (to >= 0) {
      const next = /** @type {SVGElement} */ (this.groups?.[to]);
      next.focus({ preventScroll: true });
      const place = /** @type {import('./graph_layout.js').Item} */ (items[to]);
      if (!this.isInSight(place)) this.panZoom.centre(place.x + NODE_WIDTH / 2, place.y + NODE_HEIGHT / 2);
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export const drawGraph = (report, selection) => new GraphView(report, selection).element;
