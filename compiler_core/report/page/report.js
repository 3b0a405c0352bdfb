'use strict';
// Draws the report from the JSON in this file; nothing is fetched. Each figure is one of the JSON's
// or a sum or quotient of such.
(() => {
  const report = JSON.parse(document.getElementById('report-data').textContent);
  const main = document.getElementById('main');
  const nav = document.getElementById('nav');
  const SVG = 'http://www.w3.org/2000/svg';

  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  function svg(name, attributes = {}, ...children) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  const number = (value) => typeof value === 'number'
      ? (Number.isInteger(value) ? value.toLocaleString('en-US') : String(+value.toPrecision(4)))
      : String(value ?? '');
  const percent = (value) => (100 * value).toFixed(1) + ' %';
  const shape = (dims) => (dims ? '[' + dims.join(',') + ']' : '');

  function section(id, title, ...children) {
    nav.append(el('a', { href: '#' + id }, title));
    const node = el('section', { id, 'aria-labelledby': id + '-title' },
                    el('h2', { id: id + '-title' }, title), ...children);
    const left = (report.omitted || {})[id];
    if (left) node.append(el('p', { class: 'soft' }, number(left) + ' more are not shown.'));
    main.append(node);
    return node;
  }
  function tile(label, value, remark) {
    const node = el('div', { class: 'tile' }, el('span', {}, label), el('b', {}, value));
    if (remark) node.append(el('span', {}, remark));
    return node;
  }
  function definitions(entries) {
    const list = el('dl');
    for (const [key, value] of entries) {
      if (value === undefined || value === '') continue;
      list.append(el('dt', {}, key), el('dd', {}, value));
    }
    return list;
  }

  const model = report.cycle_model;
  const frame = report.per_frame;
  const cyclesOf = (entry) => (model ? entry.cycles : 0);
  const utilisation = (entry) =>
      model && entry.cycles > 0 ? entry.macs / (entry.cycles * model.macs_per_cycle) : 0;

  function overview() {
    const sizes = report.sizes_bytes || {};
    const tiles = el('div', { class: 'tiles' });
    const add = (label, value, remark) => {
      if (value !== undefined) tiles.append(tile(label, number(value), remark));
    };
    add('npu_size, bytes', sizes.npu_size);
    add('total_size, bytes', sizes.total_size);
    add('data_content, bytes', sizes.data_content,
        report.memory_plan && 'bound ' + number(report.memory_plan.liveness_bound_bytes));
    add('weights, bytes', sizes.weight_content);
    if (frame) {
      add('commands', frame.commands);
      add('multiply-adds a frame', frame.macs);
      add('bytes moved a frame', frame.read_bytes + frame.written_bytes);
      if (model) add('cycles a frame', frame.cycles, 'an estimate');
      if (model) tiles.append(tile('utilisation', percent(utilisation(frame)), 'of the multipliers'));
    }
    const ports = el('div');
    for (const [kind, list] of [['input', report.inputs], ['output', report.outputs]]) {
      for (const port of list || []) {
        ports.append(el('p', { class: 'mono' }, kind + ' ' + port.name + '  ' + port.type +
            (port.state_of ? ', fed back into ' + port.state_of : '')));
      }
    }
    section('overview', 'Overview', tiles, ports);
    if (!model) return;
    main.lastChild.append(el('p', { class: 'soft' },
        'Cycles are an estimate, not measured on silicon: for each command ' +
        model.command_cycles + ' plus the larger of computing (' + model.macs_per_cycle +
        ' multiply-adds or ' + model.elements_per_cycle + ' elements a cycle) and moving (' +
        model.bytes_per_cycle + ' bytes a cycle).'));
  }

  // Rows of positions: each node below all that it reads.
  function layers(nodes) {
    const depth = [];
    const rows = [];
    nodes.forEach((node, i) => {
      depth[i] = node.from.reduce((most, f) => (f < i ? Math.max(most, depth[f] + 1) : most), 0);
      (rows[depth[i]] ||= []).push(i);
    });
    return rows;
  }
  function graph() {
    const nodes = report.graph;
    if (!nodes || nodes.length === 0) return;
    const WIDTH = 170, HEIGHT = 34, GAP_X = 16, GAP_Y = 26;
    const rows = layers(nodes);
    const widest = Math.max(...rows.map((row) => row.length));
    const width = widest * (WIDTH + GAP_X) + GAP_X;
    const height = rows.length * (HEIGHT + GAP_Y) + GAP_Y;
    const at = [];
    rows.forEach((row, y) => row.forEach((i, x) => {
      at[i] = { x: width / 2 + (x - row.length / 2) * (WIDTH + GAP_X) + GAP_X / 2,
                y: GAP_Y + y * (HEIGHT + GAP_Y) };
    }));
    const use = new Map((report.nodes || []).map((entry) => [entry.node, entry]));
    const details = el('div', { class: 'details', 'aria-live': 'polite' },
                       el('p', { class: 'soft' }, 'Choose a layer for its figures.'));
    const picture = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group',
                                 'aria-label': 'Graph of ' + nodes.length + ' operators' });
    nodes.forEach((node, i) => node.from.forEach((f) => {
      if (!at[f]) return;
      const x1 = at[f].x + WIDTH / 2, y1 = at[f].y + HEIGHT, x2 = at[i].x + WIDTH / 2, y2 = at[i].y;
      const bend = Math.max(GAP_Y / 2, (y2 - y1) / 2);
      picture.append(svg('path', { class: 'edge',
                                   d: `M${x1},${y1}C${x1},${y1 + bend} ${x2},${y2 - bend} ${x2},${y2}` }));
    }));
    let chosen = null;
    nodes.forEach((node, i) => {
      const short = node.name.length > 24 ? '…' + node.name.slice(-23) : node.name;
      const group = svg('g', { class: 'node', tabindex: 0, role: 'button',
                               transform: `translate(${at[i].x},${at[i].y})`,
                               'aria-label': node.operator + ' ' + node.name },
                        svg('rect', { width: WIDTH, height: HEIGHT, rx: 4 }),
                        svg('text', { x: 8, y: 14, 'font-weight': 600 }, node.operator + ' ' + shape(node.shape)),
                        svg('text', { x: 8, y: 27 }, short));
      const choose = () => {
        if (chosen) chosen.classList.remove('on');
        chosen = group;
        group.classList.add('on');
        const entry = use.get(node.name);
        details.replaceChildren(el('b', { class: 'mono' }, node.name), definitions([
          ['operator', node.operator], ['result', shape(node.shape)],
          ...(entry ? [['commands', number(entry.commands)], ['multiply-adds', number(entry.macs)],
            ['elements', number(entry.elements)], ['read, bytes', number(entry.read_bytes)],
            ['written, bytes', number(entry.written_bytes)],
            ['cycles', model ? number(entry.cycles) : ''],
            ['utilisation', model ? percent(utilisation(entry)) : ''],
            ['weights, bytes', number(entry.weight_bytes)],
            ['largest error', entry.max_abs_error === undefined ? '' : number(entry.max_abs_error)],
            ['similarity to float', entry.similarity === undefined ? '' : number(entry.similarity)]] : [['commands', '0']]),
        ]));
      };
      group.addEventListener('click', choose);
      group.addEventListener('keydown', (event) => {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); }
      });
      picture.append(group);
    });
    const box = el('div', { class: 'frame', style: 'max-height:560px', tabindex: 0,
                            role: 'region', 'aria-label': 'Graph, scrolls' }, picture);
    let zoom = 1;
    const show = (factor) => {
      zoom = Math.min(4, Math.max(0.1, factor));
      picture.setAttribute('width', width * zoom);
      picture.setAttribute('height', height * zoom);
    };
    const button = (text, label, act) => {
      const node = el('button', { type: 'button', 'aria-label': label }, text);
      node.addEventListener('click', act);
      return node;
    };
    box.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      show(zoom * (event.deltaY < 0 ? 1.15 : 1 / 1.15));
    }, { passive: false });
    section('graph', 'Graph',
            el('div', { class: 'bar' }, button('+', 'Zoom in', () => show(zoom * 1.25)),
               button('−', 'Zoom out', () => show(zoom / 1.25)), button('1:1', 'Full size', () => show(1)),
               button('Fit', 'Fit the width', () => show((box.clientWidth - 4) / width)),
               el('span', { class: 'soft' }, 'Ctrl and the wheel zoom.')),
            el('div', { class: 'split' }, box, details));
    if (width > 1100) show(0.7);
  }

  // Bytes alive at each command, as corners of a staircase.
  function alive(buffers) {
    const change = new Map();
    for (const buffer of buffers) {
      change.set(buffer.first, (change.get(buffer.first) || 0) + buffer.bytes);
      change.set(buffer.last + 1, (change.get(buffer.last + 1) || 0) - buffer.bytes);
    }
    let bytes = 0;
    return [...change.keys()].sort((a, b) => a - b).map((time) => [time, bytes += change.get(time)]);
  }
  function memory() {
    const map = report.memory_map;
    if (!map || map.buffers.length === 0) return;
    const WIDTH = 1100, HEIGHT = 360, LEFT = 80, BOTTOM = 28;
    const arena = Math.max(1, report.memory_plan.arena_bytes);
    const x = (time) => LEFT + (WIDTH - LEFT - 8) * time / Math.max(1, map.commands);
    const y = (bytes) => (HEIGHT - BOTTOM) * (1 - bytes / arena);
    const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: '100%', role: 'img',
                                 'aria-label': 'Buffers over addresses and commands' });
    const colours = ['var(--a)', 'var(--b)', 'var(--c)', 'var(--d)'];
    map.buffers.forEach((buffer, i) => {
      const top = y(buffer.offset + buffer.bytes);
      picture.append(svg('rect', { x: x(buffer.first), y: top,
        width: Math.max(0.7, x(buffer.last + 1) - x(buffer.first)),
        height: Math.max(0.7, y(buffer.offset) - top), fill: colours[i % 4], 'fill-opacity': .45,
        stroke: colours[i % 4], 'stroke-width': .4 },
        svg('title', {}, `${buffer.node}: ${number(buffer.bytes)} bytes at ${number(buffer.offset)}, ` +
                         `commands ${buffer.first} to ${buffer.last}`)));
    });
    let path = '';
    let last = 0;
    for (const [time, bytes] of alive(map.buffers)) {
      path += (path ? 'L' : 'M') + x(time) + ',' + y(last) + 'L' + x(time) + ',' + y(bytes);
      last = bytes;
    }
    const bound = report.memory_plan.liveness_bound_bytes;
    picture.append(svg('path', { class: 'alive', d: path }),
                   svg('line', { class: 'bound', x1: LEFT, x2: WIDTH, y1: y(bound) + 1, y2: y(bound) + 1 }),
                   svg('line', { class: 'axis', x1: LEFT, x2: WIDTH, y1: y(0), y2: y(0) }),
                   svg('text', { x: 4, y: 12 }, number(arena) + ' B'),
                   svg('text', { x: 4, y: y(0) }, '0'),
                   svg('text', { x: LEFT, y: HEIGHT - 8 }, 'command 0'),
                   svg('text', { x: WIDTH - 8, y: HEIGHT - 8, 'text-anchor': 'end' },
                       'command ' + number(map.commands)));
    section('memory_map', 'Memory over time',
            el('p', {}, `Arena ${number(arena)} bytes, liveness bound ${number(bound)} (dashed), ` +
                        report.memory_plan.method + '. The line is what is alive.'),
            el('div', { class: 'frame' }, picture));
  }

  function table(id, title, columns, rows, sortBy, before = []) {
    let sorted = sortBy;
    let down = true;
    const head = el('tr');
    const body = el('tbody');
    const fill = () => {
      const key = columns[sorted].value;
      const order = [...rows].sort((a, b) => {
        const [p, q] = [key(a), key(b)];
        const least = typeof p === 'number' ? p - q : String(p).localeCompare(String(q));
        return down ? -least : least;
      });
      body.replaceChildren(...order.map((row) => el('tr', {}, ...columns.map((column) =>
        el('td', column.text ? { class: 'text mono' } : {}, (column.show || number)(column.value(row)))))));
      [...head.children].forEach((cell, i) =>
        cell.setAttribute('aria-sort', i !== sorted ? 'none' : down ? 'descending' : 'ascending'));
    };
    columns.forEach((column, i) => {
      const button = el('button', { type: 'button' }, column.name);
      button.addEventListener('click', () => {
        down = sorted === i ? !down : !column.text;
        sorted = i;
        fill();
      });
      head.append(el('th', column.text ? { class: 'text', scope: 'col' } : { scope: 'col' }, button));
    });
    fill();
    section(id, title, ...before, el('div', { class: 'frame table', tabindex: 0, role: 'region',
      'aria-label': title + ', scrolls' }, el('table', {}, el('thead', {}, head), body)));
  }

  function layersTable() {
    const rows = report.nodes;
    if (!rows || rows.length === 0) return;
    const field = (key) => (row) => row[key] ?? 0;
    const columns = [
      { name: 'layer', text: true, value: (row) => row.node },
      { name: 'operator', text: true, value: (row) => row.operator || row.kind || '' },
      { name: 'commands', value: field('commands') },
      { name: 'multiply-adds', value: field('macs') },
      { name: 'elements', value: field('elements') },
      { name: 'read', value: field('read_bytes') },
      { name: 'written', value: field('written_bytes') },
      { name: 'weights', value: field('weight_bytes') },
    ];
    if (model) {
      columns.splice(3, 0, { name: 'cycles (est.)', value: cyclesOf },
        { name: 'share', value: (row) => row.cycles / Math.max(1, frame.cycles), show: percent },
        { name: 'utilisation', value: utilisation, show: percent });
    }
    const errors = new Map();
    for (const weight of report.weights || []) {
      errors.set(weight.used_by, Math.max(errors.get(weight.used_by) || 0, weight.max_abs_error));
    }
    if (errors.size > 0) {
      columns.push({ name: 'weight error', value: (row) => errors.get(row.node) || 0 });
    }
    for (const [key, name] of [['max_abs_error', 'largest error'], ['rms_error', 'rms error']]) {
      if (rows.some((row) => row[key] !== undefined)) columns.push({ name, value: field(key) });
    }
    if (rows.some((row) => row.similarity !== undefined)) {
      columns.push({ name: 'similarity to float', value: (row) => row.similarity ?? 1 });
    }
    const told = rows.some((row) => row.similarity !== undefined);
    const hint = 'For each layer\'s error against float32 set LAYER_ERROR_FRAMES in the config.';
    table('nodes', 'Layers', columns, rows, model ? 3 : 2,
          told || report.config === undefined || report.command_set === 'integer' ? [] : [el('p', { class: 'soft' }, hint)]);
  }

  function metrics() {
    const found = report.metrics;
    if (!found) return;
    const show = (value) => (value === null ? '–' : number(value));
    table('metrics', 'Accuracy', [
      { name: 'metric', text: true, value: (row) => row.metric },
      { name: 'output', text: true, value: (row) => row.output },
      { name: 'float', value: (row) => row.float, show },
      { name: 'quantized', value: (row) => row.quantized, show },
    ], found.figures, 1, [el('p', {}, `Over ${number(found.items)} items of ${found.source}; the ` +
      `quantized model was run by ${found.by}. Differences are from the float model.`)]);
  }

  function roofline() {
    const rows = (report.nodes || []).filter((row) => row.cycles > 0 && row.macs > 0);
    if (!model || rows.length === 0) return;
    const WIDTH = 760, HEIGHT = 320, LEFT = 60, BOTTOM = 36, TOP = 26;
    const points = rows.map((row) => ({ row, x: row.macs / Math.max(1, row.read_bytes + row.written_bytes),
                                        y: row.macs / row.cycles }));
    const peak = model.macs_per_cycle;
    const ridge = peak / model.bytes_per_cycle;
    const low = (values) => Math.floor(Math.log10(Math.min(...values)));
    const high = (values) => Math.ceil(Math.log10(Math.max(...values)));
    const xs = [...points.map((p) => p.x), ridge / 2, ridge * 2];
    const ys = [...points.map((p) => p.y), peak];
    const [x0, x1, y0, y1] = [low(xs), high(xs), low(ys), high(ys)];
    const x = (v) => LEFT + (WIDTH - LEFT - 10) * (Math.log10(v) - x0) / Math.max(1, x1 - x0);
    const y = (v) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - (Math.log10(v) - y0) / Math.max(1, y1 - y0));
    const picture = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: '100%', role: 'img',
                                 'aria-label': 'Roofline of the layers that multiply' });
    for (let e = x0; e <= x1; ++e) {
      picture.append(svg('line', { class: 'axis', x1: x(10 ** e), x2: x(10 ** e), y1: TOP, y2: HEIGHT - BOTTOM }),
                     svg('text', { x: x(10 ** e), y: HEIGHT - BOTTOM + 14, 'text-anchor': 'middle' }, String(10 ** e)));
    }
    for (let e = y0; e <= y1; ++e) {
      picture.append(svg('line', { class: 'axis', x1: LEFT, x2: WIDTH - 10, y1: y(10 ** e), y2: y(10 ** e) }),
                     svg('text', { x: LEFT - 6, y: y(10 ** e) + 4, 'text-anchor': 'end' }, String(10 ** e)));
    }
    const floor = 10 ** y0;
    const start = Math.max(10 ** x0, floor / model.bytes_per_cycle);
    picture.append(svg('path', { class: 'roof', d: `M${x(start)},${y(Math.min(peak, start * model.bytes_per_cycle))}` +
                                `L${x(ridge)},${y(peak)}L${x(10 ** x1)},${y(peak)}` }),
                   svg('text', { x: WIDTH - 10, y: HEIGHT - 6, 'text-anchor': 'end' }, 'multiply-adds a byte moved'),
                   svg('text', { x: 4, y: 11 }, 'multiply-adds a cycle'));
    for (const point of points) {
      picture.append(svg('circle', { class: 'dot', cx: x(point.x), cy: y(point.y), r: 5 },
        svg('title', {}, `${point.row.node}: ${number(point.y)} a cycle, ${number(point.x)} a byte`)));
    }
    section('roofline', 'Roofline',
            el('p', {}, `The roof: ${peak} multiply-adds and ${model.bytes_per_cycle} bytes a cycle. A layer far ` +
                        'below it waits for its commands.'),
            el('div', { class: 'frame', style: 'max-width:800px' }, picture));
  }

  function weights() {
    const list = report.weights;
    if (!list || list.length === 0) return;
    const box = el('div', { class: 'hists' });
    for (const weight of list) {
      const card = el('div', { class: 'hist' }, el('div', { class: 'mono' }, weight.name),
        el('div', { class: 'soft' }, `${shape(weight.shape)}, ${weight.bits} bits, ${number(weight.bytes)} bytes`));
      const histogram = weight.histogram;
      if (histogram) {
        const most = Math.max(1, ...histogram.counts);
        const bars = svg('svg', { viewBox: '0 0 200 64', width: '100%', role: 'img', 'aria-label':
          `values of ${weight.name} from ${number(histogram.min)} to ${number(histogram.max)}` });
        const step = 200 / histogram.counts.length;
        histogram.counts.forEach((count, i) => {
          const height = 50 * count / most;
          bars.append(svg('rect', { x: i * step, y: 50 - height, width: step * .9, height, fill: 'var(--a)' }));
        });
        bars.append(svg('text', { x: 0, y: 62 }, number(histogram.low)),
                    svg('text', { x: 200, y: 62, 'text-anchor': 'end' }, number(histogram.high)));
        card.append(bars, el('div', { class: 'soft' },
          `values ${number(histogram.min)} to ${number(histogram.max)}`));
      }
      card.append(el('div', { class: 'soft' }, `largest error ${number(weight.max_abs_error)}, ` +
        `zeros ${percent(weight.sparsity)}`));
      box.append(card);
    }
    section('weights', 'Weights', box);
  }

  function transposes() {
    const list = report.transposes;
    if (!list || list.length === 0) return;
    table('transposes', 'Transposes that are left', [
      { name: 'layer', text: true, value: (row) => row.node },
      { name: 'shape', text: true, value: (row) => shape(row.shape) },
      { name: 'order', text: true, value: (row) => shape(row.permutation) },
      { name: 'why', text: true, value: (row) => row.reason },
    ], list, 0);
  }

  function notes() {
    const list = report.diagnostics || [];
    const box = el('div');
    if (list.length === 0) box.append(el('p', { class: 'soft' }, 'None.'));
    for (const note of list) {
      const kind = / error: /.test(note.text) ? 'error' : / warning: /.test(note.text) ? 'warning' : '';
      box.append(el('p', { class: 'note ' + kind }, note.text));
    }
    section('notes', 'Notes and warnings', box);
  }

  function config() {
    if (!report.config) return;
    const list = el('dl', { class: 'config mono' });
    for (const [key, value] of Object.entries(report.config)) {
      list.append(el('dt', {}, key), el('dd', {}, typeof value === 'string' ? value : JSON.stringify(value)));
    }
    section('config', 'Config', list);
  }

  document.getElementById('title').textContent = report.model || 'npuc report';
  document.title = (report.model || 'model') + ' – npuc report';
  document.getElementById('subtitle').textContent = [report.core, report.npu_unit, report.compiler,
    report.model_md5 && 'MD5 ' + report.model_md5].filter(Boolean).join(' · ');
  main.replaceChildren();
  for (const draw of [overview, metrics, layersTable, graph, memory, roofline, weights, transposes, notes, config]) draw();
})();
