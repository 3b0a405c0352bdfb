// Drives the dashboard in Chromium against a real npucd doing real compiles (tests/e2e/dashboard.py
// runs it). Screenshots go to NPUC_SHOTS.
import { spawnSync } from "node:child_process";
import { readFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chromium } from "playwright-core";
import { check, Npucd, until } from "./npuc.mjs";

const SHOTS = process.env.NPUC_SHOTS;
const SAMPLE = process.env.NPUC_SAMPLE;
const BIG = process.env.NPUC_BIG;  // a config whose compile takes a while
const SLOW = process.env.NPUC_SLOW;  // one whose compile takes long between two lines of its log
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 }, huge: { width: 2560, height: 1440 } };
/** Pages that make use of a very wide screen. */
const HUGE_PAGES = ["overview", "jobs", "job", "graph"];
const server = new Npucd();
const errors = [];
const TRIES = 20;
const STEPS = 40;
let expected = false;  // whether the daemon is away on purpose

const url = (hash) => `http://${server.web}/${hash}`;
const say = (text) => console.log(text);

function listen(page) {
  page.on("pageerror", (error) => errors.push(`page: ${error.message}`));
  page.on("console", (message) => {
    const refused = /Failed to load resource|ERR_/.test(message.text());
    if (message.type() === "error" && !(refused && expected)) errors.push(`console: ${message.text()}`);
  });
}

async function drop(page, files) {
  const content = files.map((path) => [basename(path), readFileSync(path).toString("base64")]);
  await page.evaluate((list) => {
    const transfer = new DataTransfer();
    for (const [name, text] of list) transfer.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name));
    const at = document.querySelector(".drop");
    at.dispatchEvent(new DragEvent("dragover", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    at.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, content);
}

/** The files lie on the page, and its button would submit them. */
async function offer(page, files, noCache = false) {
  await page.goto(url("#/submit"));
  await page.locator(".drop").waitFor();
  await drop(page, files);
  if (noCache) await page.getByLabel("compile even if").check();
}

async function send(page) {
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/#\/job\//);
  return page.url().split("/").at(-1);
}

async function submit(page, files, noCache = false) {
  await offer(page, files, noCache);
  return send(page);
}

const stateIs = (page, state) => page.locator(`.head .badge.${state}`).waitFor({ timeout: 60_000 });

/** Every line of the log once and in order, as npuc-remote tells it. */
async function checkLog(page, id, what) {
  const wanted = server.logLines(id);
  check(wanted.length > 3, `${what}: only ${wanted.length} log lines`);
  const shown = await until(`whole log (${what})`, async () => {
    const lines = await shownLines(page);
    return lines.length >= wanted.filter(Boolean).length && lines;
  });
  check(JSON.stringify(shown) === JSON.stringify(wanted.filter(Boolean)), `${what}: the page's log differs from npuc-remote's`);
  say(`${what}: ${wanted.length} log lines, none lost, none twice`);
}

async function submitAndDownload(page) {
  const id = await submit(page, [join(SAMPLE, "config.yaml"), join(SAMPLE, "kws_cnn.pb")]);
  await stateIs(page, "succeeded");
  await checkLog(page, id, "submit by drop");
  const out = server.dir("fetched");
  server.remote("fetch", id, "-o", out);
  const wait = page.waitForEvent("download");
  await page.getByRole("link", { name: "kws_cnn.h" }).click();
  const bytes = readFileSync(await (await wait).path());
  check(bytes.equals(readFileSync(join(out, "kws_cnn.h"))), "the downloaded header differs from npuc-remote's");
  say(`download: ${bytes.length} bytes, as npuc-remote's`);
  await page.getByLabel("Search the log").fill("bytes");
  return id;
}

const CFG = `[Parser]
model_type = TensorFlow
model_name = net
input_model = models/net.pb
input = Feats
input_shape = [1,490]
output = labels_softmax
[Optimizer]
calibration_data = test_inputs.npy
`;

/** A .cfg of aipubuild with its side input, which the page must find and send. */
async function dropCfg(page) {
  const folder = server.dir("cfg");
  writeFileSync(join(folder, "kws.cfg"), CFG);
  writeFileSync(join(folder, "net.pb"), readFileSync(join(SAMPLE, "kws_cnn.pb")));
  const id = await submit(page, [join(folder, "kws.cfg"), join(folder, "net.pb"), join(SAMPLE, "test_inputs.npy")]);
  await stateIs(page, "succeeded");
  say(`a .cfg with calibration data: job ${id}`);
}

// Four depthwise convolutions that pad: one note, which names one and holds the others.
async function alikeNotes(page) {
  const folder = process.env.NPUC_NOTED;
  await submit(page, [join(folder, "scripted.yaml"), join(folder, "scripted.pt")]);
  await stateIs(page, "succeeded");
  const notes = page.locator(".diagnostic.note", { hasText: "padding must be VALID" });
  await notes.first().waitFor();
  check(await notes.count() === 1, `${await notes.count()} notes`);
  await notes.getByText("3 more such nodes").click();
  const text = await notes.innerText();
  for (const node of ["blocks.0.0/", "blocks.2.0/", "blocks.4.0/", "blocks.6.0/"]) {
    check(text.includes(node), `no ${node} in ${text}`);
  }
  say("four alike notes are one entry");
}

async function failure(page) {
  const folder = server.dir("bad");
  writeFileSync(join(folder, "config.yaml"), readFileSync(join(SAMPLE, "config.yaml")));
  writeFileSync(join(folder, "kws_cnn.pb"), readFileSync(join(SAMPLE, "kws_cnn.pb")).subarray(0, 20_000));
  const id = await submit(page, [join(folder, "config.yaml"), join(folder, "kws_cnn.pb")]);
  await stateIs(page, "failed");
  const text = await page.locator(".diagnostic").first().innerText();
  check(/NPUC\d+/.test(text) && text.includes("What to do"), `no whole diagnostic: ${text}`);
  say(`failure: ${text.split("\n")[0]}`);
  return id;
}

async function refusedConfig(page) {
  const folder = server.dir("refused");
  writeFileSync(join(folder, "config.yaml"), readFileSync(join(SAMPLE, "config.yaml"), "utf8").replace("GRUS", "NOCORE"));
  writeFileSync(join(folder, "kws_cnn.pb"), readFileSync(join(SAMPLE, "kws_cnn.pb")));
  await page.goto(url("#/submit"));
  await page.locator(".drop").waitFor();
  await drop(page, [join(folder, "config.yaml"), join(folder, "kws_cnn.pb")]);
  expected = true;  // the browser logs answers of 400
  await page.getByRole("button", { name: "Submit" }).click();
  await page.locator(".diagnostic", { hasText: "NOCORE" }).first().waitFor();
  expected = false;
  say("a refused config shows its problems");
}

/** A failed job to a working one: its config is edited, problems stand at their lines, and the model
 *  need not be sent again. */
async function editAndSubmitAgain(page, id) {
  await page.goto(url(`#/job/${id}`));
  await page.getByRole("link", { name: "Edit and submit again" }).click();
  const editor = page.getByRole("textbox", { name: "Config" });
  await editor.waitFor();
  const text = await editor.inputValue();
  const [numbers, area] = await Promise.all([page.locator(".editor pre").boundingBox(), editor.boundingBox()]);
  check(Math.abs(numbers.height - area.height) < 2 && numbers.x + numbers.width <= area.x + 1, "the line numbers are not beside the lines");
  check(text === readFileSync(join(SAMPLE, "config.yaml"), "utf8"), "another config is edited");
  await page.getByText("uploaded before").waitFor();
  await editor.fill(text.replace("GRUS", "NOCORE"));
  expected = true;  // the browser logs answers of 400
  await page.getByRole("button", { name: "Submit" }).click();
  const line = text.split("\n").findIndex((one) => one.includes("GRUS")) + 1;
  await page.getByRole("button", { name: `Go to line ${line}` }).click();
  expected = false;
  check((await page.locator(".editor .wrong").innerText()).trim() === String(line), "the line is not marked");
  check((await page.evaluate(() => getSelection().toString() || document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd))).includes("NOCORE"), "the cursor is elsewhere");
  await editor.fill(`${text}# again\n`);
  await page.getByLabel("Labels").fill("by=editor");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/#\/job\//);
  await stateIs(page, "succeeded");
  check((await page.locator("dl.facts").last().innerText()).includes("by=editor"), "no label");
  check((await page.locator("pre.code").innerText()).includes("# again"), "not the edited config");
  say("edit and submit again: problems at their lines, the model is not sent again");
}

