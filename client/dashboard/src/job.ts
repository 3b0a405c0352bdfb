// One job: its result first, then its problems, its report, its files and stages, its log and config.
import {
  cancelJob, createJob, getArtifact, getJob, hasEnded, hasReport, stateOf,
  type ApiError, type Job, type JobEvent,
} from "./api";
import { badge, copy, h, ms, replace, say } from "./dom";
import { yaml } from "./highlight";
import { alike, armZip, artifacts, diagnostic, facts, timeline, type Stage } from "./job_cards";
import { nameOf, reattachCommand, whyOf } from "./jobs_text";
import { LogView } from "./log_view";
import { ReportTabs } from "./report_tabs";
import { may } from "./session";
import { trendsOf } from "./trends";
import type { View } from "./view";
import { watchJob } from "./watch";

const LOG_FILE = "compile.log";
const MARKS: Record<string, string> = { SUCCEEDED: "✓ ", FAILED: "✗ ", CANCELLED: "✗ ", EXPIRED: "✗ " };

class JobPage {
  private job?: Job;
  private stages: Stage[] = [];
  private readonly log: LogView;
  private readonly report: ReportTabs;
  private readonly head = h("div", { class: "head" });
  private readonly notice = h("div", { class: "notice", role: "status", hidden: true }, "The connection is lost; trying again. Nothing is lost.");
  private readonly problems = h("section", { "aria-label": "Problems" });
  private readonly state = h("section", { class: "card w6" });
  private readonly timeline = h("section", { class: "card w6" });
  private readonly artifacts = h("section", { class: "card w6" });
  private readonly facts = h("section", { class: "card w6" });
  private readonly config = h("section", { class: "card w12" });
  private readonly stop: () => void;
  private asked = false;
  private logAsked = false;
  /** Whether this page saw it while it had not ended: then its end is news. */
  private sawLive = false;

  constructor(root: HTMLElement, private readonly id: string, view: string, query: URLSearchParams) {
    this.log = new LogView((line) => `#/job/${id}?line=${line}`, Number(query.get("line") ?? 0) || 0);
    this.report = new ReportTabs(id, view, (open) => history.replaceState(null, "", `#/job/${id}/${open}`));
    root.append(this.head, this.notice, this.report.result, this.problems, this.report.tabs,
      h("div", { class: "grid" }, this.state, this.timeline, this.artifacts, this.facts, this.log.element, this.config));
    this.stop = watchJob(id, {
      event: (event) => this.onEvent(event),
      end: (error) => this.onEnd(error),
      connected: (up) => { this.notice.hidden = up; },
    });
  }

  close() { this.stop(); }

  async refresh() {
    if (this.job && hasEnded(this.job)) return;
    this.job = await getJob(this.id);
    this.show();
  }

  private onEnd(error?: ApiError) {
    this.notice.hidden = true;
    if (error) say(error.message);
    void this.refreshSoon();
  }

  /** One look at the job for many events that come together. */
  private async refreshSoon() {
    if (this.asked) return;
    this.asked = true;
    await new Promise((done) => setTimeout(done, 50));
    this.asked = false;
    try {
      this.job = await getJob(this.id);
      this.show();
    } catch { /* The refresh of the page says what is wrong. */ }
  }

  private onEvent(event: JobEvent) {
    const at = ms(event.eventTime);
    if (event.logLine) this.log.add(event.logLine.text ?? "", event.eventTime);
    if (event.stateChanged) {
      const state = (event.stateChanged.state ?? "").replace("JOB_STATE_", "").toLowerCase();
      this.log.note(`-- ${state}${event.stateChanged.reason ? `: ${event.stateChanged.reason}` : ""}`);
      this.endStage(at);
      if (state === "queued" || state === "running") this.stages.push({ name: state === "queued" ? "waiting" : "start", from: at, to: NaN });
    }
    if (event.progress?.stage && this.stages.at(-1)?.name !== event.progress.stage) {
      this.endStage(at);
      this.stages.push({ name: event.progress.stage, from: at, to: NaN });
    }
    if (!event.heartbeat && !event.logLine) void this.refreshSoon();
  }

