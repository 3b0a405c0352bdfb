"""Compass's statistic_file: NumPy's dicts of nodes and tensors, written by aipuopt and read back.

    run_e2e.py compass_statistics

1. aipuopt with save_statistic_info = True writes NAME_statistic_info.npy; numpy.load reads it, its
   numbers are those of statistics.json, and its histograms hold every value that was counted.
2. A compile whose statistic_file it is gives the bytes of the one that calibrated; so do the forms
   that Compass's optimizer writes (numpy.save, and pickle of protocols 3 to 5, with NumPy's scalars
   and constants' statistics among them), and a file of what the strategy reads alone.
3. A range that is edited is the range of the tensor. A file that lacks what the strategy reads,
   that calls a function, or that lacks a node, is refused.
"""

import ast
import json
import os
import pickle

import numpy as np

import harness
import onnxmodel

RNG = np.random.default_rng(7)
NODES = [onnxmodel.node("Conv", ["x", "k"], ["c"], kernel_shape=[3, 3]),
         onnxmodel.node("Relu", ["c"], ["r"]), onnxmodel.node("Sigmoid", ["r"], ["s"]),
         onnxmodel.node("Mul", ["r", "s"], ["m"]), onnxmodel.node("Flatten", ["m"], ["f"]),
         onnxmodel.node("MatMul", ["f", "w"], ["y"])]
WEIGHTS = {"k": RNG.normal(0, 0.4, (4, 2, 3, 3)).astype(np.float32),
           "w": RNG.normal(0, 0.2, (144, 5)).astype(np.float32)}
# The share of an edited range's scale that rounding of the quotient may be off by.
TOLERANCE = 1e-6


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def tool(name, *arguments, expect=0):
    return harness.run(harness.program(name), *arguments, expect=expect)


def make_ir(folder):
    """The float IR of the net, and the statistics of aipuopt in both forms."""
    write(folder, "net.onnx", onnxmodel.model(NODES, [("x", [1, 2, 8, 8])], [("y", [1, 5])],
                                              WEIGHTS))
    np.save(os.path.join(folder, "samples.npy"),
            RNG.normal(0, 1, (6, 1, 2, 8, 8)).astype(np.float32))
    tool("aipuparse", "-c", write(folder, "parse.cfg", "[Common]\nmodel_type = ONNX\n"
                                  "model_name = net\ninput_model = net.onnx\noutput_dir = ir\n"))
    tool("aipuopt", "-c", write(folder, "opt.cfg", "[Common]\ngraph = ir/net.txt\n"
                                "bin = ir/net.bin\nmodel_name = net\n"
                                "calibration_data = samples.npy\noutput_dir = int\n"
                                "save_statistic_info = True\n"))
    path = os.path.join(folder, "int", "net_statistic_info.npy")
    nodes = np.load(path, allow_pickle=True).item()
    with open(os.path.join(folder, "int", "statistics.json"), encoding="utf-8") as f:
        own = json.load(f)
    tensors = [t for node in nodes.values() for t in node.values()]
    harness.check(len(nodes) >= 5 and len(tensors) >= len(own), f"nodes: {list(nodes)}")
    for name, statistics in own.items():
        node, _, index = name.partition(":")
        tensor = nodes[node][f"{node}_{index or 0}"]
        for key in ("extrema_min", "extrema_max", "running_min", "running_max", "running_mean",
                    "running_std"):
            harness.check(tensor[key] == statistics[key], f"{name}: {key}")
        counts = sum(statistics["histogram_counts"])
        harness.check(abs(tensor["running_histc"].sum() / counts - 1) < 1e-5,
                      f"{name}: the histogram holds {tensor['running_histc'].sum()} of {counts}")
        harness.check(tensor["running_histc"].shape == (2048,), f"{name}: bins")
    return nodes


def compiled(folder, name, lines, expect=0):
    """A compile of the float IR; what it said, and the model file's bytes."""
    config = write(folder, f"{name}.cfg", "[Common]\nmode = build\n[Parser]\nmodel_type = Compass\n"
                   "model_name = net\ninput_model = ir/net.txt\n[Optimizer]\n" + lines)
    out = os.path.join(folder, name)
    said = harness.npuc(config, "-o", out, expect=expect).stderr
    if expect:
        return said
    with open(os.path.join(out, "net.npuc"), "rb") as f:
        return f.read()


def scales(folder, name):
    with open(os.path.join(folder, name, "opt_template.json"), encoding="utf-8") as f:
        layers = json.load(f)
    found = {}
    for layer in layers.values():
        found.update(ast.literal_eval(layer["just_for_display"]["quantization_info"]))
    return {tensor: ast.literal_eval(info["scale"])[0] for tensor, info in found.items()}


