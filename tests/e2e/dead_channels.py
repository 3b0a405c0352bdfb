"""Programs without dead channels give the bits of programs with them, and are smaller.

    dead_channels [--nets N] [NAME...]

Compiles each net twice, without and with KEEP_DEAD: true, runs both on the same seeded inputs, and
demands equal outputs, byte for byte: the published nets of integers (1,000 inputs for the one that
has dead channels, the visual wake words net, whose figures must fall to what was counted by other
means), a float convolution net on GRUS with channels that ReLU cuts off, weights compressed or not,
and random quantized nets whose weights have zeros (tests/models/quantized_nets.py), of which npuc
must find dead channels in some. That the random nets are right at all is random_quantized's.
"""

import argparse
import json
import os

import numpy as np

import graphdef
import harness
import quantized_nets
import quantized_writers

SEED = 22
DEAD = "channels change no output and are left out"  # in compile.log
NETS = {"vww_96_int8": 1000, "kws_ref_model_int8": 20, "resnet8_int8": 20, "ad01_int8": 20}
VWW_MACS, VWW_WEIGHT_BYTES = 3_733_073, 42_000
LEAST_FOUND = 0.5  # of the random chains of layers


def compile_both(config, folder):
    """Compiles without and with KEEP_DEAD; the folders, and whether channels were left out."""
    folders = []
    for keep in (False, True):
        inside = os.path.join(folder, f"keep_{keep}".lower())
        os.makedirs(inside)
        path = os.path.join(inside, "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config + f"KEEP_DEAD: {str(keep).lower()}\n")
        harness.npuc(path, "-o", inside)
        with open(os.path.join(inside, "compile.log"), encoding="utf-8") as f:
            said = f.read()
        folders.append(inside)
        harness.check(not keep or DEAD not in said, "KEEP_DEAD: true leaves channels out")
        found = found if keep else DEAD in said
    return folders, found


def report_of(folder):
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        return json.load(f)


def outputs_of(folder, inputs, raw):
    """The output files' bytes by name."""
    arguments = ["--raw"] if raw else []
    for name, path in inputs.items():
        arguments += ["--input", f"{name}={path}"]
    out = os.path.join(folder, "out")
    harness.npuc("run", os.path.join(folder, "net.npuc"), *arguments, "--output-dir", out)
    found = {}
    for name in sorted(os.listdir(out)):
        with open(os.path.join(out, name), "rb") as f:
            found[name] = f.read()
    harness.check(found, "no outputs")
    return found


def check_equal(name, folders, inputs, raw):
    without, everything = (outputs_of(folder, inputs, raw) for folder in folders)
    harness.check(without == everything, f"{name}: outputs differ without dead channels")


def type_of(port):
    """NumPy's type and the shape of report.json's "i8[1,4]"."""
    name, shape = port["type"][:-1].split("[")
    kinds = {"i": "int", "u": "uint", "f": "float"}
    return kinds[name[0]] + name[1:], [int(n) for n in shape.split(",")]


def random_inputs(report, items, folder, raw):
    random = np.random.default_rng(SEED)
    inputs = {}
    for i, port in enumerate(report["inputs"]):
        shape = type_of(port)[1]
        shape = [items * shape[0], *shape[1:]]
        values = (random.integers(-128, 128, shape).astype(np.int8) if raw
                  else random.normal(0, 2, shape).astype(np.float32))
        inputs[port["name"]] = os.path.join(folder, f"input_{i}.npy")
        np.save(inputs[port["name"]], values)
    return inputs


def published(name, items):
    model = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
    with harness.scratch() as folder:
        folders, found = compile_both(f"CORENAME: Z2_0901\nFRAMEWORK: TFLITE\n"
                                      f"MODEL_FILE: {model}\nOUTPUT_FILE: net.h\n", folder)
        reports = [report_of(f) for f in folders]
        check_equal(name, folders, random_inputs(reports[0], items, folder, True), True)
    macs = [r["per_frame"]["macs"] for r in reports]
    weights = [r["sizes_bytes"]["weight_content"] for r in reports]
    harness.figure(f"{name}, dead channels kept and left out: multiply-adds {macs[1]} and "
                   f"{macs[0]}, weight bytes {weights[1]} and {weights[0]}; outputs of {items} "
                   "inputs equal")
    harness.check(macs[0] <= macs[1] and weights[0] <= weights[1], f"{name}: more than before")
    if name.startswith("vww"):
        harness.check(found and macs[0] <= VWW_MACS and weights[0] <= VWW_WEIGHT_BYTES,
                      f"{name}: above {VWW_MACS} multiply-adds or {VWW_WEIGHT_BYTES} bytes")


def float_net():
    """Two convolutions and a product; the middle has channels of zero weights, and of biases that
    ReLU cuts off, whose unread weights are the largest of their tensor."""
    random = np.random.default_rng(SEED)
    graph = graphdef.Graph()
    graph.placeholder("x", [1, 8, 8, 3])
    attrs = {"T": graphdef.DType(np.float32)}
    conv = {**attrs, "strides": [1, 1, 1, 1], "padding": b"SAME", "data_format": b"NHWC"}
    first = random.normal(0, 0.3, (3, 3, 3, 12)).astype(np.float32)
    first[..., [2, 5, 7]] = 0
    bias = random.normal(0, 0.3, 12).astype(np.float32)
    bias[[2, 5]] = (-1, 0)
    bias[7] = 0.5  # stays: its number is not 0
    second = random.normal(0, 0.2, (3, 3, 12, 8)).astype(np.float32)
    second[:, :, 2] = 4  # larger than all that is read
    second[..., 1] = 0
    graph.const("w1", first)
    graph.const("b1", bias)
    graph.const("w2", second)
    graph.node("Conv2D", "c1", ["x", "w1"], conv)
    graph.node("BiasAdd", "s1", ["c1", "b1"], attrs)
    graph.node("Relu", "r1", ["s1"], attrs)
    graph.node("Conv2D", "c2", ["r1", "w2"], conv)
    graph.const("shape", np.array([1, 512], np.int32))
    graph.node("Reshape", "flat", ["c2", "shape"], attrs)
    graph.const("w3", random.normal(0, 0.1, (512, 4)).astype(np.float32))
    graph.node("MatMul", "y", ["flat", "w3"], attrs)
    return graph.serialize()


def on_grus():
    for compress in (False, True):
        with harness.scratch() as folder:
            model = os.path.join(folder, "net.pb")
            with open(model, "wb") as f:
                f.write(float_net())
            word = str(compress).lower()
            config = (f"CORENAME: GRUS\nFRAMEWORK: TF\nMODEL_FILE: {model}\n"
                      f"OUTPUT_FILE: net.h\nCOMPRESS: {word}\nCONV2D_COMPRESS: {word}\n"
                      "INPUT_OPS: {x: [1, 8, 8, 3]}\nOUTPUT_OPS: [y]\n")
            folders, found = compile_both(config, folder)
            harness.check(found, "GRUS: no dead channels found")
            reports = [report_of(f) for f in folders]
            check_equal("float net", folders, random_inputs(reports[0], 200, folder, False), False)
            for figure in ("macs", "cycles", "commands"):
                less, more = (r["per_frame"][figure] for r in reports)
                harness.check(less <= more, f"GRUS: more {figure} without dead channels")


def random_nets(count):
    """How many of so many seeds' nets compile, and how many of those have dead channels."""
    compiled = with_dead = 0
    seeds = range(count)
    forms = list(quantized_nets.FORMS)
    with harness.scratch() as folder:
        builders = [quantized_nets.Chain(s, forms[s % len(forms)]) for s in seeds]
        for builder, (model, _) in zip(builders, quantized_writers.write(builders, folder)):
            inside = os.path.join(folder, f"seed_{builder.seed}")
            os.makedirs(inside)
            framework = "TFLITE" if builder.is_tflite else "ONNX"
            config = (f"CORENAME: X2_1204\nFRAMEWORK: {framework}\n"
                      f"MODEL_FILE: {model}\nOUTPUT_FILE: net.h\n")
            try:
                folders, found = compile_both(config, inside)
            except harness.Failure as failure:
                harness.check("exit 1, not 0" in str(failure), str(failure))
                continue  # refused, which random_quantized judges
            inputs = {}
            for port in report_of(folders[0])["inputs"]:
                data = next(t.data for t in builder.inputs if t.name == port["name"])
                inputs[port["name"]] = os.path.join(inside, port["name"] + ".npy")
                np.save(inputs[port["name"]], data.astype(type_of(port)[0]))
            check_equal(f"seed {builder.seed}", folders, inputs, True)
            compiled, with_dead = compiled + 1, with_dead + found
    return compiled, with_dead


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py dead_channels")
    parser.add_argument("--nets", type=int, default=150)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    if not options.names:
        on_grus()
        compiled, found = random_nets(options.nets)
        harness.figure(f"dead channels: {compiled} random quantized nets equal with and without, "
                       f"{found} of them had some")
        harness.check(found >= LEAST_FOUND * compiled, f"only {found} of {compiled} nets had some")
    for name, items in NETS.items():
        if not options.names or name in options.names:
            published(name, items)