  private endStage(at: number) {
    const last = this.stages.at(-1);
    if (last && Number.isNaN(last.to)) last.to = at;
  }

  private show() {
    const job = this.job!;
    const state = stateOf(job);
    replace(this.head, h("h1", {}, nameOf(job)), badge(state), job.cacheHit ? h("span", { class: "badge" }, "cache") : null, this.actions(job));
    document.title = `${MARKS[state] ?? (state === "RUNNING" ? `${Math.round(100 * (job.running?.fraction ?? 0))} % ` : "")}${nameOf(job)} - npuc`;
    if (!hasEnded(job)) this.sawLive = true;
    else if (this.sawLive) { this.sawLive = false; this.tellEnd(job); }
    replace(this.problems, ...alike(job.diagnostics ?? []).map(diagnostic));
    replace(this.state, h("h2", {}, "State"), h("p", {}, whyOf(job)),
      job.running ? h("progress", { max: 1, value: job.running.fraction ?? 0, "aria-label": "Progress of the compile" }) : null,
      h("p", { class: "soft" }, "Watch it on a command line: ", h("code", { class: "mono" }, reattachCommand(job))),
      h("button", { click: () => void copy(reattachCommand(job)) }, "Copy the command"));
    replace(this.timeline, ...timeline(job, this.stages));
    replace(this.artifacts, ...artifacts(job));
    armZip(this.artifacts, job);
    replace(this.facts, ...facts(job));
    if (job.spec?.configText !== undefined) replace(this.config, h("h2", {}, job.spec.configName || "Config"), yaml(job.spec.configText));
    if (job.succeeded && hasReport(job)) void this.report.load();
    if (job.succeeded && job.cacheHit) void this.readLog(job);
  }

  /** Nobody compiled for this job: the log is that of the compile whose result it has. */
  private async readLog(job: Job) {
    if (this.logAsked || !job.artifacts?.some((one) => one.name === LOG_FILE)) return;
    this.logAsked = true;
    try {
      const text = new TextDecoder().decode(await getArtifact(this.id, LOG_FILE));
      for (const line of text.replace(/\n$/, "").split("\n")) this.log.add(line);
      this.log.tell(h("span", {}, "The result came from the cache; this is the log of the compile that made it."));
    } catch (error) { this.log.tell(h("span", {}, `The log of the compile that made the result cannot be read: ${(error as Error).message}`)); }
  }

  /** A tab that nobody looks at says that its job has ended. */
  private tellEnd(job: Job) {
    const text = `${nameOf(job)}: ${stateOf(job).toLowerCase()}`;
    say(text);
    if (document.hidden && "Notification" in window && Notification.permission === "granted") new Notification(text, { body: whyOf(job), tag: job.jobId });
  }

  private actions(job: Job): HTMLElement {
    const cancel = h("button", { class: "danger", disabled: hasEnded(job), click: async () => {
      try { await cancelJob(this.id, "cancelled on the dashboard"); this.job = await getJob(this.id); this.show(); say("cancelled"); }
      catch (error) { say((error as Error).message); }
    } }, "Cancel");
    const retry = h("button", { disabled: !hasEnded(job), click: async () => {
      try { location.hash = `#/job/${(await createJob({ ...(await getJob(this.id)).spec, noCache: true })).jobId}`; }
      catch (error) { say((error as Error).message); }
    } }, "Retry");
    const canNotify = !hasEnded(job) && "Notification" in window && Notification.permission === "default";
    const notify = canNotify ? h("button", { click: async () => { say(await Notification.requestPermission() === "granted" ? "you will be told when it has ended" : "the browser does not allow it"); } }, "Notify me") : null;
    const again = h("a", { class: "button", href: `#/submit?from=${job.jobId}` }, "Edit and submit again");
    const trend = h("a", { class: "button", href: trendsOf(job) }, "Trends");
    return h("div", { class: "right" }, notify, trend, may("submit") && again, may("submit") && retry, may("cancel", "admin") && cancel);
  }
}

export function job(root: HTMLElement, id: string, view: string, query: URLSearchParams): View {
  const page = new JobPage(root, id, view, query);
  return { title: "Job", refresh: () => page.refresh(), everyMs: 2000, close: () => page.close() };
}