def as_compass_writes(nodes):
    """NumPy's scalars and arrays in the place of numbers, and the statistics of a constant."""
    out = {}
    for node, tensors in nodes.items():
        out[node] = {}
        for tensor, statistics in tensors.items():
            out[node][tensor] = {
                key: value if key == "running_histc" or index % 3 == 0 else
                np.float64(value) if index % 3 == 1 else np.array(value)
                for index, (key, value) in enumerate(statistics.items())}
            out[node][tensor]["running_mad"] = None
        out[node][f"{node}/weights"] = {"extrema_min": np.float32(-9), "extrema_max": np.float32(9),
                                        "extrema_min_key_axis": np.zeros(4, np.float32)}
    return out


def read_back(folder, nodes):
    for strategy in ("mean", "extrema", "3std"):
        line = f"calibration_strategy_for_activation = {strategy}\n"
        wanted = compiled(folder, f"data_{strategy}", line + "calibration_data = samples.npy\n")
        found = compiled(folder, f"file_{strategy}",
                         line + "statistic_file = int/net_statistic_info.npy\n")
        harness.check(found == wanted, f"{strategy}: the statistics give other bytes than the data")
    wanted = compiled(folder, "mean", "statistic_file = int/net_statistic_info.npy\n")
    forms = as_compass_writes(nodes)
    np.save(os.path.join(folder, "saved.npy"), forms)
    for protocol in (3, 4, 5):
        write(folder, f"pickled_{protocol}.npy", pickle.dumps(forms, protocol=protocol))
    alone = {node: {tensor: {key: s[key] for key in ("running_min", "running_max")}
                    for tensor, s in tensors.items()} for node, tensors in nodes.items()}
    np.save(os.path.join(folder, "alone.npy"), alone)
    for name in ("saved", "pickled_3", "pickled_4", "pickled_5", "alone"):
        found = compiled(folder, name, f"statistic_file = {name}.npy\n")
        harness.check(found == wanted, f"{name}: other bytes")
    # A histogram of equal bins holds less than ours, which is of powers of two: KLD settles on
    # other thresholds, and where they are depends on single bins. They are of one size.
    kld = "calibration_strategy_for_activation = KLD\n"
    compiled(folder, "kld_data", kld + "calibration_data = samples.npy\n")
    compiled(folder, "kld_file", kld + "statistic_file = int/net_statistic_info.npy\n")
    of_data, of_file = scales(folder, "kld_data"), scales(folder, "kld_file")
    ratios = [of_file[name] / of_data[name] for name in of_data]
    harness.check(0.4 < min(ratios) and max(ratios) < 2.5, f"KLD by the file: {ratios}")
    return max(ratios)


def edited(folder, nodes):
    node = next(iter(nodes))
    nodes[node][f"{node}_0"].update(running_min=-8.0, running_max=8.0, extrema_min=-8.0,
                                    extrema_max=8.0)
    np.save(os.path.join(folder, "edited.npy"), nodes)
    compiled(folder, "edited", "statistic_file = edited.npy\n")
    scale = scales(folder, "edited")[node]
    harness.check(abs(scale / (255 / 16) - 1) < TOLERANCE, f"an edited range has scale {scale}")


class Shell:
    def __reduce__(self):
        return os.system, ("true",)


def refused(folder, nodes):
    strategy = "calibration_strategy_for_activation = "
    for name, content, lines, words in (
            ("none", {node: {t: {"extrema_min": -1.0, "extrema_max": 1.0} for t in tensors}
                      for node, tensors in nodes.items()}, strategy + "KLD\n",
             "has no histogram of"),
            ("std", {node: {t: {"extrema_min": -1.0, "extrema_max": 1.0} for t in tensors}
                     for node, tensors in nodes.items()}, strategy + "3std\n",
             "has no running_mean and running_std of"),
            ("shell", {"x": Shell()}, "", "it calls 'posix system'"),
            ("short", dict(list(nodes.items())[1:]), "", "has nothing about"),
            ("list", [1, 2], "", "is a dict of nodes")):
        write(folder, f"{name}.npy", pickle.dumps(content))
        said = compiled(folder, name, lines + f"statistic_file = {name}.npy\n", expect=1)
        harness.check(words in said and "NPUC1611" in said, f"{name}: {said}")


def main(_):
    with harness.scratch() as folder:
        nodes = make_ir(folder)
        worst = read_back(folder, nodes)
        edited(folder, nodes)
        refused(folder, nodes)
    harness.figure(f"compass_statistics: {len(nodes)} nodes; scales of KLD by the file are at most "
                   f"{worst:.2f} of those by the data")
