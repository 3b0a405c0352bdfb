// Draws the report from the JSON in this file; nothing is fetched.
import { h, number } from './dom.js';
import { Selection } from './selection.js';
import { VIEWS } from './views.js';

/** @param {any} report */
function ports(report) {
  const box = h('div', {}, h('h3', {}, 'Inputs and outputs'));
  for (const [kind, list] of [['input', report.inputs], ['output', report.outputs]]) {
    for (const port of list ?? []) {
      box.append(h('p', { class: 'mono r-wrap' }, `${kind} ${port.name}  ${port.type}${port.state_of ? `, fed back into ${port.state_of}` : ''}`));
    }
  }
  const model = report.cycle_model;
  if (model) {
    box.append(h('p', { class: 'soft' }, `Cycles are an estimate, not measured on silicon: ${model.register_sets > 1 ? `for each command` : `for each command ${model.command_cycles} plus`} the larger of computing ` +
      `(${model.macs_per_cycle} multiply-adds or ${model.elements_per_cycle} elements a cycle) and moving (${model.bytes_per_cycle} bytes a cycle).` +
      (model.register_sets > 1 ? ` Fetching a command takes ${model.command_cycles}, while the core's command before runs.` : '') +
      (model.cores ? ` ${model.cores} cores work side by side from barrier to barrier, as long as the slowest of them; each has a port to the memory.` : '')));
  }
  return box;
}

/** @param {any} report */
function notes(report) {
  const box = h('div');
  for (const note of report.diagnostics ?? []) {
    const kind = / error: /.test(note.text) ? 'error' : / warning: /.test(note.text) ? 'warning' : '';
    box.append(h('p', { class: `note ${kind}` }, note.text));
  }
  if (!box.hasChildNodes()) box.append(h('p', { class: 'soft' }, 'None.'));
  return box;
}

/** @param {any} report */
function config(report) {
  const list = h('dl', { class: 'config mono' });
  for (const [key, value] of Object.entries(report.config)) {
    list.append(h('dt', {}, key), h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value)));
  }
  return list;
}

function drawPage() {
  const report = JSON.parse(/** @type {HTMLElement} */ (document.getElementById('report-data')).textContent ?? '{}');
  const main = /** @type {HTMLElement} */ (document.getElementById('main'));
  const nav = /** @type {HTMLElement} */ (document.getElementById('nav'));
  const selection = new Selection();
  selection.show = (id) => document.getElementById(id)?.scrollIntoView();
  const section = (/** @type {string} */ id, /** @type {string} */ title, /** @type {HTMLElement} */ content) => {
    nav.append(h('a', { href: `#${id}` }, title));
    const left = report.omitted?.[id];
    main.append(h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), content,
      left ? h('p', { class: 'soft' }, `${number(left)} more are not shown.`) : null));
  };
  const title = /** @type {HTMLElement} */ (document.getElementById('title'));
  title.textContent = report.model || 'npuc report';
  document.title = `${report.model || 'model'} – npuc report`;
  /** @type {HTMLElement} */ (document.getElementById('subtitle')).textContent = [report.core, report.npu_unit, report.compiler,
    report.model_md5 && `MD5 ${report.model_md5}`].filter(Boolean).join(' · ');
  main.replaceChildren();
  for (const view of VIEWS) {
    if (!view.has(report)) continue;
    const content = view.draw(report, selection);
    if (view.id === 'overview') content.append(ports(report));
    section(view.id, view.title, content);
  }
  section('notes', 'Notes and warnings', notes(report));
  if (report.config) section('config', 'Config', config(report));
}

drawPage();
