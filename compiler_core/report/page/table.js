// A table that sorts by its columns, shows those that are chosen, filters its rows, and adds up.
import { h, number } from './dom.js';

/** `whole`: its text is not broken into lines.
 *  @typedef {{name: string, text?: boolean, whole?: boolean, sums?: boolean, hidden?: boolean, value: (row: any) => any,
 *             show?: (value: any) => string, title?: string}} Column */
/** @typedef {{label: string, columns: Column[], rows: any[], sortBy: number, keyOf?: (row: any) => string,
 *             choose?: (row: any) => void, total?: string}} TableOptions */

class SortedTable {
  /** @param {TableOptions} options */
  constructor(options) {
    this.options = options;
    this.shown = options.columns.map((column) => !column.hidden);
    this.sorted = options.sortBy;
    this.down = !options.columns[options.sortBy]?.text;
    this.chosen = '';
    this.head = h('tr');
    this.body = h('tbody');
    this.foot = h('tfoot');
    this.filter = h('input', { type: 'search', placeholder: 'Filter rows', 'aria-label': `Filter rows of ${options.label}`, input: () => this.fill() });
    this.count = h('span', { class: 'soft', role: 'status' });
    this.frame = h('div', { class: 'r-frame r-table', tabindex: 0, role: 'region', 'aria-label': `${options.label}, scrolls` },
      h('table', {}, h('thead', {}, this.head), this.body, this.foot));
    const many = options.rows.length > 8;
    this.element = h('div', {}, h('div', { class: 'r-bar' }, many ? this.filter : null, this.columnChooser(), many ? this.count : null), this.frame);
    this.fill();
  }

  columnChooser() {
    const { columns } = this.options;
    if (columns.length < 6) return null;
    const boxes = columns.map((column, i) => {
      const box = h('input', { type: 'checkbox', change: () => { this.shown[i] = box.checked; this.fill(); } });
      box.checked = this.shown[i] ?? true;
      return i === 0 ? null : h('label', {}, box, ` ${column.name}`);
    });
    return h('details', { class: 'r-columns' }, h('summary', {}, 'Columns'), h('div', { class: 'r-choices' }, ...boxes));
  }

  wanted() {
    const text = this.filter.value.toLowerCase();
    const { rows, columns } = this.options;
    if (!text) return rows;
    return rows.filter((row) => columns.some((column) => column.text && String(column.value(row)).toLowerCase().includes(text)));
  }

  fill() {
    const { columns, rows } = this.options;
    const key = columns[this.sorted]?.value ?? (() => 0);
    const found = this.wanted();
    const order = [...found].sort((a, b) => {
      const [p, q] = [key(a), key(b)];
      // What has no figure stands last, whichever way the table is sorted.
      const [noP, noQ] = [p === undefined || p === null, q === undefined || q === null];
      if (noP || noQ) return Number(noP) - Number(noQ);
      const least = typeof p === 'number' ? p - q : String(p).localeCompare(String(q));
      return this.down ? -least : least;
    });
    const visible = columns.filter((_, i) => this.shown[i]);
    this.head.replaceChildren(...columns.map((column, i) => this.headCell(column, i)).filter((_, i) => this.shown[i]));
    this.body.replaceChildren(...order.map((row) => this.row(row, visible)));
    this.foot.replaceChildren(...this.total(found, visible));
    this.count.textContent = found.length === rows.length ? `${rows.length} rows` : `${found.length} of ${rows.length} rows`;
    if (found.length === 0) this.body.append(h('tr', {}, h('td', { class: 'r-text soft', colspan: visible.length }, rows.length ? 'No row has that.' : 'None.')));
    this.mark(this.chosen, false);
  }

  /** @param {Column} column @param {number} i */
  headCell(column, i) {
    const sort = () => {
      this.down = this.sorted === i ? !this.down : !column.text;
      this.sorted = i;
      this.fill();
    };
    const order = i !== this.sorted ? 'none' : this.down ? 'descending' : 'ascending';
    const arrow = i !== this.sorted ? '' : this.down ? ' ▾' : ' ▴';
    return h('th', { class: column.text ? 'r-text' : '', scope: 'col', 'aria-sort': order, title: column.title },
      h('button', { type: 'button', click: sort }, column.name + arrow));
  }

  /** @param {any} row @param {Column[]} visible */
  row(row, visible) {
    const { keyOf, choose } = this.options;
    const cells = visible.map((column, i) => {
      const value = column.value(row);
      const text = value === undefined || value === null ? '–' : (column.show ?? (column.text ? String : number))(value);
      const kind = column.text ? `r-text mono${column.whole ? ' r-whole' : ''}` : '';
      if (i > 0 || !choose) return h('td', { class: kind }, text);
      return h('td', { class: kind }, h('button', { type: 'button', class: 'r-link mono', click: () => choose(row) }, text));
    });
    return h('tr', keyOf ? { 'data-key': keyOf(row) } : {}, ...cells);
  }

  /** @param {any[]} rows @param {Column[]} visible */
  total(rows, visible) {
    if (!this.options.total || rows.length < 2 || !visible.some((column) => column.sums)) return [];
    return [h('tr', {}, ...visible.map((column, i) => {
      if (i === 0) return h('th', { class: 'r-text', scope: 'row' }, this.options.total);
      if (!column.sums) return h('td');
      const sum = rows.reduce((all, row) => all + (column.value(row) ?? 0), 0);
      return h('td', {}, (column.show ?? number)(sum));
    }))];
  }

  /** Marks a row and brings it into sight. @param {string} key @param {boolean} scrolls */
  mark(key, scrolls = true) {
    this.chosen = key;
    for (const row of /** @type {HTMLElement[]} */ ([...this.body.children])) {
      const on = key !== '' && row.dataset.key === key;
      row.classList.toggle('r-on', on);
      if (on && scrolls) this.frame.scrollTop = Math.max(0, row.offsetTop - this.frame.clientHeight / 2);
    }
  }
}

/** @param {TableOptions} options */
export const sortedTable = (options) => new SortedTable(options);
