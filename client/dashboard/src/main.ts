// The frame around the pages: which one the address names, its refresh, health, and the token.
import "../report/views.css";
import "./style.css";
import { ApiError, getHealth, getServer, reasonsOf, token } from "./api";
import { compare } from "./compare";
import { cores } from "./cores";
import { h, say } from "./dom";
import { job } from "./job";
import { jobs } from "./jobs";
import { overview } from "./overview";
import { submit } from "./submit";
import type { View } from "./view";

const HEALTH_MS = 3000;
const PAGES: [string, string][] = [["#/", "Overview"], ["#/jobs", "Jobs"], ["#/cores", "Cores"], ["#/submit", "Submit"]];

const main = document.getElementById("main")!;
const dot = h("span", { class: "dot", "aria-hidden": "true" });
const health = h("span", {}, "asking the server");
let view: View | undefined;
let timer = 0;
let shown = 0;

function frame() {
  const nav = h("nav", { "aria-label": "Pages" }, ...PAGES.map(([hash, name]) => h("a", { href: hash }, name)));
  document.getElementById("top")!.append(h("div", { class: "bar" }, h("a", { class: "brand", href: "#/" }, "npuc"), nav,
    h("div", { class: "health", role: "status" }, dot, health)));
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
  if (name === "cores") return cores(root, query);
  if (name === "submit") return submit(root);
  return overview(root);
}

function askToken(why: string) {
  const input = h("input", { type: "password", id: "token", autocomplete: "current-password" });
  const form = h("form", { class: "card", submit: (event: Event) => { event.preventDefault(); token.set(input.value.trim()); open(); } },
    h("h1", {}, "Who are you?"), h("p", {}, why),
    h("div", { class: "fields" }, h("div", { class: "field" }, h("label", { for: "token" }, "Token (kept until this tab is closed)"), input),
      h("button", { class: "primary" }, "Go on")));
  main.replaceChildren(form);
  input.focus();
}

function fail(error: unknown, root: HTMLElement) {
  if (error instanceof ApiError && error.status === 401) { view?.close?.(); clearTimeout(timer); askToken(error.message); return; }
  if (error instanceof ApiError && root.childElementCount === 0) root.append(h("p", { class: "notice" }, error.message));
  else if (error instanceof ApiError && error.status < 500) say(error.message);
}

function open() {
  view?.close?.();
  clearTimeout(timer);
  const number = ++shown;
  const root = h("div");
  main.replaceChildren(root);
  main.setAttribute("aria-busy", "true");
  const now = pageOf(root);
  view = now;
  document.title = `${now.title} - npuc`;
  const refresh = async () => {
    if (number !== shown) return;
    try { if (!document.hidden) await now.refresh?.(); } catch (error) { if (number === shown) fail(error, root); }
    if (number === shown) main.removeAttribute("aria-busy");
    if (now.everyMs && number === shown && view === now) timer = window.setTimeout(refresh, now.everyMs);
  };
  void refresh();
}

/** Says whether the server takes work, and if not, why. */
async function watchHealth() {
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
  setTimeout(watchHealth, HEALTH_MS);
}

frame();
window.addEventListener("hashchange", open);
document.querySelector(".skip")!.addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
open();
void watchHealth();
