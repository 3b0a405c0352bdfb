// Colours for YAML configs, line by line. What it does not know stays plain.
import { h } from "./dom";

const PARTS = /(#.*$)|("(?:[^"\\]|\\.)*"|'[^']*')|(\b-?\d+(?:\.\d+)?\b|\b(?:true|false|null)\b)/g;

function value(text: string): (Node | string)[] {
  const out: (Node | string)[] = [];
  let at = 0;
  for (const match of text.matchAll(PARTS)) {
    out.push(text.slice(at, match.index));
    const kind = match[1] ? "y-comment" : match[2] ? "y-string" : "y-number";
    out.push(h("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  out.push(text.slice(at));
  return out;
}

export function yaml(text: string): HTMLElement {
  const code = h("code");
  for (const line of text.split("\n")) {
    const key = /^(\s*(?:- )?)([^\s#:'"{[][^:#]*)(:)(\s.*|)$/.exec(line);
    if (key) code.append(key[1]!, h("span", { class: "y-key" }, key[2]!), ":", ...value(key[4]!), "\n");
    else code.append(...value(line), "\n");
  }
  return h("pre", { class: "code", tabindex: 0, "aria-label": "Config" }, code);
}
