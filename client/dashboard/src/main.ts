// The frame around the pages. It shows the page that the address names, refreshes it, and shows health and
// the identity that is signed in.
import "../report/views.css";
import "./style.css";
import { admin } from "./admin";
import { ApiError, getHealth, getServer, reasonsOf } from "./api";
import { compare } from "./compare";
import { cores } from "./cores";
import { field, h, say, tried } from "./dom";
import { job } from "./job";
import { jobs } from "./jobs";
import { overview } from "./overview";
import { askCaller, askWays, comeBack, goToProvider, may, onChange, signIn, signOut, takeProblem } from "./session";
import { submit } from "./submit";
import { trends } from "./trends";
import type { View } from "./view";

const HEALTH_MS = 3000;
const PAGES: [string, string][] = [["#/", "Overview"], ["#/jobs", "Jobs"], ["#/trends", "Trends"], ["#/cores", "Cores"], ["#/submit", "Submit"]];

const main = document.getElementById("main")!;
const dot = h("span", { class: "dot", "aria-hidden": "true" });
const health = h("span", {}, "asking the server");
/** For those alone that may use it. */
const operate = h("a", { href: "#/admin", hidden: true }, "Operate");
const who = h("div", { class: "who", hidden: true });
let view: View | undefined;
let timer = 0;
let shown = 0;

function frame() {
  const nav = h("nav", { "aria-label": "Pages" }, ...PAGES.map(([hash, name]) => h("a", { href: hash }, name)), operate);
  document.getElementById("top")!.append(h("div", { class: "bar" }, h("a", { class: "brand", href: "#/" }, "npuc"), nav,
    who, h("div", { class: "health", role: "status" }, dot, health)));
}

/** Who this is and what that one may do, and a way out for who signed in. */
async function showWho() {
  const [caller, ways] = await Promise.all([askCaller(), askWays()]);
  const rights = (caller?.rights ?? []).join(", ");
  operate.hidden = !caller || !may("admin");
  document.querySelector<HTMLElement>('#top nav a[href="#/submit"]')!.hidden = !may("submit");
  who.hidden = !caller;
  if (!caller) return;
  const out = ways?.needed ? h("button", { click: tried(async () => { await signOut(); await start(); }) }, "Sign out") : null;
  who.replaceChildren(...[h("span", { class: "me", title: `may: ${rights}` }, `${caller.identity ?? ""} of ${caller.tenant ?? ""}`, h("span", { class: "soft" }, ` (${rights || "no right"})`)),
    " ", out].filter((one) => one !== null));
}

/** Shows the page anew for the identity that is signed in now; the address stays. */
async function start() {
  await showWho();
  void look();
  open();
}

