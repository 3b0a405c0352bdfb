// Two jobs side by side: facts, sizes, and what differs between configs and headers.
import { getArtifact, getJob, getReport, hasReport, stateOf, type Job } from "./api";
import { badge, bytes, duration, h, ms, scrolled } from "./dom";
import { nameOf, whyOf } from "./jobs_text";
import type { View } from "./view";

interface Line { kind: "same" | "add" | "cut"; text: string }
/** So many lines of each are compared, behind those at the start and end that are the same. */
const MAX_LINES = 3000;
const MAX_CHARACTERS = 500;
const CONTEXT = 2;

/** What turns a into b, line by line (longest common subsequence, after equal ends are taken off), and
 *  how many lines in the middle of each were too many to compare. */
export function diff(a: string[], b: string[]): { lines: Line[]; left: [number, number] } {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const x = a.slice(start, Math.min(a.length - end, start + MAX_LINES));
  const y = b.slice(start, Math.min(b.length - end, start + MAX_LINES));
  const left: [number, number] = [a.length - end - start - x.length, b.length - end - start - y.length];
  const width = y.length + 1;
  const common = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      common[i * width + j] = x[i] === y[j] ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const out: Line[] = a.slice(0, start).map((text) => ({ kind: "same", text }));
  let i = 0;
  let j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push({ kind: "same", text: x[i]! }); i++; j++; }
    else if (j >= y.length || (i < x.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) out.push({ kind: "cut", text: x[i++]! });
    else out.push({ kind: "add", text: y[j++]! });
  }
  // This list leaves out lines behind those that were not compared.
  const tail = left[0] || left[1] ? [] : a.slice(a.length - end);
  return { lines: out.concat(tail.map((text) => ({ kind: "same", text }))), left };
}

function showDiff(a: string, b: string): HTMLElement {
  const { lines, left } = diff(a.split("\n"), b.split("\n"));
  const near = new Set<number>();
  lines.forEach((line, i) => { if (line.kind !== "same") for (let k = i - CONTEXT; k <= i + CONTEXT; k++) near.add(k); });
  if (near.size === 0) return h("p", { class: "soft" }, "No difference.");
  const box = h("div", { class: "diff", tabindex: 0, role: "group", "aria-label": "Differences" });
  lines.forEach((line, i) => {
    if (!near.has(i)) return;
    if (!near.has(i - 1)) box.append(h("span", { class: "soft" }, `line ${i + 1}`));
    const mark = line.kind === "add" ? "+ " : line.kind === "cut" ? "- " : "  ";
    const more = line.text.length - MAX_CHARACTERS;
    box.append(h("span", { class: line.kind }, mark + line.text.slice(0, MAX_CHARACTERS) + (more > 0 ? ` ... and ${more} more characters` : "")));
  });
  if (left[0] || left[1]) {
    box.prepend(h("strong", { class: "left-out" }, `Too many lines differ to show all: behind the ones below, ${left[0].toLocaleString("en-US")} lines of ` +
      `the first and ${left[1].toLocaleString("en-US")} of the second are not compared. Download both to see them.`));
  }
  return box;
}

const sizeOf = (job: Job, name: string) => Number(job.artifacts?.find((one) => one.name === name)?.sizeBytes ?? NaN);

function sizes(a: Job, b: Job): HTMLElement {
  const names = [...new Set([...(a.artifacts ?? []), ...(b.artifacts ?? [])].map((one) => one.name))].sort();
  const cell = (size: number) => h("td", { class: "number" }, Number.isNaN(size) ? "-" : bytes(size));
  return h("section", { class: "card w6" }, h("h2", {}, "Sizes"), scrolled("Sizes", h("table", {},
    h("thead", {}, h("tr", {}, ...["File", "First", "Second", "Change"].map((text, i) => h("th", { class: i ? "number" : "" }, text)))),
    h("tbody", {}, ...names.map((name) => {
      const change = sizeOf(b, name) - sizeOf(a, name);
      return h("tr", {}, h("td", { class: "file" }, name), cell(sizeOf(a, name)), cell(sizeOf(b, name)),
        h("td", { class: "number" }, Number.isNaN(change) ? "-" : change === 0 ? "same size" : `${change > 0 ? "+" : "-"}${bytes(Math.abs(change))}`));
    })))));
}

function facts(a: Job, b: Job): HTMLElement {
  const took = (job: Job) => (job.endTime ? duration(ms(job.endTime) - ms(job.startTime ?? job.createTime)) : "-");
  const row = (name: string, of: (job: Job) => Node | string) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, of(a)), h("td", {}, of(b)));
  return h("section", { class: "card w6" }, h("h2", {}, "Jobs"), h("table", {}, h("tbody", {},
    row("Job", (job) => h("a", { href: `#/job/${job.jobId}` }, nameOf(job))), row("State", (job) => badge(stateOf(job))),
    row("Why", whyOf), row("Took", took), row("Model MD5", (job) => job.modelMd5 ?? ""),
    row("Warnings", (job) => String((job.diagnostics ?? []).length)))));
}

