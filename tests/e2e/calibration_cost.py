"""What it costs to quantize a long loop: memory and processor time of a compile.

    run_e2e.py calibration_cost

A net as activity recognition has them: two LSTM layers over 200 steps, which the front end unrolls
into over 6,000 layers, with 64 and with 128 units; eight convolutions of 1.2 million weights on
images; and a layer of very many results, as ensembles of trees become. With the default strategy
and with auto.
"""

import collections
import os
import resource
import subprocess

import numpy as np

import harness
import onnxmodel

STEPS, CHANNELS, CLASSES = 200, 3, 6
CONVOLUTIONS = [16, 32, 64, 64, 128, 128, 256, 256]  # channels; each other one halves the image
IMAGE = [3, 96, 96]
FEATURES, RESULTS = 32, 40000


Net = collections.namedtuple("Net", "write shape")


def lstm(units):
    return Net(lambda path: write_lstm(path, units), [STEPS, 1, CHANNELS])


# net, strategy: most MiB, most seconds of processor time.
BOUNDS = {("LSTM of 64 units", "mean"): (300, 5), ("LSTM of 128 units", "mean"): (300, 5),
          ("LSTM of 64 units", "auto"): (700, 120), ("convolutions", "mean"): (100, 5),
          ("convolutions", "auto"): (100, 20), ("wide layer", "mean"): (200, 5)}


def write_lstm(path, units):
    random = np.random.RandomState(1)
    constants, nodes = {}, []
    x, size = "x", CHANNELS
    for layer in (0, 1):
        shapes = {"w": (1, 4 * units, size), "r": (1, 4 * units, units), "b": (1, 8 * units)}
        for kind, shape in shapes.items():
            constants[f"{kind}{layer}"] = (random.randn(*shape) / np.sqrt(shape[-1])).astype("f4")
        constants[f"axis{layer}"] = np.array([1], np.int64)
        nodes.append(onnxmodel.node("LSTM", [x, f"w{layer}", f"r{layer}", f"b{layer}"],
                                    [f"steps{layer}"], hidden_size=units))
        x = f"h{layer}"
        nodes.append(onnxmodel.node("Squeeze", [f"steps{layer}", f"axis{layer}"], [x]))
        size = units
    constants["last"] = np.array(STEPS - 1, np.int64)
    constants["fc"] = (random.randn(units, CLASSES) / np.sqrt(units)).astype("f4")
    constants["fb"] = random.randn(CLASSES).astype("f4")
    nodes.append(onnxmodel.node("Gather", [x, "last"], ["end"], axis=0))
    nodes.append(onnxmodel.node("Gemm", ["end", "fc", "fb"], ["y"]))
    with open(path, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [STEPS, 1, CHANNELS])], [("y", [1, CLASSES])],
                                constants))


def write_convolutions(path):
    random = np.random.RandomState(1)
    constants, nodes = {}, []
    x, channels = "x", IMAGE[0]
    for i, count in enumerate(CONVOLUTIONS):
        weights = random.randn(count, channels, 3, 3) / np.sqrt(9 * channels)
        constants[f"w{i}"] = weights.astype("f4")
        constants[f"b{i}"] = (random.randn(count) / 10).astype("f4")
        stride = 2 - i % 2
        nodes.append(onnxmodel.node("Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], pads=[1, 1, 1, 1],
                                    strides=[stride, stride]))
        nodes.append(onnxmodel.node("Relu", [f"c{i}"], [f"r{i}"]))
        x, channels = f"r{i}", count
    nodes.append(onnxmodel.node("GlobalAveragePool", [x], ["y"]))
    with open(path, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [1, *IMAGE])], [("y", [1, channels, 1, 1])],
                                constants))


def write_wide_layer(path):
    random = np.random.RandomState(1)
    constants = {"w": (random.randn(FEATURES, RESULTS) / np.sqrt(FEATURES)).astype("f4"),
                 "v": (random.randn(RESULTS, CLASSES) / np.sqrt(RESULTS)).astype("f4")}
    nodes = [onnxmodel.node("MatMul", ["x", "w"], ["a"]), onnxmodel.node("Relu", ["a"], ["r"]),
             onnxmodel.node("MatMul", ["r", "v"], ["y"])]
    with open(path, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [1, FEATURES])], [("y", [1, CLASSES])], constants))


NETS = {"LSTM of 64 units": lstm(64), "LSTM of 128 units": lstm(128),
        "convolutions": Net(write_convolutions, IMAGE),
        "wide layer": Net(write_wide_layer, [1, FEATURES])}


def measured(command):
    """(MiB at most, seconds of processor time) of a command that succeeds."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    harness.check(process.returncode == 0, said)
    assert isinstance(usage, resource.struct_rusage)
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def main(_):
    with harness.scratch() as folder:
        for (name, strategy), (most_mib, most_seconds) in BOUNDS.items():
            net = NETS[name]
            net.write(os.path.join(folder, "net.onnx"))
            samples = np.random.RandomState(2).randn(8, *net.shape).astype(np.float32)
            np.save(os.path.join(folder, "x.npy"), samples)
            config = os.path.join(folder, "config.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write("CORENAME: X2_1204\nFRAMEWORK: ONNX\nMODEL_FILE: net.onnx\n"
                        "OUTPUT_FILE: net.h\nQUANT:\n  calibration_data: x.npy\n"
                        f"  calibration_strategy_for_activation: {strategy}\n")
            out = os.path.join(folder, "out")
            mib, seconds = measured([harness.program("npuc"), config, "-o", out])
            text = f"{name}, {strategy}: {mib:.0f} MiB, {seconds:.1f} s of processor time"
            harness.figure(f"calibration_cost, {text}")
            harness.check(mib <= most_mib and seconds <= most_seconds,
                          f"{text}; at most {most_mib} MiB and {most_seconds} s")
            with open(os.path.join(out, "compile.log"), encoding="utf-8") as f:
                log = f.read()
            harness.check(strategy != "auto" or "it holds" in log, f"the log: {log}")
