"""Nets rebuilt from published headers against what the vendor's compiler made of them.

    vendor_like [NAME...]

Compiles each config of ../shared/models/vendor_like, without and with MEMORY_PLAN: compatible, and
runs both on the same seeded inputs, states among them. Outputs must be equal byte for byte. A
batch_norm rounds once where its two plain commands round twice: a net that has one must be as near
to `npuc reference` as the plain one. The figures of report.json must not be above LIMITS, nor above
the plain ones. Then a layer that fits the NPU's SRAM only in parts, and a MobileNet v1 of 96 x 96,
width 0.25, with seeded weights, within MOBILE_LIMITS.
"""

import json
import os

import numpy as np

import guide_nets
import harness

SEED = 41
ITEMS = 200
FIGURES = ("commands", "elements", "macs")
# commands, bytes of data_content, elements. sed and ds_tcn: those of the published headers;
# dense_20_rows: a product, a sum, and the format's whole rows and rest.
LIMITS = {
    "sed": (56, 1280, 4486),
    "sed_fb": (56, 1280, 4486),
    "ds_tcn": (141, 13312, 20236),
    "ds_tcn_fb": (141, 13312, 20236),
    "dense_20_rows": (4, 5120, 3840),
}
# A map whose padded rows and planes do not fit the NPU's SRAM together: computed in parts.
PARTS = "a depthwise layer over a large map"
SRAM_BYTES = 131_072
# commands and bytes of data_content, by what the config adds. A depthwise layer and its product
# take 8 commands: two fill the padding, a relu writes into it, a transpose, the layer, a transpose,
# a relu and the product. The layer of 48 x 48 x 16 is cut into four groups: 9 more. A compressed
# weight of 256 x 256 does not fit one command: 2 more.
MOBILE_LIMITS = {
    "FUSE_BIASADD: true\n": (128, SRAM_BYTES),
    "FUSE_BIASADD: true\nCOMPRESS: true\nCONV2D_COMPRESS: true\n": (130, SRAM_BYTES),
    "": (176, 147_456),
}
MOBILE_ITEMS = 2
# Both round their sums to fp16 at random: the errors of two such nets differ by this much.
AS_NEAR = 1.02


class Compiled:
    def __init__(self, text, folder, plain):
        self.folder = os.path.join(folder, "plain" if plain else "short")
        os.makedirs(self.folder)
        path = os.path.join(self.folder, "net.yaml")
        with open(path, "w", encoding="utf-8") as f:
            if plain:
                text = text.replace("MEMORY_PLAN: in_place\n", "") + "MEMORY_PLAN: compatible\n"
            f.write(text)
        header = next(line.split()[1] for line in text.splitlines()
                      if line.startswith("OUTPUT_FILE"))
        self.config = path
        self.artifact = harness.compile_header(path, self.folder, header)
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as f:
            report = json.load(f)
        self.inputs, self.outputs = report["inputs"], [o["name"] for o in report["outputs"]]
        self.states = {o["state_of"] for o in report["outputs"] if "state_of" in o}
        self.figures = {k: report["per_frame"][k] for k in FIGURES}
        self.figures["data"] = report["sizes_bytes"]["data_content"]
        self.has_batch_norm = "batch_norm" in report["commands"]

    def run(self, inputs):
        return harness.simulate(self.artifact, inputs, os.path.join(self.folder, "out"),
                                self.outputs)


def seeded(inputs, states, count=ITEMS):
    """Values of fp16, so that the reference has the same; of a state its start alone."""
    random = np.random.default_rng(SEED)
    found = {}
    for port in inputs:
        shape = [int(n) for n in port["type"][:-1].split("[")[1].split(",")]
        items = 1 if port["name"] in states else count
        found[port["name"]] = random.normal(0, 1, [items * shape[0], *shape[1:]]) \
            .astype(np.float16).astype(np.float32)
    return found


def error(outputs, truth):
    """The root of the mean squared error over all outputs."""
    return float(np.sqrt(np.mean(np.concatenate(
        [(outputs[n].astype(np.float64) - truth[n]).reshape(-1) ** 2 for n in outputs]))))


def large_map(folder):
    """The config of one depthwise layer, stride 2, over 48 x 48 x 16."""
    net = guide_nets.Writer(SEED)
    net.placeholder("x", [1, 48, 48, 16])
    net.op("Relu", "map", "x")
    net.weight("kernel", 3, 3, 16, 1, scale=0.3)
    net.op("DepthwiseConv2dNative", "layer", "map", "kernel", strides=[1, 2, 2, 1],
           padding=b"SAME", data_format=b"NHWC")
    net.op("Relu", "y", "layer")
    model = os.path.join(folder, "large_map.pb")
    with open(model, "wb") as f:
        f.write(net.serialize())
    return (f"CORENAME: GRUS\nFRAMEWORK: TF\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
            "INPUT_OPS: {x: [1, 48, 48, 16]}\nOUTPUT_OPS: [y]\n")


def check_parts():
    with harness.scratch() as folder:
        text = large_map(folder)
        short, plain = (Compiled(text, folder, p) for p in (False, True))
        inputs = seeded(short.inputs, short.states)
        got, want = short.run(inputs), plain.run(inputs)
    harness.check(got["y"].tobytes() == want["y"].tobytes(), f"{PARTS}: outputs differ")
    harness.figure(f"{PARTS}, in parts and whole: data {short.figures['data']:,} and "
                   f"{plain.figures['data']:,}, commands {short.figures['commands']} and "
                   f"{plain.figures['commands']}; equal outputs")
    harness.check(short.figures["data"] <= SRAM_BYTES < plain.figures["data"],
                  f"{PARTS}: {short.figures['data']} bytes of data, "
                  f"{plain.figures['data']} when whole")


