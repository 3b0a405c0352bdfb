// The views of a report, in their order, for the page that a compile writes and for the dashboard.
import { drawGraph } from './graph.js';
import { drawAccuracy, drawLayers, drawTransposes } from './layers.js';
import { drawMemory, hasMemory } from './memory.js';
import { drawResult } from './result.js';
import { drawRoofline, hasRoofline } from './roofline.js';
import { drawWeights } from './weights.js';

/** @typedef {{id: string, title: string, has: (report: any) => boolean,
 *             draw: (report: any, selection: import('./selection.js').Selection) => HTMLElement}} View */

const hasList = (/** @type {string} */ key) => (/** @type {any} */ report) => Array.isArray(report[key]) && report[key].length > 0;

/** `omitted` of a report names lists by these ids. @type {View[]} */
export const VIEWS = [
  { id: 'overview', title: 'Result', has: (report) => Boolean(report.per_frame), draw: drawResult },
  { id: 'metrics', title: 'Accuracy', has: (report) => Boolean(report.metrics), draw: drawAccuracy },
  { id: 'nodes', title: 'Layers', has: hasList('nodes'), draw: drawLayers },
  { id: 'graph', title: 'Graph', has: hasList('graph'), draw: drawGraph },
  { id: 'memory_map', title: 'Memory over time', has: hasMemory, draw: drawMemory },
  { id: 'roofline', title: 'Roofline', has: hasRoofline, draw: drawRoofline },
  { id: 'weights', title: 'Weights', has: hasList('weights'), draw: drawWeights },
  { id: 'transposes', title: 'Transposes that are left', has: hasList('transposes'), draw: drawTransposes },
];
