#!/usr/bin/python3
"""Records ops/<name>/golden/*.txt: each a graph of constants, one operator and the values that
numpy computes for it, so that the reference kernels are checked against code that shares nothing
with them. Run by hand after an operator is added; the files are committed.

    make_golden.py [OPERATOR...]   writes those of the operators named, as op_list.inc has them; all
                                   without a name. Each table's row, and each function without a
                                   table, draws from random numbers of its own, so that a new
                                   operator changes no other's cases.
"""
import pathlib
import sys
import zlib
import numpy as np

HERE = pathlib.Path(__file__).parent
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16",
         "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
         "bool": "bool"}
rng = np.random.default_rng()  # draw_for sets it
only = set(sys.argv[1:])
written = set()


def draw_for(name):
    global rng
    rng = np.random.default_rng(zlib.crc32(name.encode()))


def type_text(a):
    return NAMES[str(a.dtype)] + "[" + ",".join(map(str, a.shape)) + "]"


def tensor_text(a):
    return f'{type_text(a)} "{np.ascontiguousarray(a).tobytes().hex()}"'


def attr_text(v):
    if isinstance(v, np.ndarray):
        return tensor_text(v)
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (list, tuple)):
        return "[" + ", ".join(map(str, v)) + "]"
    if isinstance(v, str):
        return f'"{v}"'
    return repr(v)


def emit(op, case, inputs, attrs, outputs):
    if only and op not in only:
        return
    written.add(op)
    lines = [f'graph "{op} {case}" {{']
    for i, a in enumerate(inputs):
        lines.append(f"  %in{i} = Const() {{value = {tensor_text(a)}}} : {type_text(a)}")
    for i, a in enumerate(outputs):
        lines.append(f"  %want{i} = Const() {{value = {tensor_text(a)}}} : {type_text(a)}")
    results = ", ".join(f"%out{i}" for i in range(len(outputs)))
    operands = ", ".join(f"%in{i}" for i in range(len(inputs)))
    body = ", ".join(f"{k} = {attr_text(v)}" for k, v in attrs.items())
    body = f" {{{body}}}" if body else ""
    types = ", ".join(type_text(a) for a in outputs)
    lines.append(f'  {results} = {op}({operands}){body} : {types} @"{case}"')
    pairs = [f'%out{i} @"got{i}", %want{i} @"want{i}"' for i in range(len(outputs))]
    lines.append("  return " + ", ".join(pairs))
    folder = HERE / op.lower() / "golden"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{case}.txt").write_text("\n".join(lines) + "\n}\n")


def f32(*shape, lo=-3.0, hi=3.0):
    return rng.uniform(lo, hi, shape).astype(np.float32)


def wide(a):
    return a.astype(np.float64) if a.dtype.kind == "f" else a


def narrow(value, like):
    """One rounding to f32; f16 by way of f32."""
    if like.dtype == np.float16:
        return np.asarray(value).astype(np.float32).astype(np.float16)
    return np.asarray(value).astype(like.dtype)


def unary():
    selu_a, selu_s = 1.6732632423543772848, 1.0507009873554804934
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88.0, -104.0], np.float32)
    table = {
        "Abs": (np.abs, True), "Neg": (np.negative, True), "Square": (np.square, True),
        "Relu": (lambda x: np.maximum(x, 0), True), "Relu6": (lambda x: np.clip(x, 0, 6), True),
        "Exp": (np.exp, False), "Log": (np.log, False), "Sqrt": (np.sqrt, False),
        "Rsqrt": (lambda x: 1 / np.sqrt(x), False), "Reciprocal": (lambda x: 1 / x, False),
        "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), False), "Tanh": (np.tanh, False),
        "Selu": (lambda x: np.where(x > 0, selu_s * x, selu_s * selu_a * np.expm1(x)), False),
    }
    for op, (fn, ints) in table.items():
        draw_for(op)
        for case, x in {"f32": f32(2, 7, lo=-9, hi=9), "f16": f32(9).astype(np.float16),
                        "f64": f32(3, 1).astype(np.float64), "special": special,
                        "scalar": f32(lo=0.5), "empty": f32(0, 3)}.items():
            emit(op, case, [x], {}, [narrow(fn(wide(x)), x)])
        if ints:
            for dt in (np.int32, np.int8, np.int64):
                x = rng.integers(-9, 10, (2, 5)).astype(dt)
                x[0, 0] = np.iinfo(dt).min
                emit(op, np.dtype(dt).name, [x], {}, [fn(x)])
    draw_for("Identity")
    x = f32(2, 3)
    emit("Identity", "f32", [x], {}, [x])


