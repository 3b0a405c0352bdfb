"""AUC and word error rate from a config to report.json.

    metrics

Nets whose weights are made here are quantized and compiled with QUANT: data, label and metric. The
float column of report.json is compared with the metric of the net computed in NumPy, the quantized
one with that of what `npuc run` answers. A net that brings its own integers is compared with itself
in floats, each value held to the range of its integers. The metrics themselves are computed here by
other ways than npuc's: AUC by average ranks, word errors by a recursion over prefixes.
"""

import functools
import json
import math
import os

import numpy as np

import harness
from graphdef import DType, Graph
from onnxmodel import model, node

FLOAT = {"T": DType(np.float32)}
ITEMS = 60


def make_net(folder, name, shape, weights, activation):
    """x -> [x W1 + b1]+ W2 + b2 -> activation, and the same as a function of NumPy."""
    w1, b1, w2, b2 = weights
    graph = Graph()
    graph.placeholder("x", list(shape))
    source = "x"
    for i, (w, b) in enumerate(((w1, b1), (w2, b2))):
        graph.const(f"w{i}", w)
        graph.const(f"b{i}", b)
        graph.node("MatMul", f"m{i}", [source, f"w{i}"], FLOAT)
        graph.node("Add", f"a{i}", [f"m{i}", f"b{i}"], FLOAT)
        source = f"a{i}"
        if i == 0:
            graph.node("Relu", "r", [source], FLOAT)
            source = "r"
    graph.node(activation, "y", [source], FLOAT)
    with open(os.path.join(folder, name + ".pb"), "wb") as f:
        f.write(graph.serialize())

    def run(x):
        z = np.maximum(x.astype(np.float64) @ w1 + b1, 0) @ w2 + b2
        if activation == "Sigmoid":
            return 1 / (1 + np.exp(-z))
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
    return run


