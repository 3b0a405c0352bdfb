// Lists of a report: layers, accuracy, transposes that are left.
import { h, number, percent, shapeText } from './dom.js';
import { layersOf } from './facts.js';
import { sortedTable } from './table.js';

/** @param {any} report @param {any[]} rows */
function layerColumns(report, rows) {
  const has = (/** @type {string} */ key) => rows.some((row) => row[key] !== undefined);
  /** @param {string} name @param {string} key @param {object} more */
  const figure = (name, key, more = {}) => ({ name, value: (/** @type {any} */ row) => row[key], ...more });
  const columns = [
    { name: 'layer', text: true, value: (/** @type {any} */ row) => row.node },
    { name: 'operator', text: true, whole: true, value: (/** @type {any} */ row) => row.operator ?? row.layer_type ?? '' },
    figure('order', 'index', { hidden: true, title: 'place in the order of the report' }),
  ];
  if (has('shape')) columns.push({ name: 'result', text: true, whole: true, value: (row) => shapeText(row.shape) });
  if (report.cycle_model) {
    columns.push(figure('cycles (est.)', 'cycles', { sums: true }), figure('share', 'share', { show: percent, sums: true }),
      figure('utilisation', 'utilisation', { show: percent, title: 'multiply-adds of what the multipliers could do in these cycles' }));
  }
  if (has('cores_text')) columns.push({ name: 'cores', text: true, whole: true, value: (row) => row.cores_text ?? '' });
  if (has('shared_by')) columns.push({ name: 'shared by', text: true, whole: true, value: (row) => row.shared_by === 'one core' ? 'one core' : `${row.shared_by}, ${row.parts} parts` });
  columns.push(figure('commands', 'commands', { sums: true }), figure('multiply-adds', 'macs', { sums: true }),
    figure('elements', 'elements', { sums: true, hidden: true }), figure('read, bytes', 'read_bytes', { sums: true, hidden: true }),
    figure('written, bytes', 'written_bytes', { sums: true, hidden: true }));
  if (has('data_bytes')) columns.push(figure('data, bytes', 'data_bytes', { title: 'of the buffers that its commands touch; layers share buffers, so they do not add up' }));
  if (has('weight_bytes')) columns.push(figure('weights, bytes', 'weight_bytes', { sums: true }));
  for (const [name, key] of [['bits', 'bits'], ['weight error', 'weight_error'], ['largest error', 'max_abs_error'],
    ['rms error', 'rms_error'], ['largest in float', 'max_abs_float'], ['similarity', 'similarity']]) {
    if (has(key)) columns.push(figure(name, key, { hidden: key === 'max_abs_float' }));
  }
  return columns;
}

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export function drawLayers(report, selection) {
  /** @type {any[]} */
  const rows = layersOf(report);
  const columns = layerColumns(report, rows);
  const byCost = columns.findIndex((column) => column.name.startsWith('cycles'));
  const linked = (report.graph ?? []).length > 0;
  const table = sortedTable({ label: 'Layers', columns, rows, sortBy: byCost >= 0 ? byCost : 3, keyOf: (row) => row.node, total: 'all shown',
    choose: linked ? (row) => selection.chooseIn('graph', row.node) : undefined });
  selection.listen((name) => table.mark(name));
  const element = h('div', {}, table.element);
  const size = report.sizes_bytes?.weight_content;
  const listed = rows.reduce((sum, row) => sum + (row.weight_bytes ?? 0), 0);
  if (size !== undefined && size !== listed && rows.some((row) => row.weight_bytes !== undefined)) {
    element.append(h('p', { class: 'soft' }, `The section of weights has ${number(size)} bytes, the layers ${number(listed)}: ` +
      (size > listed ? 'the rest aligns weights or holds values of no single layer.' : 'layers that share a weight count it each.')));
  }
  if (report.config && report.command_set !== 'integer' && !rows.some((row) => row.similarity !== undefined)) {
    element.append(h('p', { class: 'soft' }, 'For each layer\'s error against float32 set LAYER_ERROR_FRAMES in the config.'));
  }
  return element;
}

/** @param {any} report @returns {HTMLElement} */
export function drawAccuracy(report) {
  const found = report.metrics;
  const show = (/** @type {number | null} */ value) => value === null ? 'equal to float' : number(value);
  const table = sortedTable({ label: 'Accuracy', rows: found.figures, sortBy: 1, columns: [
    { name: 'metric', text: true, value: (row) => row.metric },
    { name: 'output', text: true, value: (row) => row.output },
    { name: 'float', value: (row) => row.float },
    { name: 'quantized', value: (row) => row.quantized, show },
  ] });
  return h('div', {}, h('p', {}, `Over ${number(found.items)} items of ${found.source}; the quantized model was run by ${found.by}. ` +
    'Differences are from the float model.'), table.element);
}

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export function drawTransposes(report, selection) {
  const list = report.transposes;
  const cycles = new Map((report.nodes ?? []).map((/** @type {any} */ node) => [node.node, node.cycles]));
  const table = sortedTable({ label: 'Transposes that are left', rows: list, sortBy: 0, keyOf: (row) => row.node,
    choose: (row) => selection.chooseIn('graph', row.node), columns: [
      { name: 'layer', text: true, value: (row) => row.node },
      { name: 'shape', text: true, whole: true, value: (row) => shapeText(row.shape) },
      { name: 'order', text: true, whole: true, value: (row) => shapeText(row.permutation) },
      { name: 'cycles of the layer', value: (row) => cycles.get(row.node) },
      { name: 'why', text: true, value: (row) => row.reason },
    ] });
  selection.listen((name) => table.mark(name));
  return h('div', {}, h('p', { class: 'soft' }, 'Each moves data and computes nothing.'), table.element);
}
