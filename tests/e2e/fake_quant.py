"""Layers that QUANT leaves in float: fake_quant_scopes_for_debug, fake_quant_operators_for_debug.

    fake_quant

Each net is written by `npuc ir write`, in float and as it is quantized; NumPy runs both forward
passes from those files alone: every value with a scale rounded to what its integer stands for,
weights and biases as their integers, the layers left in float as they are, each operator's result
a float32. Compared with that:
1. the values of `npuc reference --quantized`, and its likeness to float of every layer, but for
   the ends of its range that no reader tells apart;
2. the metrics of `npuc evaluate --quantized`.
A compile of such a net is refused with every layer that is in float named. Without them the
forward pass agrees with the simulated artifact.
"""

import json
import os

import numpy as np

import compass_compile
import compass_ir
import harness

ITEMS = 16
F32 = np.float32


def names_of(layer, key):
    return compass_ir.items_of(layer[key])


def quantization(layer):
    """(scale, zero point, lowest, greatest) of a layer's result; None where it is float."""
    if "layer_top_scale" not in layer:
        return None
    low, high = (int(v) for v in names_of(layer, "layer_top_range") and
                 compass_ir.items_of(layer["layer_top_range"].strip("[]")))
    return (1 / float(names_of(layer, "layer_top_scale")[0]),
            -int(names_of(layer, "layer_top_zp")[0]), low, high)


def rounded(layer, values):
    q = quantization(layer)
    if q is None:
        return values.astype(F32)
    scale, zero, low, high = q
    integers = np.clip(np.rint(values.astype(np.float64) / scale) + zero, low, high)
    return ((integers - zero) * scale).astype(F32)


def constants(layer, data, unit):
    """Weights [o, ...] and biases in float32, of integers by their scales. unit: the operand's
    scale."""
    w, b = (compass_ir.constant(layer, n, data) for n in ("weights", "biases"))
    if "weights_scale_offset" not in layer:
        return w, b
    scale = 1 / compass_ir.constant(layer, "weights_scale", data).astype(np.float64)
    spread = scale.reshape([-1] + [1] * (w.ndim - 1))
    return ((w * spread).astype(F32), (b.astype(np.float64) * (unit * scale)).astype(F32))


def weighted(layer, data, x, unit):
    w, b = constants(layer, data, unit)
    if layer["layer_type"] == "FullyConnected":
        sums = x.astype(np.float64) @ w.astype(np.float64).T
    else:
        sums = compass_ir.convolve_with(layer, x.astype(np.float64), w.astype(np.float64), 0)
    return sums.astype(F32) + b


def forward(layers, data, x):
    """Every layer's result, in order; all but the weights is float32 at each step."""
    values, results = {}, []
    scales = {}
    for layer in layers:
        kind = layer["layer_type"]
        inputs = [values[n] for n in names_of(layer, "layer_bottom")]
        if kind == "Input":
            out = x
        elif kind in ("Convolution", "DepthwiseConv", "FullyConnected"):
            out = weighted(layer, data, inputs[0], scales[names_of(layer, "layer_bottom")[0]])
        elif kind == "Pooling":
            out = compass_ir.pool(layer, inputs[0].astype(np.float64))
        elif kind == "Reshape":
            out = inputs[0].reshape([len(x)] + [int(d) for d in names_of(layer, "shape")][1:])
        elif kind == "Softmax":
            e = np.exp(inputs[0].astype(np.float64) -
                       inputs[0].max(axis=-1, keepdims=True).astype(np.float64))
            out = e / e.sum(axis=-1, keepdims=True)
        elif kind == "Activation":
            z = inputs[0].astype(np.float64)
            out = {"SIGMOID": lambda: 1 / (1 + np.exp(-z)), "TANH": lambda: np.tanh(z),
                   "RELU": lambda: np.maximum(z, 0)}[layer["method"]]()
        else:
            harness.check(kind == "Eltwise" and layer["method"] == "ADD", f"layer type {kind}")
            out = inputs[0] + inputs[1]
        if layer.get("with_activation") == "RELU":
            out = np.maximum(out, 0)
        top = names_of(layer, "layer_top")[0]
        values[top] = rounded(layer, out.astype(F32))
        scales[top] = (quantization(layer) or (None,))[0]
        results.append(values[top])
    return results


