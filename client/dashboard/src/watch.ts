// Watching a job in a tab: by the worker that all tabs share, or, in a browser without one, by a stream
// of the tab, which gives its connection back while nobody sees it.
import { errorOfStatus, type JobEvent } from "./api";
import { JobStreams, type Watcher } from "./job_streams";

export type FromTab = { lock: string } | { number: number; jobId: string } | { stop: number };
interface Failure { status: number; code: number; message: string; details: { "@type": string }[] }
export type ToTab = { number: number; event: JobEvent } | { number: number; ended: true; error?: Failure } | { number: number; up: boolean };

type Watch = (jobId: string, watcher: Watcher) => () => void;

function byTab(): Watch {
  const streams = new JobStreams();
  const look = () => streams.hold(document.hidden);
  document.addEventListener("visibilitychange", look);
  look();
  return (jobId, watcher) => streams.watch(jobId, watcher);
}

function byWorker(): Watch {
  const worker = new SharedWorker(new URL("./events_worker.ts", import.meta.url), { type: "module", name: "npuc-events" });
  const watchers = new Map<number, { jobId: string; watcher: Watcher }>();
  const send = (message: FromTab) => worker.port.postMessage(message);
  let next = 0;
  let instead: Watch | undefined;
  const stops = new Map<number, () => void>();
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => {
    const watcher = watchers.get(data.number)?.watcher;
    if ("event" in data) watcher?.event(data.event);
    else if ("up" in data) watcher?.connected(data.up);
    else {
      watchers.delete(data.number);
      watcher?.end(data.error && errorOfStatus(data.error.status, data.error));
    }
  };
  // It cannot be started: what it has not told yet, this tab asks for.
  worker.onerror = () => {
    instead = byTab();
    for (const [number, { jobId, watcher }] of watchers) stops.set(number, instead(jobId, watcher));
  };
  const lock = `npuc-tab-${crypto.randomUUID()}`;
  // Named once this tab has it: else the worker could be first, and would take the tab for dead.
  void navigator.locks.request(lock, () => { send({ lock }); return new Promise(() => {}); });
  return (jobId, watcher) => {
    if (instead) return instead(jobId, watcher);
    const number = ++next;
    watchers.set(number, { jobId, watcher });
    send({ number, jobId });
    return () => { watchers.delete(number); stops.get(number)?.(); if (!instead) send({ stop: number }); };
  };
}

let watch: Watch | undefined;

/** Follows a job's events. Returns what stops it. */
export const watchJob: Watch = (jobId, watcher) => {
  watch ??= "SharedWorker" in window ? byWorker() : byTab();
  return watch(jobId, watcher);
};
