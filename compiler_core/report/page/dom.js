// Elements, and how figures read. Text is always text: nothing of a report is read as HTML.

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/** @typedef {Node | string | number | null | undefined | false} Child */
/** Attributes by name; a function listens to the event of its name.
 *  @typedef {Record<string, string | number | boolean | null | undefined | ((event: never) => void)>} Attributes */

/** @template {keyof HTMLElementTagNameMap} K
 *  @param {K} tag @param {Attributes} attributes @param {...Child} children
 *  @returns {HTMLElementTagNameMap[K]} */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  appendAll(element, children);
  return element;
}

/** @param {string} tag @param {Attributes} attributes @param {...Child} children
 *  @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG_NAMESPACE, tag);
  setAttributes(element, attributes);
  appendAll(element, children);
  return element;
}

/** @param {Element} element @param {Attributes} attributes */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** @param {Element} element @param {Child[]} children */
export function appendAll(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** "12,345", "0.01235"; "–" where there is none. @param {unknown} value @returns {string} */
export const number = (value) => typeof value !== 'number' || Number.isNaN(value) ? '–'
  : Number.isInteger(value) ? value.toLocaleString('en-US') : String(+value.toPrecision(4));

/** @param {number} value @returns {string} */
export const percent = (value) => `${(100 * value).toFixed(1)} %`;

/** "[1,40,98]" @param {number[] | undefined} dims @returns {string} */
export const shapeText = (dims) => (dims ? `[${dims.join(',')}]` : '');

/** "12.5 KiB" @param {number} count @returns {string} */
export const bytes = (count) => count < 1024 ? `${count} B`
  : count < 1 << 20 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / (1 << 20)).toFixed(1)} MiB`;

/** @param {[string, Child][]} entries those without a value are left out @returns {HTMLElement} */
export function definitions(entries) {
  const list = h('dl', { class: 'r-facts' });
  for (const [name, value] of entries) {
    if (value !== undefined && value !== null && value !== '' && value !== false) list.append(h('dt', {}, name), h('dd', {}, value));
  }
  return list;
}

/** @param {string} text @param {string} label @param {() => void} act @returns {HTMLButtonElement} */
export const button = (text, label, act) => h('button', { type: 'button', 'aria-label': label, title: label, click: act }, text);

/** A name that is too long loses its middle. @param {string} text @param {number} most @returns {string} */
export const shorten = (text, most) => text.length <= most ? text
  : `${text.slice(0, Math.floor(most / 3))}…${text.slice(-(most - Math.floor(most / 3) - 1))}`;
