// A job's live log with search. Lines are kept in bounds, and drawn at most once a frame.
import { h } from "./dom";

const MAX_LINES = 20_000;
const DRAWN_LINES = 2000;

export class LogView {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "log", tabindex: 0, role: "log", "aria-label": "Log of the compile", "aria-live": "off" });
  private readonly search: HTMLInputElement;
  private readonly found = h("span", { class: "soft", role: "status" });
  private lines: string[] = [];
  private frame = 0;

  constructor() {
    this.search = h("input", { type: "search", placeholder: "Search the log", "aria-label": "Search the log", input: () => this.schedule() });
    this.element = h("section", { class: "card w12" },
      h("div", { class: "head" }, h("h2", {}, "Log"), this.search, this.found), this.box);
  }

  add(line: string) {
    this.lines.push(line);
    if (this.lines.length > MAX_LINES) this.lines.splice(0, this.lines.length - MAX_LINES);
    this.schedule();
  }

  private schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw() {
    const wanted = this.search.value.toLowerCase();
    const shown = (wanted ? this.lines.filter((line) => line.toLowerCase().includes(wanted)) : this.lines).slice(-DRAWN_LINES);
    const atEnd = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 30;
    this.found.textContent = wanted ? `${shown.length} lines` : `${this.lines.length} lines`;
    this.box.replaceChildren(...shown.map((line) => this.line(line, wanted)));
    if (atEnd && !wanted) this.box.scrollTop = this.box.scrollHeight;
  }

  private line(line: string, wanted: string): Node {
    const at = wanted ? line.toLowerCase().indexOf(wanted) : -1;
    if (at < 0) return document.createTextNode(`${line}\n`);
    return h("span", {}, line.slice(0, at), h("mark", {}, line.slice(at, at + wanted.length)), line.slice(at + wanted.length), "\n");
  }
}