def table():
    """A function by its values: numpy's interpolation between the points."""
    draw_for("Table")
    for case, low, high, bits, dtype in (("f32", -2, 3, 2, np.float32),
                                         ("f16", -1, 1, 0, np.float16),
                                         ("fine", -4, 4, 5, np.float32)):
        side = [2.0 ** e * (1 + k / 2 ** bits) for e in range(low, high) for k in range(2 ** bits)]
        side.append(2.0 ** high)
        points = np.array([0.0] + side + [-p for p in side], np.float32)
        values = f32(len(points))
        order = np.argsort(points)
        x = np.concatenate([points, f32(40, lo=-12, hi=12), [-0.0, np.inf, -np.inf]]).astype(dtype)
        y = np.interp(x.astype(np.float64), points[order], values[order].astype(np.float64))
        emit("Table", case, [x], {"lowest": low, "highest": high, "bits": bits, "values": values},
             [narrow(y, x)])


def binary():
    def trunc_div(a, b):
        if a.dtype.kind == "f":
            return a / b
        return np.trunc(a.astype(np.float64) / b).astype(a.dtype)
    table = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": trunc_div,
             "Maximum": np.maximum, "Minimum": np.minimum, "Pow": np.power,
             "SquaredDifference": lambda a, b: (a - b) * (a - b)}
    shapes = {"same": ((2, 3), (2, 3)), "scalar": ((), (2, 2)), "row": ((2, 3, 4), (4,)),
              "column": ((3, 1), (1, 5)), "inner": ((2, 1, 3), (2, 4, 1)),
              "empty": ((0, 3), (1, 3))}
    for op, fn in table.items():
        draw_for(op)
        lo = 0.1 if op == "Pow" else -3.0
        for case, (sa, sb) in shapes.items():
            a, b = f32(*sa, lo=lo), f32(*sb, lo=lo)
            emit(op, case, [a, b], {}, [narrow(fn(wide(a), wide(b)), a)])
        a, b = f32(5, lo=lo).astype(np.float16), f32(5, lo=lo).astype(np.float16)
        emit(op, "f16", [a, b], {}, [narrow(fn(wide(a), wide(b)), a)])
        for dt in (np.int32, np.int64):
            a = rng.integers(-7, 8, (3, 4)).astype(dt)
            b = rng.integers(1, 5, (4,)).astype(dt)
            emit(op, np.dtype(dt).name, [a, b], {}, [fn(a, b)])
        a = np.array([np.nan, 1, np.inf, -np.inf, 0], np.float32)
        b = np.array([1, np.nan, -np.inf, np.inf, 0], np.float32)
        emit(op, "special", [a, b], {}, [narrow(fn(wide(a), wide(b)), a)])


