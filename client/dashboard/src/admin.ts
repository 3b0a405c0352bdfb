// What an operator does by hand: stop and resume the start of jobs, cancel and requeue many, set limits
// of tenants for a time, rotate tokens, drop uploads, evict content, and see who uses what. Everything here needs the right `admin`, which the server asks for.
import { cancelJobs, getCaller, getUsage, listConnections, listJobs, listTenants, requeueJobs, setCordon, setDispatch, type Connections, type CordonState, type DispatchState, type Filter, type TenantLimits, type TenantState, type Usage } from "./api";
import { bytes, dateTime, duration, field, h, replace, save, say, scrolled, tried } from "./dom";
import type { View } from "./view";
import { auditTool } from "./audit";
import { evictTool, limitsTool, tokenTool, uploadsTool } from "./admin_tools";

const REFRESH_MS = 3000;
const USAGE_DAYS = 7;
const SHOWN_CONNECTIONS = 50;
const DAY_MS = 86_400_000;

const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
/** "weight 5, max running jobs 8" */
const limitsText = (limits: TenantLimits) =>
  Object.entries(limits).map(([name, value]) => `${name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${value}`).join(", ");
const limit = (value?: string) => (value === undefined ? "" : ` of ${value}`);

/** A table whose first column names the rows; the others are numbers. */
const table = (name: string, heads: string[], rows: (string | Node)[][]): HTMLElement =>
  scrolled(name, h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head, i) => h("th", { class: i ? "number" : "", scope: "col" }, head)))),
    h("tbody", {}, ...rows.map((cells) => h("tr", {}, ...cells.map((cell, i) => h(i ? "td" : "th", i ? { class: "number" } : { scope: "row" }, cell)))))));

/** Each day as a line, as spreadsheets read it. */
function csvOf(usage: Usage[]): string {
  const quoted = (text: string) => `"${text.replaceAll("\"", "\"\"")}"`;
  const lines = usage.map((one) => [one.day, quoted(one.tenant), one.jobs ?? "0", one.succeeded ?? "0", one.failed ?? "0", one.cacheHits ?? "0",
    String(one.processorSeconds ?? 0), one.uploadedBytes ?? "0", one.downloadedBytes ?? "0"].join(","));
  return ["day,tenant,jobs,succeeded,failed,cache_hits,processor_seconds,uploaded_bytes,downloaded_bytes", ...lines, ""].join("\n");
}

class AdminPage {
  private readonly dispatch = h("div", {});
  private readonly cordon = h("div", {});
  private readonly tenants = h("div", {});
  private readonly usage = h("div", {});
  private readonly connections = h("div", {});
  private readonly why = h("input", { type: "text", id: "why", maxlength: 1024 });
  private readonly tenant = h("input", { type: "text", id: "of-tenant" });
  private readonly label = h("input", { type: "text", id: "of-label", placeholder: "KEY=VALUE" });
  private readonly text = h("input", { type: "search", id: "of-text", maxlength: 255 });
  private readonly found = h("div", { role: "status" });
  private days: Usage[] = [];

  constructor(root: HTMLElement) {
    const look = h("form", { class: "fields", submit: (event: Event) => { event.preventDefault(); void tried(() => this.look())(); } },
      field("Tenant (empty: all)", this.tenant), field("Label", this.label), field("Name, id or MD5", this.text), h("button", {}, "Count"));
    root.append(h("div", { class: "head" }, h("h1", {}, "Operate")), h("div", { class: "grid" },
      h("section", { class: "card w12" }, h("h2", {}, "Start of jobs"), field("Reason, for those who look later", this.why), this.dispatch, this.cordon),
      h("section", { class: "card w12" }, h("h2", {}, "Many jobs at once"), look, this.found),
      h("section", { class: "card w12" }, h("h2", {}, "Tenants"), this.tenants,
        h("h3", {}, "Limits for a time"), limitsTool(() => this.reason(), () => this.refresh()), h("h3", {}, "Tokens"), tokenTool()),
      h("section", { class: "card w12" }, h("h2", {}, "Uploads and results"), uploadsTool(() => this.reason()), evictTool(() => this.reason())),
      h("section", { class: "card w12" }, h("h2", {}, `Use in ${USAGE_DAYS} days`), this.usage),
      h("section", { class: "card w12" }, h("h2", {}, "Connections"), this.connections),
      h("section", { class: "card w12" }, h("h2", {}, "Audit"), auditTool())));
  }