/** A model without a config: what it is, a config for a core, a job that works. */
async function modelAlone(page) {
  const begin = Date.now();
  const model = join(SAMPLE, "kws_cnn.pb");
  await page.goto(url("#/submit"));
  await page.locator(".drop").waitFor();
  await drop(page, [model]);
  const card = page.getByRole("region", { name: "Model" });
  await card.getByText("Which cores take it").waitFor();
  const verdictAfter = (Date.now() - begin) / 1000;
  const told = JSON.parse(server.npuc("inspect", model, "--json"));
  for (const verdict of told.verdicts) {
    const row = card.locator("tbody tr", { has: page.getByRole("rowheader", { name: verdict.family, exact: true }) });
    check((await row.innerText()).includes(verdict.verdict), `${verdict.family}: not ${verdict.verdict}`);
  }
  await card.getByRole("button", { name: "Config for GRUS" }).click();
  const editor = page.getByRole("textbox", { name: "Config" });
  const config = await editor.inputValue();
  check(config === told.verdicts.find((one) => one.family === "GRUS").configs.GRUS, "not the config that npuc proposes");
  // What only its user knows: the sample's own config has it.
  await editor.fill(config.replace(/^INPUT_OPS:[^]*?(?=^\S)/m, "INPUT_OPS:\n  Feats: [1, 490]\n"));
  await page.getByRole("button", { name: "Submit" }).click();
  await page.waitForURL(/#\/job\//);
  await stateIs(page, "succeeded");
  await page.locator("#result .r-verdict").waitFor();
  const folder = server.dir("nomodel");
  writeFileSync(join(folder, "picture.onnx"), "no model at all");
  await page.goto(url("#/submit"));
  await page.locator(".drop").waitFor();
  await drop(page, [join(folder, "picture.onnx")]);
  await page.getByText("picture.onnx is no model that can be read").waitFor();
  check(/NPUC\d+/.test(await page.locator(".diagnostic").first().innerText()), "no diagnostic");
  say(`FIGURE: dashboard: a model alone: verdicts for each core after ${verdictAfter.toFixed(1)} s, with a job that succeeded after ${((Date.now() - begin) / 1000).toFixed(1)} s`);
}

/** Filters, orders and totals are the server's; the address has them all. */
async function serverSideList(page) {
  const all = server.json("list", "--limit", "1000");
  const count = () => page.locator(".head [role=status]").first().innerText();
  const rows = (n, what) => until(what, async () => (await page.locator(".list .row").count()) === n);
  await page.goto(url("#/jobs"));
  await until("the total", async () => (await count()) === `${all.length} jobs`);
  const edited = all.filter((one) => one.labels.by === "editor").length;
  await page.getByLabel("Filter by label").fill("by=editor");
  await rows(edited, "jobs of a label");
  check(page.url().includes("label=by%3Deditor"), `the label is not in the address: ${page.url()}`);
  check((await count()) === `${edited} ${edited === 1 ? "job" : "jobs"} match`, `the count is ${await count()}`);
  await page.getByLabel("Filter by label").fill("by=nobody");
  await page.getByText("No job matches.").waitFor();
  await page.getByRole("link", { name: "Clear" }).click();
  await until("all again", async () => (await count()) === `${all.length} jobs`);
  await page.getByLabel("Sort by").selectOption("TOOK");
  const took = (one) => Date.parse(one.end_time ?? "") - Date.parse(one.create_time);
  const longest = all.filter((one) => one.end_time).sort((a, b) => took(b) - took(a))[0];
  await page.locator(`.list .row:first-child a[href$="${longest.job}"]`).waitFor();
  check(page.url().includes("sort=TOOK"), "the order is not in the address");
  await page.reload();
  await page.locator(`.list .row:first-child a[href$="${longest.job}"]`).waitFor();
  await page.goto(url("#/jobs?mine=1&since=1h&core=GRUS"));
  await rows(all.filter((one) => one.core === "GRUS").length, "my jobs of a core");
  await page.locator(".who").getByText("local of default").waitFor();
  say("list: filters, order and totals by the server, all in the address; who I am");
}

/** What is not there, not yet there, or not reachable is said in words. */
async function states(page) {
  await page.goto(url("#/nowhere"));
  await page.getByText("No page has the address #/nowhere").waitFor();
  expected = true;
  await page.goto(url("#/job/j00000000000000000000000000"));
  await page.locator("main .notice").getByRole("link", { name: "All jobs" }).waitFor();
  await page.route("**/v1/jobs?**", (route) => route.abort());
  await page.goto(url("#/jobs"));
  await page.getByText("The server cannot be reached").waitFor();
  await page.unroute("**/v1/jobs?**");
  await page.locator(".list .row").first().waitFor();
  await until("no notice", async () => (await page.locator("main > .notice").count()) === 0);
  check(await page.getByRole("button", { name: "Sign out" }).count() === 0, "a way out where nobody signs in");
  expected = false;
  say("unknown addresses, missing jobs and a lost server are said in words");
}

async function cancelAndRetry(page) {
  server.hold();
  const ids = [1, 2, 3].map(() => server.json("compile", BIG, "--detach", "--no-cache").at(-1).job);
  await page.goto(url(`#/job/${ids[2]}`));
  await stateIs(page, "queued");
  await page.getByText("in the queue").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await stateIs(page, "cancelled");
  check(server.json("status", ids[2]).at(-1).state === "CANCELLED", "npuc-remote does not see the cancel");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.waitForURL((to) => to.hash.includes("/job/") && !to.hash.includes(ids[2]));
  const id = page.url().split("/").at(-1);
  // Reloaded while it waits, then it runs under the reloaded page.
  await page.reload();
  server.release();
  await stateIs(page, "succeeded");
  await checkLog(page, id, "cancel, retry, reload while it waits");
}

const shownLines = async (page) => (await page.locator(".log .line:not(.note) .text").allTextContents()).filter(Boolean);

/** A compile stopped in its middle: its first lines are on the page, before and after a reload. */
async function reloadMidStream(page) {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    await offer(page, [SLOW, SLOW.replace(/yaml$/, "npy"), BIG.replace(/yaml$/, "pb")], true);
    let late = false;
    const caught = server.catchJob(() => late);
    const id = await send(page).finally(() => setTimeout(() => { late = true; }, 2000));
    const isCaught = await caught;
    let live = [];
    // It is caught before its first line, and goes on in small steps until there is one.
    for (let step = 0; isCaught && live.length === 0 && step < STEPS; step++) {
      server.continueJobs();
      await sleep(1);
      await server.stopJobs();
      await page.waitForTimeout(300);
      live = await shownLines(page);
    }
    if (live.length === 0 || server.json("status", id).at(-1).state !== "RUNNING") { server.continueJobs(); await stateIs(page, "succeeded"); continue; }
    // What the compile wrote before it stopped is on its way still.
    for (let before = 0; before !== live.length;) {
      before = live.length;
      await page.waitForTimeout(1000);
      live = await shownLines(page);
    }
    await page.reload();
    await until("the same lines after a reload", async () => JSON.stringify(await shownLines(page)) === JSON.stringify(live));
    server.continueJobs();
    await stateIs(page, "succeeded");
    await checkLog(page, id, `reload in the middle, after ${live.length} lines`);
    if ((await shownLines(page)).length > live.length) return;
    // It was stopped behind its last line: another try.
  }
  throw new Error(`no compile was caught in its middle in ${TRIES} tries`);
}

