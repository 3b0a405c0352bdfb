// The filters of the list: in the address, so that a view can be kept and sent, and as fields.
import { noFilter, ORDERS, STATES, type Filter, type Totals } from "./api";
import { h } from "./dom";

const LISTS = { cores: "core", frameworks: "framework", tenants: "tenant", labels: "label" } as const;
type List = keyof typeof LISTS;
const HOUR_MS = 3_600_000;
const SPANS: [string, string, number][] = [["", "any time", 0], ["1h", "last hour", HOUR_MS], ["1d", "last day", 24 * HOUR_MS], ["7d", "last 7 days", 168 * HOUR_MS]];
/** Typing is over: the server is asked. */
const PAUSE_MS = 250;

/** `since` of the address is relative ("1h"); the request has the time that it means now. */
export interface View { filter: Filter; since: string }

export function readView(query: URLSearchParams): View {
  const filter = noFilter();
  filter.states = query.getAll("state").filter((one) => (STATES as readonly string[]).includes(one));
  for (const [field, name] of Object.entries(LISTS)) filter[field as List] = query.getAll(name).filter(Boolean);
  filter.text = query.get("q") ?? "";
  filter.from = query.get("from") ?? "";
  filter.before = query.get("before") ?? "";
  filter.mine = query.get("mine") === "1";
  filter.order = (query.get("sort") ?? "") in ORDERS ? query.get("sort") ?? "" : "";
  filter.reverse = query.get("reverse") === "1";
  const since = query.get("since") ?? "";
  return { filter, since: SPANS.some(([name]) => name === since) ? since : "" };
}

export function addressOf({ filter, since }: View): string {
  const query = new URLSearchParams();
  for (const state of filter.states) query.append("state", state);
  for (const [field, name] of Object.entries(LISTS)) for (const one of filter[field as List]) query.append(name, one);
  if (filter.text) query.set("q", filter.text);
  if (filter.from) query.set("from", filter.from);
  if (filter.before) query.set("before", filter.before);
  if (since) query.set("since", since);
  if (filter.mine) query.set("mine", "1");
  if (filter.order) query.set("sort", filter.order);
  if (filter.reverse) query.set("reverse", "1");
  return `#/jobs${query.size ? `?${query}` : ""}`;
}

/** What the server is asked now. */
export function requestOf({ filter, since }: View): Filter {
  const span = SPANS.find(([name]) => name === since)?.[2] ?? 0;
  return span ? { ...filter, from: new Date(Date.now() - span).toISOString() } : filter;
}

export const isFiltered = (view: View): boolean => addressOf({ ...view, filter: { ...view.filter, order: "", reverse: false } }) !== "#/jobs";

/** The fields. `changed` gets the view that they say, at once or after a pause in typing. */
export class FilterBar {
  readonly element = h("div", { class: "head filters" });
  readonly search: HTMLInputElement;
  private readonly states = h("fieldset", { class: "chips" }, h("legend", { class: "skip" }, "Filter by state"));
  private readonly selects = new Map<List, HTMLSelectElement>();
  private timer = 0;

  constructor(private view: View, private readonly changed: (view: View) => void) {
    const filter = view.filter;
    for (const state of STATES) {
      const input = h("input", { type: "checkbox", value: state, change: () => this.set({ states: [...this.states.querySelectorAll<HTMLInputElement>("input:checked")].map((one) => one.value) }) });
      input.checked = filter.states.includes(state);
      this.states.append(h("label", {}, input, state.toLowerCase(), h("span", { class: "count" })));
    }
    this.search = h("input", { type: "search", placeholder: "Name, id, label, MD5  ( / )", "aria-label": "Filter by text", maxlength: 255, value: filter.text,
      input: () => this.later({ text: this.search.value }) });
    const label = h("input", { type: "text", class: "label", placeholder: "label KEY=VALUE", "aria-label": "Filter by label", value: filter.labels.join(" "),
      input: () => this.later({ labels: label.value.split(/\s+/).filter(Boolean) }) });
    const since = h("select", { "aria-label": "Accepted", change: () => this.emit({ ...this.view, since: since.value }) },
      ...SPANS.map(([name, text]) => h("option", { value: name }, text)));
    since.value = view.since;
    const order = h("select", { "aria-label": "Sort by", change: () => this.set({ order: order.value }) },
      ...Object.entries(ORDERS).map(([name, text]) => h("option", { value: name }, `sort: ${text}`)));
    order.value = filter.order;
    const reverse = h("input", { type: "checkbox", change: () => this.set({ reverse: reverse.checked }) });
    reverse.checked = filter.reverse;
    const mine = h("input", { type: "checkbox", change: () => this.set({ mine: mine.checked }) });
    mine.checked = filter.mine;
    this.element.append(this.states, this.search, label, ...(["cores", "frameworks", "tenants"] as const).map((list) => this.select(list)), since,
      h("label", {}, mine, " mine"), order, h("label", {}, reverse, " reverse"), h("a", { class: "button", href: "#/jobs" }, "Clear"));
  }

  close() { clearTimeout(this.timer); }

  private select(list: List): HTMLSelectElement {
    const select = h("select", { "aria-label": `Filter by ${LISTS[list]}`, change: () => this.set({ [list]: select.value ? [select.value] : [] }) });
    this.selects.set(list, select);
    this.choices(list, {});
    return select;
  }

  private choices(list: List, counts: Record<string, string>) {
    const select = this.selects.get(list)!;
    const chosen = this.view.filter[list][0] ?? "";
    const names = [...new Set([...Object.keys(counts), ...(chosen ? [chosen] : [])])].sort();
    const text = ["", ...names].join("\n");
    if (select.dataset.names !== text) {
      select.dataset.names = text;
      select.replaceChildren(h("option", { value: "" }, `any ${LISTS[list]}`), ...names.map((name) => h("option", { value: name }, name)));
    }
    select.value = chosen;
    select.hidden = names.length < 2 && !chosen;
  }

  /** Of all jobs: what can be chosen; of those that match: how many are in each state. */
  show(all: Totals, matching: Totals) {
    this.choices("cores", all.cores ?? {});
    this.choices("frameworks", all.frameworks ?? {});
    this.choices("tenants", all.tenants ?? {});
    for (const label of this.states.querySelectorAll("label")) {
      const count = matching.states?.[label.querySelector("input")!.value];
      label.querySelector(".count")!.textContent = count ? ` ${Number(count).toLocaleString()}` : "";
    }
  }

  private set(change: Partial<Filter>) { this.emit({ ...this.view, filter: { ...this.view.filter, ...change } }); }
  private later(change: Partial<Filter>) {
    this.view = { ...this.view, filter: { ...this.view.filter, ...change } };
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.emit(this.view), PAUSE_MS);
  }
  private emit(view: View) {
    clearTimeout(this.timer);
    this.view = view;
    this.changed(view);
  }
}