/** What of report.json is compared. */
interface Report {
  sizes_bytes?: Record<string, number>;
  per_frame?: { commands?: number; cycles?: number };
  weights?: { max_abs_error?: number; rms_error?: number }[];
  nodes?: { max_abs_error?: number; rms_error?: number; similarity?: number }[];
  metrics?: { figures: { metric: string; output: string; float: number | null; quantized: number | null }[] };
}

async function reportOf(job: Job): Promise<Report | null> {
  return hasReport(job) ? (await getReport(job.jobId)) as Report : null;
}

/** The largest (or least) of what the entries have; NaN where none has it. */
function extreme<T>(entries: T[] | undefined, of: (entry: T) => number | undefined, pick = Math.max): number {
  const found = (entries ?? []).map(of).filter((value) => value !== undefined);
  return found.length ? found.reduce((a, b) => pick(a, b)) : NaN;
}

function accuracy(a: Report | null, b: Report | null): HTMLElement {
  const rows: [string, (report: Report) => number][] = [
    ["Largest error of a weight", (report) => extreme(report.weights, (one) => one.max_abs_error)],
    ["Largest rms error of a weight", (report) => extreme(report.weights, (one) => one.rms_error)],
    ["Largest error of a layer", (report) => extreme(report.nodes, (one) => one.max_abs_error)],
    ["Least similarity of a layer to float", (report) => extreme(report.nodes, (one) => one.similarity, Math.min)],
    ["npu_size, bytes", (report) => report.sizes_bytes?.npu_size ?? NaN],
    ["total_size, bytes", (report) => report.sizes_bytes?.total_size ?? NaN],
    ["Commands a frame", (report) => report.per_frame?.commands ?? NaN],
    ["Cycles a frame (estimate)", (report) => report.per_frame?.cycles ?? NaN],
  ];
  const measured = [a, b].flatMap((report) => report?.metrics?.figures ?? []).map((one) => JSON.stringify([one.metric, one.output]));
  for (const key of new Set(measured)) {
    const [metric, output] = JSON.parse(key) as [string, string];
    rows.push([`${metric} of ${output}`, (report) =>
      report.metrics?.figures.find((one) => one.metric === metric && one.output === output)?.quantized ?? NaN]);
  }
  const cell = (report: Report | null, of: (report: Report) => number) => {
    const value = report ? of(report) : NaN;
    return h("td", { class: "number" }, Number.isNaN(value) ? "-" : Number.isInteger(value) ? value.toLocaleString("en-US") : String(+value.toPrecision(6)));
  };
  return h("section", { class: "card w12", id: "accuracy" }, h("h2", {}, "Accuracy and cost"),
    scrolled("Accuracy and cost", h("table", {},
      h("thead", {}, h("tr", {}, ...["", "First", "Second"].map((text, i) => (i ? h("th", { class: "number", scope: "col" }, text) : h("td", {}))))),
      h("tbody", {}, ...rows.map(([name, of]) => h("tr", {}, h("th", { scope: "row" }, name), cell(a, of), cell(b, of)))))),
    h("p", { class: "soft" }, "From report.json. Errors of layers are told where the config has LAYER_ERROR_FRAMES or the core quantizes."));
}

async function headerDiff(a: Job, b: Job): Promise<HTMLElement> {
  const headers = [a, b].map((job) => job.artifacts?.find((one) => one.name === job.outputFile?.split("/").at(-1)));
  if (!headers[0] || !headers[1]) return h("p", { class: "soft" }, "Both jobs must have succeeded.");
  if (headers[0].sha256 === headers[1].sha256) return h("p", { class: "soft" }, "Byte for byte the same.");
  const [first, second] = await Promise.all([getArtifact(a.jobId, headers[0].name), getArtifact(b.jobId, headers[1].name)]);
  const text = (content: ArrayBuffer) => new TextDecoder().decode(content);
  return showDiff(text(first), text(second));
}

export function compare(root: HTMLElement, first: string, second: string): View {
  const grid = h("div", { class: "grid" });
  root.append(h("div", { class: "head" }, h("h1", {}, "Compare two jobs")), grid);
  const refresh = async () => {
    const [a, b] = await Promise.all([getJob(first), getJob(second)]);
    const [header, firstReport, secondReport] = await Promise.all([headerDiff(a, b), reportOf(a), reportOf(b)]);
    grid.replaceChildren(facts(a, b), sizes(a, b), accuracy(firstReport, secondReport),
      h("section", { class: "card w12" }, h("h2", {}, "Config"), showDiff(a.spec?.configText ?? "", b.spec?.configText ?? "")),
      h("section", { class: "card w12" }, h("h2", {}, "Header"), header));
  };
  return { title: "Compare", refresh };
}