async function restartUnderIt(page) {
  server.hold();
  const id = server.json("compile", BIG, "--detach", "--no-cache").at(-1).job;
  await page.goto(url(`#/job/${id}`));
  await page.locator(".head .badge").first().waitFor();
  expected = true;
  await server.kill();
  await page.getByText("The connection is lost").waitFor();
  await page.getByText("not reachable").waitFor();
  await server.start();
  await stateIs(page, "succeeded");
  await page.getByText("serving").waitFor();
  expected = false;
  await checkLog(page, id, "kill -9 of npucd under the page");
}

async function filterAndKeys(page, failedId) {
  await page.goto(url("#/jobs"));
  await page.locator(".row .name").first().waitFor();
  await page.locator(".chips label", { hasText: "failed" }).click();
  await until("filtered list", async () => (await page.locator(".list .row").count()) === 1);
  check(page.url().includes("state=FAILED"), `the filter is not in the URL: ${page.url()}`);
  await page.reload();
  await until("filter after reload", async () => (await page.locator(".list .row").count()) === 1);
  await page.locator(".list").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(failedId));
  await page.goto(url("#/jobs"));
  await until("all rows", async () => (await page.locator(".list .row").count()) === 4);
  await page.keyboard.press("/");
  await page.keyboard.type(failedId);
  await until("text filter", async () => (await page.locator(".list .row").count()) === 1);
  check(page.url().includes(`q=${failedId}`), "the text is not in the URL");
  say("filters: in the URL, kept by reload; keyboard opens a job");
}

