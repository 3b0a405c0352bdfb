// The service, as proto3 JSON has it: 64-bit numbers are text, what has its default value is absent.

export interface Digest { sha256?: string; sizeBytes?: string }
export interface Artifact { name: string; sizeBytes?: string; sha256?: string }
export interface Diagnostic {
  id?: string; severity?: string; file?: string; line?: number; column?: number; node?: string;
  op?: string; message?: string; limitSource?: string; fix?: string;
}
export interface Spec {
  configText?: string; configName?: string; model?: Digest;
  sideInputs?: { role?: string; name?: string; digest?: Digest }[];
  priority?: number; labels?: Record<string, string>; timeout?: string; noCache?: boolean;
  modelInfoTime?: string;
}
export interface Job {
  jobId: string; requestId?: string; spec?: Spec;
  queued?: { position?: string; retryReason?: string; waitReason?: string; estimatedStartTime?: string };
  running?: { stage?: string; fraction?: number };
  succeeded?: object; failed?: { kind?: string; message?: string };
  cancelled?: { reason?: string }; expired?: { was?: string };
  attempts?: number; cacheHit?: boolean; artifacts?: Artifact[]; diagnostics?: Diagnostic[];
  createTime?: string; startTime?: string; endTime?: string; deadlineTime?: string;
  lastSeq?: string; modelMd5?: string; outputFile?: string; tenant?: string; core?: string; framework?: string; submitter?: string;
  traceId?: string;
}
export interface JobEvent {
  seq?: string; eventTime?: string; attempt?: number;
  stateChanged?: { state?: string; reason?: string; failureKind?: string; cacheHit?: boolean };
  queuePosition?: { position?: string }; progress?: { stage?: string; fraction?: number };
  logLine?: { text?: string }; artifactReady?: Artifact; diagnostic?: Diagnostic; heartbeat?: object;
}
export interface ServerInfo {
  version?: string; compilerBuildId?: string; cores?: string[]; workers?: number;
  maxBlobBytes?: string; maxQueuedJobs?: string; queuedJobs?: string; runningJobs?: string;
}
export interface Operator { core: string; framework: string; op: string; restrictions?: string[] }

export const STATES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"] as const;
export type State = (typeof STATES)[number];
const TERMINAL: ReadonlySet<State> = new Set<State>(["SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"]);

const FIELDS = STATES.map((state): [State, string] => [state, state.toLowerCase()]);
export function stateOf(job: Job): State {
  for (const [state, field] of FIELDS) if (field in job) return state;
  return "QUEUED";
}
export const hasEnded = (job: Job): boolean => TERMINAL.has(stateOf(job));

interface Detail {
  "@type"?: string; reason?: string; metadata?: Record<string, string>;
  fieldViolations?: { field?: string; description?: string }[];
  violations?: { type?: string; subject?: string; description?: string }[];
}

/** An error as the service tells it: google.rpc.Status. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: number, message: string,
              readonly details: Detail[], readonly retryAfterSeconds: number) {
    super(message);
  }
  get reason(): string { return this.details.find((d) => d.reason)?.reason ?? ""; }
  /** Everything that is wrong, a line each. */
  get problems(): string[] {
    return this.details.flatMap((d) => [
      ...(d.fieldViolations ?? []).map((v) => v.description ?? ""),
      ...(d.violations ?? []).map((v) => `${v.subject ?? ""}: ${v.description ?? ""}`),
    ]);
  }
}

const TOKEN_KEY = "npuc-token";
export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY) ?? "",
  set: (text: string) => sessionStorage.setItem(TOKEN_KEY, text),
};

async function errorOf(response: Response): Promise<ApiError> {
  const retry = Number(response.headers.get("Retry-After") ?? 0);
  try {
    const body = await response.json();
    return new ApiError(response.status, body.code, body.message, body.details ?? [], retry);
  } catch {
    return new ApiError(response.status, 2, `the server answered ${response.status}`, [], retry);
  }
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.get()) headers.set("Authorization", `Bearer ${token.get()}`);
  const response = await fetch(path, { ...init, headers, cache: "no-store" });
  const isKnown = response.status === 304 && headers.has("If-None-Match");
  if (!response.ok && !isKnown) throw await errorOf(response);
  return response;
}

/** Answers by path, the last one used at the end: what is asked for again and again comes once. In memory alone, not on the browser's disk. */
const answers = new Map<string, { etag: string; body: unknown }>();
const MAX_ANSWERS = 32;

