// The jobs of one name or label over time: what they made, as lines, and where it became worse.
import { getReport, listJobs, REPORT, stateOf, type Filter, type Job } from "./api";
import { points, type Point } from "./charts";
import { badge, bytes, dateTime, duration, field, h, ms, scrolled } from "./dom";
import { nameOf } from "./jobs_text";
import type { View } from "./view";
import { factsOf } from "../report/facts.js";

/** The newest jobs that are looked at, and those of them whose report is read. */
const PAGE = 200;
const MOST_JOBS = 60;
const AT_ONCE = 4;
/** A size or a count is worse from 0.1 % on; a time differs between equal runs. */
const SIZE_TOLERANCE = 0.001;
const TIME_TOLERANCE = 0.5;
const SHORTEST_MS = 500;

/** A figure of jobs. */
interface Figure { name: string; text: (value: number) => string; isWorse: (value: number, before: number) => boolean }
/** `values`: the figures that the job has, by name. */
interface Entry { job: Job; values: Map<string, number> }

const larger = (tolerance: number) => (value: number, before: number) => value > before * (1 + tolerance);
const count = (value: number) => value.toLocaleString("en-US");
const FIGURES: Figure[] = [
  { name: "RAM", text: bytes, isWorse: larger(SIZE_TOLERANCE) },
  { name: "Flash", text: bytes, isWorse: larger(SIZE_TOLERANCE) },
  { name: "Cycles a frame", text: count, isWorse: larger(SIZE_TOLERANCE) },
  { name: "Commands", text: count, isWorse: larger(SIZE_TOLERANCE) },
  { name: "Compile time", text: duration, isWorse: (value, before) => value > SHORTEST_MS && larger(TIME_TOLERANCE)(value, before) },
];
/** Metrics of a quantized result of which less is worse; the others are errors. */
const GROWING = new Set(["sqnr", "cosine", "top1", "topk", "map", "accuracy"]);

const metricFigure = (name: string): Figure => ({
  name,
  text: (value) => String(+value.toPrecision(5)),
  isWorse: GROWING.has(name.split(" ")[0]!.toLowerCase()) ? (value, before) => value < before - Math.abs(before) * SIZE_TOLERANCE : larger(SIZE_TOLERANCE),
});

/** Reports by digest: a cache hit has the report of the job that compiled. */
const known = new Map<string, Promise<Map<string, number>>>();

async function read(job: Job): Promise<Map<string, number>> {
  const facts = factsOf(await getReport(job.jobId));
  const values = new Map<string, number>([["RAM", facts.ram], ["Flash", facts.flash]]);
  if (facts.cycles !== undefined) values.set("Cycles a frame", facts.cycles);
  if (facts.commands !== undefined) values.set("Commands", facts.commands);
  for (const one of facts.figures as { metric: string; output: string; quantized: number | null }[]) {
    if (one.quantized !== null) values.set(`${one.metric} of ${one.output}`, one.quantized);
  }
  return values;
}

async function valuesOf(job: Job): Promise<Map<string, number>> {
  const report = job.artifacts?.find((one) => one.name === REPORT);
  const key = report?.sha256;
  if (!key) return new Map();
  if (!known.has(key)) known.set(key, read(job));
  try {
    const values = new Map(await known.get(key)!);
    if (!job.cacheHit) values.set("Compile time", ms(job.endTime) - ms(job.startTime));
    return values;
  } catch (error) {
    known.delete(key);  // the next look reads it again
    throw error;
  }
}