/** Why the server takes no work, by its own words; they are put into its mouth here. */
async function unhealthy(page) {
  const why = "12 MiB are free, 256 MiB must be";
  await page.route("**/v1/health", (route) => route.fulfill({ json: { ready: false, conditions: { disk: why, store: "ok" } } }));
  await page.goto(url("#/"));
  await page.locator("main section", { hasText: "Health" }).getByText(why).waitFor();
  await page.locator(".health").getByText(`not ready: disk: ${why}`).waitFor();
  await page.unroute("**/v1/health");
  await page.locator(".health").getByText("serving").waitFor();
  say("health: the conditions that do not hold, with their reasons");
}

async function compareTwo(page, first) {
  const folder = server.dir("other");
  writeFileSync(join(folder, "config.yaml"), readFileSync(join(SAMPLE, "config.yaml"), "utf8").replace(/COMPRESS: *true/g, "COMPRESS: false"));
  writeFileSync(join(folder, "kws_cnn.pb"), readFileSync(join(SAMPLE, "kws_cnn.pb")));
  const second = await submit(page, [join(folder, "config.yaml"), join(folder, "kws_cnn.pb")]);
  await stateIs(page, "succeeded");
  await page.goto(url("#/jobs?state=SUCCEEDED&q=kws_cnn"));
  await until("five rows", async () => (await page.locator(".list .row").count()) === 5);
  for (const id of [first, second]) await page.locator(".list .row", { has: page.locator(`a[href$="${id}"]`) }).locator("input").check();
  await page.getByRole("button", { name: "Compare" }).click();
  await page.locator(".diff .add", { hasText: "COMPRESS: false" }).or(page.locator(".diff .cut", { hasText: "COMPRESS: false" })).first().waitFor();
  check(page.url().includes(first) && page.url().includes(second), "other jobs are compared");
  check((await page.locator("section", { hasText: "Sizes" }).last().innerText()).includes("kws_cnn.h"), "no sizes");
  const errors = (await page.locator("#accuracy tbody tr", { hasText: "Largest error of a weight" }).locator("td").allInnerTexts()).map(Number);
  check(errors.length === 2 && Math.min(...errors) > 0 && Math.max(...errors) > 4 * Math.min(...errors),
    `8-bit codes err more than fp16: ${errors}`);
  say("compare: config, sizes, accuracy and header differences shown");
  return second;
}

