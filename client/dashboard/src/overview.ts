// The overview: what waits and runs, over time; how much came from the cache; who takes how much.
import { getHealth, getServer, hasEnded, listJobs, stateOf, type Health, type Job, type ServerInfo } from "./api";
import { bars, lines, shares, swatch, type Share } from "./charts";
import { badge, dateTime, duration, h, ms, replace } from "./dom";
import { nameOf, tookText } from "./jobs_text";
import type { View } from "./view";

const REFRESH_MS = 2000;
// The list of jobs is asked for as seldom where nothing waits or runs: it is nearly all that a refresh costs.
const IDLE_REFRESH_MS = 10_000;
const RECENT_JOBS = 1000;
const STEPS = 60;

/** How many of the jobs were in [begin, end) at each of STEPS moments. */
function countOver(jobs: Job[], from: number, to: number, begin: (j: Job) => number, end: (j: Job) => number) {
  const step = (to - from) / STEPS;
  return Array.from({ length: STEPS }, (_, i) => {
    const at = from + (i + 0.5) * step;
    return jobs.filter((job) => begin(job) <= at && !(end(job) <= at)).length;
  });
}

/** `since`: jobs submitted earlier are not among `jobs`; 0 where all are. */
function loadCharts(jobs: Job[], info: ServerInfo, since: number): HTMLElement {
  const to = Date.now();
  const oldest = Math.min(...jobs.map((job) => ms(job.createTime)), to - 5 * 60_000);
  const from = Math.max(oldest, to - 60 * 60_000, since);
  const started = (job: Job) => (job.cacheHit ? ms(job.createTime) : ms(job.startTime ?? job.endTime));
  const waiting = countOver(jobs, from, to, (j) => ms(j.createTime), started);
  const ran = jobs.filter((job) => job.startTime);
  const running = countOver(ran, from, to, (j) => ms(j.startTime), (j) => ms(j.endTime));
  return h("section", { class: "card w6" }, h("h2", {}, "Queue and slots"),
    lines([{ values: running, label: "running" }, { values: waiting, label: "waiting", second: true }], from, to,
      `running now ${info.runningJobs ?? 0} of ${info.workers ?? 0}, waiting now ${info.queuedJobs ?? 0}`),
    h("p", { class: "soft" }, `solid: running, of ${info.workers ?? 0} slots; dashed: waiting${ofThose(since)}`));
}

const ofThose = (since: number) => (since ? `; of jobs submitted since ${dateTime(new Date(since).toISOString())} alone` : "");

function rateChart(jobs: Job[], since: number): HTMLElement {
  const to = Math.ceil(Date.now() / 60_000) * 60_000;
  const from = to - 30 * 60_000;
  const counts = new Array<number>(30).fill(0);
  for (const job of jobs) {
    const minute = Math.floor((ms(job.endTime) - from) / 60_000);
    if (minute >= 0 && minute < 30) counts[minute]++;
  }
  return h("section", { class: "card w6" }, h("h2", {}, "Jobs ended a minute"),
    bars(counts, from, to, `${counts.reduce((a, b) => a + b, 0)} jobs ended in the last 30 minutes`),
    h("p", { class: "soft" }, `the last 30 minutes${ofThose(since)}`));
}

function tenantShares(jobs: Job[], since: number): HTMLElement {
  const used = new Map<string, number>();
  for (const job of jobs) {
    const name = job.tenant || "this tenant";
    const took = job.startTime ? (hasEnded(job) ? ms(job.endTime) : Date.now()) - ms(job.startTime) : 0;
    used.set(name, (used.get(name) ?? 0) + Math.max(took, 0));
  }
  const parts: Share[] = [...used].map(([name, value]) => ({ name, value })).sort((a, b) => b.value - a.value);
  const sum = parts.reduce((all, part) => all + part.value, 0) || 1;
  const text = parts.map((p) => `${p.name} ${Math.round((100 * p.value) / sum)} %`).join(", ") || "no job ran yet";
  return h("section", { class: "card w6" }, h("h2", {}, "Compile time by tenant"), shares(parts, text),
    h("ul", { class: "legend" }, ...parts.slice(0, 8).map((part, i) =>
      h("li", {}, swatch(i), `${part.name}: ${duration(part.value)}, ${Math.round((100 * part.value) / sum)} %`))),
    since ? h("p", { class: "soft" }, ofThose(since).slice(2)) : null);
}

