// How jobs read: names, why they wait, how long they took.
import { hasEnded, stateOf, type Job } from "./api";
import { duration, ms } from "./dom";

export const nameOf = (job: Job): string => job.outputFile || job.spec?.configName || job.jobId;

const WAITS: Record<string, string> = {
  WAIT_REASON_NEXT_IN_LINE: "the next free worker takes it",
  WAIT_REASON_JOBS_AHEAD: "other jobs are before it",
  WAIT_REASON_TENANT_LIMIT: "its tenant runs as many jobs as it may",
  WAIT_REASON_EQUAL_JOB: "an equal job is being compiled; it will have that one's result",
};

const FAILURES: Record<string, string> = {
  FAILURE_KIND_INVALID_INPUT: "the model or config cannot be compiled",
  FAILURE_KIND_LIMIT_EXCEEDED: "the compile went over a limit",
  FAILURE_KIND_WORKER_DIED: "every attempt lost its worker",
  FAILURE_KIND_INTERNAL: "a fault of the service",
  FAILURE_KIND_INPUT_LOST: "an uploaded file was lost; submit again",
};

/** Why the job is where it is, in a sentence. */
export function whyOf(job: Job): string {
  if (job.queued) {
    const wait = WAITS[job.queued.waitReason ?? ""] ?? "it waits";
    const position = Number(job.queued.position ?? 0);
    const place = position >= 0 ? `position ${position + 1} in the queue; ` : "";
    return `${place}${wait}${job.queued.retryReason ? `; again because: ${job.queued.retryReason}` : ""}`;
  }
  if (job.running) return `${job.running.stage || "starting"}, ${Math.round((job.running.fraction ?? 0) * 100)} %`;
  if (job.failed) {
    const kind = FAILURES[job.failed.kind ?? ""] ?? "failed";
    // The message repeats the first of the problems, which stand above.
    return job.diagnostics?.length ? kind : `${kind}: ${job.failed.message ?? ""}`;
  }
  if (job.cancelled) return job.cancelled.reason || "cancelled without a reason";
  if (job.expired) return `ran out of its time while ${(job.expired.was ?? "").replace("JOB_STATE_", "").toLowerCase()}`;
  return job.cacheHit ? "from the cache" : "compiled";
}

/** ms from acceptance to the end, or to now. */
export const ageMs = (job: Job): number =>
  (hasEnded(job) ? ms(job.endTime) : Date.now()) - ms(job.createTime);

export const tookText = (job: Job): string => (stateOf(job) === "QUEUED" ? "" : duration(ageMs(job)));

export const labelsText = (job: Job): string =>
  Object.entries(job.spec?.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(" ");

export const reattachCommand = (job: Job): string => `npuc-remote watch ${job.jobId}`;