async function get<T>(path: string): Promise<T> {
  const known = answers.get(path);
  const response = await request(path, known && { headers: { "If-None-Match": known.etag } });
  answers.delete(path);
  const etag = response.headers.get("ETag") ?? "";
  const body = response.status === 304 ? structuredClone(known!.body) : await response.json();
  if (etag) answers.set(path, { etag, body: structuredClone(body) });
  for (const oldest of answers.keys()) {
    if (answers.size <= MAX_ANSWERS) break;
    answers.delete(oldest);
  }
  return body as T;
}
async function post<T>(path: string, body: unknown): Promise<T> {
  const init = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await request(path, init)).json();
}

export const getServer = () => get<ServerInfo>("/v1/server");
export interface Health { ready: boolean; conditions: Record<string, string> }
export const getHealth = () => get<Health>("/v1/health");
/** The conditions that do not hold, and why. */
export const reasonsOf = (health: Health): string[] =>
  Object.entries(health.conditions).filter(([, text]) => text !== "ok").map(([name, text]) => `${name}: ${text}`);
export const getJob = async (id: string) => (await get<{ job: Job }>(`/v1/jobs/${id}`)).job;
export const listOps = async () => (await get<{ operators?: Operator[] }>("/v1/ops")).operators ?? [];

/** What a list shows and in which order, as ListCompileJobs has it. */
export interface Filter {
  states: string[]; cores: string[]; frameworks: string[]; tenants: string[]; labels: string[];
  text: string; from: string; before: string; mine: boolean; order: string; reverse: boolean;
}
export const ORDERS: Record<string, string> = {
  "": "newest", END_TIME: "ended last", NAME: "name", TOOK: "took longest", STATE: "state", CORE: "core", FRAMEWORK: "framework", TENANT: "tenant",
};
export const noFilter = (): Filter => ({ states: [], cores: [], frameworks: [], tenants: [], labels: [], text: "", from: "", before: "", mine: false, order: "", reverse: false });

export interface Totals { jobs?: string; states?: Record<string, string>; cores?: Record<string, string>; frameworks?: Record<string, string>; tenants?: Record<string, string> }
export interface Page { jobs: Job[]; next: string; totals?: Totals }
export async function listJobs(filter: Partial<Filter>, pageSize: number, pageToken = "", withTotals = false): Promise<Page> {
  const query = new URLSearchParams({ pageSize: String(pageSize) });
  if (pageToken) query.set("pageToken", pageToken);
  for (const state of filter.states ?? []) query.append("states", `JOB_STATE_${state}`);
  for (const name of ["cores", "frameworks", "tenants", "labels"] as const) for (const one of filter[name] ?? []) query.append(name, one);
  if (filter.text) query.set("text", filter.text);
  if (filter.from) query.set("createdFrom", filter.from);
  if (filter.before) query.set("createdBefore", filter.before);
  if (filter.mine) query.set("mine", "true");
  if (filter.order) query.set("order", `JOB_ORDER_${filter.order}`);
  if (filter.reverse) query.set("reverse", "true");
  if (withTotals) query.set("withTotals", "true");
  const page = await get<{ jobs?: Job[]; nextPageToken?: string; totals?: Totals }>(`/v1/jobs?${query}`);
  return { jobs: page.jobs ?? [], next: page.nextPageToken ?? "", totals: page.totals };
}
/** What an operator does: AdminService. */
export interface DispatchState { paused?: boolean; reason?: string; by?: string; since?: string }
export interface CordonState { cordoned?: boolean; reason?: string; by?: string; since?: string; node?: string }
/** Weight and limits that are set; the others are as the tenants file has them. */
export interface TenantLimits {
  weight?: number; maxQueuedJobs?: string; maxRunningJobs?: string; maxJobBytes?: string; maxStoredBytes?: string; maxResultBytes?: string;
  maxUploadRate?: string; maxCallRate?: string;
}
export interface TenantState {
  name: string; weight?: number; queuedJobs?: string; runningJobs?: string; maxQueuedJobs?: string; maxRunningJobs?: string; maxJobBytes?: string;
  maxStoredBytes?: string; maxResultBytes?: string; maxUploadRate?: string; maxCallRate?: string; storedBytes?: string; openUploads?: string;
  temporary?: { limits?: TenantLimits; endTime?: string; by?: string; reason?: string };
}
export interface Usage {
  day: string; tenant: string; jobs?: string; succeeded?: string; failed?: string; cacheHits?: string;
  processorSeconds?: number; uploadedBytes?: string; downloadedBytes?: string;
}
export interface Connection {
  protocol: string; peer: string; identity?: string; tenant?: string; lastMethod?: string; calls?: string; since?: string;
  receivedBytes?: string; sentBytes?: string;
}
export interface OpenStream { protocol: string; method: string; peer: string; identity?: string; tenant?: string; object?: string; since?: string; bytes?: string }
export interface Connections { connections?: Connection[]; openConnections?: string; streams?: OpenStream[]; openStreams?: string; node?: string }
const bodyOf = ({ states, tenants, labels, text }: Partial<Filter>) => ({ states: states?.map((state) => `JOB_STATE_${state}`), tenants, labels, text });
export const listTenants = () => get<{ tenants?: TenantState[]; dispatch?: DispatchState; cordon?: CordonState }>("/v1/admin/tenants");
export const setCordon = (cordoned: boolean, reason: string) => post<{ state?: CordonState }>("/v1/admin/cordon", { cordoned, reason });
/** Without limits the tenants file holds again. */
export const setTenantLimits = (tenant: string, limits: TenantLimits | undefined, seconds: number, reason: string) =>
  post<{ tenant: TenantState }>("/v1/admin/tenants:limit", { tenant, limits, duration: limits && `${seconds}s`, reason });
