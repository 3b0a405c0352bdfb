// Small helpers to make elements. Text is always text: nothing of the service is read as HTML.

import { appendAll, bytes, h, svg } from "../report/dom.js";

type Child = Node | string | number | null | undefined | false;
export { bytes, h, svg };

/** Replaces what is inside only where it differs, so that a refresh neither flashes nor takes the
 *  focus away. */
export function replace(element: Element, ...children: Child[]) {
  const fresh = document.createElement("div");
  appendAll(fresh, children);
  if (shownOf.get(element) === fresh.innerHTML) return;
  shownOf.set(element, fresh.innerHTML);
  element.replaceChildren(...fresh.childNodes);
}
const shownOf = new WeakMap<Element, string>();

/** Says something to people who look and to screen readers. */
export function say(text: string) {
  const box = document.getElementById("says")!;
  box.textContent = text;
  box.classList.toggle("shown", text !== "");
  clearTimeout(sayTimer);
  sayTimer = window.setTimeout(() => box.classList.remove("shown"), 5000);
}
let sayTimer = 0;

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export const ms = (time?: string): number => (time ? Date.parse(time) : NaN);
export const clock = (time?: string): string =>
  time ? new Date(time).toLocaleTimeString([], { hour12: false }) : "";
// Made once: making one takes longer than a row of a list.
const dateTimeFormat = new Intl.DateTimeFormat([], { year: "numeric", month: "numeric", day: "numeric",
  hour: "numeric", minute: "numeric", second: "numeric", hour12: false });
export const dateTime = (time?: string): string => (time ? dateTimeFormat.format(new Date(time)) : "");

export const badge = (state: string): HTMLElement => setBadge(h("span"), state);

export function setBadge(element: HTMLElement, state: string): HTMLElement {
  element.className = `badge ${state.toLowerCase()}`;
  setText(element, state.toLowerCase());
  return element;
}

/** Sets the text of an element that holds nothing else. */
export function setText(element: Element, text: string) {
  if (element.firstChild instanceof Text) element.firstChild.data = text;
  else element.textContent = text;
}

export async function copy(text: string) {
  await navigator.clipboard.writeText(text);
  say("copied");
}

/** Hands bytes to the browser's own download. */
export function save(content: BlobPart, name: string) {
  const url = URL.createObjectURL(new Blob([content]));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A click that says what went wrong. */
export const tried = (act: () => Promise<void>) => async () => { try { await act(); } catch (error) { say((error as Error).message); } };

/** An input with its name. */
export const field = (name: string, input: HTMLElement) => h("div", { class: "field" }, h("label", { for: input.id }, name), input);

/** A table that may be wider than its card, with a name for screen readers. */
export const scrolled = (name: string, table: HTMLElement) => h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, table);