/** The first job without compression has more flash: its trend says so, and leads to the comparison. */
async function trendsOfJobs(page, second) {
  await page.goto(url(`#/job/${second}`));
  await page.locator("main .head").getByRole("link", { name: "Trends" }).click();
  await page.locator("h1", { hasText: "Trends of kws_cnn.h" }).waitFor();
  const row = page.locator("tbody tr", { hasText: "worse" }).last();
  await row.waitFor();
  const heads = await page.locator("thead th").allInnerTexts();
  const cells = await row.locator("td").allInnerTexts();
  const marked = heads.filter((_, i) => cells[i].includes("worse"));
  check(marked.join() === "Flash", `marked as worse: ${marked}; ${cells}`);
  const chart = page.locator("section", { hasText: /^Flash: / });
  const points = await chart.locator("circle").count();
  check(points >= 3 && await chart.locator("circle.worse").count() >= 1, `no mark among ${points} points of flash`);
  await row.getByRole("link", { name: "compare with the last good one" }).click();
  await page.waitForURL(/#\/compare\/[a-z0-9]+\/[a-z0-9]+$/);
  await page.locator("section", { hasText: "Sizes" }).last().getByText("kws_cnn.npuc").waitFor();
  await page.goto(url("#/trends"));
  await page.getByText("Name a result, as in the list").waitFor();
  await page.getByLabel("Name of the result or config").fill("no_such.h");
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("No job of that name has ended").waitFor();
  say(`trends: ${points} points; more flash is marked and compared with the last good job`);
}

/** More lines than are compared: those at the end show, and what is left out is said. */
async function compareLong(page, first, second) {
  const lines = (from, to) => Array.from({ length: to - from }, (_, i) => `  0x${(from + i).toString(16)},`);
  const common = lines(0, 5000);
  const show = async (a, b) => {
    await page.route(`**/v1/jobs/${first}/artifacts/*.h`, (route) => route.fulfill({ body: a.join("\n") }));
    await page.route(`**/v1/jobs/${second}/artifacts/*.h`, (route) => route.fulfill({ body: b.join("\n") }));
    await page.goto(url("#/"));
    await page.goto(url(`#/compare/${first}/${second}`));
    const box = page.locator("section", { hasText: "Header" }).last();
    await box.locator(".diff").waitFor();
    const text = await box.innerText();
    await page.unroute(`**/v1/jobs/${first}/artifacts/*.h`);
    await page.unroute(`**/v1/jobs/${second}/artifacts/*.h`);
    return text;
  };
  const late = await show([...common, "  old,", ...lines(0, 9)], [...common, "  new,", ...lines(0, 9)]);
  check(/-\s+old,/.test(late), `a difference in line 5,001 does not show: ${late.slice(0, 300)}`);
  check(!late.includes("not compared"), "all was compared");
  const much = await show(lines(0, 4000), lines(100_000, 107_000));
  check(much.includes("1,000 lines of the first and 4,000 of the second are not compared"), `what is left out is not said: ${much.slice(0, 300)}`);
  say("compare: differences behind 3,000 equal lines show; what is left out is said");
}

/** An operator pauses, sees a job wait, cancels it by a filter, resumes, and requeues what failed. */
async function operate(page, failed) {
  await page.goto(url("#/admin"));
  await page.getByLabel("Reason").fill("a disk is changed");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.locator(".notice", { hasText: "Paused by local" }).waitFor();
  await page.reload();
  await page.locator(".notice", { hasText: "a disk is changed" }).waitFor();
  const waiting = await submit(page, [join(SAMPLE, "config.yaml"), join(SAMPLE, "kws_cnn.pb")], true);
  await stateIs(page, "queued");
  await page.goto(url("#/admin"));
  await page.getByLabel("Name, id or MD5").fill(waiting);
  await page.getByRole("button", { name: "Count" }).click();
  await page.getByRole("button", { name: "Cancel 1 that wait or run" }).click();
  await page.getByText("1 cancelled.").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Jobs are started.").waitFor();
  await page.getByLabel("Name, id or MD5").fill(failed);
  await page.getByRole("button", { name: "Count" }).click();
  await page.getByRole("button", { name: "Requeue 1 that failed" }).click();
  await page.getByText("1 submitted again").waitFor();
  await page.goto(url(`#/job/${waiting}`));
  await stateIs(page, "cancelled");
  await page.goto(url("#/admin"));
  const use = page.locator("section", { hasText: "Use in 7 days" });
  await use.locator("tbody tr").first().waitFor();
  const wait = page.waitForEvent("download");
  await use.getByRole("button", { name: "As CSV" }).click();
  const csv = readFileSync(await (await wait).path(), "utf8").split("\n");
  const open = page.locator("section", { hasText: "Connections" });
  await open.getByText(/\d+ connections at /).waitFor();
  await open.locator("tbody tr", { hasText: "GET /v1/admin/connections" }).first().waitFor();
  const audit = page.locator("section", { has: page.getByRole("heading", { name: "Audit" }) });
  await audit.getByLabel("Action").fill("admin.cancel_jobs");
  await audit.getByRole("button", { name: "Show" }).click();
  await audit.locator("tbody tr", { hasText: "admin.cancel_jobs" }).first().waitFor();
  if (await audit.locator("tbody tr", { hasText: "submit" }).count()) throw new Error("the audit's filter");
  await page.getByLabel("Reason").fill("by the page");
  await page.getByRole("button", { name: "Cordon this node" }).click();
  await page.locator(".notice", { hasText: "npucd is cordoned by local" }).waitFor();
  await page.getByRole("button", { name: "Uncordon" }).click();
  await page.getByText("npucd is not cordoned.").waitFor();
  const tenants = page.locator("section", { hasText: "Limits for a time" });
  await tenants.getByLabel("Tenant", { exact: true }).first().fill("default");
  await tenants.getByLabel("Weight").fill("5");
  await tenants.getByLabel("Calls a second, most").fill("100000");
  await tenants.getByRole("button", { name: "Set for a time" }).click();
  await tenants.locator(".notice", { hasText: "default: weight 5, max call rate 100000 until" }).waitFor();
  await tenants.getByRole("button", { name: "Back to the file" }).click();
  await tenants.getByText("The tenants file holds for default.").waitFor();
  await tenants.getByLabel("Tenant", { exact: true }).last().fill("default");
  await tenants.getByLabel("Identity").fill("nobody");
  expected = true;  // the answer is 404
  await tenants.getByRole("button", { name: "New token" }).click();
  await page.locator("#says", { hasText: "no identity 'nobody'" }).waitFor();
  expected = false;
  const content = page.locator("section", { hasText: "Uploads and results" });
  await content.getByRole("button", { name: "Drop uploads" }).click();
  await content.getByText("0 uploads dropped").waitFor();
  await content.getByLabel("Blob's SHA-256").fill("0".repeat(64));
  await content.getByRole("button", { name: "Evict" }).click();
  await content.getByText("It was not there.").waitFor();
  check(csv[0].startsWith("day,tenant,jobs,") && /^\d{4}-\d\d-\d\d,"default",\d+,/.test(csv[1]), `usage.csv: ${csv}`);
  await page.route("**/v1/caller", (route) => route.fulfill({ json: { identity: "guest", tenant: "t", rights: ["read"] } }));
  await page.reload();
  await page.getByText("yours lacks it").waitFor();
  check(!await page.getByRole("link", { name: "Operate" }).isVisible(), "who may not operate is led there");
  await page.unroute("**/v1/caller");
  say("operate: pause, cancel by a filter, resume, requeue, use as CSV, connections, audit, cordon, limits for a time, tokens, uploads, eviction; not for guests");
}

/** The list goes on behind what the overview counts: it says so. */
async function overviewOfMany(page) {
  const list = "**/v1/jobs?pageSize=1000";
  await page.goto(url("#/"));
  await page.locator("main section", { hasText: "Newest jobs" }).waitFor();
  check(await page.locator("#scope").isHidden(), "the overview leaves nothing out, and says so");
  await page.route(list, async (route) => {
    // A whole answer, and one that the page does not keep.
    const { "if-none-match": _known, ...asked } = await route.request().allHeaders();
    const response = await route.fetch({ headers: asked });
    const { etag: _tag, ...headers } = response.headers();
    await route.fulfill({ response, headers, json: { ...(await response.json()), nextPageToken: "more" } });
  });
  await page.locator("#scope", { hasText: "are left out" }).waitFor();
  await page.getByText("of jobs submitted since").first().waitFor();
  await page.unroute(list);
  await page.locator("#scope").waitFor({ state: "hidden" });
  say("overview: says which jobs it counts");
}

/** A browser has six connections to a server: hidden tabs give theirs back, and lose nothing. */
/** Whether jobs that wait are started. */
const dispatch = (paused) => fetch(url("v1/admin/dispatch"), { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ paused }) });

