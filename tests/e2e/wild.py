"""Published models of shared/models/wild: what npuc answers against what their frameworks answered.

    wild [-v] [--update [--lose]] [--models FOLDER] [--run RUN]... [NAME...]

Each model runs by `npuc reference` and, compiled, on the simulator of GRUS, X2_1204 and APUS, on
the two recorded frames of NAME.oracle.npz (seeded ones where none are recorded). A model of
integers keeps its scales on X2_1204; a float one, and every one on APUS, is quantized on seeded
samples like the recorded ones. A run is passed, refused (with its diagnostics) or WRONG; a crash, a
hang, an internal error or an exit code that the documents do not know is WRONG as well. WILD.md has
the verdicts: `--update` writes it; without it a page that differs fails. What passed on that page
and is refused now is a lost capability, which `--update` does not write unless `--lose` says so.
"""

import argparse
import collections
import concurrent.futures
import csv
import json
import os
import re
import sys

import numpy as np

import harness
import wild_judges
import wild_lstm

PAGE = os.path.join(harness.ROOT, "tests", "e2e", "WILD.md")
RUNS = ("reference", "GRUS", "X2_1204", "APUS")
FRAMEWORKS = {".tflite": "TFLITE", ".onnx": "ONNX", ".pt": "PT", ".ptl": "PT"}
TIMEOUT_SECONDS = 240
CALIBRATION_FRAMES = 8
UNRECORDED_INPUTS = {
    "ort_superres": [{"name": "image", "shape": [64], "dtype": "uint8", "scale": 0}],
    "zjzcn1": [{"name": "input", "shape": [20], "dtype": "float32", "scale": 0}]}
# A scale a channel for weights, and ranges that no sample leaves: what other converters do.
QUANT = {"APUS": [], "X2_1204": [
    "  quantize_method_for_weight: per_channel_symmetric_restricted_range",
    "  quantize_method_for_activation: per_tensor_asymmetric",
    "  calibration_strategy_for_activation: extrema"]}
# Nets whose answers 8-bit activations change much, whatever computes them: detectors with a hard
# swish behind each layer, say.
WIDE = ("osf_mnv3_detection",)
WIDE_ACTIVATIONS = ["  activation_bits: 16", "  lut_items_in_bits: 12"]
# Layers of one step a call: the recorder set their state to zeros before each frame.
RESET = ("tflm_dtln_ns_int8",)
PT_ARGUMENT = "x"  # of each of the PyTorch models here, which have one

VERDICTS = ("passed", "compiled", "refused", "WRONG", "-")
Run = collections.namedtuple("Run", "verdict text")  # passed, compiled, refused, WRONG


class Model:
    """A row of SOURCES.csv and what its oracle recorded."""

    def __init__(self, root, row):
        self.path = os.path.join(root, row["file"])
        self.stem, ending = os.path.splitext(self.path)
        self.name = os.path.basename(self.stem)
        self.framework = FRAMEWORKS[ending]
        self.inputs, self.outputs, self.frames, self.expected = [], [], [], []
        self.config_inputs = {}
        if os.path.exists(self.stem + ".oracle.npz"):
            with open(self.stem + ".oracle.json", encoding="utf-8") as f:
                facts = json.load(f)
            self.inputs, self.outputs = facts["inputs"], facts["outputs"]
            if self.framework == "TFLITE":
                wild_judges.name_tflite(self.path, self.inputs, self.outputs)
            self.config_inputs = {i["name"]: i["shape"] for i in self.inputs}
            if self.framework == "PT":  # configs number inputs, npuc calls them as the code does
                self.config_inputs = {int(n): s for n, s in self.config_inputs.items()}
                self.inputs = [{**i, "name": PT_ARGUMENT} for i in self.inputs]
            with np.load(self.stem + ".oracle.npz") as arrays:
                self.frames = [arrays[f"in{i}"] for i in range(len(self.inputs))]
                self.expected = [arrays[f"out{i}"] for i in range(len(self.outputs))]
            if self.name == "tflm_dtln_ns_int8":
                self.expected = [wild_lstm.corrected(self.path, self.frames[0], self.expected[0])]
        else:
            self.make_frames()
        self.integers = wild_judges.has_integers(self.path, self.framework)

    def make_frames(self):
        """Seeded inputs for a model without a recording, which is run all the same."""
        self.inputs = (wild_judges.tflite_inputs(self.path) if self.framework == "TFLITE"
                       else UNRECORDED_INPUTS[self.name])
        self.config_inputs = {(0 if self.framework == "PT" else i["name"]): i["shape"]
                              for i in self.inputs}
        random = np.random.default_rng(len(self.name))
        for given in self.inputs:
            values = random.normal(0, 1, (2, *given["shape"]))
            if given["dtype"] != "float32":
                info = np.iinfo(given["dtype"])
                values = np.clip(values * info.max / 3, info.min, info.max)
            if given["dtype"] == "int32":  # a shape, which npuc stores in 8 bits
                values = np.clip(values, -100, 100)
            self.frames.append(values.astype(given["dtype"]))

    @property
    def stored(self):
        """Whether the model's own inputs are integers of a scale."""
        return any(i["scale"] > 0 for i in self.inputs)

    def runs_of_frames(self):
        """Numbers of the frames that one run takes. npuc feeds output NAME_out back as input NAME;
        where the recording gave each frame an input of its own, each frame is a run."""
        count = len(self.frames[0])
        if self.name in RESET:
            return [[i] for i in range(count)]
        named = {o["name"] for o in self.outputs}
        if any(f"{i['name']}_out" in named for i in self.inputs):
            return [[i] for i in range(count)]
        return [list(range(count))]


