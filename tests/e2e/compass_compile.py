"""Compass IR as the model of a config.

    compass_compile

1. Each net compiled for its core, written by `npuc ir write`, and compiled again from NAME.txt +
   NAME.bin: the same command stream and weights, to the byte, and the same header but for what
   names the model. Float IR: the same for GRUS and APUS. Quantized IR for APUS, and an input that
   nothing reads, need no QUANT a second time.
2. The published NAME.txt: its .bin is made here from the published float net by the file's own
   scales, with multipliers and shifts that no scale gives; NumPy computes the IR's integer
   arithmetic from the two files alone (shared/spec/compass.md section 2). The simulator agrees to
   the bit in every layer with weights, and within one step in the mean and the softmax, whose
   rounding the file does not state. (The text's scales are those of a net trained otherwise, so
   its answers mean nothing.)
3. The .cfg form; a missing .bin; damaged files.
"""

import json
import os
import re

import numpy as np

import compass_ir
import harness
import onnxmodel

CORE = "X2_1204"
PUBLISHED_ITEMS = 50
TINY = ("models", "tflite", "mlperf_tiny")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def arrays_of(header):
    """The words of the command stream and the weights of a C header."""
    with open(header, encoding="utf-8") as f:
        text = f.read()
    found = {m.group(1): re.sub(r"\s+", "", m.group(2)) for m in
             re.finditer(r"(\w+)\s*\[[^\]]*\][^=;{]*=\s*\{(.*?)\}\s*;", text, re.S)}
    harness.check(len(found) >= 2, f"{header}: arrays {list(found)}")
    return found


def without_names(header):
    """The header but for the model's MD5 and where it comes from."""
    with open(header, encoding="utf-8") as f:
        return [line for line in f if not re.search(r"md5|model_info|MODEL_INFO|MD5", line)]


def compile_twice(folder, name, core, framework, model, more, is_float=None):
    """From the model, and from the IR that it gives, in float or quantized; returns the layers of
    the IR."""
    source = os.path.join(folder, name)
    again = os.path.join(folder, name + "_again")
    os.makedirs(source)
    config = write(source, "c.yaml", f"CORENAME: {core}\nFRAMEWORK: {framework}\n"
                   f"MODEL_FILE: {model}\nOUTPUT_FILE: m.h\n{more}")
    harness.npuc(config, "-o", source, env={"SOURCE_DATE_EPOCH": harness.EPOCH})
    is_float = core in ("GRUS", "APUS") if is_float is None else is_float
    harness.npuc("ir", "write", config, "-o", again, *(["--float"] if is_float else []))
    stem = os.path.splitext(os.path.basename(model))[0]
    head, layers, _ = compass_ir.read_ir(os.path.join(again, stem))
    quant = "".join(line for line in more.splitlines(True) if line.startswith("QUANT"))
    config = write(again, "c.yaml", f"CORENAME: {core}\nFRAMEWORK: COMPASS\n"
                   f"MODEL_FILE: {stem}.txt\nOUTPUT_FILE: m.h\n{quant if is_float else ''}")
    harness.npuc(config, "-o", again, env={"SOURCE_DATE_EPOCH": harness.EPOCH})
    first, second = (arrays_of(os.path.join(f, "m.h")) for f in (source, again))
    for key, words in first.items():
        harness.check(second.get(key) == words, f"{name} on {core}: {key} differs")
    harness.check(set(first) == set(second), f"{name}: arrays {set(second)}")
    ours, theirs = (without_names(os.path.join(f, "m.h")) for f in (source, again))
    harness.check(ours == theirs, f"{name} on {core}: the headers differ beside their names: " +
                  str([pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:3]))
    harness.check(("precision" in head) == is_float, f"{name}: precision {head}")
    return len(layers)


def kws_samples(folder, count):
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[:count]
    path = os.path.join(folder, "samples.npy")
    np.save(path, (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None])
    return path


def functions_net(folder):
    import guide_nets
    g = guide_nets.Writer(7)
    g.placeholder("x", [1, 16])
    g.dense("a", "x", 16, 8)
    g.op("Sigmoid", "s", "a")
    g.dense("b", "s", 8, 8)
    g.op("Tanh", "t", "b")
    g.op("Add", "y", "t", "s")
    path = os.path.join(folder, "functions.pb")
    with open(path, "wb") as f:
        f.write(g.serialize())
    np.save(os.path.join(folder, "x.npy"),
            np.random.RandomState(3).randn(16, 16).astype(np.float32))
    return path