/** Ten tabs of ten jobs that are all followed: one stream, whichever tab somebody looks at. */
async function tenTabs(page) {
  await dispatch(true);
  const ids = [...Array(10)].map(() => server.json("compile", BIG, "--detach", "--no-cache").at(-1).job);
  const streams = async () => (await (await fetch(url("v1/admin/connections?limit=1000"))).json()).streams ?? [];
  const tabs = [];
  for (const id of ids) {
    const tab = await page.context().newPage();
    listen(tab);
    tab.setDefaultTimeout(60_000);
    await tab.goto(url(`#/job/${id}`));
    await stateIs(tab, "queued");
    tabs.push(tab);
  }
  await until("one stream of ten jobs", async () => {
    const open = (await streams()).filter((one) => one.method === "WatchCompileJob");
    return open.length === 1 && open[0].object === "10 jobs";
  });
  // A tab that is closed is not watched for; one that is opened anew has its job from the beginning.
  await tabs[0].close();
  await until("nine jobs", async () => (await streams()).some((one) => one.object === "9 jobs"));
  tabs[0] = await page.context().newPage();
  tabs[0].setDefaultTimeout(60_000);
  listen(tabs[0]);
  await tabs[0].goto(url(`#/job/${ids[0]}`));
  await stateIs(tabs[0], "queued");
  await dispatch(false);
  for (const tab of tabs) await stateIs(tab, "succeeded");
  for (const i of [0, 4, 9]) await checkLog(tabs[i], ids[i], "one of ten tabs");
  await until("no stream", async () => (await streams()).length === 0);
  for (const tab of tabs) await tab.close();
  say("FIGURE: dashboard: ten tabs of ten running jobs by one event stream, each log complete");
}

/** A browser without shared workers: each tab has a stream while somebody looks at it. */
async function manyTabs(browser) {
  const context = await browser.newContext({ viewport: SIZES.wide });
  await context.addInitScript(() => { delete window.SharedWorker; });
  await dispatch(true);
  const id = server.json("compile", BIG, "--detach", "--no-cache").at(-1).job;
  const see = (tab, hidden) => tab.evaluate((now) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => now });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const tabs = [];
  for (let i = 0; i < 8; i++) {
    const tab = await context.newPage();
    listen(tab);
    tab.setDefaultTimeout(10_000);
    await tab.goto(url(`#/job/${id}`));
    await stateIs(tab, "queued");
    if (i < 7) await see(tab, true);
    tabs.push(tab);
  }
  await dispatch(false);
  await stateIs(tabs.at(-1), "succeeded");
  await see(tabs[0], false);
  await stateIs(tabs[0], "succeeded");
  await checkLog(tabs[0], id, "a tab that was hidden");
  await context.close();
  say("eight tabs of one running job without a shared worker: none freezes");
}