export const rotateToken = (tenant: string, identity: string, tokenSha256: string, graceSeconds: number) =>
  post<{ oldTokensEndTime?: string }>("/v1/admin/tokens:rotate", { tenant, identity, tokenSha256, grace: `${graceSeconds}s` });
export const dropUploads = (tenant: string, idleSeconds: number, reason: string) =>
  post<{ dropped?: string; droppedBytes?: string }>("/v1/admin/uploads:drop", { tenant, idle: `${idleSeconds}s`, reason });
export const evictContent = (content: { blobSha256: string; tenant: string } | { resultKey: string } | { jobId: string }, reason: string) =>
  post<{ evicted?: string[] }>("/v1/admin/content:evict", { ...content, reason });
/** Those that carried the most bytes. */
export const listConnections = (limit: number) => get<Connections>(`/v1/admin/connections?limit=${limit}`);
export const getUsage = async (fromDay: string) => (await get<{ usage?: Usage[] }>(`/v1/usage?fromDay=${fromDay}`)).usage ?? [];
export const setDispatch = (paused: boolean, reason: string) => post<{ state?: DispatchState }>("/v1/admin/dispatch", { paused, reason });
/** At most 1000 of those that match. */
export const cancelJobs = (filter: Partial<Filter>, reason: string) =>
  post<{ cancelled?: string; hasMore?: boolean }>("/v1/admin/jobs:cancel", { filter: bodyOf(filter), reason });
export const requeueJobs = (filter: Partial<Filter>, pageToken: string) =>
  post<{ requeued?: string; alreadyRequeued?: string; failures?: { jobId: string; message: string }[]; nextPageToken?: string }>(
    "/v1/admin/jobs:requeue", { filter: { ...bodyOf(filter), pageToken } });
/** Who calls, and what that one may do. */
export interface Caller { identity?: string; tenant?: string; rights?: string[] }
export const getCaller = () => get<Caller>("/v1/caller");
export const cancelJob = async (id: string, reason: string) =>
  (await post<{ job: Job }>(`/v1/jobs/${id}:cancel`, { reason })).job;
export const createJob = async (spec: Spec) =>
  (await post<{ job: Job }>("/v1/jobs", { requestId: crypto.randomUUID(), spec })).job;

/** What `npuc inspect --json` has: names with underscores, sizes as numbers. */
export interface Port { name: string; type?: string; shape?: (number | null)[] | null; dim_names?: string[] }
export interface Verdict {
  family: string; cores: string[]; verdict: string; open?: string[]; configs?: Record<string, string>;
  reasons: { id: string; op: string; nodes: number; first_node: string; message: string; fix: string }[];
  ram_bytes?: number; ram_limit_bytes?: number; flash_bytes?: number; cycles?: number; warnings?: number;
}
export interface Inspection {
  format: string; framework: string; producer?: string; inputs: Port[]; outputs: Port[]; operators: Record<string, number>;
  weights: number; weight_bytes: number; macs?: number | null; notes?: string[]; verdicts: Verdict[];
}
export const inspectModel = (modelName: string, model: Digest, sideInputs: { role: string; name: string; digest: Digest }[]) =>
  post<{ inspection?: Inspection; diagnostics?: Diagnostic[] }>("/v1/models:inspect", { modelName, model, sideInputs });

