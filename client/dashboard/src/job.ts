// One job: its state and why, its problems first, its stages, its log as it comes, what it made.
import {
  artifactPath, cancelJob, createJob, getArtifact, getJob, hasEnded, stateOf, watchJob,
  type ApiError, type Diagnostic, type Job, type JobEvent,
} from "./api";
import { swatch } from "./charts";
import { badge, bytes, copy, dateTime, duration, h, ms, replace, save, say, svg } from "./dom";
import { yaml } from "./highlight";
import { labelsText, nameOf, reattachCommand, whyOf } from "./jobs_text";
import { LogView } from "./log_view";
import type { View } from "./view";

interface Stage { name: string; from: number; to: number }

/** Diagnostics in their order; those that differ in their node alone are one entry. */
export function alike(list: Diagnostic[]): Diagnostic[][] {
  const groups = new Map<string, Diagnostic[]>();
  list.forEach((one, index) => {
    const { node: _node, ...rest } = one;
    const key = one.node ? JSON.stringify(rest) : String(index);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  });
  return [...groups.values()];
}

/** One entry, with the nodes of those like it. */
export function diagnostic([one, ...others]: Diagnostic[]): HTMLElement {
  const kind = (one.severity ?? "SEVERITY_ERROR").replace("SEVERITY_", "").toLowerCase();
  const place = [one.file, one.line || "", one.column || ""].filter(Boolean).join(":");
  const node = one.node ? `node '${one.node}'${one.op ? ` (${one.op})` : ""}` : "";
  return h("article", { class: `diagnostic ${kind}`, "aria-label": `${kind} ${one.id ?? ""}` },
    h("p", {}, badge(kind), " ", h("strong", {}, one.message ?? "")),
    h("p", { class: "mono" }, [place, node].filter(Boolean).join(" · ")),
    others.length ? h("details", {}, h("summary", {}, `${others.length} more such node${others.length > 1 ? "s" : ""}`),
      h("p", { class: "mono" }, others.map((other) => other.node).join(", "))) : null,
    one.fix ? h("p", {}, "What to do: ", one.fix) : null,
    h("p", { class: "soft" }, [one.id, one.limitSource].filter(Boolean).join(" · ")));
}

class JobPage {
  private job?: Job;
  private stages: Stage[] = [];
  private readonly log = new LogView();
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

  constructor(root: HTMLElement, private readonly id: string) {
    root.append(this.head, this.notice, this.problems,
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
    if (event.logLine) this.log.add(event.logLine.text ?? "");
    if (event.stateChanged) {
      const state = (event.stateChanged.state ?? "").replace("JOB_STATE_", "").toLowerCase();
      this.log.add(`-- ${state}${event.stateChanged.reason ? `: ${event.stateChanged.reason}` : ""}`);
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
    replace(this.head, h("h1", {}, nameOf(job)), badge(stateOf(job)), job.cacheHit ? h("span", { class: "badge" }, "cache") : null, this.actions(job));
    document.title = `${nameOf(job)} - npuc`;
    replace(this.problems, ...alike(job.diagnostics ?? []).map(diagnostic));
    replace(this.state, h("h2", {}, "State"), h("p", {}, whyOf(job)),
      job.running ? h("progress", { max: 1, value: job.running.fraction ?? 0, "aria-label": "Progress of the compile" }) : null,
      h("p", { class: "soft" }, "Watch it on a command line: ", h("code", { class: "mono" }, reattachCommand(job))),
      h("button", { click: () => void copy(reattachCommand(job)) }, "Copy the command"));
    this.showTimeline(job);
    this.showArtifacts(job);
    this.showFacts(job);
    if (job.spec?.configText !== undefined) replace(this.config, h("h2", {}, job.spec.configName || "Config"), yaml(job.spec.configText));
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
    return h("div", { class: "right" }, retry, cancel);
  }

  private showTimeline(job: Job) {
    const now = hasEnded(job) ? ms(job.endTime) : Date.now();
    const spans = this.stages.map((stage) => ({ name: stage.name, took: Math.max(0, (Number.isNaN(stage.to) ? now : stage.to) - stage.from) }));
    const quick = spans.filter((span) => span.took < 1);
    const sum = spans.reduce((all, span) => all + span.took, 0) || 1;
    const picture = svg("svg", { class: "chart", viewBox: "0 0 600 26", preserveAspectRatio: "none", role: "img",
      "aria-label": spans.map((span) => `${span.name} ${duration(span.took)}`).join(", ") || "no stage yet" });
    let x = 0;
    spans.forEach((span, i) => {
      const width = (span.took / sum) * 600;
      picture.append(svg("rect", { class: `c${i % 5}`, x, y: 0, width, height: 26 }));
      x += width;
    });
    replace(this.timeline, h("h2", {}, "Stages"), picture,
      h("ul", { class: "legend" }, ...spans.map((span, i) => (span.took < 1 ? null : h("li", {}, swatch(i), `${span.name} ${duration(span.took)}`))),
        quick.length ? h("li", { class: "soft" }, `under 1 ms: ${quick.map((span) => span.name).join(", ")}`) : null));
  }

  private showArtifacts(job: Job) {
    const rows = (job.artifacts ?? []).map((one) => h("tr", {},
      h("td", {}, h("a", { href: artifactPath(this.id, one.name), download: one.name, "data-name": one.name }, one.name)),
      h("td", { class: "number" }, bytes(Number(one.sizeBytes ?? 0))),
      h("td", { class: "mono soft", title: one.sha256 ?? "" }, (one.sha256 ?? "").slice(0, 12))));
    replace(this.artifacts, h("h2", {}, "Artifacts"), rows.length
      ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "File"), h("th", { class: "number" }, "Size"), h("th", {}, "SHA-256"))), h("tbody", {}, ...rows))
      : h("p", { class: "soft" }, "None: only jobs that succeeded have artifacts."));
    // Not by the link itself: the request needs the token.
    for (const link of this.artifacts.querySelectorAll<HTMLAnchorElement>("a[data-name]")) {
      link.onclick = async (event) => {
        event.preventDefault();
        try { save(await getArtifact(this.id, link.dataset.name!), link.dataset.name!); }
        catch (error) { say((error as Error).message); }
      };
    }
  }

  private showFacts(job: Job) {
    const facts: [string, string][] = [
      ["Job", job.jobId], ["Tenant", job.tenant ?? ""], ["Submitted", dateTime(job.createTime)], ["Started", dateTime(job.startTime)],
      ["Ended", dateTime(job.endTime)], ["Attempts", String(job.attempts ?? 0)], ["Model MD5", job.modelMd5 ?? ""],
      ["Model", bytes(Number(job.spec?.model?.sizeBytes ?? 0))], ["Priority", String(job.spec?.priority ?? 0)], ["Labels", labelsText(job)],
      ["Expected start", job.queued ? dateTime(job.queued.estimatedStartTime) : ""],
    ];
    replace(this.facts, h("h2", {}, "About it"),
      h("dl", { class: "facts" }, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
  }
}

export function job(root: HTMLElement, id: string): View {
  const page = new JobPage(root, id);
  return { title: "Job", refresh: () => page.refresh(), everyMs: 2000, close: () => page.close() };
}