function markCurrent(path: string) {
  for (const link of document.querySelectorAll<HTMLAnchorElement>("#top nav a")) {
    const here = link.hash === `#/${path}` || (link.hash === "#/jobs" && (path === "job" || path === "compare"));
    if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
}

function pageOf(root: HTMLElement): View {
  const [path = "", search = ""] = location.hash.replace(/^#\//, "").split("?");
  const [name = "", first = "", second = ""] = path.split("/");
  const query = new URLSearchParams(search);
  markCurrent(name);
  if (name === "jobs") return jobs(root, query);
  if (name === "job") return job(root, first, second, query);
  if (name === "compare") return compare(root, first, second);
  if (name === "admin") return admin(root);
  if (name === "trends") return trends(root, query);
  if (name === "cores") return cores(root, query);
  if (name === "submit") return submit(root, query);
  if (name === "") return overview(root);
  return nothingHere(root);
}

function nothingHere(root: HTMLElement): View {
  root.append(h("h1", {}, "Nothing is here"), h("p", {}, `No page has the address ${location.hash}.`),
    h("p", {}, h("a", { href: "#/" }, "Overview"), ", ", h("a", { href: "#/jobs" }, "jobs"), ", ", h("a", { href: "#/submit" }, "submit a compile")));
  return { title: "Nothing is here" };
}

/** Asks for a sign-in. The address stays, so that a link leads on to its page. */
async function askSignIn(why: string) {
  const problem = h("p", { class: "notice", role: "alert", hidden: true });
  const by = (token?: string) => async () => {
    try { await signIn(token); } catch (error) {
      problem.hidden = false;
      problem.textContent = (error as Error).message;
      return;
    }
    await start();
  };
  const input = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const form = h("form", { class: "fields", submit: (event: Event) => { event.preventDefault(); void by(input.value.trim())(); } },
    field("Token", input), h("button", { class: "primary" }, "Sign in"));
  const ways = await askWays();
  const { certificate, provider } = ways ?? {};
  problem.textContent = takeProblem();
  problem.hidden = !problem.textContent;
  main.replaceChildren(h("div", { class: "card" }, h("h1", {}, "Sign in"), h("p", { class: "soft" }, why), problem,
    provider ? h("p", {}, h("button", { class: "primary", click: goToProvider }, `Sign in with ${provider}`)) : "",
    certificate ? h("p", {}, h("button", { class: "primary", click: by() }, `Sign in with the certificate ${certificate}`)) : "", form,
    h("p", { class: "soft" }, "For all tabs of this browser, until you sign out. An operator of this server gives tokens.")));
  document.title = "Sign in - npuc";
  main.removeAttribute("aria-busy");
  input.focus();
}

/** A page that was never filled says why; one that was keeps what it shows. */
function fail(error: unknown, state: HTMLElement) {
  if (error instanceof ApiError && error.status === 401) { leave(); void askSignIn(error.message); return; }
  if (state.isConnected) {
    state.className = "notice";
    state.replaceChildren(error instanceof ApiError ? `${error.message} ` : "The server cannot be reached; this page tries again by itself. ",
      h("a", { href: "#/jobs" }, "All jobs"));
  } else if (error instanceof ApiError && error.status < 500) say(error.message);
}

/** Lets go of the page that is shown. */
function leave() {
  view?.close?.();
  view = undefined;
  clearTimeout(timer);
  shown++;
}

function open() {
  leave();
  const number = shown;
  const root = h("div", {});
  const state = h("p", { class: "soft", role: "status" }, "Loading …");
  main.replaceChildren(root);
  main.setAttribute("aria-busy", "true");
  const now = pageOf(root);
  view = now;
  document.title = `${now.title} - npuc`;
  if (now.refresh) { main.prepend(state); root.hidden = !now.showsAtOnce; }
  const refresh = async () => {
    if (number !== shown) return;
    try {
      if (!document.hidden || state.isConnected) await now.refresh?.();
      state.remove();
      root.hidden = false;
    } catch (error) { if (number === shown) fail(error, state); }
    if (number === shown) main.removeAttribute("aria-busy");
    const again = now.everyMs ?? (state.isConnected ? HEALTH_MS : 0);
    if (again && number === shown && view === now) timer = window.setTimeout(refresh, again);
  };
  void refresh();
}

/** Shows whether the server takes work, and if not, why. */
async function look() {
  let text = "";
  let good = false;
  try {
    const [info, now] = await Promise.all([getServer(), getHealth()]);
    good = now.ready;
    text = now.ready ? `serving, ${info.version ?? ""}` : `not ready: ${reasonsOf(now).join("; ")}`;
  } catch (error) {
    const api = error instanceof ApiError ? error : undefined;
    text = api?.status === 401 ? "nobody is signed in" : api ? api.message : "not reachable; trying again";
  }
  dot.className = `dot ${good ? "ok" : "bad"}`;
  if (health.textContent !== text) health.textContent = text;
}

async function watchHealth() {
  await look();
  setTimeout(watchHealth, HEALTH_MS);
}

frame();
window.addEventListener("hashchange", open);
document.querySelector(".skip")!.addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
onChange(() => void start());
await showWho();
comeBack();
open();
void watchHealth();