def matmul():
    cases = {"plain": ((3, 4), (4, 5), False, False), "ta": ((4, 3), (4, 5), True, False),
             "tb": ((3, 4), (5, 4), False, True), "both": ((4, 3), (5, 4), True, True),
             "batch": ((2, 3, 4), (2, 4, 2), False, False),
             "batch_broadcast": ((2, 1, 3, 4), (3, 2, 4), False, True),
             "batch_matrix": ((2, 3, 4), (4, 2), False, False),
             "no_inner": ((2, 0), (0, 3), False, False)}
    for case, (sa, sb, ta, tb) in cases.items():
        a, b = f32(*sa), f32(*sb)
        x = np.swapaxes(wide(a), -1, -2) if ta else wide(a)
        y = np.swapaxes(wide(b), -1, -2) if tb else wide(b)
        emit("MatMul", case, [a, b], {"transpose_a": ta, "transpose_b": tb},
             [narrow(np.matmul(x, y), a)])
    a, b = (rng.integers(-9, 9, s).astype(np.int32) for s in ((2, 3), (3, 2)))
    emit("MatMul", "int32", [a, b], {}, [a @ b])
    a, b = (f32(*s).astype(np.float16) for s in ((2, 3), (3, 2)))
    emit("MatMul", "f16", [a, b], {}, [narrow(wide(a) @ wide(b), a)])


def reduce():
    table = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max}
    for op, fn in table.items():
        draw_for(op)
        for axes in ([], [0], [1], [2], [0, 2], [0, 1, 2]):
            for keep in (False, True):
                x = f32(2, 3, 4)
                emit(op, f"axes{''.join(map(str, axes))}_{'keep' if keep else 'drop'}", [x],
                     {"axes": axes, "keep_dims": keep},
                     [narrow(fn(wide(x), axis=tuple(axes), keepdims=keep), x)])
        x = f32(2, 6).astype(np.float16)
        emit(op, "f16", [x], {"axes": [1]}, [narrow(fn(wide(x), axis=1), x)])
    draw_for("reduce")
    x = rng.integers(-9, 10, (3, 4)).astype(np.int32)
    emit("ReduceSum", "int32", [x], {"axes": [1]}, [x.sum(1).astype(np.int32)])
    emit("ReduceMax", "int32", [x], {"axes": [0]}, [x.max(0)])
    emit("ReduceMean", "int32", [x], {"axes": [1]}, [np.trunc(x.sum(1) / 4).astype(np.int32)])
    e = f32(2, 0)
    emit("ReduceSum", "of_nothing", [e], {"axes": [1]}, [np.zeros(2, np.float32)])
    emit("ReduceMean", "of_nothing", [e], {"axes": [1]}, [np.full(2, np.nan, np.float32)])
    emit("ReduceMax", "of_nothing", [e], {"axes": [1]}, [np.full(2, -np.inf, np.float32)])


def softmax():
    for shape, axis in (((2, 5), -1), ((2, 5), 0), ((2, 3, 4), 1), ((7,), 0), ((0, 3), 1)):
        x = f32(*shape, lo=-200, hi=200) if shape == (7,) else f32(*shape)
        s = wide(x) - (wide(x).max(axis, keepdims=True) if x.size else 0)
        e = np.exp(s)
        total = e.sum(axis, keepdims=True)
        case = "x".join(map(str, shape)) + f"_axis{axis % len(shape)}"
        emit("Softmax", case, [x], {"axis": axis}, [narrow(e / total, x)])
        emit("LogSoftmax", case, [x], {"axis": axis}, [narrow(s - np.log(total), x)])
    x = f32(2, 3)
    e = np.exp(wide(x))
    emit("Softmax", "default_axis", [x], {}, [narrow(e / e.sum(-1, keepdims=True), x)])
    emit("LogSoftmax", "default_axis", [x], {},
         [narrow(np.log(e / e.sum(-1, keepdims=True)), x)])


