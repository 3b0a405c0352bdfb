"""`npuc ir`: the published Compass file is found sound; real nets are written in float and
quantized, and NumPy computes from NAME.txt and NAME.bin alone what `npuc reference` answers.
Damaged files are refused with lines.

    compass_ir
"""

import json
import os
import re

import numpy as np

import harness

ITEMS = 4
# Of the float files: the same float32 products in another order of sums.
LARGEST_ERROR = 1e-3
NETS = ("kws_ref_model_float32", "resnet8_float", "ad01_fp32")


def read_ir_text(path):
    """(head, layers) as dicts of text, and no constants."""
    with open(path, encoding="ascii") as f:
        blocks = [dict(line.split("=", 1) for line in block.split("\n") if line)
                  for block in f.read().split("\n\n") if block]
    return blocks[0], blocks[1:], b""


def read_ir(stem):
    """The same with the .bin's bytes."""
    head, layers, _ = read_ir_text(stem + ".txt")
    with open(stem + ".bin", "rb") as f:
        return head, layers, f.read()


def items_of(text):
    return [t for t in text.strip("[]").split(",") if t]


def constant(layer, name, data):
    shape = [int(d) for d in items_of(layer[name + "_shape"])]
    kind = np.dtype(layer[name + "_type"]).newbyteorder("<")
    offset, size = int(layer[name + "_offset"]), int(layer[name + "_size"])
    return np.frombuffer(data[offset:offset + size], kind).reshape(shape)


def weighted(layer, data):
    """Weights and biases in real numbers: of quantized files by their scales."""
    w, b = (constant(layer, n, data).astype(np.float64) for n in ("weights", "biases"))
    return w, b


def convolve(layer, x, data):
    return convolve_with(layer, x, *weighted(layer, data))


