// What a report says, in the figures that the page leads with. Each is one of report.json's, or a
// sum, quotient or extreme of such.

/** The cores that work side by side on a row of the report: one where it is a command.
 *  @param {any} report @param {any} [row] */
export const coresOf = (report, row) => row?.core === undefined ? report.cycle_model?.cores ?? 1 : 1;

/** "0, 1, 2": the cores that work on a row; undefined where the target has one.
 *  @param {any} row */
const coresText = (row) => row.core === undefined ? row.cores?.map((/** @type {any} */ one) => one.core).join(', ') : String(row.core);

/** One entry per layer, with what other lists of the report say of it.
 *  @param {any} report */
export function layersOf(report) {
  const weightError = new Map();
  const weightBits = new Map();
  for (const weight of report.weights ?? []) {
    weightError.set(weight.used_by, Math.max(weightError.get(weight.used_by) ?? 0, weight.max_abs_error));
    weightBits.set(weight.used_by, Math.max(weightBits.get(weight.used_by) ?? 0, weight.bits));
  }
  const model = report.cycle_model;
  return (report.nodes ?? []).map((/** @type {any} */ node, /** @type {number} */ index) => ({
    ...node,
    index,
    utilisation: model && node.cycles > 0 ? node.macs / (node.cycles * model.macs_per_cycle * coresOf(report, node)) : undefined,
    cores_text: coresText(node),
    share: report.per_frame?.cycles ? node.cycles / report.per_frame.cycles : undefined,
    weight_error: weightError.get(node.node),
    bits: node.results?.[0]?.bits ?? weightBits.get(node.node),
  }));
}

/** The entry with the largest figure; undefined where none has one.
 *  @template T @param {T[]} list @param {(entry: T) => number | undefined} figure @returns {T | undefined} */
export function largest(list, figure) {
  let best;
  for (const entry of list) {
    const value = figure(entry);
    if (value !== undefined && (best === undefined || value > /** @type {number} */ (figure(best)))) best = entry;
  }
  return best;
}

/** @param {any} report */
export function factsOf(report) {
  const sizes = report.sizes_bytes ?? {};
  const sum = (/** @type {string[]} */ ...names) => names.reduce((all, name) => all + (sizes[name] ?? 0), 0);
  const layers = layersOf(report);
  const config = report.config ?? {};
  return {
    core: String(report.core ?? ''),
    unit: String(report.npu_unit ?? (report.command_set === 'integer' ? 'integer commands' : '')),
    framework: String(config.FRAMEWORK ?? ''),
    ram: sum('data_content', 'input', 'output'),
    ramLimit: Number(report.limits?.sram_bytes ?? 0),
    flash: sum('cmd_content', 'weight_content', 'ops_content'),
    cycles: report.cycle_model ? report.per_frame?.cycles : undefined,
    cores: report.per_frame?.cores ?? [],
    cyclesOnOneCore: report.per_frame?.cycles_on_one_core,
    macs: report.per_frame?.macs,
    commands: report.per_frame?.commands,
    arena: report.memory_plan?.arena_bytes,
    bound: report.memory_plan?.liveness_bound_bytes,
    figures: report.metrics?.figures ?? [],
    metrics: report.metrics,
    slowest: largest(layers, (layer) => layer.cycles > 0 ? layer.cycles : undefined),
    leastLike: largest(layers, (layer) => layer.similarity === undefined ? undefined : -layer.similarity),
    largestError: largest(layers, (layer) => layer.max_abs_error),
    worstWeight: largest(report.weights ?? [], (/** @type {any} */ weight) => weight.max_abs_error),
    transposes: report.transposes,
    layers,
  };
}

/** The buffers that live while the most bytes do, the largest first, and when that is.
 *  @param {any} map report.memory_map */
export function peakOf(map) {
  const steps = aliveSteps(map.buffers);
  let command = 0;
  let most = 0;
  for (const [time, alive] of steps) if (alive > most) [command, most] = [time, alive];
  return { command, bytes: most, buffers: aliveAt(map, command) };
}

/** @param {any} map @param {number} command */
export const aliveAt = (map, command) => map.buffers
  .filter((/** @type {any} */ one) => one.first <= command && command <= one.last)
  .sort((/** @type {any} */ a, /** @type {any} */ b) => b.bytes - a.bytes);

/** Bytes alive from each command at which that changes. @param {any[]} buffers @returns {[number, number][]} */
export function aliveSteps(buffers) {
  const change = new Map();
  for (const buffer of buffers) {
    change.set(buffer.first, (change.get(buffer.first) ?? 0) + buffer.bytes);
    change.set(buffer.last + 1, (change.get(buffer.last + 1) ?? 0) - buffer.bytes);
  }
  let alive = 0;
  return [...change.keys()].sort((a, b) => a - b).map((time) => [time, alive += change.get(time)]);
}