export const artifactPath = (id: string, name: string) =>
  `/v1/jobs/${id}/artifacts/${encodeURIComponent(name)}`;
export const getArtifact = async (id: string, name: string) =>
  (await request(artifactPath(id, name))).arrayBuffer();
export const REPORT = "report.json";
export const hasReport = (job: Job): boolean => (job.artifacts ?? []).some((one) => one.name === REPORT);
export const getReport = async (id: string) => (await request(artifactPath(id, REPORT))).json();

const CHUNK_BYTES = 1 << 20;

export async function digestOf(bytes: ArrayBuffer): Promise<Digest> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const sha256 = [...hash].map((b) => b.toString(16).padStart(2, "0")).join("");
  return { sha256, sizeBytes: String(bytes.byteLength) };
}

/** Uploads what the server does not have yet, from the byte that it has reached. */
export async function upload(bytes: ArrayBuffer, digest: Digest, progress: (share: number) => void) {
  const path = `/v1/blobs/${digest.sha256}?sizeBytes=${digest.sizeBytes}`;
  let state = await get<{ committedBytes?: string; complete?: boolean }>(path);
  while (!state.complete) {
    const offset = Number(state.committedBytes ?? 0);
    progress(bytes.byteLength ? offset / bytes.byteLength : 1);
    const response = await request(`${path}&offset=${offset}`, {
      method: "PATCH", body: bytes.slice(offset, offset + CHUNK_BYTES),
      headers: { "Content-Type": "application/octet-stream" },
    });
    state = await response.json();
  }
  progress(1);
}

export interface Watcher {
  event: (event: JobEvent) => void;
  /** The job has ended, or the service says that it cannot be watched. */
  end: (error?: ApiError) => void;
  /** Whether the stream is up; false while it tries to come back. */
  connected: (up: boolean) => void;
}

/** Resolves once somebody can see this tab. */
const whenSeen = () => new Promise<void>((seen) => {
  const look = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    seen();
  };
  document.addEventListener("visibilitychange", look);
  look();
});

/** Follows a job's events, across lost connections and restarts of the server: none is lost or told
 *  twice. A hidden tab gives its connection back and goes on where it was once it is seen: a browser
 *  has six for all its tabs. Returns what stops it. */
export function watchJob(id: string, watcher: Watcher): () => void {
  let stopped = false;
  let abort = new AbortController();
  let last = 0;
  const hide = () => { if (document.hidden) abort.abort(); };
  document.addEventListener("visibilitychange", hide);
  const take = (block: string): boolean => {
    const fields = new Map(block.split("\n").map((line): [string, string] => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }));
    if (fields.get("event") === "end") return true;
    if (fields.get("event") === "error") throw new TypeError("the server ends the stream");
    if (fields.has("id")) last = Number(fields.get("id"));
    watcher.event(JSON.parse(fields.get("data") ?? "{}"));
    return false;
  };
  const once = async (): Promise<boolean> => {
    const headers: Record<string, string> = last ? { "Last-Event-ID": String(last) } : {};
    const response = await request(`/v1/jobs/${id}/events`, { headers, signal: abort.signal });
    watcher.connected(true);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return false;
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const ended = take(text.slice(0, end));
        text = text.slice(end + 2);
        if (ended) return true;
      }
    }
  };
  const loop = async () => {
    for (let wait = 250; !stopped; wait = Math.min(wait * 2, 5000)) {
      await whenSeen();
      if (stopped) return;
      abort = new AbortController();
      try {
        const before = last;
        if (await once()) { watcher.end(); return; }
        if (last > before) wait = 250;
      } catch (error) {
        if (stopped) return;
        if (abort.signal.aborted) { wait = 250; continue; }
        const final = error instanceof ApiError && error.status < 500 && error.status !== 429;
        if (final) { watcher.end(error as ApiError); return; }
      }
      watcher.connected(false);
      await new Promise((done) => setTimeout(done, wait));
    }
  };
  void loop().finally(() => document.removeEventListener("visibilitychange", hide));
  return () => { stopped = true; abort.abort(); };
}
