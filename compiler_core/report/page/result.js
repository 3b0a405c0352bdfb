// The verdict on a compile: does it fit, how long does it take, how good is it, what is worst.
import { bytes, h, number, percent, svg } from './dom.js';
import { coresOf, factsOf } from './facts.js';

const ASSUMED_KEY = 'npuc-assumed';
const POOR_SQNR_DB = 20;

/** What nobody but the user knows of the device. @returns {{mhz: number, flashKib: number}} */
function readAssumed() {
  const known = { mhz: 50, flashKib: 0 };
  try {
    const kept = JSON.parse(localStorage.getItem(ASSUMED_KEY) ?? '{}');
    if (kept.mhz > 0) known.mhz = kept.mhz;
    if (kept.flashKib > 0) known.flashKib = kept.flashKib;
  } catch { /* A file in a browser has no storage. */ }
  return known;
}

/** @param {{mhz: number, flashKib: number}} assumed */
function keepAssumed(assumed) {
  try { localStorage.setItem(ASSUMED_KEY, JSON.stringify(assumed)); } catch { /* As above. */ }
}

/** "1.24 ms" @param {number} seconds */
export const timeText = (seconds) => seconds < 1e-3 ? `${number(+(seconds * 1e6).toPrecision(3))} µs`
  : seconds < 1 ? `${number(+(seconds * 1e3).toPrecision(3))} ms` : `${number(+seconds.toPrecision(3))} s`;