def mobile_net():
    """MobileNet v1 of 96 x 96 x 3, width 0.25, two classes: the shape of MLPerf Tiny's vww."""
    net = guide_nets.Writer(SEED)
    net.placeholder("x", [1, 96, 96, 3])
    last, channels = "x", 3

    def layer(name, op, side, stride, out):
        nonlocal last, channels
        is_depthwise = op == "DepthwiseConv2dNative"
        inputs = side * side * (1 if is_depthwise else channels)
        net.weight(f"{name}/kernel", side, side, channels, 1 if is_depthwise else out,
                   scale=1.4 / np.sqrt(inputs))
        net.weight(f"{name}/bias", out, scale=0.1)
        net.op(op, f"{name}/sums", last, f"{name}/kernel", strides=[1, stride, stride, 1],
               padding=b"SAME", data_format=b"NHWC")
        net.op("BiasAdd", f"{name}/added", f"{name}/sums", f"{name}/bias", data_format=b"NHWC")
        last = net.op("Relu", name, f"{name}/added")
        channels = out

    layer("first", "Conv2D", 3, 2, 8)
    for i, (stride, out) in enumerate([(1, 16), (2, 32), (1, 32), (2, 64), (1, 64), (2, 128),
                                       *[(1, 128)] * 5, (2, 256), (1, 256)]):
        layer(f"depthwise_{i}", "DepthwiseConv2dNative", 3, stride, channels)
        layer(f"pointwise_{i}", "Conv2D", 1, 1, out)
    net.op("AvgPool", "pool", last, ksize=[1, 3, 3, 1], strides=[1, 3, 3, 1], padding=b"VALID",
           data_format=b"NHWC")
    net.reshape("flat", "pool", [1, channels])
    net.weight("classes", channels, 2)
    net.weight("classes/bias", 2, scale=0.1)
    net.op("MatMul", "product", "flat", "classes")
    net.op("BiasAdd", "logits", "product", "classes/bias")
    net.op("Softmax", "y", "logits")
    return net.serialize()


def check_mobile_net():
    for keys, (commands, data) in MOBILE_LIMITS.items():
        with harness.scratch() as folder:
            model = os.path.join(folder, "mobile.pb")
            with open(model, "wb") as f:
                f.write(mobile_net())
            text = (f"CORENAME: GRUS\nFRAMEWORK: TF\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
                    f"INPUT_OPS: {{x: [1, 96, 96, 3]}}\nOUTPUT_OPS: [y]\n{keys}")
            short, plain = (Compiled(text, folder, p) for p in (False, True))
            inputs = seeded(short.inputs, short.states, MOBILE_ITEMS)
            got, want = short.run(inputs), plain.run(inputs)
        name = " ".join(["MobileNet v1 of 96 x 96", *keys.split("\n")]).rstrip()
        harness.figure(f"{name}: commands {short.figures['commands']}, data "
                       f"{short.figures['data']:,}; with MEMORY_PLAN: compatible "
                       f"{plain.figures['commands']} and {plain.figures['data']:,}")
        harness.check(got["y"].tobytes() == want["y"].tobytes(), f"{name}: outputs differ")
        harness.check(len(set(got["y"].reshape(-1).tolist())) > 2, f"{name}: constant outputs")
        for key, limit in (("commands", commands), ("data", data)):
            harness.check(short.figures[key] <= limit,
                          f"{name}: {key} {short.figures[key]}, at most {limit}")


def check_net(name, text):
    with harness.scratch() as folder:
        short, plain = (Compiled(text, folder, p) for p in (False, True))
        inputs = seeded(short.inputs, short.states)
        got, want = short.run(inputs), plain.run(inputs)
        said = "equal outputs"
        if short.has_batch_norm:
            truth = harness.simulate(short.config, inputs, os.path.join(folder, "reference"),
                                     short.outputs, verb="reference")
            errors = error(got, truth), error(want, truth)
            said = f"errors {errors[0]:.3e} and {errors[1]:.3e}"
            harness.check(errors[0] <= AS_NEAR * errors[1], f"{name}: {said}")
        else:
            for output in short.outputs:
                harness.check(got[output].tobytes() == want[output].tobytes(),
                              f"{name}: {output} differs from that of the plain commands")
    figures = ", ".join(f"{k} {short.figures[k]:,} and {plain.figures[k]:,}"
                        for k in short.figures)
    harness.figure(f"{name}, without and with MEMORY_PLAN: compatible: {figures}; {said}")
    for key, value in short.figures.items():
        harness.check(value <= plain.figures[key], f"{name}: {key} above the plain one: {figures}")
    commands, data, elements = LIMITS.get(name, (None, None, None))
    for key, limit in (("commands", commands), ("data", data), ("elements", elements)):
        harness.check(limit is None or short.figures[key] <= limit,
                      f"{name}: {key} {short.figures[key]}, the vendor has {limit}")


def main(arguments):
    folder = harness.shared("models", "vendor_like")
    names = sorted(n[:-5] for n in os.listdir(folder) if n.endswith(".yaml"))
    harness.check(set(LIMITS) <= set(names), f"no configs of {set(LIMITS) - set(names)}")
    for name in names:
        if arguments and name not in arguments:
            continue
        with open(os.path.join(folder, f"{name}.yaml"), encoding="utf-8") as f:
            check_net(name, f.read().replace("MODEL_FILE: ", f"MODEL_FILE: {folder}/"))
    if not arguments:
        check_parts()
        check_mobile_net()
