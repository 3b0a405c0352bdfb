// What a dropped model is: read by the server, which proposes a config for each core.
import { ApiError, inspectModel, type Digest, type Inspection, type Port, type Verdict } from "./api";
import { badge, bytes, h } from "./dom";
import { alike, diagnostic } from "./job_cards";

export interface ModelFile { name: string; digest: Digest; sides: { role: string; name: string; digest: Digest }[] }
/** Takes the proposed config of a core into the editor. */
type Take = (config: string, core: string) => void;

const BADGES: Record<string, string> = { compiles: "succeeded", "needs calibration data": "queued", "needs shapes": "queued", refused: "failed" };
const count = (n: number) => n.toLocaleString();

const shapeText = (port: Port): string => port.shape
  ? `[${port.shape.map((dim, i) => dim ?? (port.dim_names?.[i] || "?")).join(", ")}]` : "shape not stated";
const portsText = (ports: Port[]): string =>
  ports.map((port) => `${port.name} ${port.type ?? ""} ${shapeText(port)}`).join("; ") || "not stated by the file";

/** "12 Conv, 3 Relu": the most frequent first. */
const operatorsText = (operators: Record<string, number>): string =>
  Object.entries(operators).sort(([a, n], [b, m]) => m - n || a.localeCompare(b)).map(([name, n]) => `${n} ${name}`).join(", ");

function facts(one: Inspection): HTMLElement {
  const rows: [string, string][] = [
    ["Format", [one.format, one.producer].filter(Boolean).join(", ")], ["Inputs", portsText(one.inputs)], ["Outputs", portsText(one.outputs)],
    ["Operators", operatorsText(one.operators)], ["Weights", `${count(one.weights)} values, ${bytes(one.weight_bytes)}`],
    ["Multiply-adds", one.macs === null || one.macs === undefined ? "not known: the model is not imported" : count(one.macs)]];
  return h("dl", { class: "facts" }, ...rows.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}

function says(verdict: Verdict): HTMLElement | string {
  if (verdict.verdict === "compiles") {
    const ram = verdict.ram_limit_bytes ? `${bytes(verdict.ram_bytes ?? 0)} of ${bytes(verdict.ram_limit_bytes)}` : bytes(verdict.ram_bytes ?? 0);
    return [`SRAM ${ram}`, `flash ${bytes(verdict.flash_bytes ?? 0)}`, verdict.cycles ? `${count(verdict.cycles)} cycles` : "",
      verdict.warnings ? `${verdict.warnings} warning${verdict.warnings > 1 ? "s" : ""}` : ""].filter(Boolean).join(" · ");
  }
  if (verdict.verdict === "needs shapes") return `Say the shape in the lines marked FILL_IN: ${(verdict.open ?? []).join("; ")}`;
  if (verdict.verdict !== "refused") return "The model is in float, the core computes in integers: drop samples (.npy) and name them in the lines of QUANT.";
  return h("ul", { class: "reasons" }, ...verdict.reasons.map((one) => h("li", {}, h("strong", {}, one.op ? `${one.nodes} ${one.op}: ` : ""), one.message,
    one.fix ? h("span", { class: "soft" }, ` What to do: ${one.fix}`) : null, h("span", { class: "soft" }, ` ${one.id}`))));
}

function row(verdict: Verdict, take: Take): HTMLElement {
  const cores = Object.keys(verdict.configs ?? {}).sort();
  const choice = h("select", { "aria-label": `Core of ${verdict.family}` }, ...cores.map((core) => h("option", { value: core }, core)));
  const use = h("button", { type: "button", class: verdict.verdict === "compiles" ? "primary" : "", click: () => take(verdict.configs![choice.value]!, choice.value) },
    cores.length === 1 ? `Config for ${cores[0]}` : "Config for this core");
  choice.hidden = cores.length === 1;
  const state = badge(BADGES[verdict.verdict] ?? "queued");
  state.textContent = verdict.verdict;
  return h("tr", {}, h("th", { scope: "row" }, verdict.family), h("td", {}, state), h("td", {}, says(verdict)), h("td", { class: "take" }, choice, use));
}

/** Asks the server and draws its answer. Errors are the caller's, but for a file that is no model. */
export async function inspection(model: ModelFile, take: Take): Promise<Node[]> {
  const answer = await inspectModel(model.name, model.digest, model.sides);
  const notes = alike(answer.diagnostics ?? []).map(diagnostic);
  const one = answer.inspection;
  if (!one) return [h("h2", {}, `${model.name} is no model that can be read`), ...notes];
  return [h("h2", {}, `What ${model.name} is`), facts(one), ...(one.notes ?? []).map((text) => h("p", { class: "soft" }, text)), ...notes,
    h("h2", {}, "Which cores take it"),
    h("div", { class: "scroll" }, h("table", { class: "verdicts" }, h("tbody", {}, ...one.verdicts.map((verdict) => row(verdict, take)))))];
}

/** What a failed inspection is called. */
export const inspectionProblem = (error: Error): string =>
  error instanceof ApiError && error.reason === "SERVER_BUSY" ? `${error.message} (it is asked again)` : error.message;