def unread_net(folder):
    """A dense layer, and an input that nothing reads; samples of both."""
    random = np.random.RandomState(5)
    path = os.path.join(folder, "unread.onnx")
    nodes = [onnxmodel.node("MatMul", ["x", "w"], ["m"]), onnxmodel.node("Relu", ["m"], ["y"])]
    with open(path, "wb") as f:
        f.write(onnxmodel.model(nodes, [("x", [1, 8]), ("spare", [1, 8])], [("y", [1, 4])],
                                {"w": random.randn(8, 4).astype(np.float32)}))
    samples = os.path.join(folder, "unread.npz")
    np.savez(samples, x=random.randn(8, 1, 8).astype(np.float32),
             spare=random.randn(8, 1, 8).astype(np.float32))
    return path, f"QUANT: {{calibration_data: {samples}}}\n"


def round_trips(folder):
    unread = unread_net(folder)
    samples = kws_samples(folder, 8)
    functions = functions_net(folder)
    ends = "INPUT_OPS: {x: [1, 16]}\nOUTPUT_OPS: [y]\n"
    data = os.path.join(folder, "x.npy")
    kws = harness.shared(*TINY, "kws_ref_model_float32.tflite")
    per_channel = "quantize_method_for_weight: per_channel_symmetric_restricted_range"
    asymmetric = "quantize_method_for_activation: per_tensor_asymmetric"
    wide = "activation_bits: 16, weight_bits: 16, bias_bits: 48, lut_items_in_bits: 11"
    nets = [
        ("kws_int8", CORE, "TFLITE", harness.shared(*TINY, "kws_ref_model_int8.tflite"), ""),
        ("resnet8_int8", CORE, "TFLITE", harness.shared(*TINY, "resnet8_int8.tflite"), ""),
        ("ad01_int8", CORE, "TFLITE", harness.shared(*TINY, "ad01_int8.tflite"), ""),
        ("kws_8", CORE, "TFLITE", kws,
         f"QUANT: {{calibration_data: {samples}, {per_channel}, {asymmetric}}}\n"),
        ("kws_16", CORE, "TFLITE", kws, f"QUANT: {{calibration_data: {samples}, {wide}}}\n"),
        ("kws_4", "Z2_0901", "TFLITE", kws,
         f"QUANT: {{calibration_data: {samples}, weight_bits: 4, bias_effective_bits: 12, "
         "bias_bits: 16}\n"),
        ("functions", CORE, "TF", functions, ends + f"QUANT: {{calibration_data: {data}}}\n"),
        ("functions_16", CORE, "TF", functions,
         ends + f"QUANT: {{calibration_data: {data}, {wide}}}\n"),
        ("functions_grus", "GRUS", "TF", functions, ends),
        ("resnet8_grus", "GRUS", "TFLITE", harness.shared(*TINY, "resnet8_float.tflite"), ""),
        ("unread", CORE, "ONNX", *unread),
        ("unread_apus", "APUS", "ONNX", *unread, False),
        ("kws_apus_quantized", "APUS", "TFLITE", kws, f"QUANT: {{calibration_data: {samples}}}\n",
         False),
        ("kws_apus", "APUS", "TFLITE", kws, f"QUANT: {{calibration_data: {samples}}}\n"),
    ]
    return sum(compile_twice(folder, *net) for net in nets), len(nets)


# --- the published file ---

def float_weights():
    """Weights (as Compass lays them) and biases of the published float net, in order."""
    import int8_emulation
    model = int8_emulation.Model(harness.shared(*TINY, "kws_ref_model_float32.tflite"))
    found = []
    for kind, inputs, _, _ in model.ops:
        if kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            w, b = (model.tensors[i].constant.astype(np.float64) for i in inputs[1:3])
            found.append((np.moveaxis(w, 3, 0) if kind == "DEPTHWISE_CONV_2D" else w, b))
    return found