def layout():
    x = f32(2, 3, 4)
    for shape in ([24], [4, 3, 2], [1, 24, 1]):
        emit("Reshape", "to" + "x".join(map(str, shape)), [x], {"shape": shape}, [x.reshape(shape)])
    for perm in ([0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0], [0, 2, 1]):
        emit("Transpose", "perm" + "".join(map(str, perm)), [x], {"perm": perm},
             [x.transpose(perm)])
    for a in (x.astype(np.float16), x.astype(np.float64), x.astype(np.int8)):
        emit("Transpose", NAMES[str(a.dtype)], [a], {"perm": [2, 0, 1]}, [a.transpose(2, 0, 1)])
    for axis in (0, 1, 2, -1):
        parts = []
        for n in (1, 3, 2):
            shape = [2, 3, 4]
            shape[axis] = n
            parts.append(f32(*shape))
        emit("Concat", f"axis{axis % 3}{'_negative' if axis < 0 else ''}", parts, {"axis": axis},
             [np.concatenate(parts, axis)])
    emit("Concat", "one_and_empty", [f := f32(2, 2), f32(0, 2)], {"axis": 0}, [f])
    emit("Split", "axis2", [x], {"axis": 2, "sizes": [1, 3]}, [x[..., :1], x[..., 1:]])
    emit("Split", "axis0", [x], {"axis": -3, "sizes": [1, 0, 1]}, [x[:1], x[1:1], x[1:]])
    emit("Slice", "plain", [x], {"begin": [1, 0, 1], "size": [1, 2, 3], "strides": [1, 1, 1]},
         [x[1:2, 0:2, 1:4]])
    emit("Slice", "strided", [x], {"begin": [0, 2, 0], "size": [2, 2, 2], "strides": [1, -2, 3]},
         [x[:, ::-2, ::3]])
    emit("Slice", "reversed", [x], {"begin": [1, 2, 3], "size": [2, 3, 4], "strides": [-1, -1, -1]},
         [x[::-1, ::-1, ::-1]])
    emit("Slice", "nothing", [x], {"begin": [0, 3, 0], "size": [2, 0, 4], "strides": [1, 1, 1]},
         [x[:, 3:3]])
    emit("Pad", "zeros", [x], {"paddings": [1, 0, 0, 2, 1, 1]},
         [np.pad(x, ((1, 0), (0, 2), (1, 1)))])
    emit("Pad", "value", [x], {"paddings": [0, 0, 1, 0, 0, 3], "value": -1.5},
         [np.pad(x, ((0, 0), (1, 0), (0, 3)), constant_values=-1.5)])
    i = rng.integers(-9, 9, (2, 2)).astype(np.int32)
    emit("Pad", "int32", [i], {"paddings": [1, 1, 0, 0], "value": 7.0},
         [np.pad(i, ((1, 1), (0, 0)), constant_values=7)])