FUNCTIONS = {"SIGMOID": lambda x: 1 / (1 + np.exp(-x.astype(np.float64))), "TANH": np.tanh}


def flat_from(function, end):
    """Where a function becomes flat on its way from 0 to `end`: from there on it is within a
    quarter of a step of 8 bits of its value there, 256 steps for what it does on this side. Looked
    for in 1024 places, and again in what is left while that is less than half."""
    flat = at_end = None
    while end != 0:
        points = (end * np.arange(1025) / 1024).astype(F32)
        results = function(points)
        if flat is None:
            flat, at_end = (results.max() - results.min()) / 1024, results[-1]
        before = end
        end = float(points[np.nonzero(np.abs(results - at_end) > flat)[0][-1] + 1])
        if abs(end) > abs(before) / 2:
            break
    return end


def as_read(layers, rows, layer, values):
    """Float values as the readers of a layer's result can tell them apart, where those are one
    function."""
    top = names_of(layer, "layer_top")[0]
    methods = {reader.get("method") if row["in"] == "integers" else None
               for reader, row in zip(layers, rows) if top in names_of(reader, "layer_bottom")}
    if len(methods) != 1 or not methods <= set(FUNCTIONS):
        return values
    function = FUNCTIONS[methods.pop()]
    return np.clip(values, flat_from(function, min(0.0, float(values.min()))),
                   flat_from(function, max(0.0, float(values.max()))))


def cosine(a, b):
    a, b = (v.astype(np.float64).reshape(-1) for v in (a, b))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


class Net:
    """A config, its IR files in float and quantized, and the samples."""

    def __init__(self, folder, name, text, port, samples):
        self.folder, self.name, self.port = os.path.join(folder, name), name, port
        self.samples = samples
        self.x = np.load(samples)
        self.config = {}
        for kind, quant in text["quant"].items():
            os.makedirs(os.path.join(self.folder, kind))
            self.config[kind] = compass_compile.write(
                os.path.join(self.folder, kind), "c.yaml",
                f"CORENAME: X2_1204\nOUTPUT_FILE: m.h\n{text['model']}"
                f"QUANT: {{calibration_data: {samples}{quant}}}\n")
        self.stem = text["stem"]

    def ir(self, kind, *flags):
        out = os.path.join(self.folder, kind, "ir" + "".join(flags))
        harness.npuc("ir", "write", self.config[kind], "-o", out, *flags)
        return compass_ir.read_ir(os.path.join(out, self.stem))[1:]

    def outputs(self, kind, *flags):
        out = os.path.join(self.folder, kind, "out" + "".join(flags))
        result = harness.npuc("reference", self.config[kind], *flags, "--input",
                              f"{self.port}={self.samples}", "--output-dir", out, "--json")
        arrays = [np.load(os.path.join(out, n)) for n in sorted(os.listdir(out))
                  if n.endswith(".npy")]
        harness.check(len(arrays) == 1, f"{len(arrays)} outputs")
        template = os.path.join(out, "opt_template.json")
        harness.check(os.path.exists(template) == ("--quantized" in flags), template)
        return arrays[0].reshape(len(self.x), -1), json.loads(result.stdout).get("layers", [])


def check_net(net, in_float):
    """in_float: types of the layers that the debugged config leaves in float, and how many."""
    layers, data = net.ir("debug")
    float_layers, float_data = net.ir("debug", "--float")
    x = net.x.astype(F32)
    got = forward(layers, data, x)
    exact = forward(float_layers, float_data, x)
    answer, rows = net.outputs("debug", "--quantized")
    plain, _ = net.outputs("debug")
    want = got[-1].reshape(len(x), -1)
    off = float(np.abs(answer - want).max())
    quantized_off = float(np.abs(answer - plain).max())
    harness.check(off <= 1e-6 and quantized_off > 100 * max(off, 1e-7),
                  f"{net.name}: {off} off NumPy, {quantized_off} off float")
    marked = [r["type"] for r in rows if r["in"] == "float"]
    harness.check(sorted(marked) == sorted(in_float), f"{net.name}: in float {marked}")
    harness.check(len(rows) == len(layers) == len(float_layers), f"{net.name}: {len(rows)} layers")
    for row, layer, a, b in zip(rows, layers, got, exact):
        similarity = cosine(a, as_read(layers, rows, layer, b))
        harness.check(abs(row["similarity"] - similarity) < 1e-5,
                      f"{net.name}: {row} where NumPy has {similarity}")
    for layer, row in zip(layers, rows):
        harness.check(("weights_scale_offset" in layer) ==
                      ("weights_offset" in layer and row["in"] == "integers"), f"{row}")
    check_metrics(net, plain, answer)
    # Refused, with every such layer.
    result = harness.npuc(net.config["debug"], "-o", net.folder, "--json", expect=1)
    found = [d for d in json.loads(result.stdout)["diagnostics"] if d["severity"] == "error"]
    harness.check([d["id"] for d in found] == ["NPUC1615"] * len(in_float), f"{net.name}: {found}")
    return off, quantized_off