def auc(scores, labels):
    """By the ranks of the ones, ties at their mean rank."""
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[inverse]
    ones = labels == 1
    n1, n0 = ones.sum(), (~ones).sum()
    harness.check(len(values) > 2, "the scores are all one")
    return float((ranks[ones].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def word_error_rate(scores, labels, blank):
    errors = words = 0
    for item, label in zip(scores, labels):
        best = [int(s.argmax()) for s in item]
        heard = tuple(b for i, b in enumerate(best)
                      if b != blank and (i == 0 or b != best[i - 1]))
        said = tuple(int(w) for w in label[:list(label).index(-1)])

        @functools.lru_cache(None)
        def distance(i, j, said=said, heard=heard):
            if i == 0 or j == 0:
                return i + j
            return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1,
                       distance(i - 1, j - 1) + (said[i - 1] != heard[j - 1]))
        errors += distance(len(said), len(heard))
        words += len(said)
    return errors / words


def compile_and_read(folder, name, shape, metrics):
    """report.json's metrics, and the simulator's answers."""
    config = os.path.join(folder, name + ".yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: X2_1204\nFRAMEWORK: TF\nMODEL_FILE: {name}.pb\nOUTPUT_FILE: {name}.h\n"
                f"INPUT_OPS: {{x: {list(shape)}}}\nOUTPUT_OPS: [y]\n"
                f"QUANT: {{calibration_data: {name}_x.npy, data: {name}_x.npy, "
                f"label: {name}_labels.npy, metric: [{', '.join(metrics)}], weight_bits: 4}}\n")
    out = os.path.join(folder, name)
    harness.npuc(config, "-o", out)
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        report = json.load(f)["metrics"]
    harness.check(report["items"] == ITEMS and report["by"] == "simulator", f"{report}")
    harness.npuc("run", os.path.join(out, name + ".npuc"), "--input",
                 "x=" + os.path.join(folder, name + "_x.npy"), "--output-dir", out)
    figures = {f["metric"]: (f["float"], f["quantized"]) for f in report["figures"]}
    harness.check(set(figures) == set(metrics), f"{figures}")
    return figures, np.load(os.path.join(out, "y.npy"))


def expect(name, found, want):
    for got, wanted, column in zip(found, want, ("float", "quantized")):
        harness.check(math.isclose(got, wanted, rel_tol=1e-9),
                      f"{name}, {column}: report.json says {got}, NumPy {wanted}")


def check_auc(folder):
    random = np.random.default_rng(11)
    weights = [random.normal(size=s).astype(np.float32) for s in ((8, 12), (12,), (12, 1), (1,))]
    run = make_net(folder, "auc", (1, 8), weights, "Sigmoid")
    x = (0.6 * random.normal(size=(ITEMS, 8))).astype(np.float32)
    scores = run(x).reshape(-1)
    labels = (scores + 0.3 * random.normal(size=ITEMS) > np.median(scores)).astype(np.int32)
    np.save(os.path.join(folder, "auc_x.npy"), x)
    np.save(os.path.join(folder, "auc_labels.npy"), labels)
    figures, answers = compile_and_read(folder, "auc", (1, 8), ["auc"])
    want = auc(scores, labels), auc(answers.reshape(-1), labels)
    harness.check(want[0] != want[1] and 0.6 < want[0] < 1, f"a test of nothing: {want}")
    expect("auc", figures["auc"], want)
    return want


def check_wer(folder):
    steps, classes = 10, 6
    random = np.random.default_rng(12)
    weights = [random.normal(size=s).astype(np.float32)
               for s in ((8, 12), (12,), (12, classes), (classes,))]
    run = make_net(folder, "wer", (steps, 8), weights, "Softmax")
    x = random.normal(size=(ITEMS * steps, 8)).astype(np.float32)
    scores = run(x).reshape(ITEMS, steps, classes)
    labels = np.full((ITEMS, steps + 1), -1, np.int32)
    for item, row in zip(scores, labels):
        words = [int(b) for b in item.argmax(-1) if b != 2]
        words = [w if random.random() > 0.3 else int(random.integers(classes)) for w in words]
        words = words[:random.integers(1, len(words) + 2)] or [0]
        row[:len(words)] = words
    np.save(os.path.join(folder, "wer_x.npy"), x)
    np.save(os.path.join(folder, "wer_labels.npy"), labels)
    figures, answers = compile_and_read(folder, "wer", (steps, 8), ["wer", "wer:2"])
    answers = answers.reshape(ITEMS, steps, classes)
    wants = []
    for name, blank in (("wer", classes - 1), ("wer:2", 2)):
        want = tuple(word_error_rate(s, labels, blank) for s in (scores, answers))
        expect(name, figures[name], want)
        wants.append(want)
    harness.check(any(a != b for a, b in wants) and wants[0] != wants[1],
                  f"a test of nothing: {wants}")
    return wants


def check_own_integers(folder):
    """A net whose only ReLU is the range of its integers."""
    random = np.random.default_rng(13)
    weights = [random.integers(-127, 128, size=s).astype(np.int8) for s in ((8, 8), (8, 4))]
    steps = {"sx": 0.05, "sh": 0.03, "sy": 0.2, "sw": 0.01}
    zeros = {"sx": 0, "sh": -128, "sy": 0}
    constants = {name: np.float32(step) for name, step in steps.items()}
    nodes, source = [], "x"
    for i, scale in enumerate(("sx", "sh", "sy")):
        if i > 0:
            constants[f"w{i}"] = weights[i - 1]
            nodes += [node("DequantizeLinear", [f"w{i}", "sw"], [f"f{i}"]),
                      node("MatMul", [source, f"f{i}"], [f"m{i}"])]
            source = f"m{i}"
        constants[f"z{i}"] = np.int8(zeros[scale])
        result = "y" if scale == "sy" else f"d{i}"
        nodes += [node("QuantizeLinear", [source, scale, f"z{i}"], [f"q{i}"]),
                  node("DequantizeLinear", [f"q{i}", scale, f"z{i}"], [result])]
        source = result
    with open(os.path.join(folder, "own.onnx"), "wb") as f:
        f.write(model(nodes, [("x", [1, 8])], [("y", [1, 4])], constants))
    x = random.uniform(-6, 6, (ITEMS, 8)).astype(np.float32)
    np.save(os.path.join(folder, "own_x.npy"), x)
    config = os.path.join(folder, "own.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("CORENAME: X2_1204\nFRAMEWORK: ONNX\nMODEL_FILE: own.onnx\nOUTPUT_FILE: own.h\n"
                "QUANT: {data: own_x.npy, metric: [mse]}\n")
    out = os.path.join(folder, "own")
    harness.npuc(config, "-o", out)
    harness.npuc("run", os.path.join(out, "own.npuc"), "--input",
                 "x=" + os.path.join(folder, "own_x.npy"), "--output-dir", out)
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        figure = json.load(f)["metrics"]["figures"][0]

    def held(value, scale):
        low, high = -128 - zeros[scale], 127 - zeros[scale]
        return np.clip(value, low * steps[scale], high * steps[scale])
    want = held(x.astype(np.float64), "sx")
    for weight, scale in zip(weights, ("sh", "sy")):
        want = held(want @ (weight * steps["sw"]), scale)
    got = np.load(os.path.join(out, "y.npy")).reshape(want.shape)
    error = float(np.mean((got - want) ** 2))
    harness.check(math.isclose(figure["quantized"], error, rel_tol=1e-4),
                  f"own integers: report.json says {figure}, NumPy {error}")
    return error


def main(_arguments):
    with harness.scratch() as folder:
        own = check_own_integers(folder)
        of_auc = check_auc(folder)
        of_wer = check_wer(folder)
    harness.figure(f"metrics of report.json as NumPy has them over {ITEMS} items, float and 4-bit "
                   f"weights: auc {of_auc[0]:.4f} and {of_auc[1]:.4f}, wer {of_wer[0][0]:.4f} and "
                   f"{of_wer[0][1]:.4f}, wer:2 {of_wer[1][0]:.4f} and {of_wer[1][1]:.4f}; "
                   f"of a net with its own integers, mse {own:.6f}")
