// What a job's report.json says: the result on top, and the other views as tabs, by the code that
// report.html has.
import { getReport } from "./api";
import { h } from "./dom";
import { Selection } from "../report/selection.js";
import { VIEWS, type View as ReportView } from "../report/views.js";

export class ReportTabs {
  /** Fill the page's two places: the result, and the other views. */
  readonly result = h("section", { class: "card", id: "result", "aria-label": "Result", hidden: true });
  readonly tabs = h("section", { class: "card", id: "views", "aria-label": "Report", hidden: true });
  private readonly selection = new Selection();
  private readonly panel = h("div", { role: "tabpanel", id: "view", tabindex: -1 });
  private readonly list = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the report" });
  private readonly drawn = new Map<string, HTMLElement>();
  private views: ReportView[] = [];
  private report: unknown;
  private asked = false;

  /** `open`: told which view is open, for the address; `wanted`: the one that the address names. */
  constructor(private readonly id: string, private wanted: string, private readonly open: (view: string) => void) {
    this.selection.show = (view) => this.show(view, true);
  }

  /** Reads the report, once. */
  async load() {
    if (this.asked) return;
    this.asked = true;
    this.result.hidden = false;
    this.result.replaceChildren(h("p", { class: "soft", role: "status" }, "Reading the report …"));
    try {
      this.report = await getReport(this.id);
      this.draw();
    } catch (error) {
      this.result.replaceChildren(h("p", { class: "notice" }, `The report cannot be shown: ${(error as Error).message} `,
        h("button", { click: () => { this.asked = false; void this.load(); } }, "Try again")));
    }
  }

  private draw() {
    const [first, ...others] = VIEWS.filter((view) => view.has(this.report));
    if (!first) { this.result.hidden = true; return; }
    this.result.replaceChildren(h("h2", {}, "Result"), first.draw(this.report, this.selection));
    this.views = others;
    if (others.length === 0) return;
    this.list.replaceChildren(...others.map((view) => h("button", { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": "view",
      click: () => this.show(view.id, false), keydown: (event: KeyboardEvent) => this.onKey(event, view) }, view.title)));
    this.tabs.replaceChildren(this.list, this.panel);
    this.tabs.hidden = false;
    const wanted = others.find((view) => view.id === this.wanted);
    this.show((wanted ?? others.find((view) => view.id === "nodes") ?? others[0]!).id, false, Boolean(wanted));
  }

  private show(id: string, scrolls: boolean, tells = true) {
    const view = this.views.find((one) => one.id === id);
    if (!view) return;
    // A view that was left keeps what it shows: its order, zoom, and search.
    let element = this.drawn.get(id);
    if (!element) {
      element = view.draw(this.report, this.selection);
      this.drawn.set(id, element);
      const left = (this.report as { omitted?: Record<string, number> }).omitted?.[id];
      if (left) element.append(h("p", { class: "soft" }, `${left.toLocaleString("en-US")} more are not in the report.`));
    }
    this.panel.replaceChildren(element);
    this.panel.setAttribute("aria-labelledby", `tab-${id}`);
    for (const tab of this.list.children) {
      const on = tab.id === `tab-${id}`;
      tab.setAttribute("aria-selected", String(on));
      tab.setAttribute("tabindex", on ? "0" : "-1");
    }
    if (tells) this.open(id);
    if (scrolls) this.tabs.scrollIntoView({ block: "start" });
    if (this.selection.name) this.selection.choose(this.selection.name);
  }

  private onKey(event: KeyboardEvent, view: ReportView) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.views[(this.views.indexOf(view) + step + this.views.length) % this.views.length]!;
    this.show(next.id, false);
    document.getElementById(`tab-${next.id}`)?.focus();
  }
}