async function axe(page, name) {
  // By the debugger's channel: the page's own policy refuses foreign scripts, as it should.
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
    .map((one) => ({ id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`) })));
  const serious = found.filter((one) => one.impact === "serious" || one.impact === "critical");
  check(serious.length === 0, `axe on ${name}: ${JSON.stringify(serious, null, 1)}`);
  return found.length;
}

const reportOf = (id) => {
  const out = server.dir(`report-${id}`);
  server.remote("fetch", id, "-o", out);
  return JSON.parse(readFileSync(join(out, "report.json"), "utf8"));
};
const tab = (page, name) => page.getByRole("tab", { name, exact: true }).click();
const english = (value) => value.toLocaleString("en-US");

/** What the page begins with is what report.json says. */
async function resultFirst(page, id) {
  const report = reportOf(id);
  await page.goto(url(`#/job/${id}`));
  const result = page.locator("#result");
  await result.locator(".r-verdict").waitFor();
  const text = await result.innerText();
  check(/^TF on core GRUS: fits/m.test(text), `no verdict: ${text.slice(0, 200)}`);
  check(text.includes(english(report.per_frame.cycles)), "no cycles");
  const slowest = report.nodes.reduce((a, b) => (b.cycles > a.cycles ? b : a));
  check(text.includes(slowest.node), `the slowest layer ${slowest.node} is not named`);
  const ram = report.sizes_bytes.data_content + report.sizes_bytes.input + report.sizes_bytes.output;
  const share = `${(100 * ram / report.limits.sram_bytes).toFixed(1)} %`;
  check(text.includes(share), `SRAM is not ${share} of its limit: ${text}`);
  await page.getByLabel("Clock in MHz").fill("100");
  const time = `${+(report.per_frame.cycles / 1e8 * 1e6).toPrecision(3)} µs`;
  await until(`${time} at another clock`, async () => (await result.innerText()).includes(time), 5);
  const order = await page.evaluate(() => [...document.querySelectorAll("#result, section[aria-label=Problems], #views, #log")].map((one) => one.id || "problems"));
  check(order.join() === "result,problems,views,log", `the page's order is ${order}`);
  check((await page.title()).startsWith("✓ "), `the title is ${await page.title()}`);
  say("result first: verdict, SRAM, cycles, time at a clock, slowest layer, as report.json has them");
}

async function layersAndGraph(page, id) {
  const report = reportOf(id);
  await page.goto(url(`#/job/${id}/nodes`));
  const rows = page.locator("#views tbody tr");
  await rows.first().waitFor();
  check(await rows.count() === report.nodes.length, `${await rows.count()} rows of ${report.nodes.length}`);
  const sum = await page.locator("#views tfoot").innerText();
  check(sum.includes(english(report.per_frame.cycles)), `the layers add up to ${sum}`);
  await page.locator("#views th button", { hasText: "multiply-adds" }).click();
  const most = report.nodes.reduce((a, b) => (b.macs > a.macs ? b : a));
  check((await rows.first().innerText()).includes(most.node), "the layer with most multiply-adds is not the first");
  await page.getByText("Columns").click();
  await page.getByLabel("read, bytes").check();
  await page.locator("#views th", { hasText: "read, bytes" }).waitFor();
  // A row leads to its node, and the node back to its row.
  await rows.first().locator("button").click();
  await page.locator("#views .r-node.r-on").waitFor();
  check(page.url().endsWith("/graph"), `the view is not in the URL: ${page.url()}`);
  const details = page.locator(".r-details");
  check((await details.innerText()).includes(english(most.macs)), "the node has no figures");
  const attribute = report.graph.find((node) => node.name === most.node)?.attributes;
  for (const name of Object.keys(attribute ?? {})) check((await details.innerText()).includes(name), `no attribute ${name}`);
  await page.getByRole("button", { name: "Its row in the list" }).click();
  await page.locator(`#views tr.r-on[data-key="${most.node}"]`).waitFor();
  await page.reload();
  await page.locator("#views tbody tr").first().waitFor();
  check(page.url().endsWith("/nodes"), "a reload loses the view");
  say("layers: sorted, chosen columns, sums of report.json; rows and graph nodes lead to each other");
}

async function graphByMouseAndKeys(page, id) {
  const report = reportOf(id);
  await page.goto(url(`#/job/${id}/graph`));
  const frame = page.locator(".r-graph");
  await frame.locator(".r-node").first().waitFor();
  const transform = () => frame.locator("svg > g").first().getAttribute("transform");
  const zoomOf = (text) => Number(/scale\(([^)]*)/.exec(text)[1]);
  await frame.focus();
  const before = await transform();
  await page.keyboard.press("+");
  check(zoomOf(await transform()) > zoomOf(before), "plus does not zoom in");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("0");
  const box = await frame.boundingBox();
  await page.mouse.move(box.x + 5, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + 65, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  const moved = await transform();
  await page.mouse.wheel(0, -200);
  await until("zoom by the wheel", async () => zoomOf(await transform()) > zoomOf(moved));
  await page.getByLabel("Search nodes").fill("softmax");
  await page.keyboard.press("Enter");
  await page.locator(".r-node.r-on", { hasText: /softmax/i }).waitFor();
  await page.getByLabel("Colour by").selectOption("bits");
  await page.getByText(/colours: .*bits/).waitFor();
  const edges = report.graph.reduce((all, node) => all + new Set(node.from).size, 0);
  check(await frame.locator(".r-edge").count() === edges, "edges are missing");
  say("graph: zoom and pan by mouse and keys, search, colours");
}

async function otherViews(page, id) {
  const report = reportOf(id);
  await page.goto(url(`#/job/${id}`));
  await tab(page, "Memory over time");
  const buffers = report.memory_map.buffers;
  const alive = (time) => buffers.filter((one) => one.first <= time && time <= one.last).reduce((all, one) => all + one.bytes, 0);
  const peak = Math.max(...buffers.map((one) => alive(one.first)));
  await page.getByText(`these live together, ${english(peak)} bytes`).waitFor();
  check(await page.locator(".r-buffer").count() === buffers.length, "buffers are missing");
  await page.locator(".r-memory").focus();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  await page.getByRole("button", { name: "Peak: go there" }).click();
  await page.getByText("Why the peak").waitFor();
  await tab(page, "Weights");
  const cards = page.locator(".r-hist");
  check(await cards.count() === report.weights.length, `${await cards.count()} weights of ${report.weights.length}`);
  await page.getByLabel("Order of weights").selectOption("largest first");
  const largest = report.weights.reduce((a, b) => (b.bytes > a.bytes ? b : a));
  check((await cards.first().innerText()).includes(largest.name), "the largest weight is not the first");
  await tab(page, "Roofline");
  const points = report.nodes.filter((one) => one.cycles > 0 && one.macs > 0);
  check(await page.locator(".r-dot").count() === points.length, "layers are missing in the roofline");
  await page.locator(".r-dot").first().focus();
  await page.keyboard.press("Enter");
  await page.locator("#views tr.r-on").waitFor();
  say("memory with the peak's reason, weights, roofline: as report.json has them");
}

/** Names of a model are text, whatever they look like; repeated blocks fold and unfold. */
async function hostileReport(page, id) {
  const report = reportOf(id);
  const evil = "<img src=x onerror=document.title='owned'>";
  const block = ["Conv2D", "Relu", "Add"];
  report.graph = [{ name: "in", operator: "Input", from: [], shape: [1] }];
  for (let i = 0; i < 30; i++) report.graph.push({ name: `n${i}${evil}`, operator: block[i % 3], from: i % 3 === 2 && i > 2 ? [i, i - 2] : [i], shape: [1, 8] });
  report.nodes[0].node = evil;
  report.weights[0].name = evil;
  report.omitted = { nodes: 7 };
  await page.route(`**/v1/jobs/${id}/artifacts/report.json`, (route) => route.fulfill({ json: report }));
  await page.goto(url("#/"));
  await page.goto(url(`#/job/${id}/graph`));
  await page.locator(".r-block").first().waitFor();
  const folded = await page.locator(".r-node").count();
  await page.locator(".r-block").first().click();
  await until("unfolded blocks", async () => (await page.locator(".r-node").count()) > folded);
  await tab(page, "Layers");
  await page.getByText("7 more are not in the report").waitFor();
  check(await page.locator("main img").count() === 0 && !(await page.title()).includes("owned"), "a name became HTML");
  await page.route(`**/v1/jobs/${id}/artifacts/report.json`, (route) => route.fulfill({ body: "{ no JSON" }));
  await page.goto(url("#/"));
  await page.goto(url(`#/job/${id}`));
  await page.getByText("The report cannot be shown").waitFor();
  await page.unroute(`**/v1/jobs/${id}/artifacts/report.json`);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("#result .r-verdict").waitFor();
  say("a report with hostile names, and one that is broken");
}

/** All files in one archive, and a link to a line of the log. */
async function zipAndPermalink(page, id) {
  await page.goto(url(`#/job/${id}`));
  const wait = page.waitForEvent("download");
  await page.getByRole("button", { name: "All as zip" }).click();
  const archive = await (await wait).path();
  const listed = spawnSync("python3", ["-c", "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(*sorted(z.namelist()))", archive], { encoding: "utf8" });
  const wanted = server.json("status", id).at(-1).artifacts.map((one) => one.name).sort().join(" ");
  check(listed.stdout.trim() === wanted, `the archive has ${listed.stdout}${listed.stderr}, not ${wanted}`);
  await page.goto(url("#/"));
  await page.goto(url(`#/job/${id}?line=3`));
  await page.locator('.log .line.here[data-line="3"]').waitFor();
  await page.locator('.log [data-line="2"] a').click();
  check(page.url().endsWith("?line=2"), `no permalink: ${page.url()}`);
  say("all files as a zip that python reads; log lines have links");
}

/** A result from the cache has the log of the compile that made it. */
async function cacheHit(page, first) {
  const id = await submit(page, [join(SAMPLE, "config.yaml"), join(SAMPLE, "kws_cnn.pb")]);
  await stateIs(page, "succeeded");
  await page.getByText("the log of the compile that made it").waitFor();
  const lines = server.logLines(first).filter(Boolean);
  await until("the first compile's log", async () => JSON.stringify(await shownLines(page)) === JSON.stringify(lines));
  await page.locator("#result .r-verdict").waitFor();
  say(`cache hit: job ${id} has result and log of ${first}`);
}

async function shots(browser, pages) {
  let minor = 0;
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) {
      // Text that fades out has no contrast to measure.
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce", isMobile: size === "phone", hasTouch: size === "phone" });
      const page = await context.newPage();
      listen(page);
      for (const [name, hash] of Object.entries(pages)) {
        if (size === "huge" && !HUGE_PAGES.includes(name)) continue;
        await page.goto(url(hash));
        await page.locator("main h1").first().waitFor();
        await page.locator("main:not([aria-busy])").waitFor();
        if (name === "cores") await page.locator("tbody tr").first().waitFor();
        if (["job", "graph", "memory", "weights", "roofline"].includes(name)) await page.locator("#view > *").waitFor();
        if (name === "trends") await page.locator("tbody tr").first().waitFor();
        if (name === "compare") await page.locator(".diff .add").first().waitFor();
        await page.screenshot({ path: join(SHOTS, `${name}-${viewport.width}-${colorScheme}.png`), fullPage: true });
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        check(over <= 0, `${name} is ${over} px wider than ${viewport.width}`);
        // Colours and names are those of the wide page; what the phone has of its own is its layout.
        if (size === "wide" || colorScheme === "light") minor += await axe(page, `${name} ${size} ${colorScheme}`);
      }
      await context.close();
    }
  }
  say(`FIGURE: dashboard: ${Object.keys(pages).length} pages at 390, 1440 and 2560 px, light and dark: no serious finding of axe-core (${minor} minor), none wider than the screen`);
}

async function main() {
  mkdirSync(SHOTS, { recursive: true });
  await server.start();
  const browser = await chromium.launch({ executablePath: process.env.NPUC_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    const page = await (await browser.newContext({ viewport: SIZES.wide, acceptDownloads: true })).newPage();
    page.setDefaultTimeout(60_000);
    listen(page);
    const done = await submitAndDownload(page);
    await resultFirst(page, done);
    await layersAndGraph(page, done);
    await graphByMouseAndKeys(page, done);
    await otherViews(page, done);
    await hostileReport(page, done);
    await zipAndPermalink(page, done);
    await cacheHit(page, done);
    await dropCfg(page);
    const failed = await failure(page);
    await refusedConfig(page);
    await filterAndKeys(page, failed);
    await alikeNotes(page);
    await editAndSubmitAgain(page, done);
    await modelAlone(page);
    await serverSideList(page);
    await states(page);
    await cancelAndRetry(page);
    await reloadMidStream(page);
    await restartUnderIt(page);
    const second = await compareTwo(page, done);
    await trendsOfJobs(page, second);
    await compareLong(page, done, second);
    await operate(page, failed);
    await overviewOfMany(page);
    await tenTabs(page);
    await manyTabs(browser);
    await unhealthy(page);
    await shots(browser, { overview: "#/", jobs: "#/jobs", job: `#/job/${done}`, graph: `#/job/${done}/graph`,
      memory: `#/job/${done}/memory_map`, weights: `#/job/${done}/weights`, roofline: `#/job/${done}/roofline`, failed: `#/job/${failed}`,
      trends: "#/trends?name=kws_cnn.h", operate: "#/admin", compare: `#/compare/${done}/${second}`, cores: "#/cores", submit: "#/submit", edit: `#/submit?from=${failed}` });
    check(errors.length === 0, `the page has errors: ${errors.join("\n")}`);
    say("FIGURE: dashboard: submit by drop, live log, diagnostics, download, cancel, retry, filter, compare, reload and daemon restart under the page, in Chromium");
  } catch (error) {
    const pages = browser.contexts().flatMap((context) => context.pages());
    await pages[0]?.screenshot({ path: join(SHOTS, "failure.png") }).catch(() => {});
    console.error(`${error.stack}\nnpucd's log ends:\n${server.log()}\n${errors.join("\n")}`);
    process.exitCode = 1;
  } finally {
    await browser.close();
    await server.close();
  }
}

await main();
