// A job's live log: numbered lines with links, search, wrap and follow. Lines are kept in bounds, and
// those that come are added once a frame; blocks out of sight cost the browser nothing.
import { clock, copy, h } from "./dom";

const MAX_LINES = 50_000;
const BLOCK_LINES = 200;

/** A line of the compile's log has a number; what the page says between them has none. */
interface Line { number: number; text: string; time?: string }

export class LogView {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "log", tabindex: 0, role: "log", "aria-label": "Log of the compile", "aria-live": "off" });
  private readonly search: HTMLInputElement;
  private readonly found = h("span", { class: "soft", role: "status" });
  private readonly about = h("p", { class: "soft", hidden: true });
  private readonly follow = h("input", { type: "checkbox", checked: true, change: () => { if (this.follow.checked) this.toEnd(); } });
  private lines: Line[] = [];
  private count = 0;
  private dropped = 0;
  /** How many of `lines` are in the page; fewer after a frame, none after a change of the search. */
  private drawn = 0;
  private frame = 0;

  /** `link`: the address of a line. `wanted`: the line that the address names, 0 for none. */
  constructor(private readonly link: (line: number) => string, private wanted: number) {
    this.search = h("input", { type: "search", placeholder: "Search the log", "aria-label": "Search the log", input: () => { this.drawn = 0; this.schedule(); } });
    const wrap = h("input", { type: "checkbox", checked: true, change: () => { this.box.classList.toggle("nowrap", !wrap.checked); } });
    if (wanted) this.follow.checked = false;
    this.element = h("section", { class: "card w12", id: "log", "aria-label": "Log" },
      h("div", { class: "head" }, h("h2", {}, "Log"), this.search, this.found,
        h("div", { class: "right soft" }, h("label", {}, wrap, " wrap"), h("label", {}, this.follow, " follow"),
          h("button", { click: () => void copy(this.text()) }, "Copy"))), this.about, this.box);
    this.schedule();
  }

  add(text: string, time?: string) { this.push({ number: ++this.count, text, time }); }
  /** A line that is not the compile's. */
  note(text: string) { this.push({ number: 0, text }); }
  /** Says whose log it is. */
  tell(about: Node) { this.about.replaceChildren(about); this.about.hidden = false; }
  get hasLines() { return this.count > 0; }

  private text(): string { return this.lines.filter((line) => line.number).map((line) => line.text).join("\n"); }

  private push(line: Line) {
    this.lines.push(line);
    if (this.lines.length > MAX_LINES) {
      const cut = this.lines.splice(0, MAX_LINES / 5);
      this.dropped += cut.length;
      this.drawn = 0;
    }
    this.schedule();
  }

  private schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw() {
    const wanted = this.search.value.toLowerCase();
    if (this.drawn === 0) this.box.replaceChildren();
    const fresh = this.lines.slice(this.drawn).filter((line) => !wanted || line.text.toLowerCase().includes(wanted));
    this.drawn = this.lines.length;
    for (const line of fresh) {
      let block = this.box.lastElementChild;
      if (block && block.childElementCount >= BLOCK_LINES) block.classList.add("full");
      if (!block || block.childElementCount >= BLOCK_LINES) this.box.append(block = h("div"));
      block.append(this.line(line, wanted));
    }
    const shown = this.box.querySelectorAll(".line").length;
    this.found.textContent = wanted ? `${shown} lines have it` : this.lines.length === 0 ? "no line yet"
      : `${this.count.toLocaleString("en-US")} lines${this.dropped ? `, the first ${this.dropped.toLocaleString("en-US")} are not kept here; compile.log has all` : ""}`;
    if (this.wanted) this.goTo(this.wanted);
    else if (this.follow.checked && !wanted) this.toEnd();
  }

  private toEnd() { this.box.scrollTop = this.box.scrollHeight; }

  /** Shows the line that the address names, as soon as it is there. */
  private goTo(number: number) {
    const line = this.box.querySelector<HTMLElement>(`[data-line="${number}"]`);
    if (!line) return;
    this.wanted = 0;
    line.classList.add("here");
    this.element.scrollIntoView({ block: "center" });
    this.box.scrollTop = line.offsetTop - this.box.clientHeight / 2;
  }

  private line(line: Line, wanted: string): Node {
    const at = wanted ? line.text.toLowerCase().indexOf(wanted) : -1;
    const text = at < 0 ? h("span", { class: "text" }, line.text)
      : h("span", { class: "text" }, line.text.slice(0, at), h("mark", {}, line.text.slice(at, at + wanted.length)), line.text.slice(at + wanted.length));
    if (!line.number) return h("div", { class: "line note" }, h("span", { class: "number" }), text);
    const number = h("a", { class: "number", tabindex: -1, href: this.link(line.number), title: clock(line.time), "aria-label": `Line ${line.number}`,
      click: (event: Event) => {
        event.preventDefault();
        history.replaceState(null, "", this.link(line.number));
        for (const one of this.box.querySelectorAll(".here")) one.classList.remove("here");
        (event.currentTarget as HTMLElement).parentElement!.classList.add("here");
        this.follow.checked = false;
        void copy(location.href);
      } }, String(line.number));
    return h("div", { class: "line", "data-line": line.number }, number, text);
  }
}
