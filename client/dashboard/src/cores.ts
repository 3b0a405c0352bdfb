// What each core accepts: operators by framework, with their restrictions.
import { getServer, listOps, type Operator } from "./api";
import { h, replace } from "./dom";
import type { View } from "./view";

export function cores(root: HTMLElement, query: URLSearchParams): View {
  const core = h("select", { "aria-label": "Core", change: () => show() });
  const framework = h("select", { "aria-label": "Framework", change: () => show() });
  const search = h("input", { type: "search", placeholder: "Operator", "aria-label": "Filter operators", input: () => show() });
  const count = h("span", { class: "soft", role: "status" });
  const table = h("section", { class: "card scroll", tabindex: 0, "aria-label": "Operators" });
  let ops: Operator[] = [];
  root.append(h("div", { class: "head" }, h("h1", {}, "Cores and operators"), count),
    h("div", { class: "head" }, core, framework, search), table);

  const show = () => {
    const wanted = search.value.toLowerCase();
    history.replaceState(null, "", `#/cores?${new URLSearchParams({ core: core.value, framework: framework.value })}`);
    const shown = ops.filter((op) => op.core === core.value && (!framework.value || op.framework === framework.value) && op.op.toLowerCase().includes(wanted));
    count.textContent = `${shown.length} operators`;
    replace(table, h("table", { class: "stack" },
      h("thead", {}, h("tr", {}, h("th", {}, "Operator"), h("th", {}, "Framework"), h("th", {}, "Restrictions"))),
      h("tbody", {}, ...shown.map((op) => h("tr", {}, h("th", { scope: "row" }, op.op), h("td", {}, op.framework),
        h("td", {}, ...(op.restrictions ?? []).map((text) => h("div", {}, text))))))));
  };
  const refresh = async () => {
    const [info, all] = await Promise.all([getServer(), listOps()]);
    ops = all;
    const names = [...new Set(ops.map((op) => op.core))].sort();
    const compiled = new Set(info.cores ?? []);
    core.replaceChildren(...names.map((name) => h("option", { value: name }, compiled.has(name) ? name : `${name} (not compiled)`)));
    framework.replaceChildren(h("option", { value: "" }, "every framework"), ...[...new Set(ops.map((op) => op.framework))].sort().map((name) => h("option", { value: name }, name)));
    core.value = query.get("core") ?? info.cores?.[0] ?? names[0] ?? "";
    framework.value = query.get("framework") ?? "";
    show();
  };
  return { title: "Cores", refresh };
}