const CONDITIONS: Record<string, string> = {
  canary: "a small compile of its own succeeds", disk: "the disk has space", draining: "it is not stopping",
  recovery: "jobs of before are recovered", store: "the job store can be written", watchdog: "nothing is stuck",
};

function healthCard(health: Health): HTMLElement {
  const rows = Object.entries(health.conditions).map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name),
    h("td", {}, badge(text === "ok" ? "holds" : "failed")), h("td", {}, text === "ok" ? CONDITIONS[name] ?? "" : text)));
  return h("section", { class: "card w6" }, h("h2", {}, "Health"), h("table", {}, h("tbody", {}, ...rows)));
}

function recent(jobs: Job[]): HTMLElement {
  const rows = jobs.slice(0, 8).map((job) => h("tr", {},
    h("td", {}, h("a", { href: `#/job/${job.jobId}` }, nameOf(job))), h("td", {}, badge(stateOf(job))),
    h("td", { class: "number" }, tookText(job))));
  const body = rows.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Job"), h("th", {}, "State"),
    h("th", { class: "number" }, "Took"))), h("tbody", {}, ...rows))
    : h("p", { class: "soft" }, "No job yet. ", h("a", { href: "#/submit" }, "Submit one."));
  return h("section", { class: "card w6" }, h("h2", {}, "Newest jobs"), body);
}

const figure = (name: string, value: string, note: string) =>
  h("section", { class: "card w3" }, h("h2", {}, name), h("div", { class: "big" }, value), h("div", { class: "soft" }, note));

function figures(info: ServerInfo, jobs: Job[], since: number): HTMLElement[] {
  const among = since ? ` of the newest ${jobs.length.toLocaleString("en-US")}` : "";
  const done = jobs.filter((job) => job.succeeded);
  const hits = done.filter((job) => job.cacheHit).length;
  const failed = jobs.filter((job) => job.failed).length;
  const lastMinute = jobs.filter((job) => ms(job.endTime) > Date.now() - 60_000).length;
  return [
    figure("Waiting", info.queuedJobs ?? "0", `of at most ${Number(info.maxQueuedJobs ?? 0).toLocaleString()}`),
    figure("Running", `${info.runningJobs ?? 0} / ${info.workers ?? 0}`, "slots in use"),
    figure("Cache hits", done.length ? `${Math.round((100 * hits) / done.length)} %` : "-", `${hits} of ${done.length} that succeeded${among}`),
    figure("Last minute", String(lastMinute), `jobs ended${among}; ${failed} of the last ${jobs.length} failed`),
  ];
}

export function overview(root: HTMLElement): View {
  const grid = h("div", { class: "grid" });
  const scope = h("p", { class: "notice", id: "scope", hidden: true });
  root.append(h("div", { class: "head" }, h("h1", {}, "Overview")), scope, grid);
  let drawn = "";
  let due = 0;
  const refresh = async () => {
    const [info, health] = await Promise.all([getServer(), getHealth()]);
    const isIdle = !Number(info.queuedJobs ?? 0) && !Number(info.runningJobs ?? 0);
    const now = JSON.stringify([isIdle, health.conditions]);
    if (isIdle && now === drawn && Date.now() < due) return;
    const page = await listJobs({}, RECENT_JOBS);
    drawn = now;
    due = Date.now() + IDLE_REFRESH_MS;
    const jobs = page.jobs;
    const since = page.next && jobs.length ? ms(jobs.at(-1)!.createTime) : 0;
    scope.hidden = !since;
    scope.textContent = `Counted are the newest ${jobs.length.toLocaleString("en-US")} jobs; those submitted before ${dateTime(jobs.at(-1)?.createTime)} are left out. Waiting and Running count all.`;
    const parts = [...figures(info, jobs, since), loadCharts(jobs, info, since), rateChart(jobs, since), h("div", { class: "column w6" }, tenantShares(jobs, since), healthCard(health)), recent(jobs)];
    // Each in a place of its own: what did not change keeps its focus.
    while (grid.childElementCount < parts.length) grid.append(h("div", { class: "slot" }));
    parts.forEach((part, i) => replace(grid.children[i]!, part));
  };
  return { title: "Overview", refresh, everyMs: REFRESH_MS };
}