def convolve_with(layer, x, w, b):
    number = {k: int(layer[k]) for k in (
        "stride_x", "stride_y", "pad_top", "pad_bottom", "pad_left", "pad_right", "group")}
    x = np.pad(x, ((0, 0), (number["pad_top"], number["pad_bottom"]),
                   (number["pad_left"], number["pad_right"]), (0, 0)))
    out_c, kh, kw, per_group = w.shape
    rows = (x.shape[1] - kh) // number["stride_y"] + 1
    columns = (x.shape[2] - kw) // number["stride_x"] + 1
    out = np.zeros((len(x), rows, columns, out_c))
    group = number["group"]
    for i in range(kh):
        for j in range(kw):
            part = x[:, i:i + (rows - 1) * number["stride_y"] + 1:number["stride_y"],
                     j:j + (columns - 1) * number["stride_x"] + 1:number["stride_x"]]
            if group == 1:
                out += part @ w[:, i, j].T
            else:  # one input a group
                harness.check(per_group == 1, f"group {group} of {per_group} inputs")
                out += np.repeat(part, out_c // group, axis=3) * w[:, i, j, 0]
    return out + b


def pool(layer, x):
    ky, kx, sy, sx = (int(layer[k]) for k in ("kernel_y", "kernel_x", "stride_y", "stride_x"))
    harness.check(all(layer[f"pad_{s}"] == "0" for s in ("top", "bottom", "left", "right")),
                  "a pool with padding")
    rows, columns = (x.shape[1] - ky) // sy + 1, (x.shape[2] - kx) // sx + 1
    windows = np.stack([x[:, i:i + (rows - 1) * sy + 1:sy, j:j + (columns - 1) * sx + 1:sx]
                        for i in range(ky) for j in range(kx)])
    return windows.mean(axis=0) if layer["method"] == "AVG" else windows.max(axis=0)


def compute(layers, data, x):
    """The net's last value for items x [n, ...], layer by layer from the files alone."""
    values = {}
    for layer in layers:
        kind = layer["layer_type"]
        inputs = [values[n] for n in items_of(layer["layer_bottom"])]
        if kind == "Input":
            out = x
        elif kind in ("Convolution", "DepthwiseConv"):
            out = convolve(layer, inputs[0], data)
        elif kind == "FullyConnected":
            w, b = weighted(layer, data)
            out = inputs[0] @ w.T + b
        elif kind == "Pooling":
            out = pool(layer, inputs[0])
        elif kind == "Reduce":
            axes = tuple(int(a) for a in items_of(layer["axis"]))
            shape = [int(d) for d in items_of(layer["layer_top_shape"][1:-1])]
            out = inputs[0].mean(axis=axes).reshape([len(x)] + shape[1:])
        elif kind == "Reshape":
            out = inputs[0].reshape([len(x)] + [int(d) for d in items_of(layer["shape"])][1:])
        elif kind == "Softmax":
            e = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
            out = e / e.sum(axis=-1, keepdims=True)
        elif kind == "Eltwise" and layer["method"] == "ADD":
            out = inputs[0] + inputs[1]
        elif kind == "Activation" and layer["method"] == "RELU":
            out = np.maximum(inputs[0], 0)
        else:
            raise harness.Failure(f"layer type {kind} is not known to this test")
        if layer.get("with_activation") == "RELU":
            out = np.maximum(out, 0)
        values[items_of(layer["layer_top"])[0]] = out
    return values[items_of(layers[-1]["layer_top"])[0]]


def check_float(name, folder):
    model = harness.shared("models", "tflite", "mlperf_tiny", name + ".tflite")
    config = os.path.join(folder, "float.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: GRUS\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: m.h\n")
    harness.npuc("ir", "write", config, "-o", folder)
    stem = os.path.join(folder, name)
    harness.npuc("ir", "check", stem + ".txt")
    head, layers, data = read_ir(stem)
    harness.check(int(head["layer_number"]) == len(layers), "layer_number")
    source = items_of(head["input_tensors"])[0]
    shape = [int(d) for d in items_of(
        next(la for la in layers if la["layer_name"] == source)["layer_top_shape"][1:-1])]
    x = np.random.RandomState(len(name)).randn(ITEMS, *shape[1:]).astype(np.float32)
    path = os.path.join(folder, "x.npy")
    np.save(path, x)
    result = harness.npuc("reference", config, "--input", "nothing=" + path, "--output-dir", folder,
                          expect=1)
    port = re.search(r"none of the model's: (\S+) \[", result.stderr).group(1)
    harness.npuc("reference", config, "--input", f"{port}={path}", "--output-dir",
                 os.path.join(folder, "out"))
    outputs = os.listdir(os.path.join(folder, "out"))
    want = np.load(os.path.join(folder, "out", outputs[0]))
    got = compute(layers, data, x.astype(np.float64)).reshape(want.shape)
    error = float(np.abs(got - want).max() / max(1.0, np.abs(want).max()))
    harness.check(error < LARGEST_ERROR, f"{name}: {error} off npuc reference")
    return error, len(layers), stem


def check_quantized(folder):
    """The published int8 net: its integers are those of the .tflite file."""
    import int8_emulation
    name = "kws_ref_model_int8"
    model = harness.shared("models", "tflite", "mlperf_tiny", name + ".tflite")
    config = os.path.join(folder, "int8.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: X2_1204\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: m.h\n")
    harness.npuc("ir", "write", config, "-o", folder)
    stem = os.path.join(folder, name)
    harness.npuc("ir", "check", stem + ".txt")
    _, layers, data = read_ir(stem)
    published = [t.constant for t in int8_emulation.Model(model).tensors
                 if t.constant is not None and t.constant.dtype == np.int8 and t.constant.ndim > 1]
    weights = 0
    for layer in layers:
        if "weights_offset" not in layer:
            continue
        w = constant(layer, "weights", data)
        harness.check(w.dtype == np.int8, f"{layer['layer_name']}: weights {w.dtype}")
        # TFLite keeps depthwise weights as [1,h,w,c].
        same = [p for p in published if p.size == w.size and
                (np.array_equal(p.reshape(w.shape), w) or
                 (p.ndim == 4 and p.shape[0] == 1 and
                  np.array_equal(np.moveaxis(p[0], 2, 0), w[..., 0])))]
        harness.check(same, f"{layer['layer_name']}: weights that the model does not have")
        weights += 1
    return weights


def check_tables(folder):
    """Of a net quantized here: scales of biases, and the tables of softmax and of a sigmoid."""
    import guide_nets
    model = harness.shared("models", "tflite", "mlperf_tiny", "kws_ref_model_float32.tflite")
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[:8]
    np.save(os.path.join(folder, "samples.npy"),
            (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None])
    g = guide_nets.Writer(7)
    g.placeholder("x", [1, 16])
    g.dense("a", "x", 16, 8)
    g.op("Sigmoid", "s", "a")
    g.dense("b", "s", 8, 8)
    g.op("Tanh", "y", "b")
    with open(os.path.join(folder, "functions.pb"), "wb") as f:
        f.write(g.serialize())
    np.save(os.path.join(folder, "x.npy"),
            np.random.RandomState(3).randn(16, 16).astype(np.float32))
    head = "CORENAME: X2_1204\nOUTPUT_FILE: m.h\n"
    found = {}
    texts = {
        "kws_ref_model_float32": f"FRAMEWORK: TFLITE\nMODEL_FILE: {model}\n"
                                 "QUANT: {calibration_data: samples.npy}\n",
        "functions": "FRAMEWORK: TF\nMODEL_FILE: functions.pb\nINPUT_OPS: {x: [1, 16]}\n"
                     "OUTPUT_OPS: [y]\nQUANT: {calibration_data: x.npy}\n"}
    for name, text in texts.items():
        config = os.path.join(folder, name + ".yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(head + text)
        harness.npuc("ir", "write", config, "-o", folder)
        stem = os.path.join(folder, name)
        harness.npuc("ir", "check", stem + ".txt")
        _, layers, data = read_ir(stem)
        tops = {layer["layer_top"]: layer for layer in layers}
        for layer in layers:
            kind = layer.get("method", layer["layer_type"])
            if "biases_scale_offset" in layer:
                source = float(items_of(tops[layer["layer_bottom"]]["layer_top_scale"])[0])
                want = source * constant(layer, "weights_scale", data).astype(np.float64)
                got = constant(layer, "biases_scale", data)
                harness.check(np.allclose(got, want, rtol=1e-6), f"biases_scale {got}, not {want}")
                harness.check(constant(layer, "biases_zp", data).tolist() == [0], "biases_zp")
                found["biases"] = found.get("biases", 0) + 1
            if "lut_offset" not in layer:
                harness.check(kind not in ("Softmax", "SIGMOID", "TANH"), f"{kind} without a table")
                continue
            bottom = tops[layer["layer_bottom"]]
            scale, zero = (float(items_of(bottom[k])[0]) for k in ("layer_top_scale",
                                                                   "layer_top_zp"))
            lut = constant(layer, "lut", data).astype(np.float64)
            if kind == "Softmax":
                want = 2.0**30 * np.exp((np.arange(256) - 255) / scale)
            else:
                lowest = -128 if bottom["layer_top_type"] == "[int8]" else 0
                x = (np.arange(256) + lowest + zero) / scale
                y = 1 / (1 + np.exp(-x)) if kind == "SIGMOID" else np.tanh(x)
                want = (y * float(items_of(layer["layer_top_scale"])[0]) -
                        float(items_of(layer["layer_top_zp"])[0]))
                low, high = (float(v) for v in items_of(layer["layer_top_range"].strip("[]")))
                want = np.clip(want, low, high)
            harness.check(np.abs(lut - want).max() <= 0.5001, f"{kind}: a table {lut - want} off")
            found[kind] = found.get(kind, 0) + 1
    harness.check(set(found) >= {"biases", "Softmax", "SIGMOID", "TANH"}, f"found {found}")
    return found


def check_damage(stem):
    """Every line of the text lost, one at a time: never sound, never a crash; places are told."""
    with open(stem + ".txt", encoding="ascii") as f:
        lines = f.read().split("\n")
    chosen = [i for i, line in enumerate(lines) if line][::7]
    silent = []
    for i in chosen:
        damaged = stem + "_damaged.txt"
        with open(damaged, "w", encoding="ascii") as f:
            f.write("\n".join(lines[:i] + lines[i + 1:]))
        result = harness.npuc("ir", "check", damaged, "--bin", stem + ".bin", "--json", expect=None)
        harness.check(result.returncode in (0, 1), f"line {i + 1} lost: {result.returncode}")
        if result.returncode == 0:
            silent.append(lines[i].split("=")[0])
        else:
            found = json.loads(result.stdout)["diagnostics"]
            harness.check(found and found[0]["id"] == "NPUC1507", f"line {i + 1} lost: {found}")
    # What the form does not demand.
    optional = {"with_activation", "precision", "ceil_mode", "count_include_pad"}
    harness.check(set(silent) <= optional, f"lost without a word: {set(silent) - optional}")
    return len(chosen)


def main(_arguments):
    published = harness.shared("fixtures", "compass", "compass_kws_o.txt")
    harness.npuc("ir", "check", published)
    with harness.scratch() as folder:
        worst = 0.0
        layers = 0
        for name in NETS:
            inner = os.path.join(folder, name)
            os.makedirs(inner)
            error, count, stem = check_float(name, inner)
            worst, layers = max(worst, error), layers + count
        lost = check_damage(stem)
        weights = check_quantized(folder)
        tables = check_tables(folder)
    harness.figure(f"npuc ir: the published file is sound; {len(NETS)} float nets of {layers} "
                   f"layers, computed from the files alone: largest error {worst:.1e}; {weights} "
                   f"weights of the int8 net are the published ones; tables and scales as "
                   f"NumPy has them: {tables}; {lost} lost lines refused")