  async refresh() {
    const [now, usage, open] = await Promise.all([listTenants(), getUsage(dayOf(Date.now() - (USAGE_DAYS - 1) * DAY_MS)), listConnections(SHOWN_CONNECTIONS)]);
    this.days = usage;
    this.showDispatch(now.dispatch ?? {});
    this.showCordon(now.cordon ?? {});
    this.showTenants(now.tenants ?? []);
    this.showUsage();
    this.showConnections(open);
  }

  private showDispatch(state: DispatchState) {
    const set = (paused: boolean) => tried(async () => {
      this.showDispatch((await setDispatch(paused, this.why.value.trim())).state ?? {});
      say(paused ? "no job is started any more" : "jobs are started");
    });
    replace(this.dispatch, state.paused
      ? h("p", { class: "notice" }, `Paused by ${state.by ?? "?"} since ${dateTime(state.since)}${state.reason ? `: ${state.reason}` : ""}. What runs goes on; jobs are accepted and wait.`)
      : h("p", {}, "Jobs are started."), h("button", {}, state.paused ? "Resume" : "Pause"));
    this.dispatch.querySelector("button")!.onclick = set(!state.paused);
  }

  private reason() { return this.why.value.trim(); }

  private showCordon(state: CordonState) {
    const node = state.node || "this server";
    const set = tried(async () => {
      this.showCordon((await setCordon(!state.cordoned, this.reason())).state ?? {});
      say(state.cordoned ? `${node} starts jobs` : `${node} starts no job any more`);
    });
    replace(this.cordon, state.cordoned
      ? h("p", { class: "notice" }, `${node} is cordoned by ${state.by ?? "?"} since ${dateTime(state.since)}${state.reason ? `: ${state.reason}` : ""}. It starts no job; other nodes of a cluster do.`)
      : h("p", {}, `${node} is not cordoned.`), h("button", {}, state.cordoned ? "Uncordon" : "Cordon this node"));
    this.cordon.querySelector("button")!.onclick = set;
  }

  private showTenants(tenants: TenantState[]) {
    replace(this.tenants, tenants.length ? table("Tenants", ["Tenant", "Weight", "Waiting", "Running", "Stored", "Under way", "Job, most", "Uploads, most", "Results, most", "Upload a second", "Calls a second"],
      tenants.map((one) => [one.name, String(one.weight ?? 1), `${one.queuedJobs ?? 0}${limit(one.maxQueuedJobs)}`, `${one.runningJobs ?? 0}${limit(one.maxRunningJobs)}`,
        bytes(Number(one.storedBytes ?? 0)), one.openUploads ?? "0",
        ...[one.maxJobBytes, one.maxStoredBytes, one.maxResultBytes, one.maxUploadRate].map((value) => (value === undefined ? "-" : bytes(Number(value)))), one.maxCallRate ?? "-"]))
      : h("p", { class: "soft" }, "This server has no tenants file: everybody is of one tenant."),
      ...tenants.filter((one) => one.temporary).map((one) => h("p", { class: "notice" },
        `${one.name}: ${limitsText(one.temporary!.limits ?? {})} until ${dateTime(one.temporary!.endTime)}, set by ${one.temporary!.by ?? "?"}${one.temporary!.reason ? `: ${one.temporary!.reason}` : ""}.`)));
  }

  private showUsage() {
    const sums = new Map<string, number[]>();
    for (const one of this.days) {
      const figures = [one.jobs, one.failed, one.cacheHits, one.processorSeconds, one.uploadedBytes, one.downloadedBytes].map((value) => Number(value ?? 0));
      sums.set(one.tenant, figures.map((value, i) => value + (sums.get(one.tenant)?.[i] ?? 0)));
    }
    const rows = [...sums].sort((a, b) => b[1][3]! - a[1][3]!).map(([tenant, [jobs, failed, hits, seconds, up, down]]) =>
      [tenant, String(jobs), String(failed), String(hits), duration(1000 * seconds!), bytes(up!), bytes(down!)]);
    replace(this.usage, rows.length ? table("Use", ["Tenant", "Jobs", "Failed", "From the cache", "Processor time", "Uploaded", "Downloaded"], rows)
      : h("p", { class: "soft" }, "Nothing was used."), h("button", { disabled: rows.length === 0 }, "As CSV, by day"));
    this.usage.querySelector("button")!.onclick = () => save(csvOf(this.days), "usage.csv");
  }