def config_of(model, run, folder):
    """Writes the config; its path."""
    core = "GRUS" if run == "reference" else run
    lines = [f"CORENAME: {core}", f"FRAMEWORK: {model.framework}", f"MODEL_FILE: {model.path}",
             "OUTPUT_FILE: net.h"]
    if model.framework == "PT" or wild_judges.has_open_dimensions(model.path):
        lines.append("INPUT_OPS:")
        lines += [f"  {json.dumps(n)}: {shape}" for n, shape in model.config_inputs.items()]
    if core == "APUS" or (core == "X2_1204" and not model.integers):
        files = calibration_files(model, folder)
        lines += ["QUANT:", f"  calibration_data: {json.dumps(files)}", *QUANT[core]]
        lines += WIDE_ACTIVATIONS if core == "X2_1204" and model.name in WIDE else []
    path = os.path.join(folder, "net.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def calibration_files(model, folder):
    """Seeded samples with the recorded frames' mean and spread, within their range, as floats."""
    random = np.random.default_rng(len(model.name))
    files = {}
    for i, (given, frames) in enumerate(zip(model.inputs, model.frames)):
        values = wild_judges.real(frames, given)
        samples = random.normal(values.mean(), values.std(), (CALIBRATION_FRAMES, *given["shape"]))
        samples = np.clip(samples, values.min(), values.max()).astype(np.float32)
        path = os.path.join(folder, f"samples_{i}.npy")
        np.save(path, samples.reshape([-1] + list(given["shape"][1:])))
        files[given["name"]] = path
    return files


def npuc(*arguments):
    """(exit code or "hang", what was said)."""
    return harness.attempt(*arguments, timeout=TIMEOUT_SECONDS)


def refusals(said):
    """What is said to be wrong, without names, numbers and advice, each once; None where nothing is
    or npuc calls the problem its own."""
    found = []
    for line in said.splitlines():
        match = re.search(r"\[(NPUC\d{4})\]$", line)
        if not match or ": note: " in line or ": warning: " in line:
            continue
        text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", line[:match.start()].split(": ", 1)[-1])
        text = re.sub(r"(\.\.\., )+\.\.\.", "...", text.split("; ")[0].strip())
        text = re.sub(r"\b[0-9]+\b", "N", text)
        found.append(f"{match[1]} {text}")
    if not found or any(f.startswith("NPUC19") for f in found):
        return None
    return list(dict.fromkeys(found))


def failed(step, code, said):
    """The run's verdict where a program gave another exit code than 0."""
    reasons = refusals(said) if code == 1 else None
    if reasons is None:
        return Run("WRONG", f"{step}: exit {code}: {said[-300:]}")
    return Run("refused", " / ".join(reasons))


def inputs_of(model, numbers, stored, folder):
    """Arguments that give these frames."""
    arguments = []
    for i, (given, frames) in enumerate(zip(model.inputs, model.frames)):
        values = frames[numbers]
        values = values if stored or given["scale"] == 0 else wild_judges.real(values, given)
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, values.reshape([-1] + list(given["shape"][1:])))
        arguments += ["--input", f"{given['name']}={path}"]
    return arguments + (["--raw"] if stored else [])


def run_model(model, run):
    with harness.scratch() as folder:
        config = config_of(model, run, folder)
        artifact = config
        if run != "reference":
            code, said = npuc(config, "-o", folder)
            if code != 0:
                return failed("compile", code, said)
            artifact = os.path.join(folder, "net.npuc")
        elif not model.expected:
            return Run("-", "no recorded outputs")
        stored = run == "X2_1204" and model.stored
        outs = []
        for numbers in model.runs_of_frames():
            outs.append(os.path.join(folder, f"out_{len(outs)}"))
            code, said = npuc("reference" if run == "reference" else "run", artifact,
                              *inputs_of(model, numbers, stored, folder), "--output-dir", outs[-1])
            if code != 0:
                return failed("run", code, said)
        if not model.expected:
            return Run("compiled", "no recorded outputs")
        return judge(model, run, stored, outs)


def load_output(folder, name):
    path = harness.output_file(folder, name)
    if not os.path.exists(path) and len(os.listdir(folder)) == 1:
        path = os.path.join(folder, os.listdir(folder)[0])
    return np.load(path)


