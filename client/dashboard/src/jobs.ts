// The list of jobs: filtered and sorted by the server, kept up to date, two jobs to compare.
import { getJob, hasEnded, listJobs, stateOf, type Filter, type Job, type Page, type Totals } from "./api";
import { badge, dateTime, h, say, setBadge, setText } from "./dom";
import { addressOf, FilterBar, isFiltered, readView, requestOf, type View as ViewState } from "./job_filter";
import { labelsText, nameOf, tookText } from "./jobs_text";
import type { View } from "./view";
import { VirtualList, type Row } from "./virtual_list";

const REFRESH_MS = 2000;
/** The first page is short, so that it shows soon; later looks at the newest are as long. */
const FIRST_PAGE = 100;
const PAGE = 1000;
/** More are not kept in the page's memory; filters reach the others. */
const MAX_JOBS = 20_000;

/** Jobs behind the first page that have not ended: so many are read again at a look. */
const LIVE_AT_ONCE = 20;

class JobsPage {
  private readonly jobs = new Map<string, Job>();
  /** The keys of `jobs`, in the server's order. */
  private order: string[] = [];
  private readonly picked = new Set<string>();
  private readonly list: VirtualList<Job>;
  private readonly count = h("span", { class: "soft", role: "status" });
  private readonly compare = h("button", { click: () => this.openCompare(), disabled: true }, "Compare");
  private readonly bar: FilterBar;
  private readonly empty = h("p", { class: "notice", hidden: true }, "No job matches. ", h("a", { href: "#/jobs" }, "All jobs"), ", ", h("a", { href: "#/submit" }, "submit one"), ".");
  /** Of what matches, and of all. */
  private totals: Totals = {};
  private all: Totals = {};
  private asked = false;
  /** Where the pages begin that were not read yet; "" once all were. */
  private older?: string;
  private closed = false;

  constructor(root: HTMLElement, private view: ViewState) {
    this.list = new VirtualList<Job>({
      label: "Jobs", key: (job) => job.jobId, makeRow: () => this.makeRow(),
      version: (job) => `${stateOf(job)} ${job.running?.stage ?? ""} ${hasEnded(job) ? "" : tookText(job)} ${this.picked.has(job.jobId)}`,
      open: (job) => { location.hash = `#/job/${job.jobId}`; },
    });
    this.bar = new FilterBar(view, (changed) => this.setView(changed));
    root.append(
      h("div", { class: "head" }, h("h1", {}, "Jobs"), this.count,
        h("div", { class: "right" }, this.compare, h("a", { class: "button", href: "#/submit" }, "Submit"))),
      this.bar.element,
      h("div", { class: "row heading", "aria-hidden": "true" }, h("span"), h("span", {}, "State"), h("span", {}, "Name"),
        h("span", {}, "Core"), h("span", {}, "Labels"), h("span", {}, "Submitted"), h("span", { class: "number" }, "Took"), h("span", {}, "From")),
      this.empty, this.list.element);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    this.closed = true;
    document.removeEventListener("keydown", this.onKey);
    this.list.close();
    this.bar.close();
  }