  private showConnections(open: Connections) {
    const size = (value?: string) => bytes(Number(value ?? 0));
    const all = (what: string, shown: number, count?: string) =>
      h("p", {}, `${count ?? 0} ${what} at ${open.node || "this server"}${shown < Number(count ?? 0) ? `; the ${shown} that carried the most bytes are shown` : ""}.`);
    const [connections, streams] = [open.connections ?? [], open.streams ?? []];
    replace(this.connections, all("connections", connections.length, open.openConnections),
      table("Connections", ["Client", "By", "Identity", "Tenant", "Calls", "Last call", "Since", "Received", "Sent"],
        connections.map((one) => [one.peer, one.protocol, one.identity || "-", one.tenant || "-", one.calls ?? "0", one.lastMethod || "-", dateTime(one.since),
          size(one.receivedBytes), size(one.sentBytes)])),
      h("h3", {}, "Streams"), all("streams", streams.length, open.openStreams),
      streams.length ? table("Streams", ["Client", "By", "Call", "Identity", "Tenant", "Of", "Since", "Bytes"],
        streams.map((one) => [one.peer, one.protocol, one.method, one.identity ?? "-", one.tenant ?? "-", one.object || "-", dateTime(one.since), size(one.bytes)])) : null);
  }

  private filter(states: string[]): Partial<Filter> {
    const words = (input: HTMLInputElement) => input.value.split(/\s+/).filter(Boolean);
    return { states, tenants: words(this.tenant), labels: words(this.label), text: this.text.value.trim() };
  }

  /** Says how many match before anything can be done to them. */
  private async look() {
    const [live, failed] = await Promise.all([["QUEUED", "RUNNING"], ["FAILED"]].map(async (states) => Number((await listJobs(this.filter(states), 1, "", true)).totals?.jobs ?? 0)));
    const cancel = h("button", { class: "danger", disabled: !live, click: tried(() => this.cancel()) }, `Cancel ${live} that wait or run`);
    const requeue = h("button", { disabled: !failed, click: tried(() => this.requeue()) }, `Requeue ${failed} that failed`);
    this.found.replaceChildren(h("p", {}, `${live} wait or run, ${failed} failed.`), cancel, " ", requeue);
  }

  private async cancel() {
    const filter = this.filter(["QUEUED", "RUNNING"]);
    let cancelled = 0;
    for (let more = true; more;) {
      const answer = await cancelJobs(filter, this.why.value.trim() || "cancelled by an operator");
      cancelled += Number(answer.cancelled ?? 0);
      more = answer.hasMore === true && Number(answer.cancelled ?? 0) > 0;
    }
    this.found.replaceChildren(h("p", {}, `${cancelled} cancelled.`));
  }

  private async requeue() {
    let [requeued, known, next] = [0, 0, ""];
    const failures: string[] = [];
    do {
      const answer = await requeueJobs(this.filter(["FAILED"]), next);
      requeued += Number(answer.requeued ?? 0);
      known += Number(answer.alreadyRequeued ?? 0);
      failures.push(...(answer.failures ?? []).map((one) => `${one.jobId}: ${one.message}`));
      next = answer.nextPageToken ?? "";
    } while (next);
    this.found.replaceChildren(h("p", {}, `${requeued} submitted again${known ? `; ${known} were before` : ""}.`), ...failures.map((text) => h("p", { class: "notice" }, text)));
  }
}

export function admin(root: HTMLElement): View {
  let page: AdminPage | undefined;
  const refresh = async () => {
    if (!page && !(await getCaller()).rights?.includes("admin")) {
      root.replaceChildren(h("h1", {}, "Operate"), h("p", { class: "notice" }, "This page is for identities with the right admin; yours lacks it."));
      return;
    }
    page ??= new AdminPage(root);
    await page.refresh();
  };
  return { title: "Operate", refresh, everyMs: REFRESH_MS };
}
