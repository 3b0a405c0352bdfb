"""Quantized ONNX models on an integer core, against onnxruntime as tests/oracle/qdq recorded it.

    run_e2e.py qdq [-v] [NAME...]

Every recorded net compiles for X2_1204 and is simulated on stored values. A stored result may be
one step of its scale from onnxruntime's, which computes in float between the integers; a net of
several layers, whose steps add up, as many as its case says. Most results must be equal all the
same (fewer of 16 bits, whose multipliers have 15). Layers that only transpose are counted: a net
has at most one at each input and output, since transposes cancel across its quantizers.
"""

import collections
import concurrent.futures
import json
import os

import numpy as np

import harness
import recorded_nets

RECORDED = os.path.join(harness.ROOT, "tests", "oracle", "qdq", "recorded", "nets.tar.xz")
CORE = "X2_1204"
LEAST_EQUAL = 0.95
LEAST_EQUAL_OF_16_BITS = 0.9
# Three parts of a Concat at the end move one by one: no more elements than the whole.
MORE_TRANSPOSES = {"net_branches": 1}


def simulate(files, facts, folder):
    """Stored outputs by name, [items, ...], and the layers' listing."""
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(files["model.onnx"])
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {CORE}\nFRAMEWORK: ONNX\nMODEL_FILE: model.onnx\nOUTPUT_FILE: m.h\n")
    listing = harness.npuc(config, "-o", folder, "-v").stdout
    arguments = []
    for k, (name, array) in enumerate(zip(facts["inputs"], recorded_nets.arrays(files, "input"))):
        path = os.path.join(folder, f"input_{k}.npy")
        if name in facts["unread"]:
            array = np.zeros(array.shape, np.int8)
        np.save(path, array.reshape((-1,) + array.shape[2:]))
        arguments += ["--input", f"{name}={path}"]
    out = os.path.join(folder, "out")
    harness.npuc("run", os.path.join(folder, "m.npuc"), *arguments, "--output-dir", out, "--raw")
    return {n: np.load(harness.output_file(out, n)) for n in facts["outputs"]}, listing


def run_case(name, files):
    """(name, counts of results by steps off, complaint)."""
    facts = json.loads(files["case.json"])
    steps = collections.Counter()
    try:
        with harness.scratch() as folder:
            got, listing = simulate(files, facts, folder)
        for output, want in zip(facts["outputs"], recorded_nets.arrays(files, "output")):
            off = np.abs(got[output].reshape(want.shape).astype(int) - want.astype(int))
            steps.update(off.ravel().tolist())
        transposes = listing.count(" Transpose ")
        allowed = len(facts["inputs"]) + len(facts["outputs"]) + MORE_TRANSPOSES.get(name, 0)
        harness.check(transposes <= allowed, f"{transposes} layers transpose:\n{listing}")
        harness.check(max(steps) <= facts["steps"], f"results off by steps {dict(steps)}")
        if facts["steps"] == 1:
            share = steps[0] / sum(steps.values())
            least = LEAST_EQUAL_OF_16_BITS if "16" in name else LEAST_EQUAL
            harness.check(share >= least, f"only {share:.1%} of the results are equal")
    except (harness.Failure, OSError, KeyError, ValueError) as error:
        return name, steps, str(error)[-1500:]
    return name, steps, ""


def main(arguments):
    verbose = "-v" in arguments
    names = [a for a in arguments if a != "-v"]
    cases = {n: f for n, f in recorded_nets.read(RECORDED).items()
             if not names or any(n.startswith(prefix) for prefix in names)}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda item: run_case(*item), sorted(cases.items())))
    total = sum((steps for _, steps, _ in results), collections.Counter())
    for name, steps, complaint in results:
        if complaint or verbose:
            print(f"{name}: {dict(steps)} {complaint}")
    failed = sum(bool(complaint) for _, _, complaint in results)
    harness.figure(f"qdq: {len(results) - failed} of {len(results)} quantized ONNX nets agree with "
                   f"onnxruntime; results {total[0]} equal, {total[1]} one step off, "
                   f"{sum(n for k, n in total.items() if k > 1)} more")
    harness.check(failed == 0, f"{failed} nets do not agree with onnxruntime")
