"""Caffe models: single layers and real nets against OpenCV's and NumPy's outputs.

    run_e2e.py caffe [-v] [--update] [NAME...]

Every case runs by `npuc reference` (1e-4 of the largest value), and on GRUS and X2_1204, whose
simulated outputs are compared with the same expected ones. A case is passed, refused by a
diagnostic, or failed; `--update` writes CAFFE.md of the front end, the refused ones with their
reasons, and a page that differs is a failure. Expected outputs: those of shared/suites/caffe
(OpenCV's dnn, some of them NumPy's), and caffe_layers.py. Nets are calibrated on the recorded input
and on noise of its range.

Tolerance on GRUS: 2^-11 for each of about 64 roundings, of the largest value or 1. On X2_1204, and
for whole nets on GRUS: a cosine of 0.99 of each output.
"""

import collections
import concurrent.futures
import glob
import os
import re
import subprocess

import numpy as np

import caffe_layers
import caffemodel
import harness
from recorded_layers import QUANT

PAGE = os.path.join(harness.ROOT, "compiler_core", "frontends", "caffe", "CAFFE.md")
REFERENCE_TOLERANCE = 1e-4
CORE_ROUNDINGS = 64
LEAST_COSINE = 0.99
VERBS = ("reference", "GRUS", "X2_1204")


class Case:
    """A net in files, with what it must answer."""

    def __init__(self, name, model, text, inputs, expected, is_real=False, names_outputs=False):
        self.name, self.model, self.text = name, model, text
        self.inputs, self.expected, self.is_real = inputs, expected, is_real
        self.names_outputs = names_outputs  # by OUTPUT_OPS


def read(path, mode="rb"):
    with open(path, mode) as f:
        return f.read()


def layer_cases():
    folder = harness.shared("suites", "caffe", "layers")
    for text in sorted(glob.glob(os.path.join(folder, "*.prototxt"))):
        stem = text[:-len(".prototxt")]
        name = os.path.basename(stem)
        inputs = {os.path.basename(f).split(".")[-2]: np.load(f)
                  for f in sorted(glob.glob(stem + ".in*.npy"))}
        expected = {re.sub(r"^.*\.out\.(.*)\.npy$", r"\1", f): np.load(f)
                    for f in glob.glob(stem + ".out.*.npy")}
        # OpenCV calls an output by its layer.
        yield Case(f"layers/{name}", read(stem + ".caffemodel"), read(text), inputs, expected,
                   names_outputs=True)


def real_cases():
    suites = harness.shared("suites", "caffe")
    for text in sorted(glob.glob(os.path.join(suites, "*", "*.prototxt"))):
        folder, stem = os.path.dirname(text), os.path.basename(text)[:-len(".prototxt")]
        if folder.endswith("layers"):
            continue
        arrays = {os.path.basename(f)[len(stem) + 1:-len(".npy")]: np.load(f)
                  for f in glob.glob(os.path.join(folder, "expected", stem + ".*.npy"))}
        inputs = {"data" if b'"data"' in read(text) else "input": arrays.pop("input")}
        yield Case(f"{os.path.basename(folder)}/{stem}",
                   read(os.path.join(folder, stem + ".caffemodel")), read(text), inputs, arrays,
                   is_real=True)


def formula_cases():
    for name, case in caffe_layers.cases().items():
        yield Case(f"formulas/{name}", caffemodel.weights(case.blobs), case.text.encode(),
                   case.inputs, case.outputs)


