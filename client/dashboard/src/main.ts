// The frame around the pages: which one the address names, its refresh, health, and the token.
import "../report/views.css";
import "./style.css";
import { admin } from "./admin";
import { ApiError, getCaller, getHealth, getServer, reasonsOf, token } from "./api";
import { compare } from "./compare";
import { cores } from "./cores";
import { field, h, say } from "./dom";
import { job } from "./job";
import { jobs } from "./jobs";
import { overview } from "./overview";
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

/** Who this is and what that one may do; a way out for who came by a token. */
function showWho() {
  const out = h("button", { click: () => { token.set(""); showWho(); void look(); open(); } }, "Sign out");
  who.hidden = token.get() === "";
  who.replaceChildren(out);
  getCaller().then((caller) => {
    const rights = (caller.rights ?? []).join(", ");
    operate.hidden = !caller.rights?.includes("admin");
    who.hidden = false;
    who.replaceChildren(h("span", { class: "me", title: `may: ${rights}` }, `${caller.identity ?? ""} of ${caller.tenant ?? ""}`, h("span", { class: "soft" }, ` (${rights || "no right"})`)),
      ...(token.get() ? [" ", out] : []));
  }, () => { /* the page itself says what is wrong */ });
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

function askToken(why: string) {
  const input = h("input", { type: "password", id: "token", autocomplete: "current-password" });
  const form = h("form", { class: "card", submit: (event: Event) => { event.preventDefault(); token.set(input.value.trim()); showWho(); void look(); open(); } },
    h("h1", {}, "Who are you?"), h("p", {}, why),
    h("div", { class: "fields" }, field("Token (kept until this tab is closed)", input),
      h("button", { class: "primary" }, "Go on")));
  main.replaceChildren(form);
  input.focus();
}

/** A page that was never filled says why; one that was keeps what it shows. */
function fail(error: unknown, state: HTMLElement) {
  if (error instanceof ApiError && error.status === 401) { view?.close?.(); clearTimeout(timer); askToken(error.message); return; }
  if (state.isConnected) {
    state.className = "notice";
    state.replaceChildren(error instanceof ApiError ? `${error.message} ` : "The server cannot be reached; this page tries again by itself. ",
      h("a", { href: "#/jobs" }, "All jobs"));
  } else if (error instanceof ApiError && error.status < 500) say(error.message);
}

function open() {
  view?.close?.();
  clearTimeout(timer);
  const number = ++shown;
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
    text = api?.status === 401 ? "who are you?" : api ? api.message : "not reachable; trying again";
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
showWho();
open();
void watchHealth();
