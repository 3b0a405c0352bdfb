"""Each layer type of Compass's IR that frontends/compass reads, as a file of one layer that this
suite writes: in float `npuc reference` gives NumPy's numbers by the formulas of Compass's published
optimizer (github.com/Arm-China/Compass_Optimizer). Compiled for GRUS, and with int8 bottoms and
tops for X2_1204, the simulator is near NumPy, or the compile is refused by a diagnostic.
"""

import os

import numpy as np

import harness

SEED = 3
FLOAT_TOLERANCE = 2e-5  # float32 sums in another order, relative to the largest value
FP16_TOLERANCE = 0.02   # relative to the largest value: some dozen roundings of 2^-11
# Steps of int8 tops: half a step of the bottom passes through the function, half is the top's own.
INT8_STEPS = 4.0


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    """By its series; float64 and |x| < 4."""
    total, term = np.zeros_like(x), np.array(x)
    for n in range(80):
        total += term / (2 * n + 1)
        term = -term * x * x / (n + 1)
    return 2 / np.sqrt(np.pi) * total


def lrn(x, size, alpha, beta, bias):
    padded = np.pad(x * x, [(0, 0)] * 3 + [(size // 2, (size - 1) // 2)])
    mean = sum(padded[..., i:i + x.shape[-1]] for i in range(size)) / size
    return x / (bias + alpha * mean)**beta


def resized(x, size, method, mode):
    """Along both axes of images; half_pixel, align_corners, asymmetric."""
    for axis, out in zip((1, 2), size):
        n = x.shape[axis]
        i = np.arange(out, dtype=np.float64)
        at = {"half_pixel": (i + 0.5) * n / out - 0.5, "asymmetric": i * n / out,
              "align_corners": i * (n - 1) / max(out - 1, 1)}[mode]
        if method == "nearest":
            index = np.clip(np.ceil(at - 0.5), 0, n - 1).astype(int)
            x = np.take(x, index, axis)
            continue
        at = np.clip(at, 0, n - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, n - 1)
        part = (at - low).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return x


def lstm(x, h, c, w, b):
    states = []
    for t in range(x.shape[1]):
        i, g, f, o = np.split(np.concatenate([x[:, t], h], 1) @ w.T + b, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return [np.stack(states, 1), h, c]


def gru(x, h, w, b, version):
    n, k = h.shape[1], x.shape[2]
    states = []
    for t in range(x.shape[1]):
        r, u = np.split(sigmoid(np.concatenate([x[:, t], h], 1) @ w[:2 * n].T + b[:2 * n]), 2, 1)
        if version == 1:
            new = np.tanh(x[:, t] @ w[2 * n:, :k].T + b[2 * n:3 * n] +
                          r * (h @ w[2 * n:, k:].T + b[3 * n:]))
        else:
            new = np.tanh(np.concatenate([x[:, t], h * r], 1) @ w[2 * n:].T + b[2 * n:])
        h = (1 - u) * new + u * h
        states.append(h)
    return [np.stack(states, 1), h]


def normalized(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean)**2).mean(axes, keepdims=True) + epsilon)


class Case:
    """One layer: its bottoms, attributes, constants (weights, biases), and what NumPy gives."""

    def __init__(self, kind, bottoms, attributes, function, constants=None, whole=()):
        self.kind, self.bottoms, self.attributes = kind, bottoms, attributes
        self.function, self.constants = function, constants or {}
        self.whole = whole  # results that are indices


def cases(random):
    def normal(*shape):
        return random.normal(size=shape)

    image = normal(1, 6, 5, 4)
    positive = np.abs(image) + 1
    w, b = normal(4), normal(4)
    lw, lb, h, c = normal(12, 7) * 0.5, normal(12) * 0.5, normal(1, 3), normal(1, 3)
    gw, gb = normal(9, 7) * 0.5, normal(12) * 0.5
    seq = normal(1, 5, 4)
    softplus = lambda x: np.log1p(np.exp(x))  # noqa: E731
    gelu = lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))  # noqa: E731
    functions = {
        "Abs": np.abs, "Exp": np.exp, "Negative": np.negative, "Square": np.square,
        "Sigmoid": sigmoid, "Tanh": np.tanh, "RELU": lambda x: np.maximum(x, 0),
        "RELU6": lambda x: np.clip(x, 0, 6), "Ceil": np.ceil, "Floor": np.floor, "Sign": np.sign,
        "Silu": lambda x: x * sigmoid(x), "Softplus": softplus, "GELU": gelu,
        "Softsign": lambda x: x / (1 + np.abs(x)), "MISH": lambda x: x * np.tanh(softplus(x)),
        "Hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "SELU": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    }
    # Far enough from whole numbers that int8's rounding crosses none.
    steady = np.floor(image) + 0.2 + 0.6 * random.random(image.shape)
    for name, function in functions.items():
        bottom = steady if name in ("Ceil", "Floor", "Sign") else image
        yield Case(name, [bottom], {}, function)
        yield Case("Activation", [bottom], {"method": name.upper()}, function)
    for name, function in (("Log", np.log), ("Sqrt", np.sqrt), ("Rsqrt", lambda x: x**-0.5),
                           ("Reciprocal", lambda x: 1 / x)):
        yield Case(name, [positive], {}, function)
    yield Case("LeakyRELU", [image], {"negative_slope_value": 0.1},
               lambda x: np.where(x > 0, x, 0.1 * x))
    yield Case("ELU", [image], {"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)))
    yield Case("Clip", [image], {"clip_min": -0.5, "clip_max": 1.25},
               lambda x: np.clip(x, -0.5, 1.25))
    yield Case("HardSigmoid", [image], {"alpha": 0.25, "beta": 0.5},
               lambda x: np.clip(0.25 * x + 0.5, 0, 1))
    yield Case("Div", [image, positive], {}, np.divide)
    yield Case("Add", [image, positive], {}, np.add)
    yield Case("Sub", [image, positive], {}, np.subtract)
    yield Case("Mul", [image, positive], {}, np.multiply)
    yield Case("SquaredDifference", [image, positive], {}, lambda x, y: (x - y)**2)
    yield Case("MatMul", [normal(2, 3, 4), normal(2, 5, 4)], {"trans_b": "true"},
               lambda x, y: x @ y.transpose(0, 2, 1))
    yield Case("ArgMinMax", [image], {"method": "MAX", "axis": 3, "select_last_index": "false"},
               lambda x: x.argmax(3)[..., None], whole=(0,))
    yield Case("ArgMinMax", [np.round(image)], {"method": "MIN", "axis": 1,
                                                "select_last_index": "true"},
               lambda x: x.shape[1] - 1 - x[:, ::-1].argmin(1)[:, None], whole=(0,))
    yield Case("TopK", [normal(2, 9)], {"axis": 1, "k": 3, "largest": "true"},
               lambda x: [-np.sort(-x, 1)[:, :3], np.argsort(-x, 1, kind="stable")[:, :3]],
               whole=(1,))
    yield Case("BatchNorm", [image], {"axis": 3}, lambda x: x * w + b, {"weights": w, "biases": b})
    yield Case("LRN", [image], {"method": "ACROSS_CHANNELS", "size": 3, "alpha": 0.5, "beta": 0.75,
                                "bias": 2.0}, lambda x: lrn(x, 3, 0.5, 0.75, 2))
    yield Case("LogSoftmax", [image], {"axis": 3},
               lambda x: x - np.log(np.exp(x).sum(3, keepdims=True)))
    yield Case("LayerNorm", [image], {"axis": "[3]", "epsilon": 0.01},
               lambda x: normalized(x, (3,), 0.01) * w + b, {"weights": w, "biases": b})
    yield Case("InstanceNorm", [image], {"epsilon": 0.01},
               lambda x: normalized(x, (1, 2), 0.01) * w + b, {"weights": w, "biases": b})
    yield Case("Normalization", [image], {"method": "L2", "axis": "[3]"},
               lambda x: x / np.sqrt((x * x).sum(3, keepdims=True)))
    yield Case("Reduce", [image], {"method": "MIN", "axis": "[1,2]"},
               lambda x: x.min((1, 2), keepdims=True))
    yield Case("Pad", [image], {"mode": "CONSTANT", "pads": "[[0,0],[1,2],[0,1],[0,0]]",
                                "constant_value": 0.5},
               lambda x: np.pad(x, [(0, 0), (1, 2), (0, 1), (0, 0)], constant_values=0.5))
    for mode in ("REFLECT", "SYMMETRIC"):
        yield Case("Pad", [image], {"mode": mode, "pads": "[[0,0],[1,2],[2,1],[0,0]]"},
                   lambda x, mode=mode: np.pad(x, [(0, 0), (1, 2), (2, 1), (0, 0)],
                                               mode=mode.lower()))
    yield Case("Slice", [image], {"begin": "[0,1,0,3]", "end": "[1,6,5,-5]",
                                  "strides": "[1,2,1,-1]"}, lambda x: x[:, 1:6:2, :, ::-1])
    yield Case("StridedSlice", [image], {"begin": "[0,-3,0,0]", "end": "[1,99,5,4]",
                                         "strides": "[1,1,2,1]"}, lambda x: x[:, -3:, ::2])
    yield Case("Crop", [image], {"crops": "[[0,1],[1,4],[0,5],[2,4]]"}, lambda x: x[:, 1:4, :, 2:4])
    yield Case("Split", [image], {"axis": 1, "splits": "[1,3,2]"},
               lambda x: np.split(x, [1, 4], 1))
    yield Case("Tile", [image], {"repeats": "[1,2,1,3]"}, lambda x: np.tile(x, (1, 2, 1, 3)))
    yield Case("Gather", [image, np.array([3, 0, -1], np.int32)], {"axis": 3, "batch_dims": 0},
               lambda x, i: np.take(x, i, 3))
    yield Case("Squeeze", [image], {"axis": "[0]"}, lambda x: x[0])
    yield Case("DepthToSpace", [image], {"block_size_x": 2, "block_size_y": 2, "mode": "DCR"},
               lambda x: x.reshape(1, 6, 5, 2, 2, 1).transpose(0, 1, 3, 2, 4, 5).reshape(
                   1, 12, 10, 1))
    yield Case("SpaceToDepth", [image[:, :, :4]], {"block_size_x": 2, "block_size_y": 2},
               lambda x: x.reshape(1, 3, 2, 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(
                   1, 3, 2, 16))
    for method, mode in (("bilinear", "half_pixel"), ("bilinear", "align_corners"),
                         ("nearest", "asymmetric"), ("nearest", "half_pixel")):
        yield Case("Resize", [image], {"method": method.upper(), "mode": mode.upper(),
                                       "ratio_y": 1.5, "ratio_x": 2.0},
                   lambda x, method=method, mode=mode: resized(x, (9, 10), method, mode))
    yield Case("BasicLSTM", [seq, h, c], {"time_steps": 5, "input_size": 4, "cell_size": 3,
                                          "direction": "forward", "out_sequence": "[Y,H,C]"},
               lambda x, h, c: lstm(x, h, c, lw, lb), {"weights": lw, "biases": lb})
    for version in (1, 3):
        bias = gb if version == 1 else gb[:9]
        yield Case(f"GRUv{version}", [seq, h], {"time_steps": 5, "input_size": 4, "cell_size": 3,
                                                "direction": "forward", "out_sequence": "[H,Hn]"},
                   lambda x, h, version=version, bias=bias: gru(x, h, gw, bias, version),
                   {"weights": gw, "biases": bias})


def shape_text(arrays):
    return "[" + ",".join("[" + ",".join(map(str, a.shape)) + "]" for a in arrays) + "]"


def scale_of(array):
    """int8's steps for these values, without a zero point."""
    return max(np.abs(array).max(), 1e-3) / 127


def write_ir(folder, case, results, quantized):
    """NAME.txt and NAME.bin; the inputs that are not constants, by name, and the result names."""
    data, layers, inputs, names = b"", [], {}, []

    def constant(lines, name, array):
        nonlocal data
        data += b"\0" * (-len(data) % 8)
        lines += [f"{name}_type={array.dtype}", f"{name}_offset={len(data)}",
                  f"{name}_size={array.nbytes}", f"{name}_shape={shape_text([array])[1:-1]}"]
        data += array.tobytes()

    def stored(array):
        return array.dtype.name if array.dtype.kind == "i" else "int8" if quantized else "float32"

    def layer(name, kind, bottoms, tops, top_names):
        lines = [f"layer_id={len(layers)}", f"layer_name={name}", f"layer_type={kind}",
                 "layer_bottom=[" + ",".join(names[:len(bottoms)]) + "]",
                 f"layer_bottom_shape={shape_text(bottoms)}",
                 "layer_bottom_type=[" + ",".join(map(stored, bottoms)) + "]",
                 "layer_top=[" + ",".join(top_names) + "]", f"layer_top_shape={shape_text(tops)}",
                 "layer_top_type=[" + ",".join(map(stored, tops)) + "]"]
        if quantized and any(top.dtype.kind == "f" for top in tops):
            scales = [1.0 if top.dtype.kind == "i" else 1 / scale_of(top) for top in tops]
            lines += ["layer_top_scale=[" + ",".join(f"{s:.18g}" for s in scales) + "]",
                      "layer_top_zp=[" + ",".join("0" for _ in tops) + "]"]
        layers.append(lines)
        return lines

    for i, array in enumerate(case.bottoms):
        name = f"x{i}"
        if array.dtype.kind == "i":
            constant(layer(name, "Constant", [], [array], [name]), "weights", array)
        else:
            layer(name, "Input", [], [array], [name])
            inputs[name] = array.astype(np.float32)
        names.append(name)
    tops = [f"y{i}" for i in range(len(results))]
    lines = layer("layer", case.kind, case.bottoms, results, tops)
    for name, array in case.constants.items():
        if quantized and name == "weights":
            scale = scale_of(array)
            constant(lines, name, np.rint(array / scale).astype(np.int8))
            constant(lines, "weights_scale", np.array([1 / scale]))
        elif quantized:
            unit = scale_of(case.constants["weights"]) * scale_of(case.bottoms[0])
            constant(lines, name, np.rint(array / unit).astype(np.int32))
        else:
            constant(lines, name, array.astype(np.float32))
    lines += [f"{key}={value}" for key, value in case.attributes.items()]
    head = ["model_name=m", f"layer_number={len(layers)}",
            "input_tensors=[" + ",".join(inputs) + "]", "output_tensors=[" + ",".join(tops) + "]"]
    with open(os.path.join(folder, "m.txt"), "w", encoding="utf-8") as f:
        f.write("\n\n".join("\n".join(block) for block in [head, *layers]) + "\n\n")
    with open(os.path.join(folder, "m.bin"), "wb") as f:
        f.write(data)
    return inputs, tops


def distance(got, wanted):
    """The largest difference, relative to the largest value."""
    return np.abs(got.astype(np.float64) - wanted).max() / max(1e-3, np.abs(wanted).max())


def check_case(number, case, folder):
    """What became of the layer in float, on GRUS and in int8: None where it was refused."""
    place = os.path.join(folder, str(number))
    what = f"{case.kind} {case.attributes}"
    results = case.function(*[a.astype(np.float64) if a.dtype.kind == "f" else a
                              for a in case.bottoms])
    results = results if isinstance(results, list) else [results]
    results = [r.astype(np.int32) if i in case.whole else r for i, r in enumerate(results)]
    found = []
    for quantized, core in ((False, "GRUS"), (True, "X2_1204")):
        os.makedirs(os.path.join(place, core))
        path = os.path.join(place, core, "c.yaml")
        inputs, tops = write_ir(os.path.join(place, core), case, results, quantized)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\nFRAMEWORK: COMPASS\nMODEL_FILE: m.txt\nOUTPUT_FILE: m.h\n")
        harness.npuc("ir", "check", os.path.join(place, core, "m.txt"))
        if not quantized:
            got = harness.simulate(path, inputs, os.path.join(place, "float"), tops, "reference")
            for top, wanted in zip(tops, results):
                error = distance(got[top], wanted)
                harness.check(error <= FLOAT_TOLERANCE, f"{what}: {top} is {error:.2g} off")
        out = os.path.join(place, core, "out")
        built = harness.npuc(path, "-o", out, expect=None)
        if built.returncode != 0:
            harness.check("[NPUC" in built.stderr, f"{what} on {core}: {built.stderr}")
            found.append(None)
            continue
        got = harness.simulate(os.path.join(out, "m.npuc"), inputs,
                               os.path.join(place, core, "run"), tops)
        limit = INT8_STEPS / 127 if quantized else FP16_TOLERANCE
        errors = [distance(got[top], wanted) for top, wanted in zip(tops, results)]
        harness.check(max(errors) <= limit, f"{what} on {core}: {max(errors):.3g} off")
        found.append(max(errors))
    return found


def main(arguments):
    chosen = set(arguments)
    counts = {"types": set(), "grus": 0, "int8": 0, "all": 0}
    refused = set()
    with harness.scratch() as folder:
        for number, case in enumerate(cases(np.random.default_rng(SEED))):
            if chosen and case.kind not in chosen:
                continue
            grus, int8 = check_case(number, case, folder)
            counts["all"] += 1
            counts["types"].add(case.kind)
            counts["grus"] += grus is not None
            counts["int8"] += int8 is not None
            if int8 is None:
                refused.add(case.kind)
    harness.check(counts["all"] > 0, f"no layer type is among {sorted(chosen)}")
    harness.figure(f"compass_layers: {len(counts['types'])} layer types in {counts['all']} files "
                   f"are NumPy's in float; {counts['grus']} files compile for GRUS, "
                   f"{counts['int8']} in int8 for X2_1204; "
                   f"refused there: {', '.join(sorted(refused)) or 'none'}")