def check_metrics(net, plain, answer):
    result = harness.npuc("evaluate", net.config["debug"], "--quantized", "--input",
                          f"{net.port}={net.samples}", "--metric", "mse", "--metric", "cosine",
                          "--json")
    figures = {m["metric"]: m["artifact"] for m in json.loads(result.stdout)["metrics"]}
    error = float(((answer.astype(np.float64) - plain)**2).mean())
    harness.check(np.isclose(figures["mse"], error, rtol=1e-4) and
                  np.isclose(figures["cosine"], cosine(answer, plain), atol=1e-9),
                  f"{net.name}: {figures}, NumPy {error} {cosine(answer, plain)}")


def check_all_integers(net):
    """Nothing in float: the forward pass beside the artifact."""
    answer, rows = net.outputs("whole", "--quantized")
    harness.check(all(r["in"] == "integers" for r in rows), f"{rows}")
    out = os.path.join(net.folder, "whole")
    harness.npuc(net.config["whole"], "-o", out)
    harness.npuc("run", os.path.join(out, "m.npuc"), "--input", f"{net.port}={net.samples}",
                 "--output-dir", os.path.join(out, "run"))
    names = os.listdir(os.path.join(out, "run"))
    simulated = np.load(os.path.join(out, "run", names[0])).reshape(len(net.x), -1)
    steps = float(np.abs(answer - simulated).max()) * 255
    harness.check(cosine(answer, simulated) > 0.9999, f"{net.name}: {steps} steps off")
    result = harness.npuc("evaluate", net.config["whole"], expect=1)
    harness.check("--quantized" in result.stderr, result.stderr)
    return steps


def main(_arguments):
    kws = harness.shared(*compass_compile.TINY, "kws_ref_model_float32.tflite")
    with harness.scratch() as folder:
        samples = compass_compile.kws_samples(folder, ITEMS)
        functions = compass_compile.functions_net(folder)
        nets = [
            (Net(folder, "kws", {
                "model": f"FRAMEWORK: TFLITE\nMODEL_FILE: {kws}\n", "stem": "kws_ref_model_float32",
                "quant": {"debug": ", fake_quant_operators_for_debug: [DepthwiseConv, Softmax], "
                                   "quantize_method_for_activation: per_tensor_asymmetric",
                          "whole": ""}}, "input_1", samples),
             ["DepthwiseConv"] * 4 + ["Softmax"]),
            (Net(folder, "functions", {
                "model": f"FRAMEWORK: TF\nMODEL_FILE: {functions}\nINPUT_OPS: {{x: [1, 16]}}\n"
                         "OUTPUT_OPS: [y]\n", "stem": "functions",
                "quant": {"debug": ", fake_quant_scopes_for_debug: [b/matmul, s], "
                                   "fake_quant_operators_for_debug: [Eltwise]",
                          "whole": ""}}, "x", os.path.join(folder, "x.npy")),
             ["FullyConnected", "Activation", "Eltwise"])]
        results = [check_net(*net) + (check_all_integers(net[0]),) for net in nets]
    harness.figure("fake quantization: " + "; ".join(
        f"{net.name} with {len(in_float)} layers in float: {off:.1e} off NumPy, {far:.1e} off "
        f"float; none in float: at most {steps:.1f} steps off the artifact"
        for (net, in_float), (off, far, steps) in zip(nets, results)))
