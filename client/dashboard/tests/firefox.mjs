// The dashboard in Debian's Firefox by WebDriver BiDi, against a real npucd doing real compiles
// (tests/e2e/dashboard.py --firefox). playwright-core drives only a Firefox of its own build, so it is
// puppeteer-core here; drive.mjs has the whole walk in Chromium.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import puppeteer from "puppeteer-core";
import { check, Npucd, until } from "./npuc.mjs";

const SHOTS = process.env.NPUC_SHOTS;
const SAMPLE = process.env.NPUC_SAMPLE;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WAIT_MS = 60_000;
const server = new Npucd();
const errors = [];
const url = (hash) => `http://${server.web}/${hash}`;
const say = (text) => console.log(text);

async function newTab(browser, hash) {
  const page = await browser.newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  await page.goto(url(hash));
  return page;
}
const stateIs = (page, state) => page.waitForSelector(`.head .badge.${state}`);
/** Goes to a page of the dashboard; the document stays, as for a person who follows a link. */
async function visit(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForSelector("main h1");
  await page.waitForSelector("main:not([aria-busy])");
}

async function submit(page) {
  const files = ["config.yaml", "kws_cnn.pb"].map((name) => join(SAMPLE, name)).map((path) => [basename(path), [...readFileSync(path)]]);
  await page.waitForSelector(".drop");
  await page.evaluate((list) => {
    const transfer = new DataTransfer();
    for (const [name, bytes] of list) transfer.items.add(new File([new Uint8Array(bytes)], name));
    document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, files);
  // A handle of nothing is an object, too: the element says whether the button is there.
  const find = () => page.evaluateHandle(() => [...document.querySelectorAll("main button")].find((one) => one.textContent === "Submit" && !one.disabled));
  const button = await until("the button", async () => (await find()).asElement());
  await button.click();
  await stateIs(page, "succeeded");
  await page.waitForSelector("#result .r-verdict");
  const id = page.url().split("/").at(-1);
  const wanted = server.logLines(id).filter(Boolean);
  const shown = () => page.$$eval(".log .line:not(.note) .text", (lines) => lines.map((line) => line.textContent).filter(Boolean));
  await until("the whole log", async () => JSON.stringify(await shown()) === JSON.stringify(wanted));
  say(`firefox: submit by drop, ${wanted.length} log lines, none lost, none twice`);
  return id;
}

/** Jobs that wait in three tabs: one stream by the shared worker. */
async function threeTabs(browser) {
  const dispatch = (paused) => fetch(url("v1/admin/dispatch"), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ paused }) });
  await dispatch(true);
  const ids = [1, 2, 3].map(() => server.json("compile", join(SAMPLE, "config.yaml"), "--detach", "--no-cache").at(-1).job);
  const tabs = [];
  for (const id of ids) {
    tabs.push(await newTab(browser, `#/job/${id}`));
    await stateIs(tabs.at(-1), "queued");
  }
  await until("one stream", async () => {
    const { streams = [] } = await (await fetch(url("v1/admin/connections?limit=1000"))).json();
    return streams.length === 1 && streams[0].object === "3 jobs";
  });
  await dispatch(false);
  for (const tab of tabs) await stateIs(tab, "succeeded");
  for (const tab of tabs) await tab.close();
  say("firefox: three tabs of jobs by one event stream");
}

async function everyPage(page, id) {
  const pages = { overview: "#/", jobs: "#/jobs", job: `#/job/${id}`, graph: `#/job/${id}/graph`, memory: `#/job/${id}/memory_map`,
    weights: `#/job/${id}/weights`, roofline: `#/job/${id}/roofline`, trends: "#/trends?name=kws_cnn.h", cores: "#/cores", submit: "#/submit", operate: "#/admin" };
  let minor = 0;
  for (const [width, height] of [[390, 844], [1440, 900]]) {
    await page.setViewport({ width, height });
    for (const [name, hash] of Object.entries(pages)) {
      await visit(page, hash);
      if (["job", "graph", "memory", "weights", "roofline"].includes(name)) await page.waitForSelector("#view > *");
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      check(over <= 0, `${name} is ${over} px wider than ${width}`);
      await page.screenshot({ path: join(SHOTS, `firefox-${name}-${width}.png`) });
      await page.evaluate(AXE);
      const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
        .map((one) => ({ id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)) })));
      const serious = found.filter((one) => one.impact === "serious" || one.impact === "critical");
      check(serious.length === 0, `axe on ${name}: ${JSON.stringify(serious)}`);
      minor += found.length;
    }
  }
  say(`FIGURE: dashboard: ${Object.keys(pages).length} pages in Firefox at 390 and 1440 px: no serious finding of axe-core (${minor} minor), none wider than the screen`);
}

mkdirSync(SHOTS, { recursive: true });
await server.start();
// Text that fades out has no contrast to measure.
const browser = await puppeteer.launch({ browser: "firefox", executablePath: process.env.NPUC_FIREFOX, headless: true, extraPrefsFirefox: { "ui.prefersReducedMotion": 1 }, timeout: 2 * WAIT_MS, protocolTimeout: 2 * WAIT_MS });
try {
  const page = await newTab(browser, "#/submit");
  const id = await submit(page);
  await threeTabs(browser);
  await everyPage(page, id);
  check(errors.length === 0, `the page has errors: ${errors.join("\n")}`);
} catch (error) {
  console.error(`${error.stack}\nnpucd's log ends:\n${server.log()}\n${errors.join("\n")}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
