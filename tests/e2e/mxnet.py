"""MXNet's symbols against the recorded outputs of the shared folder's suite.

    run_e2e.py mxnet [NAME...]

Single layers, stored as NDArrays of versions 0 to 3, and the three nets of MTCNN (version 0.8,
parameters of version 0 and 1), of which FRONTENDS_SOURCES.csv says who computed the outputs.
`npuc reference`: 1e-4 of the largest value. On GRUS: fp16 rounds each of at most 50 steps, so 2 in
100 of the largest value. MTCNN's nets also compile for X2_1204, calibrated on seeded pictures, and
must have a cosine of 0.99 with the recorded outputs.
"""

import glob
import json
import os

import numpy as np

import harness

REFERENCE_TOLERANCE = 1e-4
GRUS_TOLERANCE = 0.02
LEAST_COSINE = 0.99


def cases():
    """(name, symbol, params, inputs by name, outputs by name)."""
    for symbol in sorted(glob.glob(harness.shared("suites", "mxnet", "ops") + "/*-symbol.json")):
        stem = symbol[:-len("-symbol.json")]
        with open(symbol, encoding="utf-8") as f:
            net = json.load(f)
        head = net["nodes"][net["heads"][0][0]]["name"]
        inputs = {path[len(stem) + len(".in."):-len(".npy")]: np.load(path)
                  for path in sorted(glob.glob(stem + ".in.*.npy"))}
        yield (os.path.basename(stem), symbol, stem + "-0000.params", inputs,
               {head: np.load(stem + ".out.npy")})
    for symbol in sorted(glob.glob(harness.shared("suites", "mxnet", "mtcnn") + "/*-symbol.json")):
        stem = symbol[:-len("-symbol.json")]
        name = os.path.basename(stem)
        expected = os.path.join(os.path.dirname(symbol), "expected", name)
        outputs = {path[len(expected) + 1:-len(".npy")]: np.load(path)
                   for path in sorted(glob.glob(expected + ".*.npy"))}
        inputs = {"data": outputs.pop("input")}
        yield f"mtcnn {name}", symbol, stem + "-0001.params", inputs, outputs


def config(folder, core, case, extra=""):
    _, symbol, params, inputs, outputs = case
    path = os.path.join(folder, core + ".yaml")
    shapes = {name: list(array.shape) for name, array in inputs.items()}
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core}\nFRAMEWORK: MXNET\nOUTPUT_FILE: net.h\n"
                f"MODEL_FILE: {symbol}\nWEIGHTS_FILE: {params}\n"
                f"INPUT_OPS: {json.dumps(shapes)}\n"
                f"OUTPUT_OPS: {json.dumps(list(outputs))}\n{extra}")
    return path


def largest_error(got, want):
    scale = max(float(np.abs(a).max(initial=0)) for a in want.values())
    return max(float(np.abs(got[n].reshape(a.shape) - a).max(initial=0))
               for n, a in want.items()) / scale


def check_quantized(case, folder):
    """On X2_1204, calibrated on noise like the recorded input and that input."""
    name, _, _, inputs, outputs = case
    lines = ["QUANT:", "  calibration_data:"]
    rng = np.random.default_rng(1)
    for input_name, array in inputs.items():
        samples = [array] + [rng.normal(array.mean(), array.std(), array.shape)
                             for _ in range(15)]
        path = os.path.join(folder, "calibration.npy")
        np.save(path, np.concatenate(samples).astype(np.float32))
        lines.append(f"    {input_name}: {path}")
    compiled = os.path.join(folder, "x2")
    harness.npuc(config(folder, "X2_1204", case, "\n".join(lines) + "\n"), "-o", compiled)
    got = harness.simulate(os.path.join(compiled, "net.npuc"), inputs,
                           os.path.join(folder, "ran_x2"), outputs)
    cosine = min(float(np.dot(got[n].ravel(), a.ravel()) /
                       (np.linalg.norm(got[n]) * np.linalg.norm(a)))
                 for n, a in outputs.items())
    harness.figure(f"mxnet {name} on X2_1204: least cosine of an output {cosine:.4f}")
    harness.check(cosine >= LEAST_COSINE, f"{name}: a cosine of {cosine:.4f} on X2_1204")


def check_case(case):
    name, _, _, inputs, outputs = case
    with harness.scratch() as folder:
        grus = config(folder, "GRUS", case)
        got = harness.simulate(grus, inputs, os.path.join(folder, "ref"), outputs, "reference")
        error = largest_error(got, outputs)
        harness.check(error <= REFERENCE_TOLERANCE, f"{name}: off by {error:.2g} of the largest")
        header = harness.compile_header(grus, os.path.join(folder, "out"), "net.h")
        got = harness.simulate(header, inputs, os.path.join(folder, "ran"), outputs)
        on_grus = largest_error(got, outputs)
        harness.check(on_grus <= GRUS_TOLERANCE, f"{name}: off by {on_grus:.2g} on GRUS")
        if name.startswith("mtcnn"):
            check_quantized(case, folder)
    return error, on_grus


def main(names):
    errors = [check_case(case) for case in cases() if not names or case[0] in names]
    harness.check(errors, "no case has that name")
    reference, on_grus = (max(column) for column in zip(*errors))
    harness.figure(f"mxnet: {len(errors)} cases right; largest error {reference:.2g} of npuc "
                   f"reference, {on_grus:.2g} on GRUS")
