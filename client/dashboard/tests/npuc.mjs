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

/** The processes that a process and its threads have made. */
function children(pid) {
  const read = (path, otherwise, reader) => { try { return reader(path); } catch { return otherwise; /* it has ended */ } };
  return read(`/proc/${pid}/task`, [], readdirSync)
    .flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`, "", (path) => readFileSync(path, "utf8")).split(" "))
    .filter(Boolean).map(Number);
}
const below = (pid) => children(pid).flatMap((child) => [child, ...below(child)]);

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

  /** The warm parent of the workers: while it is stopped no compile begins. */
  zygote() {
    const [warm] = children(this.process.pid);
    check(warm, "npucd has no worker process");
    return warm;
  }
  signalJobs(name) {
    const found = below(this.zygote());
    for (const pid of found) try { process.kill(pid, name); } catch { /* it has ended */ }
    return found.length;
  }
  /** Stops the processes of running jobs, also those that they make meanwhile; how many these are. */
  async stopJobs() {
    for (let known = 0;;) {
      const found = this.signalJobs("SIGSTOP");
      if (found === known) return found;
      known = found;
      await sleep(2);
    }
  }
  continueJobs() { this.signalJobs("SIGCONT"); }
  /** Stops the next job in its middle; false if `tooLate` comes first. */
  async catchJob(tooLate) {
    while (!tooLate()) {
      if (await this.stopJobs()) return true;
      await sleep(5);
    }
    return false;
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
