// The list of jobs: filters in the URL, all pages read, kept up to date, two jobs to compare.
import { getServer, hasEnded, listJobs, stateOf, STATES, type Job, type Page } from "./api";
import { badge, dateTime, h, setBadge, setText } from "./dom";
import { labelsText, nameOf, tookText } from "./jobs_text";
import type { View } from "./view";
import { VirtualList, type Row } from "./virtual_list";

const REFRESH_MS = 2000;
/** The first page is short, so that it shows soon; later looks at the newest are as long. */
const FIRST_PAGE = 100;
const PAGE = 1000;
/** More are not kept in the page's memory; the filter by state reaches the others. */
const MAX_JOBS = 20_000;

interface Filter { states: string[]; text: string }

export function readFilter(query: URLSearchParams): Filter {
  return { states: query.getAll("state").filter((s) => (STATES as readonly string[]).includes(s)), text: query.get("q") ?? "" };
}

function writeFilter(filter: Filter) {
  const query = new URLSearchParams();
  for (const state of filter.states) query.append("state", state);
  if (filter.text) query.set("q", filter.text);
  history.replaceState(null, "", `#/jobs${query.size ? `?${query}` : ""}`);
}

const matches = (job: Job, filter: Filter): boolean =>
  (filter.states.length === 0 || filter.states.includes(stateOf(job))) &&
  (!filter.text || `${nameOf(job)} ${job.jobId} ${job.modelMd5 ?? ""} ${labelsText(job)} ${job.tenant ?? ""}`
    .toLowerCase().includes(filter.text.toLowerCase()));

class JobsPage {
  private readonly jobs = new Map<string, Job>();
  /** The keys of `jobs`, newest first. */
  private order: string[] = [];
  private readonly picked = new Set<string>();
  private readonly list: VirtualList<Job>;
  private readonly count = h("span", { class: "soft", role: "status" });
  private readonly compare = h("button", { click: () => this.openCompare(), disabled: true }, "Compare");
  private readonly search: HTMLInputElement;
  /** Where the pages begin that were not read yet; "" once all were. */
  private older?: string;
  private closed = false;

  constructor(root: HTMLElement, private filter: Filter) {
    this.list = new VirtualList<Job>({
      label: "Jobs, newest first", key: (job) => job.jobId, makeRow: () => this.makeRow(),
      version: (job) => `${stateOf(job)} ${job.running?.stage ?? ""} ${hasEnded(job) ? "" : tookText(job)} ${this.picked.has(job.jobId)}`,
      open: (job) => { location.hash = `#/job/${job.jobId}`; },
    });
    this.search = h("input", { type: "search", placeholder: "Name, id, label, MD5  ( / )", "aria-label": "Filter by text",
      value: filter.text, input: () => this.setFilter({ ...this.filter, text: this.search.value }) });
    root.append(
      h("div", { class: "head" }, h("h1", {}, "Jobs"), this.count,
        h("div", { class: "right" }, this.compare, h("a", { class: "button", href: "#/submit" }, "Submit"))),
      h("div", { class: "head" }, this.chips(), this.search),
      h("div", { class: "row heading", "aria-hidden": "true" }, h("span"), h("span", {}, "State"), h("span", {}, "Name"),
        h("span", {}, "Labels"), h("span", {}, "Submitted"), h("span", { class: "number" }, "Took"), h("span", {}, "From")),
      this.list.element);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    this.closed = true;
    document.removeEventListener("keydown", this.onKey);
    this.list.close();
  }

