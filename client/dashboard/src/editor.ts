// An editor for configs: numbered lines, problems at their lines, Tab indents and Escape leaves.
import { h } from "./dom";

export class Editor {
  readonly element: HTMLElement;
  private readonly area = h("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": "Config",
    input: () => { this.number(); this.changed(); }, scroll: () => this.align(), keydown: (event: KeyboardEvent) => this.onKey(event) });
  private readonly numbers = h("pre", { "aria-hidden": "true" });
  private wrong = new Set<number>();
  private leaves = false;

  constructor(private readonly changed: () => void) {
    this.element = h("div", { class: "editor" }, this.numbers, this.area);
    this.number();
  }

  get text(): string { return this.area.value; }
  set text(value: string) {
    this.area.value = value;
    this.mark([]);
  }

  /** Marks lines, counted from 1, that have problems. */
  mark(lines: number[]) {
    this.wrong = new Set(lines);
    this.number();
  }

  focus() { this.area.focus(); }

  /** Puts the cursor into a line. */
  goTo(line: number) {
    const lines = this.text.split("\n");
    const from = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
    this.area.scrollTop = Math.max(0, (line - 4) * this.area.scrollHeight / Math.max(1, lines.length));
  }

  private number() {
    const count = this.text.split("\n").length;
    this.area.rows = Math.min(40, Math.max(12, count + 1));
    this.numbers.replaceChildren(...Array.from({ length: count }, (_, i) =>
      h("span", { class: this.wrong.has(i + 1) ? "wrong" : "" }, `${i + 1}\n`)));
    this.align();
  }

  private align() { this.numbers.scrollTop = this.area.scrollTop; }

  private onKey(event: KeyboardEvent) {
    // A keyboard must be able to leave the editor: Escape, then Tab.
    if (event.key === "Escape") { this.leaves = true; return; }
    if (event.key !== "Tab" || event.shiftKey || this.leaves) { if (event.key !== "Shift") this.leaves = false; return; }
    event.preventDefault();
    this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
    this.changed();
  }
}