/** A bar of what is used of a limit. @param {string} name @param {number} used @param {number} limit @param {import('./dom.js').Child} note */
function fitBar(name, used, limit, note) {
  const share = limit > 0 ? used / limit : 0;
  const kind = share > 1 ? 'over' : share > 0.9 ? 'near' : 'fits';
  const text = limit > 0 ? `${bytes(used)} of ${bytes(limit)}, ${percent(share)}` : bytes(used);
  const bar = svg('svg', { class: 'r-fit', viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${name}: ${text}` },
    svg('rect', { class: 'r-fit-back', width: 100, height: 8 }),
    svg('rect', { class: `r-fit-${kind}`, width: Math.min(100, 100 * share), height: 8 }));
  return h('div', { class: 'r-use' }, h('div', { class: 'r-use-head' }, h('span', {}, name), h('b', {}, text)),
    limit > 0 ? bar : null, note ? h('div', { class: 'soft' }, note) : null);
}

/** @param {string} label @param {string} value @param {import('./dom.js').Child} remark */
const tile = (label, value, remark) => h('div', { class: 'r-tile' }, h('span', {}, label), h('b', {}, value), remark ? h('span', {}, remark) : null);

/** The sentence that the page begins with. @param {ReturnType<typeof factsOf>} facts */
export function verdictOf(facts) {
  const where = [facts.framework, facts.core && `core ${facts.core}`].filter(Boolean).join(' on ');
  if (!facts.ramLimit) return { kind: 'fits', text: `${where}: compiled; the core states no limit of SRAM` };
  if (facts.ram > facts.ramLimit) {
    return { kind: 'over', text: `${where}: does not fit; its data needs ${bytes(facts.ram - facts.ramLimit)} more SRAM than the core has` };
  }
  return { kind: facts.ram > 0.9 * facts.ramLimit ? 'near' : 'fits', text: `${where}: fits; ${bytes(facts.ramLimit - facts.ram)} of SRAM are left` };
}

/** @param {ReturnType<typeof factsOf>} facts @param {import('./selection.js').Selection} selection */
function worst(facts, selection) {
  const list = h('ul', { class: 'r-worst' });
  const link = (/** @type {string} */ view, /** @type {string} */ name) =>
    h('button', { type: 'button', class: 'r-link mono', click: () => selection.chooseIn(view, name) }, name);
  const { slowest, leastLike, largestError, worstWeight, transposes } = facts;
  if (slowest) list.append(h('li', {}, 'slowest layer ', link('nodes', slowest.node), `: ${number(slowest.cycles)} cycles, ${percent(slowest.share ?? 0)} of all`));
  if (leastLike && leastLike.similarity < 1) list.append(h('li', {}, 'least like float ', link('nodes', leastLike.node), `: similarity ${number(leastLike.similarity)}`));
  if (largestError) list.append(h('li', {}, 'largest error of a layer ', link('nodes', largestError.node), `: ${number(largestError.max_abs_error)}`));
  if (worstWeight) list.append(h('li', {}, 'largest error of a weight ', link('weights', worstWeight.name), `: ${number(worstWeight.max_abs_error)}, of ${worstWeight.bits} bits`));
  if (transposes) {
    list.append(h('li', {}, transposes.length === 0 ? 'no transpose is left'
      : `${transposes.length} ${transposes.length === 1 ? 'transpose is' : 'transposes are'} left, the first at `, transposes.length ? link('transposes', transposes[0].node) : ''));
  }
  return list;
}

/** @param {ReturnType<typeof factsOf>} facts */
function accuracy(facts) {
  if (facts.figures.length === 0) return null;
  const rows = facts.figures.slice(0, 6).map((/** @type {any} */ one) => {
    const poor = one.metric === 'sqnr' && one.quantized !== null && one.quantized < POOR_SQNR_DB;
    const value = one.quantized === null ? 'equal to float' : `${number(one.quantized)}${one.metric === 'sqnr' ? ' dB' : ''}`;
    return tile(`${one.metric} of ${one.output}`, value, poor ? `poor: below ${POOR_SQNR_DB} dB` : one.float === null || one.float === undefined ? '' : `float ${number(one.float)}`);
  });
  return h('div', { class: 'r-tiles' }, ...rows);
}

/** What depends on the user's device: time at a clock, flash against what there is.
 *  @param {ReturnType<typeof factsOf>} facts */
function assumedPart(facts) {
  const assumed = readAssumed();
  const time = h('b', {});
  const flash = h('div', {});
  const stated = h('div', { class: 'soft' });
  const show = () => {
    time.textContent = facts.cycles ? timeText(facts.cycles / (assumed.mhz * 1e6)) : '–';
    flash.replaceChildren(fitBar('Flash: commands and weights', facts.flash, assumed.flashKib * 1024, ''), stated);
  };
  /** @param {'mhz' | 'flashKib'} key @param {string} label */
  const input = (key, label) => {
    const field = h('input', { type: 'number', min: 0, step: 'any', class: 'r-number', 'aria-label': label, value: assumed[key] || '', input: () => {
      const value = Number(field.value);
      if (key === 'mhz' && !(value > 0)) return;
      assumed[key] = value;
      keepAssumed(assumed);
      show();
    } });
    return field;
  };
  stated.append('the core states no limit; your device has ', input('flashKib', 'Flash of the device in KiB'), ' KiB');
  show();
  const clock = h('div', { class: 'r-tile' }, h('span', {}, 'time a frame'), time,
    h('span', {}, 'at ', input('mhz', 'Clock in MHz'), ' MHz'));
  return { clock, flash };
}

/** @param {any} report @param {import('./selection.js').Selection} selection @returns {HTMLElement} */
export function drawResult(report, selection) {
  const facts = factsOf(report);
  const verdict = verdictOf(facts);
  const assumed = assumedPart(facts);
  const model = report.cycle_model;
  const tiles = h('div', { class: 'r-tiles' },
    tile('core', facts.core, facts.unit), facts.framework ? tile('framework', facts.framework, '') : null,
    facts.cycles === undefined ? null : tile('cycles a frame', number(facts.cycles), 'an estimate'),
    facts.cycles ? assumed.clock : null,
    facts.cores.length === 0 ? null : tile('cores busy', facts.cores.map((/** @type {any} */ one) => percent(one.utilisation)).join(', '),
      facts.cyclesOnOneCore ? `${number(facts.cyclesOnOneCore)} cycles on one core` : ''),
    facts.arena === undefined ? null : tile('peak memory', bytes(facts.arena), `at least ${bytes(facts.bound)} in any order of addresses`),
    tile('multiply-adds', number(facts.macs), model && facts.cycles ? `${percent(facts.macs / (facts.cycles * model.macs_per_cycle * coresOf(report)))} of the multipliers` : ''),
    tile('commands', number(facts.commands), ''));
  const whole = facts.ram + facts.flash;
  return h('div', { class: 'r-result' },
    h('p', { class: `r-verdict ${verdict.kind}` }, verdict.text),
    tiles,
    h('div', { class: 'r-uses' },
      fitBar('SRAM: data, inputs and outputs', facts.ram, facts.ramLimit, 'commands and weights run in place from flash'),
      fitBar('SRAM, if commands and weights lie there, too', whole, facts.ramLimit, whole > facts.ramLimit && facts.ramLimit ? 'leave them in flash' : 'all fits'),
      assumed.flash),
    accuracy(facts),
    facts.metrics ? h('p', { class: 'soft' }, `Accuracy over ${number(facts.metrics.items)} items of ${facts.metrics.source}; the quantized model was run by ${facts.metrics.by}.`) : null,
    h('h3', {}, 'What is worst'), worst(facts, selection));
}
