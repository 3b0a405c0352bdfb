// A list of any length of which only what is seen is in the page. Rows are links; arrow keys move.
// A row that leaves the view shows another item: making elements is what scrolling would wait for.
import { h } from "./dom";

/** A row's elements, which show one item and then another. */
export interface Row<T> {
  readonly element: HTMLElement;
  show(item: T): void;
}

export interface ListOptions<T> {
  label: string;
  key: (item: T) => string;
  makeRow: () => Row<T>;
  /** A row shows its item again when this changes. */
  version: (item: T) => string;
  /** Enter on a row. */
  open: (item: T) => void;
}

const OVERSCAN = 6;

/** A row in the page, and the version of its item that it shows; "" where it shows another yet. */
interface Shown<T> { row: Row<T>; version: string }

export class VirtualList<T> {
  readonly element: HTMLElement;
  private readonly space = h("div");
  private items: T[] = [];
  private rows = new Map<string, Shown<T>>();
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
    this.schedule();
  }

  private frame = 0;
  private schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw() {
    // First what is read, then what is written: the page is laid out once.
    const { scrollTop, clientHeight } = this.element;
    this.height = window.matchMedia("(max-width: 620px)").matches ? 64 : 44;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - OVERSCAN);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.height) + OVERSCAN);
    this.space.style.height = `${this.items.length * this.height}px`;
    const seen = this.items.slice(first, last);
    const free = this.free(new Set(seen.map(this.options.key)));
    const rows = new Map<string, Shown<T>>();
    const moved = new Set<Node>();
    seen.forEach((item, i) => {
      const key = this.options.key(item);
      let shown = this.rows.get(key);
      if (!shown) {
        shown = { row: free.shift() ?? this.options.makeRow(), version: "" };
        moved.add(shown.row.element);
      }
      rows.set(key, shown);
      this.show(shown, item, first + i);
    });
    for (const row of free) row.element.remove();
    this.rows = rows;
    this.order(moved);
  }

  /** The rows whose items are seen no more, in the page's order. One that has the focus is not among
   *  them: it goes, so that the focus does not pass to another item unseen. */
  private free(wanted: Set<string>): Row<T>[] {
    const free: Row<T>[] = [];
    for (const [key, { row }] of this.rows) {
      if (wanted.has(key)) continue;
      if (row.element.contains(document.activeElement)) row.element.remove();
      else free.push(row);
    }
    return free;
  }

  private show(shown: Shown<T>, item: T, index: number) {
    const version = this.options.version(item);
    if (shown.version !== version) shown.row.show(item);
    shown.version = version;
    const element = shown.row.element;
    element.style.top = `${index * this.height}px`;
    element.classList.toggle("here", index === this.here && document.activeElement === this.element);
    setAttribute(element, "role", "listitem");
    setAttribute(element, "aria-setsize", String(this.items.length));
    setAttribute(element, "aria-posinset", String(index + 1));
  }

  /** Puts the rows in the items' order, which Tab and screen readers follow; only the `moved` ones
   *  leave their place. */
  private order(moved: Set<Node>) {
    let next = this.space.firstChild;
    for (const { row: { element } } of this.rows.values()) {
      while (next && next !== element && !moved.has(element) && moved.has(next)) next = next.nextSibling;
      if (next === element) next = next.nextSibling;
      else this.space.insertBefore(element, next);
    }
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

function setAttribute(element: Element, name: string, value: string) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
