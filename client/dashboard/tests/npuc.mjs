// A real npucd for the browser tests: started, killed and started again on the same port and data.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const BIN = process.env.NPUC_BIN_DIR;

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export async function until(what, condition, seconds = 60) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    check(Date.now() < deadline, `no ${what} within ${seconds} s`);
    await sleep(20);
  }
}

/** Opens a tab at `hash` of the page that `web` serves. */
export async function openTab(context, web, hash) {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(`${web}/${hash}`);
  return page;
}
/** Waits until the page asks for a sign-in, or shows who is signed in. */
export const asked = (page) => page.getByRole("heading", { name: "Sign in" }).waitFor();
export const isThere = (page, who) => page.locator(".who").getByText(who).waitFor();

export class Npucd {
  folder = mkdtempSync(join(tmpdir(), "npuc-web-"));
  grpc = "127.0.0.1:0";
  web = "127.0.0.1:0";
  process = null;

  async start() {
    const port = join(this.folder, "port");
    rmSync(port, { force: true });
    const log = openSync(join(this.folder, "npucd.log"), "a");
    this.process = spawn(join(BIN, "npucd"), ["--data-dir", join(this.folder, "data"), "--insecure", "--listen", this.grpc,
      "--web", this.web, "--workers", "1", "--spares", "0", "--port-file", port], { stdio: ["ignore", log, log] });
    await until("port file", () => {
      check(this.process.exitCode === null, `npucd ended:\n${this.log()}`);
      return existsSync(port);
    });
    const ports = Object.fromEntries(readFileSync(port, "utf8").trim().split("\n").map((line) => line.split("=")));
    this.grpc = ports.grpc;
    this.web = ports.web;
  }

  log() { return readFileSync(join(this.folder, "npucd.log"), "utf8").slice(-3000); }

  async kill(signal = "SIGKILL") {
    this.release();
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill(signal);
    await ended;
  }

  async close() {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) await this.kill("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }

  dir(name) {
    const path = join(this.folder, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Processes below npucd: the warm parent of the workers, and those of running jobs. */
  processes() {
    const parents = new Map();
    for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      try {
        const stat = readFileSync(`/proc/${entry}/stat`, "utf8");
        parents.set(Number(entry), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
      } catch { /* it has ended meanwhile */ }
    }
    const warm = [...parents.keys()].filter((pid) => parents.get(pid) === this.process.pid);
    const isOfJob = (pid) => warm.includes(parents.get(pid)) || (parents.has(parents.get(pid)) && isOfJob(parents.get(pid)));
    return { warm, ofJobs: [...parents.keys()].filter(isOfJob) };
  }
  /** While the warm parent is stopped no compile begins. */
  zygote() {
    const { warm } = this.processes();
    check(warm.length > 0, "npucd has no worker process");
    return warm[0];
  }
  /** Stops (SIGSTOP) the processes of the next job in its middle; none if `tooLate` comes first. */
  async catchJob(tooLate) {
    while (!tooLate()) {
      const found = this.processes().ofJobs;
      for (const pid of found) try { process.kill(pid, "SIGSTOP"); } catch { /* it has ended */ }
      if (found.length) return found;
      await sleep(1);
    }
    return [];
  }
  stopped = 0;
  hold() { this.stopped = this.zygote(); process.kill(this.stopped, "SIGSTOP"); }
  release() {
    if (!this.stopped) return;
    try { process.kill(this.stopped, "SIGCONT"); } catch { /* it has ended */ }
    this.stopped = 0;
  }

  remote(...args) {
    const done = spawnSync(join(BIN, "npuc-remote"), args, { encoding: "utf8", env: { ...process.env, NPUC_SERVER: this.grpc } });
    check(done.status === 0 || args.includes("watch"), `npuc-remote ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
  }
  npuc(...args) {
    const done = spawnSync(join(BIN, "npuc"), args, { encoding: "utf8" });
    check(done.status === 0, `npuc ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
  }
  json(...args) {
    return this.remote(...args, "--json").trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }
  /** The log as another client has it. */
  logLines(id) {
    return this.json("watch", id, "--from", "0").filter((event) => event.type === "log_line").map((event) => event.text);
  }
}
