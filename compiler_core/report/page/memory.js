// Memory over time: which buffer lies where while which command runs, and why the peak is as high.
import { button, h, number, percent, svg } from './dom.js';
import { aliveAt, aliveSteps, peakOf } from './facts.js';
import { sortedTable } from './table.js';

const MAP_WIDTH = 1100;
const MAP_HEIGHT = 400;
const MAP_LEFT = 76;
const MAP_BOTTOM = 26;
const NAME_WIDTH = 60;
const NAME_HEIGHT = 12;

class MemoryView {
  /** @param {any} report @param {import('./selection.js').Selection} selection */
  constructor(report, selection) {
    this.map = report.memory_map;
    this.plan = report.memory_plan;
    this.selection = selection;
    this.arena = Math.max(1, this.plan.arena_bytes);
    this.from = 0;
    this.to = Math.max(1, this.map.commands);
    this.peak = peakOf(this.map);
    this.at = this.peak.command;
    this.picture = svg('svg', { viewBox: `0 0 ${MAP_WIDTH} ${MAP_HEIGHT}`, width: '100%', role: 'img', 'aria-label': 'Buffers over addresses and commands' });
    this.frame = h('div', { class: 'r-frame r-memory', tabindex: 0, role: 'group', 'aria-label': 'Memory over time: arrow keys move the moment, plus and minus zoom',
      keydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event) }, this.picture);
    this.picture.addEventListener('click', (event) => this.onClick(/** @type {MouseEvent} */ (event)));
    this.frame.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    this.moment = h('div');
    this.element = h('div', {}, h('p', {}, this.sentence()),
      h('div', { class: 'r-bar' }, button('+', 'Zoom into time', () => this.zoom(0.6)), button('−', 'Zoom out of time', () => this.zoom(1 / 0.6)),
        button('All', 'All of the time', () => this.show(0, this.map.commands)), button('Peak', 'Peak: go there', () => { this.at = this.peak.command; this.zoomAround(); }),
        h('span', { class: 'soft' }, 'Choose a moment in the picture to see what lives then.')), this.frame, this.moment);
    this.draw();
  }

  sentence() {
    const { arena_bytes: arena, liveness_bound_bytes: bound, method } = this.plan;
    const gap = arena - bound;
    return `The arena has ${number(arena)} bytes (${method}). At command ${number(this.peak.command)} ${number(this.peak.bytes)} bytes live at once; no order of addresses ` +
      `needs less than ${number(bound)} (dashed). ${gap > 0 ? `${number(gap)} bytes are lost between buffers.` : 'No byte is lost between buffers.'}`;
  }

  x = (/** @type {number} */ time) => MAP_LEFT + (MAP_WIDTH - MAP_LEFT - 8) * (time - this.from) / (this.to - this.from);
  y = (/** @type {number} */ count) => 10 + (MAP_HEIGHT - MAP_BOTTOM - 10) * (1 - count / this.arena);

  draw() {
    const { x, y } = this;
    const clip = svg('clipPath', { id: 'r-memory-clip' }, svg('rect', { x: MAP_LEFT, y: 0, width: MAP_WIDTH - MAP_LEFT - 8, height: MAP_HEIGHT - MAP_BOTTOM + 1 }));
    const inside = svg('g', { 'clip-path': 'url(#r-memory-clip)' });
    this.map.buffers.forEach((/** @type {any} */ buffer, /** @type {number} */ i) => {
      if (buffer.last < this.from || buffer.first > this.to) return;
      this.drawBuffer(inside, buffer, i);
    });
    inside.append(svg('path', { class: 'r-alive', d: this.alivePath() }),
      svg('line', { class: 'r-moment', x1: x(this.at + 0.5), x2: x(this.at + 0.5), y1: 0, y2: MAP_HEIGHT - MAP_BOTTOM }));
    const bound = y(this.plan.liveness_bound_bytes) + 1;
    this.picture.replaceChildren(clip, inside, svg('line', { class: 'r-bound', x1: MAP_LEFT, x2: MAP_WIDTH - 8, y1: bound, y2: bound }),
      svg('line', { class: 'r-axis', x1: MAP_LEFT, x2: MAP_WIDTH, y1: y(0), y2: y(0) }),
      ...[0, 0.25, 0.5, 0.75, 1].map((share) => svg('text', { x: MAP_LEFT - 6, y: y(share * this.arena) + 4, 'text-anchor': 'end' }, number(Math.round(share * this.arena)))),
      svg('text', { x: MAP_LEFT, y: MAP_HEIGHT - 8 }, `command ${number(Math.round(this.from))}`),
      svg('text', { x: MAP_WIDTH - 8, y: MAP_HEIGHT - 8, 'text-anchor': 'end' }, `command ${number(Math.round(this.to))}`));
    this.showMoment();
  }

  /** @param {SVGElement} box @param {any} buffer @param {number} i */
  drawBuffer(box, buffer, i) {
    const left = this.x(buffer.first);
    const top = this.y(buffer.offset + buffer.bytes);
    const width = Math.max(0.7, this.x(buffer.last + 1) - left);
    const height = Math.max(0.7, this.y(buffer.offset) - top);
    box.append(svg('rect', { class: `r-buffer r-c${i % 4}`, x: left, y: top, width, height },
      svg('title', {}, `${buffer.node}: ${number(buffer.bytes)} bytes at ${number(buffer.offset)}, commands ${buffer.first} to ${buffer.last}`)));
    const seen = Math.min(left + width, MAP_WIDTH) - Math.max(left, MAP_LEFT);
    if (seen < NAME_WIDTH || height < NAME_HEIGHT) return;
    const most = Math.floor(seen / 6.2);
    const name = buffer.node.length > most ? `…${buffer.node.slice(1 - most)}` : buffer.node;
    box.append(svg('text', { class: 'r-name', x: Math.max(left, MAP_LEFT) + 4, y: top + height / 2 + 4 }, name));
  }

  alivePath() {
    let path = '';
    let before = 0;
    for (const [time, alive] of aliveSteps(this.map.buffers)) {
      path += `${path ? 'L' : 'M'}${this.x(time)},${this.y(before)}L${this.x(time)},${this.y(alive)}`;
      before = alive;
    }
    return path;
  }

  showMoment() {
    const alive = aliveAt(this.map, this.at);
    const sum = alive.reduce((/** @type {number} */ all, /** @type {any} */ one) => all + one.bytes, 0);
    const table = sortedTable({ label: 'Buffers that live then', rows: alive, sortBy: 1, total: 'alive', choose: (row) => this.selection.chooseIn('nodes', row.node), columns: [
      { name: 'buffer of', text: true, value: (row) => row.node }, { name: 'bytes', sums: true, value: (row) => row.bytes },
      { name: 'share of the arena', sums: true, show: percent, value: (row) => row.bytes / this.arena }, { name: 'at address', value: (row) => row.offset },
      { name: 'from command', value: (row) => row.first }, { name: 'to command', value: (row) => row.last },
    ] });
    this.moment.replaceChildren(h('h3', {}, this.at === this.peak.command ? `Why the peak: at command ${number(this.at)} these live together, ${number(sum)} bytes`
      : `At command ${number(this.at)} ${number(sum)} bytes live, ${percent(sum / Math.max(1, this.peak.bytes))} of the peak`), table.element);
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    const width = Math.min(this.map.commands, Math.max(4, to - from));
    this.from = Math.max(0, Math.min(from, this.map.commands - width));
    this.to = Math.max(this.from + 1, this.from + width);
    this.draw();
  }
  /** @param {number} factor of the time that shows */
  zoom(factor, around = this.at) {
    const share = Math.min(1, Math.max(0, (around - this.from) / (this.to - this.from)));
    const width = Math.min(this.map.commands, Math.max(4, (this.to - this.from) * factor));
    this.show(around - share * width, around - share * width + width);
  }
  zoomAround() {
    const width = this.to - this.from;
    if (this.at >= this.from && this.at <= this.to) this.draw(); else this.show(this.at - width / 2, this.at + width / 2);
  }

  /** @param {number} clientX @returns {number} */
  timeAt(clientX) {
    const box = this.picture.getBoundingClientRect();
    const x = (clientX - box.left) / box.width * MAP_WIDTH;
    return this.from + (this.to - this.from) * (x - MAP_LEFT) / (MAP_WIDTH - MAP_LEFT - 8);
  }
  /** @param {MouseEvent} event */
  onClick(event) {
    this.frame.focus({ preventScroll: true });
    this.at = Math.min(this.map.commands, Math.max(0, Math.floor(this.timeAt(event.clientX))));
    this.draw();
  }
  /** @param {WheelEvent} event */
  onWheel(event) {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.frame) return;
    event.preventDefault();
    this.zoom(Math.exp(event.deltaY / 400), this.timeAt(event.clientX));
  }
  /** @param {KeyboardEvent} event */
  onKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    const zoom = { '+': 0.6, '=': 0.6, '-': 1 / 0.6 }[event.key];
    if (step) { this.at = Math.min(this.map.commands, Math.max(0, this.at + step)); this.zoomAround(); }
    else if (zoom) this.zoom(zoom);
    else if (event.key === '0') this.show(0, this.map.commands);
    else return;
    event.preventDefault();
  }
}

/** @param {any} report @returns {boolean} */
export const hasMemory = (report) => Boolean(report.memory_plan) && (report.memory_map?.buffers ?? []).length > 0;

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export const drawMemory = (report, selection) => new MemoryView(report, selection).element;