def make_bin(layers):
    """The .bin of the published text: that net's weights by the text's scales."""
    length = max(int(v) + int(layer[k[:-7] + "_size"]) for layer in layers
                 for k, v in layer.items() if k.endswith("_offset"))
    data = bytearray(length)
    tops = {layer["layer_top"]: layer for layer in layers}

    def put(layer, name, values):
        raw = np.asarray(values).astype(np.dtype(layer[name + "_type"])).tobytes()
        at, size = int(layer[name + "_offset"]), int(layer[name + "_size"])
        harness.check(len(raw) == size, f"{layer['layer_name']}: {name} {len(raw)} {size}")
        data[at:at + size] = raw

    def number(layer, key):
        return float(compass_ir.items_of(layer[key])[0])

    for layer, (w, b) in zip((la for la in layers if "weights_offset" in la), float_weights()):
        shape = [int(d) for d in compass_ir.items_of(layer["weights_shape"])]
        w = w.reshape(shape)
        count = int(compass_ir.items_of(layer["weights_scale_shape"])[0])
        rows = w.reshape(len(w), -1) if count > 1 else w.reshape(1, -1)
        scale = (127 / np.abs(rows).max(axis=1)).astype(np.float32)
        spread = scale.reshape([-1] + [1] * (len(shape) - 1)).astype(np.float64)
        source = number(tops[layer["layer_bottom"]], "layer_top_scale")
        unit = source * scale.astype(np.float64)
        put(layer, "weights", np.rint(w * spread))
        put(layer, "biases", np.rint(b * unit))
        put(layer, "weights_scale", scale)
        put(layer, "weights_zp", np.zeros(count))
        put(layer, "biases_scale", unit)
        put(layer, "biases_zp", [0])
        factor = number(layer, "layer_top_scale") / unit
        shift = 14 - np.floor(np.log2(factor)).astype(int)
        shift = np.minimum(shift, 31)
        # One more than the nearest: as another tool rounds it, which the compile must keep.
        put(layer, "scale", np.minimum(np.rint(factor * 2.0**shift) + 1, 32767))
        put(layer, "shift", shift)
    return bytes(data)


def integers(layers, data, x, known):
    """Stored values of the tensors by the formulas of compass.md section 2: y =
    clamp(round_half_even(acc * M * 2^-S) - zp_out), the operand's zero point added. Those of
    `known` are taken as they are, once they are within a step of the real ones."""
    tops = {layer["layer_top"]: layer for layer in layers}
    values = {}
    for layer in layers:
        kind = layer["layer_type"]
        low, high = (int(v) for v in compass_ir.items_of(layer["layer_top_range"].strip("[]")))
        zero = int(compass_ir.items_of(layer["layer_top_zp"])[0])
        if kind == "Input":
            values[layer["layer_top"]] = x
            continue
        source = tops[layer["layer_bottom"]]
        real = values[layer["layer_bottom"]] + int(compass_ir.items_of(source["layer_top_zp"])[0])
        if kind in ("Convolution", "DepthwiseConv", "FullyConnected"):
            if kind == "FullyConnected":
                w, b = compass_ir.weighted(layer, data)
                sums = real @ w.T + b
            else:
                sums = compass_ir.convolve(layer, real.astype(np.float64), data)
            factor = compass_ir.constant(layer, "scale", data).astype(np.float64)
            shift = compass_ir.constant(layer, "shift", data).astype(np.float64)
            out = np.rint(sums * factor * 2.0**-shift) - zero  # exact in doubles: below 2^53
            if layer["with_activation"] == "RELU":
                out = np.maximum(out, -zero)
        elif kind == "Pooling":  # the one whole-image mean
            out = real.mean(axis=(1, 2), keepdims=True) * ratio(layer, source) - zero
        elif kind == "Softmax":
            e = np.exp(real / scale_of(source))
            out = e / e.sum(axis=-1, keepdims=True) * scale_of(layer) - zero
        else:
            harness.check(kind == "Reshape", f"layer type {kind}")
            out = values[layer["layer_bottom"]].reshape(len(x), -1)
        out = np.clip(out, low, high)
        name = layer["layer_top"].strip("[]")
        if name in known:
            off = np.abs(known[name].reshape(out.shape) - out).max()
            harness.check(off <= 1, f"{kind} '{name}' is {off} steps off")
            out = known[name].reshape(out.shape).astype(np.float64)
        values[layer["layer_top"]] = out
    return values


def scale_of(layer):
    return float(compass_ir.items_of(layer["layer_top_scale"])[0])


def ratio(layer, source):
    return scale_of(layer) / scale_of(source)


def run_raw(folder, name, port, x, outputs):
    """The stored values of some tensors, by name."""
    config = write(folder, "c.yaml", f"CORENAME: {CORE}\nFRAMEWORK: COMPASS\n"
                   f"MODEL_FILE: {name}.txt\nOUTPUT_FILE: m.h\n"
                   f"OUTPUT_OPS: [{', '.join(outputs)}]\n")
    harness.npuc(config, "-o", folder)
    source = os.path.join(folder, "x.npy")
    np.save(source, x)
    out = os.path.join(folder, "out")
    harness.npuc("run", os.path.join(folder, "m.npuc"), "--input", f"{port}={source}",
                 "--output-dir", out, "--raw")
    return {name: np.load(os.path.join(out, name + ".npy")) for name in outputs}


