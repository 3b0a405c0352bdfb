"""ONNX operators that ONNX's own cases cover thinly, against onnxruntime as tests/oracle/onnx
recorded it: trees, support vectors, linear models, Fourier transforms, sequences, QONNX, and
resizes that resize_degrade_to_nearest changes.

    run_e2e.py onnx_oracle [-v] [NAME...]

Each net is computed by `npuc reference` and, where it compiles for GRUS, by the simulator. A net
that is refused must be so by its stated reason: onnxruntime computes it, so it is outside of what
npuc reads, not broken.

Tolerance. Float: rtol 1e-3 and the case's own atol, since onnxruntime adds in float32. Simulator:
64 roundings of float16, of the largest value or 1. Labels must be equal: the recorder keeps inputs
away from where they turn. Nets with keys of QUANT are computed on X2_1204, and are good to two of
255 steps.
"""

import concurrent.futures
import json
import os
import re

import numpy as np

import harness
import recorded_nets

RECORDED = os.path.join(harness.ROOT, "tests", "oracle", "onnx", "recorded", "nets.tar.xz")
RTOL = 1e-3
ROUNDINGS = 64
STEPS = 2  # of 255 from the least to the greatest value
LEAST_COMPILED = 0.9  # of the nets that are read


def write_config(folder, facts):
    lines = ["FRAMEWORK: ONNX", "MODEL_FILE: model.onnx", "OUTPUT_FILE: model.h",
             f"OUTPUT_OPS: {json.dumps(facts['outputs'])}"]
    if facts["keys"]:
        keys = {"calibration_data": "input_0.npy", "quantize_method_for_activation":
                "per_tensor_asymmetric", "calibration_strategy_for_activation": "extrema",
                **facts["keys"]}
        lines += ["CORENAME: X2_1204", f"QUANT: {json.dumps(keys)}"]
    else:
        lines += ["CORENAME: GRUS", "NPU_UNIT: NPU32"]
    path = os.path.join(folder, "config.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def compare(got, want, allowed_of):
    """allowed_of(array): how far a result may be off."""
    for name, expected in want.items():
        answer = got[name].astype(np.float64)
        harness.check(answer.shape == expected.shape,
                      f"{name}: shape {answer.shape}, not {expected.shape}")
        if expected.dtype.kind == "i":
            harness.check(np.array_equal(answer, expected), f"{name}: {answer}, not {expected}")
            continue
        off = np.abs(answer - expected)
        harness.check((off <= allowed_of(expected)).all(), f"{name}: off by {off.max():.3g}")


def largest(array):
    return max(1.0, np.abs(array).max())


def run_case(name, files):
    """(name, "refused", "float" or "compiled", complaint)."""
    facts = json.loads(files["case.json"])
    try:
        with harness.scratch() as folder:
            with open(os.path.join(folder, "model.onnx"), "wb") as f:
                f.write(files["model.onnx"])
            inputs = dict(zip(facts["inputs"], recorded_nets.arrays(files, "input")))
            np.save(os.path.join(folder, "input_0.npy"), next(iter(inputs.values())))
            config = write_config(folder, facts)
            return (name, *judge(config, facts, files, inputs, folder), "")
    except (harness.Failure, OSError, KeyError, ValueError) as error:
        return name, "failed", str(error)[-1500:]


def judge(config, facts, files, inputs, folder):
    code, said = harness.attempt(config, "-o", os.path.join(folder, "out"), timeout=60)
    if facts["refused"]:
        harness.check(code == 1 and facts["refused"] in said, f"exit {code}, not refused: {said}")
        return ("refused",)
    want = dict(zip(facts["outputs"], recorded_nets.arrays(files, "output")))
    got = harness.simulate(config, inputs, os.path.join(folder, "float"), want, "reference")
    compare(got, want, lambda array: facts["tolerance"] + RTOL * np.abs(array))
    if code != 0:
        harness.check(code == 1 and re.search(r"\[NPUC1[24]\d\d\]", said), f"exit {code}: {said}")
        return ("float",)
    if facts["float_only"]:
        return ("compiled",)
    for key in facts["keys"]:
        harness.check(key in said, f"nothing says what {key} did: {said}")
    artifact = os.path.join(folder, "out", "model.npuc" if facts["keys"] else "model.h")
    got = harness.simulate(artifact, inputs, os.path.join(folder, "core"), want)
    part = 2 / 255 * STEPS if facts["keys"] else harness.FP16_UNIT * ROUNDINGS
    compare(got, want, lambda array: facts["tolerance"] + part * largest(array))
    return ("compiled",)


def main(arguments):
    verbose = "-v" in arguments
    names = [a for a in arguments if a != "-v"]
    cases = {n: f for n, f in recorded_nets.read(RECORDED).items()
             if not names or any(n.startswith(prefix) for prefix in names)}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda item: run_case(*item), sorted(cases.items())))
    counts = {kind: sum(r[1] == kind for r in results) for kind in ("compiled", "float", "refused")}
    for name, kind, complaint in results:
        if complaint or (verbose and kind == "float"):
            print(f"{name}: {kind} {complaint}")
    harness.figure(f"onnx_oracle: {len(results)} nets, "
                   + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    wrong = [r for r in results if r[2]]
    harness.check(not wrong, f"{len(wrong)} nets differ from onnxruntime")
    if not names:
        harness.check(counts["compiled"] >= LEAST_COMPILED * (counts["compiled"] + counts["float"]),
                      "fewer nets compile than should")
        harness.check(counts["refused"] >= 10, "the nets outside of what is read are not there")
