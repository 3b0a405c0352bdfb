// Where the nodes of a graph stand: repeated blocks folded, each node below all that it reads.

export const NODE_WIDTH = 220;
export const NODE_HEIGHT = 42;
const GAP_X = 18;
const GAP_Y = 30;
const MAX_PERIOD = 200;
const MIN_TIMES = 3;

/** A block of `period` nodes from `start` on that occurs `times` times in a row.
 *  @typedef {{start: number, period: number, times: number}} Repeat */
/** What is drawn: a node, or all occurrences of a block but the first.
 *  @typedef {{index: number, repeat?: Repeat, from: number[], back: number[], row: number, x: number, y: number}} Item */

/** Blocks that repeat: nodes of equal operator, shape and distance to what they read.
 *  @param {any[]} nodes @returns {Repeat[]} */
export function repeatsOf(nodes) {
  const kinds = nodes.map((node, i) => `${node.operator}|${node.shape ?? ''}|${node.from.map((/** @type {number} */ f) => i - f).join()}`);
  /** @type {Repeat[]} */
  const found = [];
  for (let period = 1; period <= Math.min(MAX_PERIOD, kinds.length / MIN_TIMES); ++period) {
    for (let i = 0, run = 0; i + period <= kinds.length; ++i) {
      if (i + period < kinds.length && kinds[i] === kinds[i + period]) { ++run; continue; }
      const times = Math.floor(run / period) + 1;
      if (times >= MIN_TIMES) found.push({ start: i - run, period, times });
      run = 0;
    }
  }
  // The block that hides most first; those that overlap with one that is taken are left.
  found.sort((a, b) => b.period * (b.times - 1) - a.period * (a.times - 1) || a.period - b.period);
  const taken = new Array(nodes.length).fill(false);
  return found.filter((one) => {
    const end = one.start + one.period * one.times;
    if (one.period * (one.times - 1) < 4) return false;
    for (let i = one.start; i < end; ++i) if (taken[i]) return false;
    taken.fill(true, one.start, end);
    return true;
  });
}

/** The items to draw, where the repeats are folded. @param {any[]} nodes @param {Repeat[]} repeats */
export function itemsOf(nodes, repeats) {
  /** @type {Item[]} */
  const items = [];
  const itemOf = new Array(nodes.length).fill(-1);
  const folded = new Map(repeats.map((one) => [one.start + one.period, one]));
  for (let i = 0; i < nodes.length; ++i) {
    const repeat = folded.get(i);
    const last = repeat ? repeat.start + repeat.period * repeat.times - 1 : i;
    itemOf.fill(items.length, i, last + 1);
    items.push({ index: i, repeat, from: [], back: [], row: 0, x: 0, y: 0 });
    i = last;
  }
  nodes.forEach((node, i) => {
    const to = /** @type {Item} */ (items[itemOf[i]]);
    for (const f of node.from) {
      const from = itemOf[f];
      if (from === undefined || from === itemOf[i]) continue;
      const list = from < itemOf[i] ? to.from : to.back;
      if (!list.includes(from)) list.push(from);
    }
  });
  return { items, itemOf };
}

/** Gives each item its place; the size of the whole. @param {Item[]} items */
export function place(items) {
  /** @type {Item[][]} */
  const rows = [];
  for (const item of items) {
    item.row = item.from.reduce((row, f) => Math.max(row, (items[f]?.row ?? 0) + 1), 0);
    (rows[item.row] ??= []).push(item);
  }
  const step = NODE_WIDTH + GAP_X;
  let [low, high] = [0, NODE_WIDTH];
  rows.forEach((row, r) => {
    // Each stands below the middle of what it reads, as far as its neighbours leave room.
    const wish = new Map(row.map((item) => [item, item.from.length
      ? item.from.reduce((sum, f) => sum + (items[f]?.x ?? 0), 0) / item.from.length : 0]));
    row.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
    const middle = row.reduce((sum, item) => sum + (wish.get(item) ?? 0), 0) / row.length;
    row.forEach((item, i) => {
      item.x = middle + (i - (row.length - 1) / 2) * step;
      item.y = GAP_Y + r * (NODE_HEIGHT + GAP_Y);
      low = Math.min(low, item.x);
      high = Math.max(high, item.x + NODE_WIDTH);
    });
  });
  for (const item of items) item.x += GAP_X - low;
  return { rows, width: high - low + 2 * GAP_X, height: rows.length * (NODE_HEIGHT + GAP_Y) + GAP_Y };
}

/** The path of an edge. One that passes rows goes around them. @param {Item} from @param {Item} to */
export function edgePath(from, to) {
  const [x1, y1, x2, y2] = [from.x + NODE_WIDTH / 2, from.y + NODE_HEIGHT, to.x + NODE_WIDTH / 2, to.y];
  const span = to.row - from.row;
  if (span === 1) return `M${x1},${y1}C${x1},${y1 + GAP_Y / 2} ${x2},${y2 - GAP_Y / 2} ${x2},${y2}`;
  const side = Math.max(x1, x2) + NODE_WIDTH / 2 + 8 + 4 * Math.min(12, Math.abs(span));
  if (span < 1) return `M${x1},${y1}C${side + 30},${y1 + GAP_Y} ${side + 30},${y2 - GAP_Y} ${x2},${y2}`;
  return `M${x1},${y1}C${x1},${y1 + GAP_Y / 2} ${side},${y1 + GAP_Y / 4} ${side},${y1 + GAP_Y}` +
    `L${side},${y2 - GAP_Y}C${side},${y2 - GAP_Y / 4} ${x2},${y2 - GAP_Y / 2} ${x2},${y2}`;
}
