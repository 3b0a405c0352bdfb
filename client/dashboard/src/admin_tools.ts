// Forms for what an operator does to one tenant, upload or result: limits for a time, a new token,
// uploads dropped, content evicted. Each says what it did beside its button.
import { digestOf, dropUploads, evictContent, rotateToken, setTenantLimits, type TenantLimits } from "./api";
import { bytes, copy, dateTime, field, h, tried } from "./dom";

const MINUTE_S = 60;
const HOUR_S = 3600;

const words = (id: string, attributes: Record<string, string | number> = {}) => h("input", { type: "text", id, ...attributes });
const number = (id: string, attributes: Record<string, string | number> = {}) => h("input", { type: "number", id, min: 1, ...attributes });

/** A form whose buttons do `acts`; what they did stands in its status. */
function tool(fields: HTMLElement[], acts: [string, () => Promise<(Node | string)[]>][]): HTMLElement {
  const said = h("div", { role: "status" });
  const run = (act: () => Promise<(Node | string)[]>) => tried(async () => {
    said.replaceChildren();
    said.replaceChildren(h("p", {}, ...(await act())));
  });
  const [first, ...others] = acts;
  return h("div", {},
    h("form", { class: "fields", submit: (event: Event) => { event.preventDefault(); void run(first![1])(); } }, ...fields, h("button", {}, first![0]),
      ...others.map(([name, act]) => h("button", { type: "button", click: run(act) }, name))), said);
}

/** `reason`: what the page's field has. `changed`: called when a tenant is another. */
export function limitsTool(reason: () => string, changed: () => Promise<void>): HTMLElement {
  const tenant = words("limit-tenant", { required: "" });
  const hours = number("limit-hours", { value: 2, max: 2160 });
  const limits: [keyof TenantLimits, string, HTMLInputElement][] = [
    ["weight", "Weight", number("limit-weight", { max: 1000 })], ["maxQueuedJobs", "Waiting jobs, most", number("limit-queued")],
    ["maxRunningJobs", "Running jobs, most", number("limit-running")], ["maxCallRate", "Calls a second, most", number("limit-calls")],
    ["maxUploadRate", "Bytes uploaded a second, most", number("limit-upload", { min: 65536 })], ["maxStoredBytes", "Bytes of uploads kept, most", number("limit-stored")]];
  const set = async () => {
    const given = limits.filter(([, , input]) => input.value !== "");
    if (!given.length) throw new Error("give at least one limit");
    const asked: TenantLimits = Object.fromEntries(given.map(([name, , input]) => [name, name === "weight" ? Number(input.value) : input.value]));
    const now = (await setTenantLimits(tenant.value.trim(), asked, Math.round(Number(hours.value) * HOUR_S), reason())).tenant;
    await changed();
    return [`Set for ${now.name} until ${dateTime(now.temporary?.endTime)}.`];
  };
  const unset = async () => {
    const now = (await setTenantLimits(tenant.value.trim(), undefined, 0, reason())).tenant;
    await changed();
    return [`The tenants file holds for ${now.name}.`];
  };
  return tool([field("Tenant", tenant), ...limits.map(([, name, input]) => field(name, input)), field("For hours", hours)],
    [["Set for a time", set], ["Back to the file", unset]]);
}

/** The page makes the token, and the server learns its SHA-256 alone. */
export function tokenTool(): HTMLElement {
  const tenant = words("token-tenant", { required: "" });
  const identity = words("token-identity", { required: "" });
  const hours = number("token-hours", { value: 24, min: 0, max: 2160 });
  const rotate = async () => {
    const token = [...crypto.getRandomValues(new Uint8Array(32))].map((one) => one.toString(16).padStart(2, "0")).join("");
    const digest = await digestOf(new TextEncoder().encode(token).buffer as ArrayBuffer);
    const end = (await rotateToken(tenant.value.trim(), identity.value.trim(), digest.sha256!, Math.round(Number(hours.value) * HOUR_S))).oldTokensEndTime;
    return [`The new token, which is shown this once: `, h("code", {}, token), " ", h("button", { type: "button", click: tried(() => copy(token)) }, "Copy"),
      end ? ` The old one is valid until ${dateTime(end)}.` : " No other is valid."];
  };
  return tool([field("Tenant", tenant), field("Identity", identity), field("Old one valid for hours", hours)], [["New token", rotate]]);
}

export function uploadsTool(reason: () => string): HTMLElement {
  const tenant = words("uploads-tenant");
  const idle = number("uploads-idle", { value: 10, min: 0 });
  const drop = async () => {
    const answer = await dropUploads(tenant.value.trim(), Number(idle.value) * MINUTE_S, reason());
    return [`${answer.dropped ?? 0} uploads dropped, ${bytes(Number(answer.droppedBytes ?? 0))}.`];
  };
  return tool([field("Tenant (empty: all)", tenant), field("Without a byte for minutes (0: all)", idle)], [["Drop uploads", drop]]);
}

export function evictTool(reason: () => string): HTMLElement {
  const name = words("evict-name", { required: "" });
  const tenant = words("evict-tenant");
  const evict = async () => {
    const text = name.value.trim();
    const content = text.includes("/") ? { resultKey: text } : /^[0-9a-f]{64}$/.test(text) ? { blobSha256: text, tenant: tenant.value.trim() } : { jobId: text };
    const evicted = (await evictContent(content, reason())).evicted ?? [];
    return [evicted.length ? `Evicted: ${evicted.join(", ")}.` : "It was not there."];
  };
  return tool([field("Blob's SHA-256, result's key or job's id", name), field("Tenant of the blob (empty: all)", tenant)], [["Evict", evict]]);
}