def published(folder):
    text = harness.shared("fixtures", "compass", "compass_kws_o.txt")
    _, layers, _ = compass_ir.read_ir_text(text)
    data = make_bin(layers)
    with open(text, "rb") as f, open(os.path.join(folder, "kws.txt"), "wb") as to:
        to.write(f.read())
    with open(os.path.join(folder, "kws.bin"), "wb") as f:
        f.write(data)
    x = np.random.default_rng(6).integers(-128, 128, (PUBLISHED_ITEMS, 49, 10, 1)).astype(np.int8)
    names = [layer["layer_top"].strip("[]") for layer in layers if layer["layer_type"] != "Input"]
    found = run_raw(folder, "kws", "t0", x, names)
    rounded = [layer["layer_top"].strip("[]") for layer in layers
               if layer["layer_type"] in ("Pooling", "Softmax")]
    values = integers(layers, data, x.astype(np.int64), {n: found[n] for n in rounded})
    count = 0
    for name in names:
        expected = values[f"[{name}]"]
        differing = int((found[name].reshape(expected.shape) != expected).sum())
        harness.check(differing == 0, f"{differing} of {expected.size} values of {name} differ")
        harness.check(len(np.unique(expected)) > 2, f"{name} is one value")
        count += 0 if name in rounded else expected.size
    return count


def check_forms(folder):
    """In the folder of `published`: the .cfg form, and what is refused."""
    cfg = write(folder, "c.cfg", "[Common]\nmode = build\n[Parser]\nmodel_type = Compass\n"
                "model_name = kws\ninput_model = kws.txt\ninput_bin = other.bin\n"
                "[GBuilder]\ntarget = X2_1204\noutputs = n.h\n")
    os.rename(os.path.join(folder, "kws.bin"), os.path.join(folder, "other.bin"))
    harness.npuc(cfg, "-o", folder)
    write(folder, "c.yaml", f"CORENAME: {CORE}\nFRAMEWORK: COMPASS\nMODEL_FILE: kws.txt\n"
          "MODEL_BIN: other.bin\nOUTPUT_FILE: m.h\n")
    harness.npuc(os.path.join(folder, "c.yaml"), "-o", folder)
    a, b = (arrays_of(os.path.join(folder, n)) for n in ("m.h", "n.h"))
    harness.check(list(a.values()) == list(b.values()), "the .cfg gives other arrays")
    write(folder, "c.yaml", f"CORENAME: {CORE}\nFRAMEWORK: COMPASS\nMODEL_FILE: kws.txt\n"
          "OUTPUT_FILE: m.h\n")
    result = harness.npuc(os.path.join(folder, "c.yaml"), "-o", folder, expect=1)
    harness.check("kws.bin" in result.stderr, f"a missing .bin: {result.stderr}")
    with open(os.path.join(folder, "kws.txt"), encoding="ascii") as f:
        text = f.read()
    changes = [("layer_type=Softmax", "layer_type=Lstm"),
               ("with_activation=NONE", "with_activation=CLIP"),
               ("layer_top_scale=[7.39680290222168]", "layer_top_scale=[0]"),
               ("layer_top_zp=[3]", "layer_top_zp=[300]"), ("layer_id=4", "layer_id=5")]
    for count, stage in ((1, changes[4:]), (2, changes[2:4]), (2, changes[:2])):
        damaged = text
        for change in stage:
            harness.check(change[0] in damaged, change[0])
            damaged = damaged.replace(*change)
        write(folder, "kws.txt", damaged)
        result = harness.npuc(cfg, "-o", folder, "--json", expect=1)
        found = [d for d in json.loads(result.stdout)["diagnostics"] if d["severity"] == "error"]
        harness.check(len(found) == count and all(d.get("line", 0) > 0 for d in found),
                      f"{stage}: {found}")


def main(_arguments):
    with harness.scratch() as folder:
        layers, nets = round_trips(folder)
    with harness.scratch() as folder:
        size = published(folder)
        check_forms(folder)
    harness.figure(f"Compass IR compiled: {nets} nets of {layers} layers give the command stream "
                   f"and weights of the compile that wrote them; the published file with its own "
                   f"factors: 0 of {size} stored values differ from NumPy")
