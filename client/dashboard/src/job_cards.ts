// Parts of a job's page: its problems, stages, files and facts.
import { artifactPath, getArtifact, hasEnded, type Artifact, type Diagnostic, type Job } from "./api";
import { swatch } from "./charts";
import { badge, bytes, dateTime, duration, h, ms, save, say, svg, tried } from "./dom";
import { labelsText } from "./jobs_text";
import { zip } from "./zip";

export interface Stage { name: string; from: number; to: number }

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

export function timeline(job: Job, stages: Stage[]): Node[] {
  const now = hasEnded(job) ? ms(job.endTime) : Date.now();
  const spans = stages.map((stage) => ({ name: stage.name, took: Math.max(0, (Number.isNaN(stage.to) ? now : stage.to) - stage.from) }));
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
  return [h("h2", {}, "Stages"), picture,
    h("ul", { class: "legend" }, ...spans.map((span, i) => (span.took < 1 ? null : h("li", {}, swatch(i), `${span.name} ${duration(span.took)}`))),
      quick.length ? h("li", { class: "soft" }, `under 1 ms: ${quick.map((span) => span.name).join(", ")}`) : null)];
}

/** Beyond this the browser would hold too much at once. */
const MAX_ZIP_BYTES = 512 << 20;

async function saveAll(job: Job, files: Artifact[]) {
  const sum = files.reduce((all, one) => all + Number(one.sizeBytes ?? 0), 0);
  if (sum > MAX_ZIP_BYTES) throw new Error(`the files have ${bytes(sum)}, more than a page can pack; use npuc-remote fetch ${job.jobId}`);
  const entries = [];
  for (const one of files) {
    say(`reading ${one.name}`);
    entries.push({ name: one.name, content: new Uint8Array(await getArtifact(job.jobId, one.name)) });
  }
  save(zip(entries, new Date(ms(job.endTime))), `${(job.outputFile || job.jobId).replace(/^.*\//, "").replace(/\.[^.]*$/, "")}.zip`);
  say(`${files.length} files saved`);
}

export function artifacts(job: Job): Node[] {
  const files = job.artifacts ?? [];
  const rows = files.map((one) => h("tr", {},
    h("td", {}, h("a", { href: artifactPath(job.jobId, one.name), download: one.name }, one.name)),
    h("td", { class: "number" }, bytes(Number(one.sizeBytes ?? 0))),
    h("td", { class: "mono soft", title: one.sha256 ?? "" }, (one.sha256 ?? "").slice(0, 12))));
  return [h("div", { class: "head" }, h("h2", {}, "Artifacts"), rows.length > 1 ? h("button", { "data-zip": true }, "All as zip") : null),
    rows.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "File"), h("th", { class: "number" }, "Size"), h("th", {}, "SHA-256"))), h("tbody", {}, ...rows))
      : h("p", { class: "soft" }, hasEnded(job) ? "None: only jobs that succeeded have artifacts." : "None yet: they are here once the job has succeeded.")];
}

/** Makes the button of `artifacts` work. */
export function armZip(box: HTMLElement, job: Job) {
  const all = box.querySelector<HTMLButtonElement>("[data-zip]");
  if (all) all.onclick = tried(() => saveAll(job, job.artifacts ?? []));
}

export function facts(job: Job): Node[] {
  const list: [string, string | Node][] = [
    ["Job", job.jobId], ["Tenant", job.tenant ?? ""], ["Submitted", dateTime(job.createTime)], ["Started", dateTime(job.startTime)],
    ["Ended", dateTime(job.endTime)], ["Attempts", String(job.attempts ?? 0)], ["Model MD5", job.modelMd5 ?? ""], ["Trace", job.traceId ?? ""],
    ["Model", bytes(Number(job.spec?.model?.sizeBytes ?? 0))], ["Priority", String(job.spec?.priority ?? 0)], ["Labels", labelsText(job)],
    ["Expected start", job.queued ? dateTime(job.queued.estimatedStartTime) : ""],
  ];
  return [h("h2", {}, "About it"), h("dl", { class: "facts" },
    ...list.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))];
}