  private readonly onKey = (event: KeyboardEvent) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    this.search.focus();
  };

  private chips(): HTMLElement {
    const box = h("fieldset", { class: "chips" }, h("legend", { class: "skip" }, "Filter by state"));
    for (const state of STATES) {
      const input = h("input", { type: "checkbox", value: state, change: () => {
        const chosen = [...box.querySelectorAll<HTMLInputElement>("input:checked")].map((one) => one.value);
        this.setFilter({ ...this.filter, states: chosen });
      } });
      input.checked = this.filter.states.includes(state);
      box.append(h("label", {}, input, state.toLowerCase()));
    }
    return box;
  }

  private setFilter(filter: Filter) {
    this.filter = filter;
    writeFilter(filter);
    this.show();
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
    const [labels, time, took, from] = [new Text(), new Text(), new Text(), new Text()];
    const element = h("div", { class: "row" },
      h("span", { class: "c-pick" }, box), h("span", { class: "c-state" }, state), h("span", { class: "c-name" }, link),
      h("span", { class: "c-labels soft" }, labels), h("span", { class: "c-time soft" }, time),
      h("span", { class: "c-took number" }, took), h("span", { class: "c-id soft" }, from));
    const show = (job: Job) => {
      shown = job;
      box.checked = this.picked.has(job.jobId);
      box.setAttribute("aria-label", `Compare ${nameOf(job)}`);
      setBadge(state, stateOf(job));
      setText(link, nameOf(job));
      link.href = `#/job/${job.jobId}`;
      labels.data = labelsText(job);
      time.data = dateTime(job.createTime);
      took.data = tookText(job);
      from.data = job.cacheHit ? "cache" : (job.attempts ?? 0) > 1 ? `${job.attempts} tries` : job.startTime ? "worker" : "";
    };
    return { element, show };
  }

  private show() {
    const { states, text } = this.filter;
    const all = this.order.map((id) => this.jobs.get(id)!);
    const shown = states.length || text ? all.filter((job) => matches(job, this.filter)) : all;
    this.count.textContent = shown.length === this.jobs.size ? `${shown.length.toLocaleString()} jobs`
      : `${shown.length.toLocaleString()} of ${this.jobs.size.toLocaleString()} jobs`;
    this.list.set(shown);
  }

  private keep(jobs: Job[]) {
    const fresh = jobs.filter((job) => !this.jobs.has(job.jobId)).map((job) => job.jobId);
    for (const job of jobs) this.jobs.set(job.jobId, slim(job));
    if (fresh.length === 0) return;
    // Ids sort by time, and pages come newest first: mostly one end or the other takes them as they are.
    if (this.order.length === 0 || fresh.at(-1)! > this.order[0]!) this.order = fresh.concat(this.order);
    else if (fresh[0]! < this.order.at(-1)!) this.order = this.order.concat(fresh);
    else this.order = [...this.jobs.keys()].sort().reverse();
  }

  /** What is new, what has not ended, and the older pages until all are read. A request that fails
   *  ends this look; the next one goes on where it was. */
  async refresh() {
    this.keep(await this.newest());
    this.show();
    while (this.older && this.jobs.size < MAX_JOBS && !this.closed) {
      const page = await listJobs([], PAGE, this.older);
      this.keep(page.jobs);
      this.older = page.next;
      this.show();
    }
    await this.refreshLive();
    this.forget();
    this.show();
  }

  /** The newest jobs, back to those that are known. */
  private async newest(): Promise<Job[]> {
    const known = this.order[0];
    let page = await listJobs([], FIRST_PAGE);
    if (this.older === undefined) this.older = page.next;
    const jobs = page.jobs;
    while (known && page.next && jobs.length < MAX_JOBS && !reaches(page, known)) {
      page = await listJobs([], PAGE, page.next);
      jobs.push(...page.jobs);
    }
    return jobs;
  }

  private async refreshLive() {
    const live = [...this.jobs.values()].filter((job) => !hasEnded(job));
    if (live.length === 0) return;
    const info = await getServer();
    if (Number(info.queuedJobs ?? 0) + Number(info.runningJobs ?? 0) > PAGE) return;
    const page = await listJobs(["QUEUED", "RUNNING"], PAGE);
    this.keep(page.jobs);
    const still = new Set(page.jobs.map((job) => job.jobId));
    // What is live here and no more there has ended among older jobs: they are read again.
    if (live.some((job) => !still.has(job.jobId))) {
      const oldest = live.reduce((a, b) => (a.jobId < b.jobId ? a : b)).jobId;
      for (let token = "", n = 0; n < 20; n++) {
        const ended = await listJobs([], PAGE, token);
        this.keep(ended.jobs);
        token = ended.next;
        if (!token || reaches(ended, oldest)) break;
      }
    }
  }

  private forget() {
    if (this.jobs.size <= MAX_JOBS) return;
    for (const id of this.order.splice(MAX_JOBS)) this.jobs.delete(id);
  }
}

/** Whether the page, newest first, goes back to that job. A page may be empty and not the last. */
const reaches = (page: Page, id: string): boolean => page.jobs.length > 0 && page.jobs.at(-1)!.jobId <= id;

/** What the list shows of a job, and no more: many are kept. */
function slim(job: Job): Job {
  const { artifacts: _artifacts, diagnostics: _diagnostics, deadlineTime: _deadline, requestId: _request, spec, ...rest } = job;
  return { ...rest, spec: { configName: spec?.configName, labels: spec?.labels } };
}

export function jobs(root: HTMLElement, query: URLSearchParams): View {
  const page = new JobsPage(root, readFilter(query));
  return { title: "Jobs", refresh: () => page.refresh(), everyMs: REFRESH_MS, showsAtOnce: true, close: () => page.close() };
}