def judge(model, run, stored, folders):
    """folders: of the runs' outputs."""
    results = []
    for i, (output, want) in enumerate(zip(model.outputs, model.expected)):
        got = np.stack([load_output(f, output["name"] or f"output_{i}") for f in folders])
        if got.size != want.size:
            return Run("WRONG", f"output {i} has shape {got.shape}, not {want.shape}")
        got = got.reshape(want.shape)
        results.append((got, want if stored else wild_judges.real(want, output)))
    wrong, measured = wild_judges.judge(model, run, results)
    return Run("WRONG" if wrong else "passed", wrong or measured)


def models(root, names):
    root = os.path.abspath(root)  # configs, which lie elsewhere, name the files
    with open(os.path.join(root, "SOURCES.csv"), encoding="utf-8") as f:
        found = [Model(root, row) for row in csv.DictReader(f)]
    return [m for m in found if not names or any(n in m.name for n in names)]


def page(results):
    """WILD.md."""
    by_reason = collections.defaultdict(dict)
    counts = {run: collections.Counter() for run in RUNS}
    rows = []
    for model, runs in results:
        for run in RUNS:
            counts[run][runs[run].verdict] += 1
            if runs[run].verdict == "refused":
                for reason in runs[run].text.split(" / "):
                    by_reason[reason].setdefault(model.name, []).append(run)
        rows.append(f"| {model.name} | " + " | ".join(runs[r].verdict for r in RUNS) + " |")
    out = ["# Published models, and what npuc does with them", "",
           "Generated by `tests/e2e/run_e2e.py wild --update`; do not edit. What is judged, and",
           "how: `wild.py` and `wild_judges.py`.", "",
           "| | " + " | ".join(RUNS) + " |", "|---|" + "---|" * len(RUNS)]
    for verdict in ("passed", "compiled", "refused", "WRONG"):
        out.append(f"| {verdict} | " + " | ".join(str(counts[r][verdict]) for r in RUNS) + " |")
    out += ["", "`compiled`: there is nothing recorded to compare with.", "",
            "| model | " + " | ".join(RUNS) + " |", "|---|" + "---|" * len(RUNS), *rows, "",
            "## Refusals", "", "| reason | models |", "|---|---|"]
    for reason, cases in sorted(by_reason.items()):
        shown = ", ".join(f"{name} ({', '.join(of)})" for name, of in sorted(cases.items()))
        out.append(f"| {reason.replace('|', chr(92) + '|')} | {shown} |")
    return "\n".join(out) + "\n"


def verdicts_on(text):
    """{(model, run): verdict} of the page's table."""
    found = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == len(RUNS) + 1 and cells[0] and cells[1] in VERDICTS:
            found |= {(cells[0], run): cell for run, cell in zip(RUNS, cells[1:])}
    return found


def check_page(results, options):
    text = page(results)
    old = ""
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as f:
            old = f.read()
    before = verdicts_on(old)
    lost = [f"{m.name} on {run}: {runs[run].text}" for m, runs in results for run in RUNS
            if before.get((m.name, run)) in ("passed", "compiled")
            and runs[run].verdict == "refused"]
    harness.check(not lost or options.lose, "lost: compiled before and refused now:\n  "
                  + "\n  ".join(lost))
    if options.update:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
        return
    harness.check(old == text, f"{os.path.relpath(PAGE, harness.ROOT)} is stale: run "
                  "tests/e2e/run_e2e.py wild --update")


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py wild")
    parser.add_argument("-v", action="store_true", help="every run, not only what is wrong")
    parser.add_argument("--update", action="store_true", help="write WILD.md")
    parser.add_argument("--lose", action="store_true", help="a lost capability is no failure")
    parser.add_argument("--run", action="append", choices=RUNS)
    parser.add_argument("--models", help="another folder than the shared one; no page then")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    chosen = models(options.models or harness.shared("models", "wild"), options.names)
    harness.check(chosen, "no model is selected")
    jobs = [(m, run) for m in chosen for run in options.run or RUNS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda job: run_model(*job), jobs))
    results, counts = {}, collections.Counter()
    for (model, run), outcome in zip(jobs, found):
        results.setdefault(model, {})[run] = outcome
        counts[outcome.verdict] += 1
        if options.v or outcome.verdict == "WRONG":
            print(f"{outcome.verdict}: {model.name} on {run}: {outcome.text}", flush=True)
    harness.figure(f"wild: {len(chosen)} models, {len(jobs)} runs: {counts['passed']} passed, "
                   f"{counts['compiled']} compiled without a recording, {counts['refused']} "
                   f"refused, {counts['WRONG']} wrong")
    if len(chosen) * len(RUNS) == len(jobs) and not options.names and not options.models:
        check_page(list(results.items()), options)
    harness.check(counts["WRONG"] == 0, "a run is wrong")


if __name__ == "__main__":
    main(sys.argv[1:])
