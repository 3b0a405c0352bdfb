// A list of any length of which only what is seen is in the page. Rows are links; arrow keys move.
import { h } from "./dom";

export interface ListOptions<T> {
  label: string;
  key: (item: T) => string;
  /** Makes a row's content; called again when `version` of the item changes. */
  render: (item: T) => HTMLElement;
  version: (item: T) => string;
  /** Enter on a row. */
  open: (item: T) => void;
}

const OVERSCAN = 6;

export class VirtualList<T> {
  readonly element: HTMLElement;
  private readonly space = h("div");
  private items: T[] = [];
  private rows = new Map<string, { element: HTMLElement; version: string }>();
  private here = 0;
  private height = 44;
  private readonly sized: ResizeObserver;

  constructor(private readonly options: ListOptions<T>) {
    this.element = h("div", { class: "list", tabindex: 0, role: "list", "aria-label": options.label });
    this.element.append(this.space);
    this.element.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.sized = new ResizeObserver(() => this.schedule());
    this.sized.observe(this.element);
  }

  close() { this.sized.disconnect(); }

  set(items: T[]) {
    const key = this.items[this.here] && this.options.key(this.items[this.here]!);
    this.items = items;
    const found = key === undefined ? -1 : items.findIndex((item) => this.options.key(item) === key);
    this.here = found >= 0 ? found : Math.min(this.here, Math.max(0, items.length - 1));
    this.draw();
  }

  private frame = 0;
  private schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw() {
    const box = this.element;
    this.height = window.matchMedia("(max-width: 620px)").matches ? 64 : 44;
    this.space.style.height = `${this.items.length * this.height}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / this.height) - OVERSCAN);
    const last = Math.min(this.items.length, Math.ceil((box.scrollTop + box.clientHeight) / this.height) + OVERSCAN);
    const kept = new Map<string, { element: HTMLElement; version: string }>();
    for (let i = first; i < last; i++) {
      const item = this.items[i]!;
      const key = this.options.key(item);
      kept.set(key, this.row(item, key, i));
    }
    for (const [key, row] of this.rows) if (!kept.has(key)) row.element.remove();
    this.rows = kept;
  }

  private row(item: T, key: string, index: number) {
    const version = this.options.version(item);
    let row = this.rows.get(key);
    if (!row || row.version !== version) {
      const element = this.options.render(item);
      element.setAttribute("role", "listitem");
      element.setAttribute("aria-setsize", String(this.items.length));
      if (row) row.element.replaceWith(element);
      else this.space.append(element);
      row = { element, version };
    }
    row.element.style.top = `${index * this.height}px`;
    row.element.classList.toggle("here", index === this.here && document.activeElement === this.element);
    row.element.setAttribute("aria-posinset", String(index + 1));
    return row;
  }

  private onKey(event: KeyboardEvent) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const moves: Record<string, number> = {
      ArrowDown: this.here + 1, j: this.here + 1, ArrowUp: this.here - 1, k: this.here - 1,
      PageDown: this.here + page, PageUp: this.here - page, Home: 0, End: this.items.length - 1,
    };
    const item = this.items[this.here];
    if (event.key === "Enter" && item) this.options.open(item);
    const to = moves[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.here = Math.min(Math.max(to, 0), this.items.length - 1);
    const top = this.here * this.height;
    const box = this.element;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + this.height > box.scrollTop + box.clientHeight) box.scrollTop = top + this.height - box.clientHeight;
    this.draw();
  }
}
