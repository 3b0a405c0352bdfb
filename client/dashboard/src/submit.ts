// Submitting: drop a config and the files it names, or edit the config of an earlier job.
import { ApiError, createJob, digestOf, getJob, upload, type Digest, type Spec } from "./api";
import { bytes, field, h, say } from "./dom";
import { Editor } from "./editor";
import { inspection, inspectionProblem, type ModelFile } from "./inspect";
import { nameOf } from "./jobs_text";
import type { View } from "./view";

const CONFIG = /\.(ya?ml|nxc|cfg)$/i;
// The .cfg of a Darknet net is a model: by its first line that is no comment.
const isDarknetNet = (text: string) =>
  /^\[net(work)?\]$/.test(text.split("\n").map((line) => line.replace(/\s/g, "")).find((line) => line && !/^[#;]/.test(line)) ?? "");
// Formats whose second file lies beside the model where the config does not name it.
const BESIDE = [
  { format: "COMPASS", role: "MODEL_BIN", ending: ".bin" },
  { format: "DARKNET", role: "WEIGHTS_FILE", ending: ".weights" },
  { format: "PADDLE", role: "WEIGHTS_FILE", ending: ".pdiparams" },
];

// Keys that name files, of YAML configs and of aipubuild's .cfg, and the roles of what they name.
const ROLES: Record<string, string> = {
  MODEL_FILE: "MODEL_FILE", PB_FILE: "MODEL_FILE", input_model: "MODEL_FILE", OPT_CONFIG: "OPT_CONFIG", opt_config: "OPT_CONFIG", MODEL_BIN: "MODEL_BIN", input_bin: "MODEL_BIN", WEIGHTS_FILE: "WEIGHTS_FILE",
  PROTOTXT: "PROTOTXT", caffe_prototxt: "PROTOTXT", DETECTION_POSTPROCESS: "DETECTION_POSTPROCESS",
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
  const model = named.get("MODEL_FILE");
  for (const { format, role, ending } of BESIDE) {
    const states = new RegExp(`^\\s*(?:FRAMEWORK\\s*:\\s*["']?|model_type\\s*=\\s*)${format}\\b`, "im");
    if (!states.test(config)) continue;
    // aipubuild's key for the second file of any format.
    const other = named.get("MODEL_BIN");
    if (other && role !== "MODEL_BIN") { named.delete("MODEL_BIN"); named.set(role, other); }
    if (model && !named.has(role)) named.set(role, model.replace(/(?<=[^/])\.[^./]*$/, "") + ending);
  }
  return named;
}
/** How often a busy server is asked again, a second or so apart. */
const INSPECT_TRIES = 60;

const baseName = (path: string) => path.split("/").at(-1)!;

/** "config.yaml:3:7: ..." is about line 3. */
export const lineOf = (problem: string): number => Number(/^[^\s:]*:(\d+)(?::\d+)?:/.exec(problem)?.[1] ?? 0);

class SubmitPage {
  private files = new Map<string, File>();
  /** What an earlier job had uploaded, by role. */
  private kept = new Map<string, { name: string; digest: Digest }>();
  private configName = "";
  private readonly shown = h("section", { class: "card", hidden: true, "aria-label": "Files" });
  private readonly editor = new Editor(() => this.update());
  private readonly config = h("section", { class: "card", hidden: true, "aria-label": "Config to submit" });
  private readonly model = h("section", { class: "card", hidden: true, "aria-label": "Model", "aria-live": "polite" });
  /** The files of which `model` tells; another drop begins anew. */
  private inspected = "";
  private readonly problems = h("section", { "aria-label": "Problems", role: "alert" });
  private readonly bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Upload" });
  private readonly go = h("button", { class: "primary", disabled: true, click: () => void this.submit() }, "Submit");
  private readonly priority = h("input", { type: "number", min: -100, max: 100, value: 0, id: "priority" });
  private readonly labels = h("input", { type: "text", id: "labels", placeholder: "branch=main run=12" });
  private readonly noCache = h("input", { type: "checkbox", id: "nocache" });
  private readonly title = h("h1", {}, "Submit a compile");

  constructor(root: HTMLElement, private readonly from: string) {
    const picker = h("input", { type: "file", multiple: true, class: "skip", "aria-label": "Choose config and model",
      change: () => { void this.add(picker.files); picker.value = ""; } });
    const drop = h("label", { class: "drop" }, h("strong", {}, "Drop a model here, or a config and its model"), h("br"),
      h("span", { class: "soft" }, "or choose files: a model alone is shown and gets a config; with a config (.yaml, .cfg) come the files that it names"), picker);
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      void this.add(event.dataTransfer?.files ?? null);
    });
    root.append(h("div", { class: "head" }, this.title), drop, this.shown, this.model, this.config, this.problems,
      h("section", { class: "card fields" }, field("Priority (-100 to 100)", this.priority), field("Labels", this.labels),
        h("label", {}, this.noCache, " compile even if the cache has it"), this.go), this.bar);
  }

  /** Starts from a job's config, and from the files that it had uploaded. */
  async load() {
    if (!this.from) return;
    const job = await getJob(this.from);
    const spec = job.spec ?? {};
    this.title.textContent = `Submit ${nameOf(job)} again`;
    if (spec.model) this.kept.set("MODEL_FILE", { name: filesNamed(spec.configText ?? "").get("MODEL_FILE") ?? "the model", digest: spec.model });
    for (const side of spec.sideInputs ?? []) this.kept.set(side.role ?? "", { name: side.name ?? "", digest: side.digest! });
    this.priority.value = String(spec.priority ?? 0);
    this.labels.value = Object.entries(spec.labels ?? {}).map(([key, value]) => `${key}=${value}`).join(" ");
    this.edit(spec.configText ?? "", spec.configName || "config.yaml");
  }

  private edit(text: string, name: string) {
    this.configName = name;
    this.editor.text = text;
    this.config.replaceChildren(h("div", { class: "head" }, h("h2", {}, name), h("span", { class: "soft" }, "Tab indents; Escape, then Tab, leaves")), this.editor.element);
    this.config.hidden = false;
    this.update();
  }

  private async add(list: FileList | null) {
    for (const file of [...list ?? []]) {
      const text = CONFIG.test(file.name) ? await file.text() : "";
      // The .cfg of a Darknet net is a model.
      if (text && !(/\.cfg$/i.test(file.name) && isDarknetNet(text))) this.edit(text, file.name);
      else this.files.set(file.name, file);
    }
    this.problems.replaceChildren();
    this.update();
    if (this.config.hidden && this.files.size) void this.inspect();
  }

  /** A model alone: what it is, and a config for it to begin with. */
  private async inspect() {
    const names = [...this.files.keys()].join("/");
    this.inspected = names;
    const show = (...nodes: (Node | string)[]) => {
      if (this.inspected !== names) return;
      this.model.hidden = false;
      this.model.replaceChildren(...nodes);
    };
    try {
      show(h("p", {}, "Sending the model …"));
      const file = await this.modelFile();
      this.bar.hidden = true;
      for (let tries = 0; ; tries++) {
        show(h("p", {}, "The server reads the model and tries each core …"));
        try {
          show(...await inspection(file, (config, core) => this.take(file.name, config, core)));
          return;
        } catch (error) {
          if (!(error instanceof ApiError) || error.retryAfterSeconds === 0 || tries === INSPECT_TRIES) throw error;
          show(h("p", {}, inspectionProblem(error)));
          await new Promise((done) => setTimeout(done, error.retryAfterSeconds * 1000));
        }
      }
    } catch (error) {
      show(h("div", { class: "diagnostic", role: "alert" }, inspectionProblem(error as Error)));
    }
    this.bar.hidden = true;
  }

  /** The model among the dropped files, and the second file that its format has. */
  private async modelFile(): Promise<ModelFile> {
    const files = [...this.files.values()];
    const second = BESIDE.find(({ ending }) => files.length > 1 && files.some((one) => one.name.endsWith(ending)));
    const side = second && files.find((one) => one.name.endsWith(second.ending));
    const model = files.find((one) => one !== side)!;
    const sides = side ? [{ role: second.role, name: side.name, digest: await this.send(side) }] : [];
    return { name: model.name, digest: await this.send(model), sides };
  }

  private take(model: string, config: string, core: string) {
    this.edit(config, `${model.replace(/\.[^.]*$/, "")}.yaml`);
    this.editor.focus();
    say(`a config for ${core}`);
  }

  /** Shows which file is what, and whether something is missing. */
  private update() {
    const named = filesNamed(this.editor.text);
    const roleOf = (name: string) => [...named].find(([, path]) => path && baseName(path) === name)?.[0];
    const remove = (name: string) => h("button", { type: "button", "aria-label": `Remove ${name}`, "data-remove": name }, "Remove");
    const rows = [...this.files.values()].map((file) => h("tr", {}, h("td", {}, file.name),
      h("td", { class: "soft" }, roleOf(file.name) ?? (this.config.hidden ? "" : "not named by the config")), h("td", { class: "number" }, bytes(file.size)), h("td", {}, remove(file.name))));
    for (const [role, one] of this.kept) {
      if ([...this.files.keys()].some((name) => roleOf(name) === role)) continue;
      rows.push(h("tr", {}, h("td", {}, baseName(one.name)), h("td", { class: "soft" }, `${role}, uploaded before`), h("td", { class: "number" }, bytes(Number(one.digest.sizeBytes ?? 0))), h("td")));
    }
    this.shown.hidden = rows.length === 0;
    this.shown.replaceChildren(h("table", {}, h("tbody", {}, ...rows)));
    for (const one of this.shown.querySelectorAll<HTMLButtonElement>("[data-remove]")) one.onclick = () => { this.files.delete(one.dataset.remove!); this.update(); };
    if (this.files.size === 0) this.model.hidden = true;
    this.go.disabled = this.config.hidden || this.editor.text.trim() === "";
  }

  private async submit() {
    this.go.disabled = true;
    this.bar.hidden = false;
    this.problems.replaceChildren();
    this.editor.mark([]);
    try {
      location.hash = `#/job/${(await createJob(await this.spec())).jobId}`;
    } catch (error) {
      this.fail(error as Error);
    }
    this.bar.hidden = true;
    this.go.disabled = false;
  }

  private fail(error: Error) {
    const told = error instanceof ApiError ? error.problems : [];
    const problems = told.length ? told : [error.message];
    this.editor.mark(problems.map(lineOf).filter(Boolean));
    this.problems.replaceChildren(...problems.map((text) => {
      const line = lineOf(text);
      return h("div", { class: "diagnostic" }, text, " ", line ? h("button", { type: "button", click: () => this.editor.goTo(line) }, `Go to line ${line}`) : null);
    }));
  }

  private async send(file: File): Promise<Digest> {
    const content = await file.arrayBuffer();
    const digest = await digestOf(content);
    this.bar.hidden = false;
    await upload(content, digest, (share) => { this.bar.value = share; });
    return digest;
  }

  private async spec(): Promise<Spec> {
    const spec: Spec = { configText: this.editor.text, configName: this.configName, sideInputs: [] };
    for (const [role, path] of filesNamed(this.editor.text)) {
      const file = path ? this.files.get(baseName(path)) : undefined;
      const kept = this.kept.get(role);
      if (!file && !kept) {
        if (role === "MODEL_FILE") throw new Error(`drop the model too: the config names ${path}`);
        continue;
      }
      const digest = file ? await this.send(file) : kept!.digest;
      if (role === "MODEL_FILE") spec.model = digest;
      else spec.sideInputs!.push({ role, name: file ? baseName(path) : kept!.name, digest });
    }
    if (!spec.model) throw new Error("the config names no model: write MODEL_FILE");
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

export function submit(root: HTMLElement, query: URLSearchParams): View {
  const page = new SubmitPage(root, query.get("from") ?? "");
  return { title: "Submit", refresh: () => page.load() };
}
