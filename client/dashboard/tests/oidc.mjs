// Signing in by an OpenID Connect provider, in Chromium against a npucd with TLS and a real provider
// (provider.mjs): there and back to a link, for all tabs, strangers and attackers refused;
// tests/e2e/oidc.py starts both.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { asked, check, isThere, openTab } from "./npuc.mjs";

const { web: WEB, job: JOB } = JSON.parse(process.env.NPUC_OIDC);
const SHOTS = process.env.NPUC_SHOTS;
const say = (text) => console.log(text);

const newTab = (context, hash) => openTab(context, WEB, hash);
async function newContext(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  // The provider's page asks for fonts of another machine.
  await context.route(/googleapis/, (route) => route.abort());
  return context;
}
const goThere = (page) => page.getByRole("button", { name: "Sign in with Farm login" }).click();
const problem = (page, text) => page.getByRole("alert").getByText(text).waitFor();
const ownCookies = async (context) => (await context.cookies(WEB)).filter((one) => one.name.includes("npuc"));

/** The provider's own pages: the login, and the consent that it asks for once. */
async function signInThere(page, login) {
  await page.waitForURL(/^https:\/\/localhost:/);
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

/** There and back to the link; another tab that waits is signed in, too. */
async function thereAndBack(context) {
  const page = await newTab(context, `#/job/${JOB}`);
  const other = await newTab(context, "#/jobs");
  await asked(page);
  await asked(other);
  await page.screenshot({ path: join(SHOTS, "oidc_sign_in.png") });
  await goThere(page);
  await signInThere(page, "alice");
  await isThere(page, "alice of audio (submit, read)");
  await page.locator("main h1", { hasText: "kws_cnn" }).waitFor();
  check(page.url() === `${WEB}/#/job/${JOB}`, `the link is lost: ${page.url()}`);
  await isThere(other, "alice of audio");
  await other.locator(".list .row").first().waitFor();
  const cookies = await ownCookies(context);
  const [cookie] = cookies;
  check(cookies.length === 1 && cookie.httpOnly && cookie.secure && cookie.sameSite === "Strict" && cookie.name.startsWith("__Host-"),
    `cookies: ${JSON.stringify(cookies)}`);
  const kept = await page.evaluate(() => [document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage)].join(""));
  check(kept === "", `scripts can read ${kept}`);
  check(!await page.getByRole("link", { name: "Operate" }).isVisible(), "Operate is offered");
  say("oidc: there and back to the link, for two tabs, with the rights of the tenants file");
  return { page, other };
}

/** Out for all tabs; the provider still knows the person, who is in again by one click. */
async function outAndIn({ page, other }) {
  await page.getByRole("button", { name: "Sign out" }).click();
  await asked(page);
  await asked(other);
  check(await other.locator(".list .row").count() === 0, "jobs are shown to nobody");
  await goThere(page);
  await isThere(page, "alice of audio");
  check(page.url() === `${WEB}/#/job/${JOB}`, `the link is lost: ${page.url()}`);
  say("oidc: out for all tabs, in again by the provider's own session");
}

/** Strangers learn what to ask an operator for; texts of others are never HTML. */
async function strangers(browser) {
  for (const [login, why] of [
    ["mallory", "the claim 'email' is 'mallory@farm.example'; an operator adds oidc: 'mallory@farm.example' to an identity"],
    ["<img src=x>", "'<img src=x>@farm.example'"],
    ["unverified", "has verified the address 'unverified@farm.example'"]]) {
    const context = await newContext(browser);
    const page = await newTab(context, "#/jobs?state=FAILED");
    await goThere(page);
    await signInThere(page, login);
    await problem(page, why);
    check(page.url() === `${WEB}/#/jobs?state=FAILED`, `the link is lost: ${page.url()}`);
    check(await page.locator("main img").count() === 0, "a claim was read as HTML");
    if (login === "mallory") await page.screenshot({ path: join(SHOTS, "oidc_refused.png") });
    const { status } = await page.evaluate(() => fetch("/v1/caller").then((answer) => ({ status: answer.status })));
    check(status === 401, `a stranger gets ${status}`);
    await page.reload();
    await asked(page);
    check(!await page.getByRole("alert").isVisible(), "the refusal is shown twice");
    await context.close();
  }
  const context = await newContext(browser);
  const page = await newTab(context, "#/");
  await goThere(page);
  await page.getByRole("link", { name: "Cancel" }).click();
  await problem(page, "Farm login has refused the sign-in: access_denied");
  await context.close();
  say("oidc: strangers, an address that is not verified and a cancel at the provider are refused in words");
}

/** A callback is worth something once, and to the browser that began. */
async function attacks(browser) {
  const context = await newContext(browser);
  const page = await newTab(context, "#/");
  let back = "", cookie = "";
  page.on("request", (request) => { if (request.url().includes("/auth/callback")) back = request.url(); });
  const began = page.waitForResponse(/\/auth\/start/);
  await goThere(page);
  cookie = (await (await began).allHeaders())["set-cookie"].split(";")[0];
  await signInThere(page, "alice");
  await isThere(page, "alice of audio");
  check(back.includes("code=") && cookie.includes("npuc-provider"), `the callback was ${back} with ${cookie}`);

  // The whole of it again: the state came back before.
  const again = await context.request.get(back, { headers: { Cookie: cookie }, maxRedirects: 0 });
  check(again.status() === 303 && !/npuc_\d+=[^;]/.test(again.headers()["set-cookie"] ?? ""), `a replay gets ${JSON.stringify(again.headers())}`);
  // In another browser, whose person would work as somebody else.
  const victim = await newContext(browser);
  const other = await victim.newPage();
  await other.goto(back);
  await problem(other, "this browser has not begun this sign-in");
  check((await ownCookies(victim)).length === 0, "a stranger's callback left a cookie");
  // With a state that is another sign-in's.
  const [first, second] = [await newContext(browser), await newContext(browser)];
  const started = async (one) => new URL((await one.request.get(`${WEB}/auth/start`, { maxRedirects: 0 })).headers()["location"]);
  await started(first);
  const swapped = (await started(second)).searchParams.get("state");
  const forged = await first.newPage();
  await forged.goto(`${WEB}/auth/callback?code=any&state=${swapped}`);
  await problem(forged, "this browser has not begun this sign-in");
  say("oidc: a replayed, a stranger's and a swapped state are refused");

  // Links that lead away lead to the page.
  for (const to of ["https://evil.example/", "//evil.example/", "/\\evil.example", "/%5Cevil.example", "javascript:alert(1)"]) {
    await page.goto(`${WEB}/auth/start?to=${encodeURIComponent(to)}`);
    await isThere(page, "alice of audio");
    check(new URL(page.url()).origin === WEB && ["", "#/"].includes(new URL(page.url()).hash), `${to} leads to ${page.url()}`);
  }
  for (const one of [context, victim, first, second]) await one.close();
  say("oidc: no link leads away from the page");
}

mkdirSync(SHOTS, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.NPUC_CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const context = await newContext(browser);
  await outAndIn(await thereAndBack(context));
  await strangers(browser);
  await attacks(browser);
  say("FIGURE: oidc: by a real provider in Chromium: there and back to a link, all tabs, strangers and forged callbacks refused");
} catch (error) {
  const pages = browser.contexts().flatMap((one) => one.pages());
  for (const [i, page] of pages.entries()) {
    console.error(`page ${i}: ${page.url()}`);
    await page.screenshot({ path: join(SHOTS, `oidc_failure_${i}.png`) }).catch(() => {});
  }
  console.error(error.stack);
  process.exitCode = 1;
} finally {
  await browser.close();
}
