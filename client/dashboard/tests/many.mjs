// 10,000 jobs in the list: how soon it shows, how smoothly it scrolls, and what live updates keep in
// memory. `--minutes N` is how long the updates run.
import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { check, Npucd, until } from "./npuc.mjs";

const JOBS = 10_000;
const BESIDE = 64;
const SAMPLE = process.env.NPUC_SAMPLE;
const at = process.argv.indexOf("--minutes");
const MINUTES = at > 0 ? Number(process.argv[at + 1]) : 0.5;
const server = new Npucd();

async function call(path, init) {
  const response = await fetch(`http://${server.web}${path}`, init);
  check(response.ok, `${path}: ${response.status} ${await response.clone().text()}`);
  return response.json();
}
const create = (spec) => call("/v1/jobs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ spec }) });

/** Jobs that the cache answers, so that there are many soon. */
async function fill() {
  const model = readFileSync(join(SAMPLE, "kws_fc.pb"));
  const sha256 = createHash("sha256").update(model).digest("hex");
  await call(`/v1/blobs/${sha256}?sizeBytes=${model.length}&offset=0`, { method: "PATCH", body: model, headers: { "Content-Type": "application/octet-stream" } });
  const spec = { configText: readFileSync(join(SAMPLE, "config.yaml"), "utf8"), configName: "config.yaml", model: { sha256, sizeBytes: String(model.length) } };
  const first = (await create(spec)).job.jobId;
  await until("first job", async () => "succeeded" in (await call(`/v1/jobs/${first}`)).job);
  let left = JOBS - 1;
  const one = async () => { while (left-- > 0) await create({ ...spec, labels: { run: String(left) } }); };
  await Promise.all(Array.from({ length: BESIDE / 4 }, one));
  return spec;
}

const heap = async (cdp) => {
  await cdp.send("HeapProfiler.collectGarbage");
  return (await cdp.send("Runtime.getHeapUsage")).usedSize / (1 << 20);
};

/** ms of each frame while the list scrolls from end to end. */
const scroll = (page) => page.evaluate(() => new Promise((done) => {
  const list = document.querySelector(".list");
  const frames = [];
  let last = performance.now();
  let n = 0;
  const step = (now) => {
    frames.push(now - last);
    last = now;
    list.scrollTop = (list.scrollHeight - list.clientHeight) * (n / 240);
    if (n++ < 240) requestAnimationFrame(step);
    else done(frames.slice(2));
  };
  requestAnimationFrame(step);
}));

async function measure(page, spec) {
  const cdp = await page.context().newCDPSession(page);
  const begin = Date.now();
  await page.goto(`http://${server.web}/#/jobs`);
  await page.locator(".list .row").first().waitFor();
  const first = Date.now() - begin;
  await page.getByText(`${JOBS.toLocaleString()} jobs`).waitFor({ timeout: 60_000 });
  const all = Date.now() - begin;
  const frames = (await scroll(page)).sort((a, b) => a - b);
  const rows = await page.locator(".list .row").count();
  const before = await heap(cdp);
  const end = Date.now() + MINUTES * 60_000;
  let made = 0;
  while (Date.now() < end) {
    await create({ ...spec, labels: { live: String(made++) } });
    await page.waitForTimeout(100);
  }
  const after = await heap(cdp);
  const worst = frames.at(-1);
  console.log(`FIGURE: dashboard: ${JOBS} jobs: first rows after ${first} ms, all after ${all} ms; scrolled end to end in ${frames.length} frames, median ${frames[frames.length >> 1].toFixed(1)} ms, worst ${worst.toFixed(1)} ms; ${rows} rows in the page; heap ${before.toFixed(1)} MiB, after ${MINUTES} min with ${made} new jobs ${after.toFixed(1)} MiB`);
  check(first < 1000, `the first rows took ${first} ms`);
  check(rows < 60, `${rows} rows are in the page`);
  check(after < before + 30, `the heap grew from ${before} to ${after} MiB`);
  check(worst < 50, `a frame took ${worst} ms`);
}

await server.start();
const browser = await chromium.launch({ executablePath: process.env.NPUC_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  await measure(await browser.newPage({ viewport: { width: 1440, height: 900 } }), await fill());
} catch (error) {
  console.error(error.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