def same_pads(size, k, s, d):
    out = -(-size // s)
    total = max((out - 1) * s + (k - 1) * d + 1 - size, 0)
    return [total // 2, total - total // 2]


def windows(x, k, s, d, pads, fill):
    """[n, oh, ow, kh, kw, c] in double, padding holding `fill`."""
    p = np.pad(wide(x), ((0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0)),
               constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(
        p, ((k[0] - 1) * d[0] + 1, (k[1] - 1) * d[1] + 1), axis=(1, 2))
    view = view[:, ::s[0], ::s[1], :, ::d[0], ::d[1]]
    return np.moveaxis(view, 3, 5)


WINDOWS = {  # kernel, stride, dilation, pads (None: SAME)
    "valid": ((2, 3), (1, 1), (1, 1), [0, 0, 0, 0]), "same": ((3, 3), (1, 1), (1, 1), None),
    "same_stride": ((3, 2), (2, 2), (1, 1), None),
    "explicit": ((3, 2), (1, 2), (1, 1), [2, 0, 1, 1]),
    "pointwise": ((1, 1), (1, 1), (1, 1), [0, 0, 0, 0])}
DILATED = {"dilated": ((2, 2), (1, 1), (2, 3), [0, 0, 0, 0]),
           "dilated_same": ((3, 2), (1, 1), (2, 2), None),
           "wide_pads": ((2, 2), (3, 3), (1, 1), [4, 4, 4, 4])}


def conv():
    for case, (k, s, d, pads) in {**WINDOWS, **DILATED}.items():
        x = f32(2, 6, 7, 3)
        if pads is None:
            pads = same_pads(6, k[0], s[0], d[0]) + same_pads(7, k[1], s[1], d[1])
        attrs = {"strides": list(s), "pads": pads, "dilations": list(d)}
        view = windows(x, k, s, d, pads, 0)
        w = f32(*k, 3, 4)
        emit("Conv2D", case, [x, w], attrs,
             [narrow(np.einsum("nhwklc,klco->nhwo", view, wide(w)), x)])
        m = f32(*k, 3, 2)
        out = np.einsum("nhwklc,klcm->nhwcm", view, wide(m))
        emit("DepthwiseConv2D", case, [x, m], attrs, [narrow(out.reshape(out.shape[:3] + (6,)), x)])
        if case in WINDOWS:
            pool = {"kernel": list(k), "strides": list(s), "pads": pads}
            emit("MaxPool", case, [x], pool,
                 [narrow(windows(x, k, s, d, pads, -np.inf).max((3, 4)), x)])
            ones = windows(np.ones_like(x), k, s, d, pads, 0).sum((3, 4))
            emit("AvgPool", case, [x], pool, [narrow(view.sum((3, 4)) / ones, x)])
    x, w = f32(1, 3, 3, 4), f32(2, 2, 2, 6)
    view = windows(x, (2, 2), (1, 1), (1, 1), [0] * 4, 0)
    parts = [np.einsum("nhwklc,klco->nhwo", view[..., 2 * g:2 * g + 2],
                       wide(w)[..., 3 * g:3 * g + 3])
             for g in range(2)]
    emit("Conv2D", "groups", [x, w], {"strides": [1, 1], "pads": [0] * 4},
         [narrow(np.concatenate(parts, -1), x)])
    i = rng.integers(-99, 99, (1, 4, 4, 2)).astype(np.int32)
    emit("MaxPool", "int32", [i], {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4},
         [i.reshape(1, 2, 2, 2, 2, 2).max((2, 4))])
    h = f32(1, 4, 4, 2).astype(np.float16)
    emit("AvgPool", "f16", [h], {"kernel": [2, 2], "strides": [2, 2], "pads": [0] * 4},
         [narrow(wide(h).reshape(1, 2, 2, 2, 2, 2).mean((2, 4)), h)])


def batch_norm():
    for case, shape in {"nhwc": (2, 3, 3, 4), "matrix": (3, 4), "vector": (4,)}.items():
        x, scale, offset, mean = f32(*shape), f32(4), f32(4), f32(4)
        var = f32(4, lo=0.1)
        y = (wide(x) - wide(mean)) * wide(scale) / np.sqrt(wide(var) + 1e-3) + wide(offset)
        emit("BatchNorm", case, [x, scale, offset, mean, var], {"epsilon": 1e-3}, [narrow(y, x)])


def quantize_case(case, dtype, scale, zero_point, axis, lo=None, hi=None, shape=(2, 3, 4)):
    """Both directions of one set of parameters: values beyond the range on either side, ties."""
    info = np.iinfo(dtype)
    qmin, qmax = info.min if lo is None else lo, info.max if hi is None else hi
    across = [1] * len(shape)
    if axis >= 0:
        across[axis] = shape[axis]
    s = np.array(scale).reshape(across)
    z = np.array(zero_point).reshape(across)
    steps = rng.integers(max(qmin, -2**20) - 9, min(qmax, 2**20) + 9, shape)
    # Halves of a power-of-two scale are exact ties.
    x = ((steps - z + rng.choice([0, 0.5, 0.25], shape)) * s).astype(np.float32)
    q = np.clip(np.rint(wide(x) / s) + z, qmin, qmax).astype(dtype)
    common = {"scale": list(scale), "zero_point": list(zero_point), "axis": axis}
    limits = {k: v for k, v in (("qmin", lo), ("qmax", hi)) if v is not None}
    emit("Quantize", case, [x], {**common, "dtype": NAMES[np.dtype(dtype).name], **limits}, [q])
    emit("Dequantize", case, [q], {**common, "dtype": "f32"},
         [((q.astype(np.float64) - z) * s).astype(np.float32)])


def quantize():
    quantize_case("i8", np.int8, [0.25], [-7], -1)
    quantize_case("i8_odd_scale", np.int8, [0.0371], [83], -1)
    quantize_case("u8", np.uint8, [0.5], [128], -1)
    quantize_case("i16", np.int16, [0.0009765625], [0], -1)
    quantize_case("u16", np.uint16, [0.003], [32768], -1)
    quantize_case("i32", np.int32, [0.125], [0], -1)
    quantize_case("four_bits", np.int8, [0.5], [1], -1, -8, 7)
    quantize_case("axis0", np.int8, [0.5, 0.03], [0, 5], 0)
    quantize_case("axis1", np.int8, [0.5, 0.25, 1e-05], [0, 1, -2], 1)
    quantize_case("axis2", np.uint8, [0.5, 0.25, 2.0, 3.5], [0, 255, 128, 7], 2)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.0], np.float32)
    emit("Quantize", "special", [x],
         {"scale": [0.5], "zero_point": [3], "axis": -1, "dtype": "i8"},
         [np.array([3, 127, -128, 127, -128, 3], np.int8)])
    h = f32(2, 3).astype(np.float16)
    emit("Quantize", "f16", [h], {"scale": [0.25], "zero_point": [0], "axis": -1, "dtype": "i8"},
         [np.rint(wide(h) / 0.25).astype(np.int8)])
    q = rng.integers(-9, 9, (2, 3)).astype(np.int64)
    emit("Dequantize", "i64", [q], {"scale": [0.5], "zero_point": [0]},
         [(q * 0.5).astype(np.float32)])
    q = q.astype(np.int8)
    emit("Dequantize", "f16", [q], {"scale": [0.5], "zero_point": [1], "dtype": "f16"},
         [((wide(q) - 1.0) * 0.5).astype(np.float16)])


def rounding():
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4999, 1e9, np.inf, np.nan], np.float32)
    for a in (x, f32(3, 4, lo=-20, hi=20), f32(5).astype(np.float16), f32(0, 3),
              x.astype(np.float64)):
        case = f"{NAMES[str(a.dtype)]}_{'x'.join(map(str, a.shape))}"
        emit("Round", case, [a], {}, [np.rint(a)])
    i = rng.integers(-9, 9, (2, 2)).astype(np.int32)
    emit("Round", "int32", [i], {}, [i])
    x = np.array([-2.7, -0.5, 0.0, 0.9, 3.99, 100.0], np.float32)
    for dt in (np.int8, np.int16, np.int32, np.int64, np.float16, np.float64):
        name = NAMES[np.dtype(dt).name]
        emit("Cast", f"f32_{name}", [x], {"dtype": name}, [x.astype(dt)])
    i = np.array([-129, -1, 0, 127, 128, 300], np.int32)
    for dt in (np.int8, np.uint8, np.int64, np.float32):
        name = NAMES[np.dtype(dt).name]
        emit("Cast", f"i32_{name}", [i], {"dtype": name}, [i.astype(dt)])


