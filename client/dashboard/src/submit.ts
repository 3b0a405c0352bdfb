// Submitting by drag and drop: a config and the files it names.
import { ApiError, createJob, digestOf, upload, type Spec } from "./api";
import { bytes, h, replace } from "./dom";
import type { View } from "./view";

const CONFIG = /\.(ya?ml|nxc|cfg)$/i;

// Keys that name files, of YAML configs and of aipubuild's .cfg, and the roles of what they name.
const ROLES: Record<string, string> = {
  MODEL_FILE: "MODEL_FILE", PB_FILE: "MODEL_FILE", input_model: "MODEL_FILE", OPT_CONFIG: "OPT_CONFIG", opt_config: "OPT_CONFIG", MODEL_BIN: "MODEL_BIN", input_bin: "MODEL_BIN",
  statistic_file: "QUANT.statistic_file", calibration_data: "QUANT.calibration_data", data: "QUANT.data", label: "QUANT.label",
};

/** The files that a config names, by role. The server reads the config itself; this only finds
 *  which dropped file is which. */
export function filesNamed(config: string): Map<string, string> {
  const named = new Map<string, string>();
  const keys = Object.keys(ROLES).join("|");
  const value = /\s*[:=]\s*(?:"([^"\n]*)"|'([^'\n]*)'|\{([^}]*)\}|([^#,}\n]*))/.source;
  for (const match of config.matchAll(new RegExp(`(?:^|[{,])[ \\t]*(${keys})${value}`, "gm"))) {
    const role = ROLES[match[1]!]!;
    if (match[4] !== undefined) {
      match[4].split(",").forEach((entry, i) => named.set(`${role}[${i}]`, entry.slice(entry.indexOf(":") + 1).trim().replace(/^["']|["']$/g, "")));
    } else named.set(role, (match[2] ?? match[3] ?? match[5] ?? "").trim());
  }
  // An IR's .bin lies beside its text where the config does not say.
  const text = named.get("MODEL_FILE");
  if (text && !named.has("MODEL_BIN") && /^\s*(?:FRAMEWORK\s*:\s*["']?COMPASS|model_type\s*=\s*compass)\b/im.test(config)) {
    named.set("MODEL_BIN", text.replace(/(?<=[^/])\.[^./]*$/, "") + ".bin");
  }
  return named;
}
const baseName = (path: string) => path.split("/").at(-1)!;

class SubmitPage {
  private files = new Map<string, File>();
  private readonly shown = h("section", { class: "card", hidden: true, "aria-label": "Files" });
  private readonly problems = h("section", { "aria-label": "Problems", role: "alert" });
  private readonly bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Upload" });
  private readonly go = h("button", { class: "primary", disabled: true, click: () => void this.submit() }, "Submit");
  private readonly priority = h("input", { type: "number", min: -100, max: 100, value: 0, id: "priority" });
  private readonly labels = h("input", { type: "text", id: "labels", placeholder: "branch=main run=12" });
  private readonly noCache = h("input", { type: "checkbox", id: "nocache" });

  constructor(root: HTMLElement) {
    const picker = h("input", { type: "file", multiple: true, class: "skip", "aria-label": "Choose config and model",
      change: () => this.add(picker.files) });
    const drop = h("label", { class: "drop" }, h("strong", {}, "Drop a config and its model here"), h("br"),
      h("span", { class: "soft" }, "or choose files: the config (.yaml, .cfg), the model, and what else the config names"), picker);
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.add(event.dataTransfer?.files ?? null);
    });
    const field = (text: string, input: HTMLElement) => h("div", { class: "field" }, h("label", { for: input.id }, text), input);
    root.append(h("div", { class: "head" }, h("h1", {}, "Submit a compile")), drop, this.shown, this.problems,
      h("section", { class: "card fields" }, field("Priority (-100 to 100)", this.priority), field("Labels", this.labels),
        h("label", {}, this.noCache, " compile even if the cache has it"), this.go), this.bar);
  }

  private add(list: FileList | null) {
    for (const file of list ?? []) {
      if (CONFIG.test(file.name)) for (const name of this.files.keys()) if (CONFIG.test(name)) this.files.delete(name);
      this.files.set(file.name, file);
    }
    this.shown.hidden = this.files.size === 0;
    replace(this.shown, h("table", {}, h("tbody", {}, ...[...this.files.values()].map((file) =>
      h("tr", {}, h("td", {}, file.name), h("td", { class: "soft" }, CONFIG.test(file.name) ? "config" : "model or side input"), h("td", { class: "number" }, bytes(file.size)))))));
    this.go.disabled = ![...this.files.keys()].some((name) => CONFIG.test(name));
    this.problems.replaceChildren();
  }

  private async submit() {
    this.go.disabled = true;
    this.bar.hidden = false;
    try {
      location.hash = `#/job/${(await createJob(await this.spec())).jobId}`;
    } catch (error) {
      this.fail(error as Error);
    }
    this.bar.hidden = true;
    this.go.disabled = false;
  }

  private fail(error: Error) {
    const problems = error instanceof ApiError ? error.problems : [];
    this.problems.replaceChildren(...(problems.length ? problems : [error.message]).map((text) => h("div", { class: "diagnostic" }, text)));
  }

  private async spec(): Promise<Spec> {
    const config = [...this.files.values()].find((file) => CONFIG.test(file.name))!;
    const spec: Spec = { configText: await config.text(), configName: config.name, sideInputs: [] };
    for (const [role, path] of filesNamed(spec.configText!)) {
      const file = path && path !== config.name ? this.files.get(baseName(path)) : undefined;
      if (role === "MODEL_FILE" && !file) throw new Error(`drop the model too: the config names ${path}`);
      if (!file) continue;
      const content = await file.arrayBuffer();
      const digest = await digestOf(content);
      await upload(content, digest, (share) => { this.bar.value = share; });
      if (role === "MODEL_FILE") spec.model = digest;
      else spec.sideInputs!.push({ role, name: baseName(path), digest });
    }
    if (!spec.model) throw new Error("the config names no model");
    spec.priority = Number(this.priority.value) || 0;
    spec.noCache = this.noCache.checked;
    const pairs = this.labels.value.trim().split(/\s+/).filter(Boolean).map((pair): [string, string] => {
      const equals = pair.indexOf("=");
      return equals < 0 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
    });
    spec.labels = Object.fromEntries(pairs);
    return spec;
  }
}

export function submit(root: HTMLElement): View {
  new SubmitPage(root);
  return { title: "Submit" };
}
