// The service, as proto3 JSON has it: 64-bit numbers are text, what has its default value is absent.
import type { components, operations } from "./service";

/** The service's own types, made of openapi.json when the page is built. All fields are optional there; `With` says which
 *  the server always sets. */
type S = components["schemas"];
type With<T, K extends keyof T> = T & Required<Pick<T, K>>;

export type Digest = S["BlobDigest"];
export type Artifact = With<S["Artifact"], "name">;
export type Diagnostic = S["Diagnostic"];
export type Spec = S["CompileJobSpec"];
export type Job = Omit<With<S["CompileJob"], "jobId">, "artifacts"> & { artifacts?: Artifact[] };
export type JobEvent = S["JobEvent"];
export type ServerInfo = S["GetServerInfoResponse"];
export type Operator = With<S["Operator"], "core" | "framework" | "op">;

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
  "@type": string; reason?: string; metadata?: Record<string, string>;
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

export const errorOfStatus = (status: number, body: S["Status"], retry = 0) =>
  new ApiError(status, body.code ?? 2, body.message ?? "", (body.details ?? []) as Detail[], retry);

async function errorOf(response: Response): Promise<ApiError> {
  const retry = Number(response.headers.get("Retry-After") ?? 0);
  try {
    return errorOfStatus(response.status, await response.json(), retry);
  } catch {
    return new ApiError(response.status, 2, `the server answered ${response.status}`, [], retry);
  }
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
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
export type Health = operations["GetHealth"]["responses"][200]["content"]["application/json"];
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

export type Totals = S["JobTotals"];
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
export type DispatchState = S["DispatchState"];
export type CordonState = S["CordonState"];
/** Weight and limits that are set; the others are as the tenants file has them. */
export type TenantLimits = S["TenantLimits"];
export type TenantState = With<S["TenantState"], "name">;
export type Usage = With<S["TenantUsage"], "day" | "tenant">;
export type Connection = With<S["Connection"], "protocol" | "peer">;
export type OpenStream = With<S["OpenStream"], "protocol" | "method" | "peer">;
export type Connections = Omit<S["ListConnectionsResponse"], "connections" | "streams"> & { connections?: Connection[]; streams?: OpenStream[] };
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
export type AuditEntry = S["AuditEntry"];
/** What callers did, the newest first; of a cluster at all nodes. */
export const listAudit = (filter: Record<string, string>, pageToken = "") =>
  get<{ entries?: AuditEntry[]; nextPageToken?: string }>(`/v1/admin/audit?${new URLSearchParams({ ...filter, pageSize: "50", pageToken })}`);
export const getUsage = async (fromDay: string) => (await get<{ usage?: Usage[] }>(`/v1/usage?fromDay=${fromDay}`)).usage ?? [];
export const setDispatch = (paused: boolean, reason: string) => post<{ state?: DispatchState }>("/v1/admin/dispatch", { paused, reason });
/** At most 1000 of those that match. */
export const cancelJobs = (filter: Partial<Filter>, reason: string) =>
  post<{ cancelled?: string; hasMore?: boolean }>("/v1/admin/jobs:cancel", { filter: bodyOf(filter), reason });
export const requeueJobs = (filter: Partial<Filter>, pageToken: string) =>
  post<{ requeued?: string; alreadyRequeued?: string; failures?: { jobId: string; message: string }[]; nextPageToken?: string }>(
    "/v1/admin/jobs:requeue", { filter: { ...bodyOf(filter), pageToken } });
/** Who calls, and what that one may do. */
export type Caller = S["GetCallerResponse"];
export const getCaller = () => get<Caller>("/v1/caller");

/** The ways to sign in here. */
export type SignInWays = operations["GetSignIn"]["responses"][200]["content"]["application/json"];
export const getSignIn = () => get<SignInWays>("/v1/sign-in");
/** Makes the server set the cookie of a session; by the browser's certificate where there is no token. */
export const startSession = (token: string) =>
  request("/v1/session", { method: "POST", headers: token ? { Authorization: `Bearer ${token}` } : {} });
export const endSession = () => request("/v1/session:end", { method: "POST" });
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
