#!/usr/bin/python3
"""Damages models byte by byte and gives them to npuc: it must answer each with a result or with a
diagnostic, and never crash, hang or call the problem its own.

    mutate.py [--mutants N] [--seed S] [--threads T] [--folder wild | --suites] [MODEL...]

Each of N mutants (default 300; a release asks for 10,000) is one of the shared folder's models
with 1 to 8 bytes changed, half of them near its beginning or end, where the structure lies. All
frameworks take turns; half of the TFLite and ONNX mutants are compiled for an integer core. A
failure prints the seed that makes the mutant again. `--suites` takes the real nets of shared/suites
(suite_nets.py), of which one file of two is damaged; MODEL names one of them. Published models
(`--folder wild`) are also quantized on their recorded inputs, and run on them. ctest has 150, then
100 of wild and 60 of suites on its own build, which in `tests/run.sh` has the sanitizers.
Environment: NPUC_BIN_DIR, NPUC_SHARED; exit 77 where the shared folder is missing.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

import suite_nets

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
TIMEOUT_SECONDS = 120
LARGEST_BYTES = 3 << 20  # a mutant of a larger model says no more and costs seconds
FRAMEWORKS = {".pb": "TF", ".pt": "PT", ".ptl": "PT", ".jit": "PT", ".tflite": "TFLITE",
              ".onnx": "ONNX"}
# Inputs and outputs of models whose files do not state them.
ENDPOINTS = {
    "simple_mnist_tf.pb": "INPUT_OPS: {input_x: [1, 784]}\nOUTPUT_OPS: [result]\n",
    "arm_kws": "INPUT_OPS: {Reshape: [1, 490]}\nOUTPUT_OPS: [labels_softmax]\n",
    ".pt": "INPUT_OPS: {0: [1, 1000]}\n",
    ".jit": "INPUT_OPS: {0: [1, 576]}\n",
    ".pb": "INPUT_OPS: {input: [1, 8]}\nOUTPUT_OPS: [output]\n",
}


TORCH_ARGUMENT = "x"  # the name that the published PyTorch models give their input


class Recording:
    """Inputs of a published model as its NAME.oracle files have them, if there are any."""

    def __init__(self, path):
        stem = os.path.splitext(path)[0] + ".oracle"
        self.inputs, self.frames = [], []
        if os.path.exists(stem + ".json"):
            with open(stem + ".json", encoding="utf-8") as f:
                self.inputs = json.load(f)["inputs"]
            with np.load(stem + ".npz") as arrays:
                self.frames = [arrays[f"in{i}"][:1] for i in range(len(self.inputs))]
        self.names = [i["name"] for i in self.inputs]
        self.is_torch = path.endswith((".pt", ".ptl"))

    def endpoints(self):
        return "INPUT_OPS:\n" + "".join(
            f"  {name if self.is_torch else json.dumps(name)}: {given['shape']}\n"
            for name, given in zip(self.names, self.inputs))

    def write(self, folder):
        """A float file of each input, by name."""
        files = {}
        for i, (given, frame) in enumerate(zip(self.inputs, self.frames)):
            values = frame.astype(np.float32)
            if given["scale"] > 0:
                values = (values - given["zero_point"]) * np.float32(given["scale"])
            path = os.path.join(folder, f"input_{i}.npy")
            np.save(path, values.reshape([-1] + given["shape"][1:]).astype(np.float32))
            files[TORCH_ARGUMENT if self.is_torch else given["name"]] = path
        return files


def config_for(path, seed, recording, files):
    # Not by the seed's parity: models take turns, so each would always get one core.
    choice = random.Random(seed)
    known = path.endswith((".tflite", ".onnx"))
    core = choice.choice(("GRUS", "X2_1204") if known else ("GRUS",))
    if files:  # there are samples to quantize by
        core = choice.choice(("GRUS", "X2_1204", "X2_1204", "APUS"))
    text = (f"CORENAME: {core}\nOUTPUT_FILE: model.h\nMODEL_FILE: model.bin\n"
            f"FRAMEWORK: {FRAMEWORKS[os.path.splitext(path)[1]]}\n")
    if files and (core == "APUS" or core == "X2_1204" and choice.random() < 0.6):
        text += f"QUANT: {{calibration_data: {json.dumps(files)}}}\n"
    needed = 0.8 if path.endswith(".onnx") else 0.2  # exporters leave dimensions open
    if recording.inputs and (not known or choice.random() < needed):
        return text + recording.endpoints()
    for part, endpoints in ENDPOINTS.items():
        if part in path and not known:
            return text + endpoints
    return text


def damaged(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice((1, rng.randint(1, 8)))):
        place = rng.random()
        if place < 0.3:
            at = rng.randrange(min(len(out), 2048))
        elif place < 0.5:
            at = len(out) - 1 - rng.randrange(min(len(out), 4096))
        else:
            at = rng.randrange(len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            out[at] = rng.randrange(256)
    return bytes(out)


def verdict_of(process):
    """(verdict, detail): compiled, refused, or what is wrong."""
    if process.returncode == 0:
        return "compiled", ""
    if process.returncode == 1:
        if "NPUC19" in process.stderr:
            return "INTERNAL ERROR", process.stderr[-600:]
        if re.search(r"\[NPUC\d{4}\]", process.stderr):
            return "refused", ""
        return "REFUSED WITHOUT A DIAGNOSTIC", process.stderr[-600:]
    return f"EXIT {process.returncode}", process.stderr[-600:]


def npuc(*arguments):
    try:
        done = subprocess.run([os.path.join(BIN, "npuc"), *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_SECONDS,
                              universal_newlines=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "HANG", f"more than {TIMEOUT_SECONDS} s"
    return verdict_of(done)


def run_mutant(model, data, seed):
    """A mutant compiled and, where its inputs are recorded, run on them."""
    rng = random.Random(seed)
    recording = Recording(model)
    with tempfile.TemporaryDirectory(prefix="npuc-mutant-") as folder:
        with open(os.path.join(folder, "model.bin"), "wb") as f:
            f.write(damaged(data, rng))
        files = recording.write(folder)
        config = os.path.join(folder, "net.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(config_for(model, seed, recording, files))
        verdict, detail = npuc(config, "-o", folder)
        if verdict == "compiled" and files:
            inputs = [w for name, file in files.items() for w in ("--input", f"{name}={file}")]
            run, detail = npuc("run", os.path.join(folder, "model.npuc"), *inputs, "--output-dir",
                               os.path.join(folder, "out"))
            verdict = "compiled" if run in ("compiled", "refused") else f"RUN {run}"
        return verdict, detail


def run_suite_mutant(net, seed):
    """A mutant of a net in two files, compiled for GRUS or quantized on noise for X2_1204."""
    rng = random.Random(seed)
    damaged_key = rng.choice(list(net.files))
    core = rng.choice(("GRUS", "X2_1204"))
    with tempfile.TemporaryDirectory(prefix="npuc-mutant-") as folder:
        lines = [f"CORENAME: {core}", f"FRAMEWORK: {net.framework}", "OUTPUT_FILE: model.h",
                 f"INPUT_OPS: {json.dumps(net.inputs)}"]
        for key, data in net.files.items():
            with open(os.path.join(folder, key), "wb") as f:
                f.write(damaged(data, rng) if key == damaged_key else data)
            lines.append(f"{key}: {key}")
        if core == "X2_1204":
            files = {}
            for i, (name, shape) in enumerate(net.inputs.items()):
                files[name] = os.path.join(folder, f"samples_{i}.npy")
                noise = np.random.default_rng(seed).random([2, *shape[1:]], np.float32)
                np.save(files[name], noise)
            lines.append(f"QUANT: {{calibration_data: {json.dumps(files)}}}")
        config = os.path.join(folder, "net.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        return npuc(config, "-o", os.path.join(folder, "out"))


def suite_jobs(arguments):
    """(net, seed) of each mutant; empty where the shared folder has no suites."""
    suites = os.path.join(SHARED, "suites")
    if not os.path.isdir(suites):
        return []
    with tempfile.TemporaryDirectory() as scratch:
        nets = [n for n in suite_nets.nets(suites, scratch)
                if not arguments.models or n.name in arguments.models]
    return [(nets[i % len(nets)], arguments.seed * 1000003 + i) for i in range(arguments.mutants)]


def report(results):
    """Counts (framework, model, seed, (verdict, detail)) and prints findings; the exit code."""
    counts = collections.defaultdict(collections.Counter)
    models, failures, total = set(), 0, 0
    for framework, model, seed, (verdict, detail) in results:
        counts[framework][verdict] += 1
        models.add(model)
        total += 1
        if verdict not in ("compiled", "refused"):
            failures += 1
            print(f"{verdict}: {model}, seed {seed}: {detail}", flush=True)
    for framework, verdicts in sorted(counts.items()):
        listed = ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items()))
        print(f"FIGURE: mutants of {framework} models: {listed}")
    print(f"FIGURE: {total} mutants of {len(models)} models, {failures} failures")
    return 1 if failures else 0


def mutate_suites(arguments):
    jobs = suite_jobs(arguments)
    if not jobs:
        print(f"skipped: no suites in {SHARED} (set NPUC_SHARED)")
        return 77
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:
        verdicts = pool.map(lambda job: run_suite_mutant(*job), jobs)
        return report((net.framework, net.name, seed, verdict)
                      for (net, seed), verdict in zip(jobs, verdicts))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="", help="of the shared models, wild say; all of them")
    parser.add_argument("--suites", action="store_true", help="the real nets of shared/suites")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if arguments.suites:
        return mutate_suites(arguments)
    root = os.path.join(SHARED, "models", arguments.folder)
    models = arguments.models or sorted(
        p for p in glob.glob(os.path.join(root, "**", "*"), recursive=True)
        if os.path.splitext(p)[1] in FRAMEWORKS and os.path.getsize(p) <= LARGEST_BYTES)
    if not models:
        print(f"skipped: no models in {root} (set NPUC_SHARED)")
        return 77
    data = {}
    for path in models:
        with open(path, "rb") as f:
            data[path] = f.read()
    jobs = [(models[i % len(models)], arguments.seed * 1000003 + i)
            for i in range(arguments.mutants)]
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as pool:
        verdicts = pool.map(lambda job: run_mutant(job[0], data[job[0]], job[1]), jobs)
        return report((FRAMEWORKS[os.path.splitext(model)[1]], model, seed, verdict)
                      for (model, seed), verdict in zip(jobs, verdicts))


if __name__ == "__main__":
    sys.exit(main())
