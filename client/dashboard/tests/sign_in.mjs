// Signing in, in Chromium against a npucd with TLS: by a token and by a certificate, once for all
// tabs, by a cookie that no script can read; tests/e2e/sign_in.py starts it.
import { createServer } from "node:http";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { asked, check, isThere, openTab, until } from "./npuc.mjs";

const { web: WEB, tokens: TOKENS, certificate: CERTIFICATE, job: JOB } = JSON.parse(process.env.NPUC_SIGN_IN);
const SHOTS = process.env.NPUC_SHOTS;
const say = (text) => console.log(text);

const newTab = (context, hash) => openTab(context, WEB, hash);

async function byToken(page, token) {
  await asked(page);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** A link leads to its page behind the sign-in; the cookie is out of scripts' reach. */
async function linkSurvives(context) {
  const page = await newTab(context, `#/job/${JOB}`);
  await byToken(page, "0123456789".repeat(5));
  await page.getByRole("alert").getByText("none that this server knows").waitFor();
  await page.screenshot({ path: join(SHOTS, "sign_in.png") });
  await byToken(page, TOKENS.ci);
  await isThere(page, "ci of audio (submit, read, cancel)");
  await page.locator("main h1", { hasText: "kws_cnn" }).waitFor();
  check(page.url().endsWith(`#/job/${JOB}`), `the link is lost: ${page.url()}`);
  const [cookie, ...others] = await context.cookies();
  check(others.length === 0 && cookie.httpOnly && cookie.secure && cookie.sameSite === "Strict" && cookie.name.startsWith("__Host-"),
    `cookies: ${JSON.stringify([cookie, ...others])}`);
  const kept = await page.evaluate(() => [document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage)].join(""));
  check(kept === "", `scripts can read ${kept}`);
  check(!cookie.value.includes(TOKENS.ci), "the cookie has the token");
  say("sign-in: a wrong token is said, a right one leads on to the link's page");
  return { page, cookie };
}

/** A download goes by the browser's own request, which has the cookie. */
async function downloads(page) {
  const wait = page.waitForEvent("download");
  await page.getByRole("link", { name: "kws_cnn.h", exact: true }).click();
  check(await (await wait).failure() === null, "the download failed");
}

/** A page of another site can make the browser send requests, which change nothing. */
async function otherSite(context) {
  const server = createServer((_, response) => response.setHeader("Content-Type", "text/html").end("<p>evil</p>"));
  await new Promise((done) => server.listen(0, "localhost", done));
  const page = await context.newPage();
  await page.goto(`http://localhost:${server.address().port}/`);
  const answers = [];
  page.on("response", (response) => { if (response.url().includes("/v1/")) answers.push(response.status()); });
  const tries = await page.evaluate(async ({ web, job }) => {
    const send = (path, init) => fetch(`${web}${path}`, { credentials: "include", mode: "no-cors", ...init }).then(() => "sent", () => "not sent");
    return [await send(`/v1/jobs/${job}:cancel`, { method: "POST", body: "{}" }), await send("/v1/session:end", { method: "POST" }), await send("/v1/jobs")];
  }, { web: WEB, job: JOB });
  await until("answers", () => answers.length === tries.filter((one) => one === "sent").length);
  check(answers.every((status) => status === 403), `another site's requests: ${tries}, ${answers}`);
  await page.close();
  server.close();
  say(`sign-in: ${tries.length} requests of another site are refused`);
}

async function allTabs(context, first, cookie) {
  const second = await newTab(context, "#/jobs");
  await isThere(second, "ci of audio");
  await second.locator(".list .row").first().waitFor();
  await otherSite(context);
  await isThere(second, "ci of audio");
  await first.getByRole("button", { name: "Sign out" }).click();
  await asked(first);
  await asked(second);
  check(await second.locator(".list .row").count() === 0, "jobs are shown to nobody");
  const stolen = await context.request.get(`${WEB}/v1/jobs`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
  check(stolen.status() === 401, `a cookie of a session that was ended gets ${stolen.status()}`);
  await byToken(second, TOKENS.ci);
  await isThere(second, "ci of audio");
  await isThere(first, "ci of audio");
  await first.locator("main h1", { hasText: "kws_cnn" }).waitFor();
  say("sign-in: one for all tabs, in and out");
}

/** Only what one may do is offered. */
async function rights(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await newTab(context, `#/job/${JOB}`);
  await byToken(page, TOKENS.reader);
  await isThere(page, "reader of audio (read)");
  await page.getByRole("link", { name: "Trends" }).first().waitFor();
  for (const name of ["Cancel", "Retry"]) check(await page.getByRole("button", { name }).count() === 0, `${name} is offered`);
  check(await page.getByRole("link", { name: "Edit and submit again" }).count() === 0, "submitting again is offered");
  for (const name of ["Submit", "Operate"]) check(!await page.getByRole("link", { name, exact: true }).isVisible(), `${name} is offered`);
  await context.close();
  say("sign-in: a reader is offered no button that would be refused");
}

/** The browser shows the certificate with each request; it counts at the sign-in alone. */
async function byCertificate(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true,
    clientCertificates: [{ origin: WEB, certPath: `${CERTIFICATE}.pem`, keyPath: `${CERTIFICATE}.key` }] });
  const page = await newTab(context, "#/jobs?state=SUCCEEDED");
  await asked(page);
  await page.getByRole("button", { name: "Sign in with the certificate spiffe://farm/audio" }).click();
  await isThere(page, "farm of audio (read)");
  await page.locator(".list .row").first().waitFor();
  check(page.url().endsWith("#/jobs?state=SUCCEEDED"), `the link is lost: ${page.url()}`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await asked(page);
  await page.reload();
  await asked(page);
  await context.close();
  say("sign-in: by a certificate, and out again though the browser still shows it");
}

mkdirSync(SHOTS, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.NPUC_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, acceptDownloads: true });
  const { page, cookie } = await linkSurvives(context);
  await downloads(page);
  await allTabs(context, page, cookie);
  await rights(browser);
  await byCertificate(browser);
  say("FIGURE: sign_in: by token and certificate in Chromium: one cookie for all tabs, out for all tabs, links kept, another site refused");
} catch (error) {
  const pages = browser.contexts().flatMap((one) => one.pages());
  for (const [i, page] of pages.entries()) await page.screenshot({ path: join(SHOTS, `sign_in_failure_${i}.png`) }).catch(() => {});
  console.error(error.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
}
