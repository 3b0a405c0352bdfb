// Draws a profile from the JSON in this file; nothing is fetched.
import { h, number, percent } from './dom.js';
import { sortedTable } from './table.js';

/** How figures of this name read. @param {string} name */
const showFigure = (name) => name.endsWith(' Utilization') ? percent : number;

/** @param {any} profile */
function detailedData(profile) {
  const rows = profile.profile_data;
  const names = rows.length > 0 ? Object.keys(rows[0].runtime_information) : [];
  const columns = [{ name: 'Layer Name', text: true, value: (/** @type {any} */ row) => row.name },
    ...names.map((name) => ({
      name,
      text: name === 'Input Shapes',
      whole: name === 'Input Shapes',
      value: (/** @type {any} */ row) => row.runtime_information[name],
      show: name === 'Input Shapes' ? String : showFigure(name),
    }))];
  return sortedTable({ label: 'Detailed Data', columns, rows, sortBy: Math.max(0, names.indexOf('Cycles') + 1) }).element;
}

/** @param {any} profile */
function profileSummary(profile) {
  const rows = [['Frequency (MHz)', number(profile.frequency)],
    ...Object.entries(profile.summary).map(([name, value]) => [name, showFigure(name)(value)])];
  const table = h('table', {}, h('tbody', {}, ...rows.map(([name, value]) => h('tr', {}, h('th', { class: 'r-text', scope: 'row' }, name), h('td', {}, value)))));
  return h('div', { class: 'r-frame r-table' }, table);
}

function drawProfile() {
  const profile = JSON.parse(/** @type {HTMLElement} */ (document.getElementById('report-data')).textContent ?? '{}');
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  const nav = /** @type {HTMLElement} */ (document.getElementById('nav'));
  const title = `Profiler Report: ${profile.graph_name}`;
  document.title = title;
  /** @type {HTMLElement} */ (document.getElementById('title')).textContent = title;
  /** @type {HTMLElement} */ (document.getElementById('subtitle')).textContent =
    'Cycles are the simulator\u2019s estimate, not measured on silicon. Utilization is the share of the cycles in which a unit is busy.';
  main.replaceChildren();
  /** @type {[string, string, HTMLElement][]} */
  const parts = [['detailed', 'Detailed Data', detailedData(profile)], ['summary', 'Summary', profileSummary(profile)]];
  for (const [id, name, content] of parts) {
    nav.append(h('a', { href: `#${id}` }, name));
    main.append(h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, name), content));
  }
}

drawProfile();