def selection():
    x = np.array([-2.5, -2.0, -0.0, 0.1, 1.5, 2.9999, 1e9, np.inf, -np.inf, np.nan], np.float32)
    for a in (x, f32(3, 4, lo=-20, hi=20), f32(5).astype(np.float16), f32(0, 3),
              x.astype(np.float64)):
        emit("Floor", f"{NAMES[str(a.dtype)]}_{'x'.join(map(str, a.shape))}", [a], {},
             [np.floor(a)])
    i = rng.integers(-9, 9, (2, 2)).astype(np.int32)
    emit("Floor", "int32", [i], {}, [i])
    for op, fn in {"Equal": np.equal, "Greater": np.greater,
                   "GreaterEqual": np.greater_equal}.items():
        for case, (sa, sb) in {"same": ((3, 4), (3, 4)), "row": ((2, 3, 4), (4,)),
                               "inner": ((2, 1, 3), (2, 4, 1)), "empty": ((0, 3), (1, 3))}.items():
            a = rng.integers(-2, 3, sa).astype(np.float32) / 2
            b = rng.integers(-2, 3, sb).astype(np.float32) / 2
            emit(op, case, [a, b], {}, [fn(a, b)])
            emit(op, case + "_f32", [a, b], {"dtype": "f32"}, [fn(a, b).astype(np.float32)])
        for dt in (np.int64, np.int32, np.uint8, np.float16, bool):
            a = rng.integers(0, 2 if dt == bool else 4, (3, 5)).astype(dt)
            b = rng.integers(0, 2 if dt == bool else 4, (3, 5)).astype(dt)
            emit(op, np.dtype(dt).name, [a, b], {}, [fn(a, b)])
        big = np.array([2 ** 62, 2 ** 62 + 1, -1], np.int64)
        emit(op, "large", [big, big[::-1].copy()], {}, [fn(big, big[::-1])])
        a = np.array([np.nan, 1, np.inf, -np.inf, 0, -0.0], np.float32)
        b = np.array([np.nan, np.nan, np.inf, np.inf, -0.0, 0], np.float32)
        emit(op, "special", [a, b], {}, [fn(a, b)])
    for case, (sc, sa, sb) in {"same": ((2, 3), (2, 3), (2, 3)), "mask": ((3, 1), (2, 3, 4), ()),
                               "choices": ((), (4, 1), (1, 5)),
                               "empty": ((0, 2), (1, 2), (2,))}.items():
        c, a, b = rng.integers(0, 2, sc).astype(bool), f32(*sa), f32(*sb)
        emit("Select", case, [np.asarray(c), a, b], {}, [np.where(c, a, b)])
    c = np.array([True, False, True])
    for dt in (np.int32, np.float16, bool, np.float64):
        a, b = (rng.integers(0, 2, (2, 3)).astype(dt) for _ in range(2))
        emit("Select", np.dtype(dt).name, [c, a, b], {}, [np.where(c, a, b)])
    emit("Select", "special", [c, np.array([np.inf, np.inf, 1], np.float32),
                               np.array([np.nan, 2, np.nan], np.float32)], {},
         [np.array([np.inf, 2, 1], np.float32)])
    x = rng.integers(-3, 4, (2, 3, 4)).astype(np.float32)  # with ties: the first counts
    for axis in (0, 1, 2, -1):
        emit("ArgMax", f"axis{axis % 3}{'_negative' if axis < 0 else ''}", [x], {"axis": axis},
             [x.argmax(axis)])
    emit("ArgMax", "i32", [x], {"axis": 1, "dtype": "i32"}, [x.argmax(1).astype(np.int32)])
    for dt in (np.int32, np.uint8, np.float16):
        a = rng.integers(0, 9, (3, 5)).astype(dt)
        emit("ArgMax", np.dtype(dt).name, [a], {"axis": 0}, [a.argmax(0)])
    emit("ArgMax", "default_axis", [x], {}, [x.argmax(-1)])
    x = f32(3, 4, 5)
    for axis in (0, 1, 2, -1):
        i = rng.integers(0, x.shape[axis], (2, 3))
        emit("Gather", f"axis{axis % 3}{'_negative' if axis < 0 else ''}", [x, i],
             {"axis": axis}, [np.take(x, i, axis)])
    emit("Gather", "scalar", [x, np.array(2, np.int32)], {"axis": 0}, [x[2]])
    emit("Gather", "empty", [x, np.zeros((0, 2), np.int64)], {"axis": 1},
         [np.take(x, np.zeros((0, 2), int), 1)])
    for dt in (np.int64, bool, np.float16):
        a = rng.integers(0, 2, (6,)).astype(dt)
        i = np.array([5, 0, 3], np.int32)
        emit("Gather", np.dtype(dt).name, [a, i], {}, [a[i]])


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        for record in (unary, binary, matmul, reduce, softmax, layout, conv, batch_norm,
                       quantize, rounding, selection, table):
            draw_for(record.__name__)
            record()
    if only - written:
        sys.exit(f"no cases of {', '.join(sorted(only - written))}")
