// The events of all jobs that are watched, by one connection: a browser has six of one server for all
// its tabs. Of no page: a worker that tabs share runs it, or, where there is none, each tab.
import { ApiError, errorOfStatus, request, type JobEvent } from "./api";

export interface Watcher {
  event: (event: JobEvent) => void;
  /** The job has ended, or the service says that it cannot be watched. */
  end: (error?: ApiError) => void;
  /** Whether the stream is up; false while it tries to come back. */
  connected: (up: boolean) => void;
}

/** What of a job a watcher has had. */
interface Watch { jobId: string; last: number; watcher: Watcher }

const MAX_JOBS = 64;  // of a stream
/** Tabs that are opened or closed together change the stream once. */
const GATHER_MS = 20;
const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 5000;

/** google.rpc.Code of errors after which the same question has the same answer. */
const FINAL = new Set([3, 5, 7, 9, 11, 12, 16]);

const pause = (ms: number) => new Promise<void>((done) => { setTimeout(done, ms); });

export class JobStreams {
  private readonly watches = new Set<Watch>();
  private abort = new AbortController();
  private running = false;
  private held = false;
  private wait = FIRST_WAIT_MS;

  /** Follows a job's events from the first one on, across lost connections and restarts of the
   *  server: none is lost or told twice. Returns what stops it. */
  watch(jobId: string, watcher: Watcher): () => void {
    const watch = { jobId, last: 0, watcher };
    this.watches.add(watch);
    this.restart();
    return () => { if (this.watches.delete(watch)) this.restart(); };
  }

  /** Asks again, as after another sign-in. */
  restart() {
    this.wait = FIRST_WAIT_MS;
    this.abort.abort();
    if (!this.running && !this.held && this.watches.size > 0) void this.run();
  }

  /** Gives the connection back until `hold(false)`. */
  hold(held: boolean) {
    this.held = held;
    this.restart();
  }

  private async run() {
    this.running = true;
    while (this.watches.size > 0 && !this.held) {
      this.abort = new AbortController();
      const signal = this.abort.signal;
      await pause(GATHER_MS);
      if (signal.aborted) continue;
      try { await this.stream(signal); } catch (error) {
        if (signal.aborted) continue;
        if (error instanceof ApiError && FINAL.has(error.code)) { this.endAll(error); break; }
      }
      if (signal.aborted || this.watches.size === 0) continue;
      for (const { watcher } of this.watches) watcher.connected(false);
      await Promise.race([pause(this.wait), new Promise((done) => signal.addEventListener("abort", done))]);
      this.wait = Math.min(this.wait * 2, MAX_WAIT_MS);
    }
    this.running = false;
  }

  private endAll(error: ApiError) {
    for (const watch of [...this.watches]) this.end(watch, error);
  }

  private end(watch: Watch, error?: ApiError) {
    this.watches.delete(watch);
    watch.watcher.end(error);
  }

  /** One connection, from its first byte to its last. */
  private async stream(signal: AbortSignal) {
    const from = new Map<string, number>();
    for (const { jobId, last } of this.watches) {
      if (from.size < MAX_JOBS || from.has(jobId)) from.set(jobId, Math.min(from.get(jobId) ?? Infinity, last + 1));
    }
    const query = new URLSearchParams([...from].map(([jobId, seq]) => ["jobs", `${jobId}:${seq}`]));
    const response = await request(`/v1/events?${query}`, { signal });
    for (const { watcher } of this.watches) watcher.connected(true);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || signal.aborted) return;
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        this.take(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  private take(block: string) {
    const fields = new Map(block.split("\n").map((line): [string, string] => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }));
    const { jobId, event, status } = JSON.parse(fields.get("data") ?? "{}");
    const error = status && errorOfStatus(400, status);
    if (error && (!jobId || !FINAL.has(error.code))) throw new TypeError("the server ends the stream");
    const ended = fields.has("event");
    for (const watch of [...this.watches]) {
      if (watch.jobId !== jobId) continue;
      if (ended) this.end(watch, error);
      else this.tell(watch, event as JobEvent);
    }
  }

  /** Another watcher of the same job may have asked for events that this one has had. */
  private tell(watch: Watch, event: JobEvent) {
    const seq = Number(event.seq ?? 0);
    if (seq && seq <= watch.last) return;
    if (seq) watch.last = seq;
    this.wait = FIRST_WAIT_MS;
    watch.watcher.event(event);
  }
}