  private readonly onKey = (event: KeyboardEvent) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    this.bar.search.focus();
  };

  private setView(view: ViewState) {
    this.view = view;
    this.order = [];
    this.jobs.clear();
    this.older = undefined;
    this.asked = false;
    history.replaceState(null, "", addressOf(view));
    this.refresh().catch((error: Error) => say(error.message));
  }

  private openCompare() {
    const [a, b] = [...this.picked];
    location.hash = `#/compare/${a}/${b}`;
  }

  private pick(job: Job, on: boolean) {
    if (on) this.picked.add(job.jobId); else this.picked.delete(job.jobId);
    if (this.picked.size > 2) this.picked.delete([...this.picked][0]!);
    this.compare.disabled = this.picked.size !== 2;
    this.show();
  }

  private makeRow(): Row<Job> {
    let shown: Job | undefined;
    const box = h("input", { type: "checkbox", change: () => this.pick(shown!, box.checked) });
    const state = badge("");
    const link = h("a", { class: "name" });
    const [core, labels, time, took, from] = [new Text(), new Text(), new Text(), new Text(), new Text()];
    const element = h("div", { class: "row" },
      h("span", { class: "c-pick" }, box), h("span", { class: "c-state" }, state), h("span", { class: "c-name" }, link),
      h("span", { class: "c-core soft" }, core), h("span", { class: "c-labels soft" }, labels), h("span", { class: "c-time soft" }, time),
      h("span", { class: "c-took number" }, took), h("span", { class: "c-id soft" }, from));
    const show = (job: Job) => {
      shown = job;
      box.checked = this.picked.has(job.jobId);
      box.setAttribute("aria-label", `Compare ${nameOf(job)}`);
      setBadge(state, stateOf(job));
      setText(link, nameOf(job));
      link.href = `#/job/${job.jobId}`;
      core.data = [job.core, job.framework].filter(Boolean).join(" · ");
      labels.data = labelsText(job);
      time.data = dateTime(job.createTime);
      took.data = tookText(job);
      from.data = job.cacheHit ? "cache" : (job.attempts ?? 0) > 1 ? `${job.attempts} tries` : job.startTime ? "worker" : "";
    };
    return { element, show };
  }

  private show() {
    const total = Number(this.totals.jobs ?? this.order.length);
    const some = this.order.length < total && !this.older ? `; the first ${this.order.length.toLocaleString()} are shown` : "";
    this.count.textContent = `${total.toLocaleString()} ${total === 1 ? "job" : "jobs"}${isFiltered(this.view) ? " match" : ""}${some}`;
    this.list.set(this.order.map((id) => this.jobs.get(id)!));
    this.empty.hidden = total > 0 || !this.asked;
    this.bar.show(this.all, this.totals);
  }

  /** The page in place of what it covers: the rows behind it stay. */
  private take(page: Page) {
    const fresh = page.jobs.map((job) => job.jobId);
    const last = fresh.at(-1);
    const known = this.order.length === 0 || fresh.some((id) => this.jobs.has(id));
    const isBehind = (id: string) => (this.view.filter.reverse ? id > last! : id < last!);
    const rest = last && page.next && known && !this.view.filter.order ? this.order.filter(isBehind) : [];
    if (rest.length === 0) this.older = this.view.filter.order ? "" : page.next;
    this.put(fresh.concat(rest), page.jobs);
  }

  private put(order: string[], jobs: Job[]) {
    for (const job of jobs) this.jobs.set(job.jobId, slim(job));
    this.order = order.slice(0, MAX_JOBS);
    if (this.jobs.size === this.order.length) return;
    const kept = new Set(this.order);
    for (const id of [...this.jobs.keys()]) if (!kept.has(id)) this.jobs.delete(id);
  }

  /** What is at the beginning, the pages behind it until all are read, and what of them has ended. A
   *  request that fails ends this look; the next one goes on where it was. */
  async refresh() {
    const asked = this.view;
    const request = requestOf(asked);
    const size = this.order.length <= FIRST_PAGE ? (request.order ? PAGE : FIRST_PAGE) : PAGE;
    const page = await listJobs(request, size, "", true);
    if (this.isOver(asked)) return;
    this.asked = true;
    this.totals = page.totals ?? {};
    if (!isFiltered(asked)) this.all = this.totals;
    this.take(page);
    this.show();
    await this.readOlder(asked, request);
    if (!this.isOver(asked)) await this.refreshLive(asked, page.jobs.length);
    if (this.isOver(asked) || this.all.jobs || !isFiltered(asked)) return;
    this.all = (await listJobs({}, 1, "", true)).totals ?? {};
    this.show();
  }

  private isOver(asked: ViewState): boolean { return this.closed || asked !== this.view; }

  private async readOlder(asked: ViewState, request: Filter) {
    while (this.older && this.order.length < MAX_JOBS) {
      const page = await listJobs(request, PAGE, this.older);
      if (this.isOver(asked)) return;
      this.put(this.order.concat(page.jobs.map((job) => job.jobId).filter((id) => !this.jobs.has(id))), page.jobs);
      this.older = this.order.length < MAX_JOBS ? page.next : "";
      this.show();
    }
  }

  /** Jobs behind the first page that had not ended are read again, some at a time. */
  private async refreshLive(asked: ViewState, from: number) {
    const live = this.order.slice(from).filter((id) => !hasEnded(this.jobs.get(id)!)).slice(0, LIVE_AT_ONCE);
    if (live.length === 0) return;
    const jobs = await Promise.all(live.map((id) => getJob(id)));
    if (this.isOver(asked)) return;
    const { states } = asked.filter;
    const gone = new Set(jobs.filter((job) => states.length && !states.includes(stateOf(job))).map((job) => job.jobId));
    this.put(this.order.filter((id) => !gone.has(id)), jobs.filter((job) => !gone.has(job.jobId)));
    this.show();
  }
}

/** What the list shows of a job, and no more: many are kept. */
function slim(job: Job): Job {
  const { artifacts: _artifacts, diagnostics: _diagnostics, deadlineTime: _deadline, requestId: _request, spec, ...rest } = job;
  return { ...rest, spec: { configName: spec?.configName, labels: spec?.labels } };
}

export function jobs(root: HTMLElement, query: URLSearchParams): View {
  const page = new JobsPage(root, readView(query));
  return { title: "Jobs", refresh: () => page.refresh(), everyMs: REFRESH_MS, showsAtOnce: true, close: () => page.close() };
}
