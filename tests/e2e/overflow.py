"""Values that are not finite while a float model is calibrated, by every strategy and on both kinds
of integer cores.

    overflow

In each net one layer gives infinities or NaN on the samples: the logarithm of 0, the root of -1, a
division by 0, an exponential and a product beyond float32, or the samples themselves are such. npuc
must refuse it with a diagnostic that names that layer (the file, where it is the samples), and
nothing else may happen: no crash, no hang, no internal error, no artifact.
"""

import itertools
import os

import numpy as np

import harness
import onnxmodel

CORES = ("X2_1204", "APUS")
STRATEGIES = ("mean", "extrema", "3std", "KLD", "0.9999percentile", "aciq_laplace", "aciq_gauss",
              "auto")
SAMPLES = 6


def layers():
    """Name: (operators before the sum, constants, samples)."""
    random = np.random.default_rng(8)
    ones = np.abs(random.normal(1, 0.2, (SAMPLES, 8))).astype(np.float32)
    zero = np.where(np.arange(8) == 3, 0, ones).astype(np.float32)
    return {
        "log_of_0": ([("Log", ["x"], "culprit")], {}, zero),
        "root_of_negative": ([("Sqrt", ["x"], "culprit")], {}, ones - 3),
        "division_by_0": ([("Div", ["one", "x"], "culprit")], {"one": np.float32(1)}, zero),
        "exponential": ([("Exp", ["x"], "culprit")], {}, ones * 500),
        "product": ([("Mul", ["x", "x"], "square"), ("Mul", ["square", "square"], "culprit")], {},
                    ones * np.float32(1e12)),
        "samples": ([("Abs", ["x"], "y0")], {}, np.where(np.arange(8) == 2, np.nan, ones)),
        "infinite_samples": ([("Abs", ["x"], "y0")], {},
                             np.where(np.arange(8) == 2, np.inf, ones))}


def write_model(folder, name, operators, constants):
    last = operators[-1][2]
    nodes = [onnxmodel.node(op, inputs, [result]) for op, inputs, result in operators]
    nodes.append(onnxmodel.node("Add", [last, "shift"], ["y"]))
    constants = {**constants, "shift": np.ones(8, np.float32)}
    data = onnxmodel.model(nodes, [("x", [1, 8])], [("y", [1, 8])], constants, opset=13)
    path = os.path.join(folder, name + ".onnx")
    with open(path, "wb") as f:
        f.write(data)
    return path


def check(folder, name, core, strategy):
    operators, constants, samples = layers()[name]
    model = write_model(folder, name, operators, constants)
    data = os.path.join(folder, "samples.npy")
    np.save(data, samples.astype(np.float32))
    config = os.path.join(folder, "net.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core}\nFRAMEWORK: ONNX\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
                f"QUANT: {{calibration_data: {data}, "
                f"calibration_strategy_for_activation: {strategy}}}\n")
    out = os.path.join(folder, "out")
    done = harness.npuc(config, "-o", out, expect=None, timeout=30)
    case = f"{name} on {core} by {strategy}"
    harness.check(done.returncode == 1 and "NPUC19" not in done.stderr,
                  f"{case}: exit {done.returncode}: {done.stderr[-500:]}")
    named = "samples.npy" if "samples" in name else "'culprit'"
    harness.check(named in done.stderr,
                  f"{case}: the diagnostic does not name the layer: {done.stderr[-500:]}")
    harness.check(not os.path.exists(os.path.join(out, "net.h")), f"{case}: there is a header")


def main(_):
    cases = list(itertools.product(layers(), CORES, STRATEGIES))
    failed = []
    with harness.scratch() as folder, np.errstate(all="ignore"):
        for case in cases:
            try:
                check(folder, *case)
            except harness.Failure as error:
                failed.append(str(error))
    for text in failed:
        print(text, flush=True)
    harness.figure(f"not finite while calibrating: {len(cases)} cases, {len(failed)} failed")
    harness.check(not failed, f"{len(failed)} cases failed")
