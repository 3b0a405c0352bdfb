"""`npuc combine`, `npuc info` and `npuc run` of one file: a net for three batch sizes with its
weights kept once, and another net beside it. A run that chooses by the inputs' shapes gives the
bytes that the model's own file gives, and NumPy's numbers.
"""

import json
import os

import numpy as np

import harness  # puts tests/models on the path, so first
import onnxmodel

SEED = 21
BATCHES = (1, 4, 8)
FEATURES, HIDDEN = 96, 200
FP16_TOLERANCE = 0.02  # of sums of 96 products


def compile_net(folder, name, batch, features, random):
    """A fully connected ONNX net with a ReLU, compiled for GRUS; its model file and its weight."""
    weight = random.normal(size=(features, HIDDEN)).astype(np.float32)
    with open(os.path.join(folder, name + ".onnx"), "wb") as f:
        f.write(onnxmodel.model([onnxmodel.node("MatMul", ["x", "w"], ["p"]),
                                 onnxmodel.node("Relu", ["p"], ["y"])],
                                [("x", (batch, features))], [("y", (batch, HIDDEN))],
                                {"w": weight}))
    config = os.path.join(folder, name + ".yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: {name}.onnx\n"
                f"OUTPUT_FILE: {name}.h\n")
    harness.npuc(config, "-o", folder)
    return os.path.join(folder, name + ".npuc"), weight


def main(arguments):
    harness.check(not arguments, "model_sets takes no arguments")
    with harness.scratch() as folder:
        random = np.random.default_rng(SEED)
        files, weight = [], None
        for batch in BATCHES:
            path, weight = compile_net(folder, f"net{batch}", batch, FEATURES,
                                       np.random.default_rng(SEED))
            files.append(path)
        files.append(compile_net(folder, "other", 1, 7, random)[0])
        every = os.path.join(folder, "all.npuc")
        harness.npuc("combine", *files, "-o", every)
        separate, size = sum(map(os.path.getsize, files)), os.path.getsize(every)
        shared = 2 * weight.size  # two of three copies, a byte each at least
        harness.check(size <= separate - shared, f"{size} of {separate} bytes: nothing is shared")
        info = json.loads(harness.npuc("info", every, "--json").stdout)
        harness.check([m["name"] for m in info["models"]] == ["net1", "net4", "net8", "other"],
                      f"npuc info: {info}")
        harness.check(info["models"][1]["inputs"][0]["type"].endswith(f"[4,{FEATURES}]"),
                      f"npuc info: {info['models'][1]}")
        for batch, path in zip(BATCHES, files):
            x = random.normal(size=(batch, FEATURES)).astype(np.float32)
            own = harness.simulate(path, {"x": x}, os.path.join(folder, f"own{batch}"), ["y"])["y"]
            got = harness.simulate(every, {"x": x}, os.path.join(folder, f"all{batch}"), ["y"])["y"]
            harness.check(np.array_equal(own, got), f"batch {batch}: other bytes than its own file")
            wanted = np.maximum(x @ weight, 0)
            error = np.abs(got - wanted).max() / np.abs(wanted).max()
            harness.check(error <= FP16_TOLERANCE, f"batch {batch}: {error:.3g} off")
        small = os.path.join(folder, "small.npy")
        np.save(small, random.normal(size=(1, 7)).astype(np.float32))
        run = json.loads(harness.npuc("run", every, "--input", small, "--json").stdout)
        harness.check(run["items"] == 1, f"the other net: {run}")
        harness.npuc("run", every, "--model", "net4", "--input", "random")
        bad = os.path.join(folder, "bad.npy")
        np.save(bad, np.zeros((3, 5), np.float32))
        told = harness.npuc("run", every, "--input", bad, expect=1).stderr
        harness.check("the inputs are those of no model" in told and "net8" in told, told)
        told = harness.npuc("run", every, "--model", "net", "--input", bad, expect=1).stderr
        harness.check("no model is named 'net'" in told, told)
        told = harness.npuc("combine", files[0], every, "-o", os.path.join(folder, "x.npuc"),
                            expect=1).stderr
        harness.check("two models are named 'net1'" in told, told)
    harness.figure(f"model_sets: {len(files)} models in {size} bytes, {separate} apart; each gives "
                   "the bytes of its own file")
