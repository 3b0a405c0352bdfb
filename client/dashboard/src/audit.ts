// The audit: what callers did, of a cluster at all nodes, by pages that a filter chooses.
import { listAudit, type AuditEntry } from "./api";
import { dateTime, field, h, replace, scrolled, tried } from "./dom";

const FIELDS = { identity: "Identity", tenant: "Tenant", action: "Action", object: "Object", node: "Node" };
const HEADS = ["Time", "Node", "Action", "Identity", "Tenant", "Client", "Object", "Result", "Detail"];
// A store looks at a bounded part for each page, which may have no entry that the filter takes.
const EMPTY_PAGES = 20;

export function auditTool(): HTMLElement {
  const inputs = Object.entries(FIELDS).map(([name, label]) => [name, label, h("input", { type: "text", id: `audit-${name}` })] as const);
  const rows = h("tbody", {});
  const note = h("p", { class: "soft", role: "status" });
  const older = h("button", { disabled: true }, "Older");
  let filter: Record<string, string> = {};
  let token = "";
  const rowOf = (one: AuditEntry) => h("tr", {}, ...[dateTime(one.time), one.node, one.action, one.identity, one.tenant, one.peer, one.object, one.result, one.detail]
    .map((text, i) => h(i ? "td" : "th", i ? {} : { scope: "row" }, text || "-")));
  const load = async () => {
    for (let tries = 0; tries < EMPTY_PAGES; ++tries) {
      const page = await listAudit(filter, token);
      token = page.nextPageToken ?? "";
      rows.append(...(page.entries ?? []).map(rowOf));
      if (page.entries?.length || !token) break;
    }
    older.disabled = !token;
    note.textContent = rows.childElementCount ? "" : "No entries.";
  };
  const begin = async () => {
    filter = Object.fromEntries(inputs.map(([name, , input]) => [name, input.value.trim()]).filter(([, value]) => value));
    token = "";
    replace(rows);
    await load();
  };
  older.onclick = tried(load);
  const form = h("form", { class: "fields", submit: (event: Event) => { event.preventDefault(); void tried(begin)(); } },
    ...inputs.map(([, label, input]) => field(label, input)), h("button", {}, "Show"));
  return h("div", {}, form, scrolled("Audit", h("table", {}, h("thead", {}, h("tr", {}, ...HEADS.map((head) => h("th", { scope: "col" }, head)))), rows)), note, older);
}