def form_cases():
    """Nets without a .prototxt, and blobs in each form that Caffe wrote over the years."""
    x = caffe_layers.data(1, 2, 5, 5)
    weight, bias = caffe_layers.data(3, 2, 3, 3), caffe_layers.data(3)
    fc, fc_bias = caffe_layers.data(4, 27), caffe_layers.data(4)
    conv = caffe_layers.convolution(x, weight, bias)
    y = np.maximum(conv, 0).reshape(1, -1) @ fc.T + fc_bias
    shape = caffemodel.field(8, caffemodel.field(1, b"".join(
        caffemodel.varint(d) for d in x.shape)))
    old_shape = caffemodel.field(4, [int(d) for d in x.shape])
    for form in ("shape", "legacy", "unpacked", "double"):
        params = caffemodel.field(106, caffemodel.field(1, 3) + caffemodel.field(4, 3))
        model = (caffemodel.field(1, "net") + caffemodel.field(3, "data") + shape +
                 caffemodel.layer("c", "Convolution", ["data"], ["c"], [weight, bias], params,
                                  form) +
                 caffemodel.layer("r", "ReLU", ["c"], ["c"]) +
                 caffemodel.layer("f", "InnerProduct", ["c"], ["f"], [fc, fc_bias],
                                  caffemodel.field(117, caffemodel.field(1, 4)), form))
        yield Case(f"forms/{form}", model, None, {"data": x}, {"f": y})
    params = caffemodel.field(10, caffemodel.field(1, 3) + caffemodel.field(4, 3))
    layers = (caffemodel.v1_layer("c", 4, ["data"], ["c"], [weight, bias], params) +
              caffemodel.v1_layer("r", 18, ["c"], ["c"]) +
              caffemodel.v1_layer("f", 14, ["c"], ["f"], [fc, fc_bias],
                                  caffemodel.field(17, caffemodel.field(1, 4))))
    yield Case("forms/v1", caffemodel.field(1, "net") + layers + caffemodel.field(3, "data") +
               old_shape, None, {"data": x}, {"f": y})
    text = ('input: "data" input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5\n'
            'layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 '
            "convolution_param { num_output: 3 kernel_size: 3 } }\n"
            'layers { name: "r" type: RELU bottom: "c" top: "c" }\n'
            'layers { name: "f" type: INNER_PRODUCT bottom: "c" top: "f" '
            "inner_product_param < num_output: 0x4; > }\n")
    yield Case("forms/v1_text", caffemodel.field(1, "net") + layers, text.encode(), {"data": x},
               {"f": y})
    for case in real_cases():  # those whose .caffemodel holds the deployed net
        if case.name.startswith(("ulfd", "retinaface", "wechat")):
            yield Case(f"forms/{case.name} alone", case.model, None, case.inputs, case.expected)


def write(case, folder, core):
    with open(os.path.join(folder, "net.caffemodel"), "wb") as f:
        f.write(case.model)
    lines = [f"CORENAME: {core}", "FRAMEWORK: CAFFE", "MODEL_FILE: net.caffemodel",
             "OUTPUT_FILE: net.h", "INPUT_OPS:"]
    lines += [f"  {name}: {list(a.shape)}" for name, a in case.inputs.items()]
    if case.text is not None:
        with open(os.path.join(folder, "net.prototxt"), "wb") as f:
            f.write(case.text)
        lines.append("PROTOTXT: net.prototxt")
    if case.names_outputs:
        lines.append(f"OUTPUT_OPS: [{', '.join(case.expected)}]")
    if core == "X2_1204":
        # In 8 bits the boxes of RetinaFace have a cosine of 0.969, the result of sr one of 0.987.
        bits = ["  activation_bits: 16"] if re.search("mnet25|/sr", case.name) else []
        lines += ["QUANT:", *QUANT, *bits, "  calibration_data:"]
        for name, array in case.inputs.items():
            np.save(os.path.join(folder, f"{name}.calibration.npy"),
                    np.concatenate([array, array * np.float32(0.7)]))
            lines.append(f"    {name}: {name}.calibration.npy")
    config = os.path.join(folder, f"{core}.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return config


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norms) if norms > 0 else float(np.array_equal(a, b))