/** The entries of the jobs, oldest first, a few reports at a time. */
async function entriesOf(jobs: Job[]): Promise<Entry[]> {
  const entries: Entry[] = jobs.map((job) => ({ job, values: new Map() }));
  const left = entries.filter((entry) => stateOf(entry.job) === "SUCCEEDED");
  const work = async () => {
    for (let entry = left.pop(); entry; entry = left.pop()) entry.values = await valuesOf(entry.job);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return entries.reverse();
}

/** For each entry the figures that are worse than in the last one before it that has them. */
function worseOf(entries: Entry[], figures: Figure[]): string[][] {
  const last = new Map<string, number>();
  return entries.map(({ values }) => figures.filter(({ name, isWorse }) => {
    const [value, before] = [values.get(name), last.get(name)];
    if (value !== undefined) last.set(name, value);
    return value !== undefined && before !== undefined && isWorse(value, before);
  }).map((figure) => figure.name));
}

function chart(entries: Entry[], figure: Figure, worse: string[][]): HTMLElement {
  const list: Point[] = entries.flatMap(({ job, values }, i) => {
    const value = values.get(figure.name);
    return value === undefined ? [] : [{ value, href: `#/job/${job.jobId}`, marked: worse[i]!.includes(figure.name),
      text: `${dateTime(job.createTime)}: ${figure.text(value)}` }];
  });
  const [first, last] = [list[0]!, list.at(-1)!];
  const change = last.value - first.value;
  const share = first.value ? `, ${change > 0 ? "+" : ""}${(100 * change / first.value).toFixed(1)} % since the first` : "";
  const marks = list.filter((point) => point.marked).length;
  const words = `${figure.name}: ${figure.text(last.value)}${change ? share : list.length > 1 ? ", unchanged" : ""}`;
  return h("section", { class: "card w6" }, h("h2", {}, words), points(list, figure.text, `${words}; ${list.length} jobs, worse than before ${marks} times`));
}

function table(entries: Entry[], figures: Figure[], worse: string[][]): HTMLElement {
  let lastGood: Entry | undefined;
  const row = (entry: Entry, i: number) => {
    const isGood = stateOf(entry.job) === "SUCCEEDED" && worse[i]!.length === 0;
    const good = isGood ? undefined : lastGood;
    if (isGood) lastGood = entry;
    return h("tr", {}, h("td", {}, h("a", { href: `#/job/${entry.job.jobId}` }, dateTime(entry.job.createTime))),
      h("td", {}, badge(stateOf(entry.job)), entry.job.cacheHit ? " cache" : ""),
      ...figures.map((figure) => {
        const value = entry.values.get(figure.name);
        const isWorse = worse[i]!.includes(figure.name);
        return h("td", { class: isWorse ? "number worse" : "number" }, value === undefined ? "-" : figure.text(value), isWorse ? " ▲ worse" : "");
      }),
      h("td", {}, good ? h("a", { href: `#/compare/${good.job.jobId}/${entry.job.jobId}` }, "compare with the last good one") : ""));
  };
  return h("section", { class: "card w12" }, h("h2", {}, "Jobs, newest first"),
    scrolled("Jobs", h("table", {},
      h("thead", {}, h("tr", {}, ...["Submitted", "State"].map((text) => h("th", { scope: "col" }, text)),
        ...figures.map((figure) => h("th", { class: "number", scope: "col" }, figure.name)), h("th", { scope: "col" }, "Against"))),
      h("tbody", {}, ...entries.map(row).reverse()))));
}

/** The address of the trends of jobs like this one. */
export const trendsOf = (job: Job): string => `#/trends?${new URLSearchParams({ name: nameOf(job), ...(job.core ? { core: job.core } : {}) })}`;

export function trends(root: HTMLElement, query: URLSearchParams): View {
  const name = query.get("name") ?? "";
  const filter: Partial<Filter> = { states: ["SUCCEEDED", "FAILED"], text: name, cores: query.getAll("core"), labels: query.getAll("label") };
  const wanted = h("input", { type: "search", id: "trend-name", value: name, maxlength: 255, placeholder: "kws_cnn.h" });
  const labels = h("input", { type: "text", id: "trend-label", value: query.getAll("label").join(" "), placeholder: "KEY=VALUE" });
  const ask = (event: Event) => {
    event.preventDefault();
    const asked = new URLSearchParams(wanted.value.trim() ? { name: wanted.value.trim() } : {});
    for (const label of labels.value.split(/\s+/).filter(Boolean)) asked.append("label", label);
    location.hash = `#/trends?${asked}`;
  };
  const grid = h("div", { class: "grid" });
  const said = h("p", { class: "soft", role: "status" });
  root.append(h("div", { class: "head" }, h("h1", {}, name ? `Trends of ${name}` : "Trends")),
    h("form", { class: "fields", submit: ask },
      field("Name of the result or config", wanted), field("Labels", labels), h("button", { class: "primary" }, "Show")),
    said, grid);
  const refresh = async () => {
    if (!name && !filter.labels!.length) {
      said.textContent = "Name a result, as in the list of jobs, or a label.";
      return;
    }
    const page = await listJobs(filter, PAGE);
    // The server's text also finds parts of names, ids and digests.
    const all = page.jobs.filter((job) => !name || nameOf(job) === name || job.spec?.configName === name);
    const entries = await entriesOf(all.slice(0, MOST_JOBS));
    const measured = new Set(entries.flatMap((entry) => [...entry.values.keys()]));
    const figures = [...FIGURES, ...[...measured].filter((one) => !FIGURES.some((figure) => figure.name === one)).map(metricFigure)]
      .filter((figure) => measured.has(figure.name));
    const worse = worseOf(entries, figures);
    const older = all.length > MOST_JOBS || page.next;
    said.textContent = entries.length === 0 ? "No job of that name has ended; the list of jobs shows those that wait."
      : `${entries.length} jobs${older ? `, the newest; older ones are not shown` : ""}; ${worse.filter((list) => list.length).length} made something worse than the one before.`;
    grid.replaceChildren(...figures.map((figure) => chart(entries, figure, worse)), ...(entries.length ? [table(entries, figures, worse)] : []));
  };
  return { title: name ? `Trends of ${name}` : "Trends", refresh, showsAtOnce: true };
}