def judge(case, verb, outputs):
    """None, or what is wrong."""
    for name, want in case.expected.items():
        if outputs[name].size != want.size:
            return f"{name}: shape {outputs[name].shape}, expected {want.shape}"
        got = outputs[name].reshape(want.shape)
        if verb == "X2_1204" or (case.is_real and verb == "GRUS"):
            like = cosine(got, want)
            if like < LEAST_COSINE:
                return f"{name}: cosine {like:.4f}"
            continue
        largest = np.abs(want).max(initial=0)
        allowed = REFERENCE_TOLERANCE * largest
        if verb == "GRUS":
            allowed = harness.FP16_UNIT * CORE_ROUNDINGS * max(1.0, largest)
        off = np.abs(got.astype(np.float64) - want).max(initial=0)
        if not off <= allowed:
            return f"{name}: off by {off:.3g}, allowed {allowed:.3g}"
    return None


def attempt(case, verb, folder):
    """("passed" | "refused" | "failed", why)."""
    config = write(case, folder, "GRUS" if verb == "reference" else verb)
    try:
        if verb == "reference":
            return verdict(case, verb, config, folder)
        result = harness.npuc(config, "-o", folder, expect=None)
        if result.returncode != 0:
            return refusal(result)
        return verdict(case, verb, os.path.join(folder, "net.h" if verb == "GRUS" else "net.npuc"),
                       folder)
    except subprocess.TimeoutExpired:
        return "failed", "hangs"


def refusal(result):
    errors = re.findall(r"^.*\[NPUC1\d{3}\]$", result.stderr, re.M)
    errors = [e for e in errors if "[NPUC1900]" not in e]
    if result.returncode == 1 and errors:
        return "refused", errors[0]
    return "failed", f"exit {result.returncode}: {result.stderr[-500:]}"


def verdict(case, verb, artifact, folder):
    out = os.path.join(folder, "out")
    os.makedirs(out, exist_ok=True)
    arguments = []
    for name, array in case.inputs.items():
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    result = harness.npuc("reference" if verb == "reference" else "run", artifact, *arguments,
                          "--output-dir", out, expect=None)
    if result.returncode != 0:
        return refusal(result)
    outputs = {n: np.load(harness.output_file(out, n)) for n in case.expected}
    wrong = judge(case, verb, outputs)
    return ("failed", wrong) if wrong else ("passed", "")


def run_case(case):
    results = []
    for verb in VERBS:
        with harness.scratch() as folder:
            results.append((case.name, verb, *attempt(case, verb, folder)))
    return results


def page(results):
    counts = collections.Counter((verb, what) for _, verb, what, _ in results)
    lines = ["# Caffe cases", "",
             "Written by `tests/e2e/run_e2e.py caffe --update`. Cases by what ran them:", "",
             "| | passed | refused |", "|---|---|---|"]
    lines += [f"| {verb} | {counts[verb, 'passed']} | {counts[verb, 'refused']} |"
              for verb in VERBS]
    lines += ["", "Refused:", ""]
    for name, verb, what, why in results:
        if what == "refused":
            lines.append(f"- {name} on {verb}: {why.replace('net.caffemodel: ', '')}")
    return "\n".join(lines) + "\n"


def main(arguments):
    names = [a for a in arguments if not a.startswith("-")]
    cases = [*layer_cases(), *real_cases(), *formula_cases(), *form_cases()]
    if names:
        cases = [c for c in cases if any(n in c.name for n in names)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = [r for some in pool.map(run_case, cases) for r in some]
    for name, verb, what, why in results:
        if what == "failed" or "-v" in arguments:
            print(f"{what}: {name} on {verb} {why}", flush=True)
    counts = collections.Counter(what for _, _, what, _ in results)
    harness.figure(f"caffe: {len(cases)} cases on {', '.join(VERBS)}: {counts['passed']} passed, "
                   f"{counts['refused']} refused, {counts['failed']} wrong")
    harness.check(counts["failed"] == 0, f"{counts['failed']} failed")
    if names:
        return
    text = page(results)
    if "--update" in arguments:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    harness.check(read(PAGE, "r") == text, f"{PAGE} is not fresh: run_e2e.py caffe --update")
