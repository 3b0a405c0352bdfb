"""TFLite's published integer arithmetic in NumPy, after its specification and reference kernels.

Written apart from npuc and reading the .tflite file by itself, so that equal bits mean something.
Sources: TensorFlow Lite's 8-bit quantization specification, and the arithmetic of its reference
kernels (MultiplyByQuantizedMultiplier with two roundings, gemmlowp's fixed-point softmax).

Usage: int8_emulation.py MODEL.tflite INPUT.npy OUTPUT.npy   (stored values in and out)
"""

import math
import struct
import sys

import numpy as np

INT32_MIN, INT32_MAX = -2**31, 2**31 - 1
OPS = {0: "ADD", 1: "AVERAGE_POOL_2D", 3: "CONV_2D", 4: "DEPTHWISE_CONV_2D", 6: "DEQUANTIZE",
       9: "FULLY_CONNECTED", 17: "MAX_POOL_2D", 22: "RESHAPE", 25: "SOFTMAX", 34: "PAD",
       39: "TRANSPOSE", 40: "MEAN", 114: "QUANTIZE"}
TYPES = {0: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 7: np.int16, 9: np.int8}


class Table:
    """One FlatBuffers table."""

    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        self.size = struct.unpack_from("<H", data, self.vtable)[0]

    def place(self, field):
        slot = 4 + 2 * field
        if slot >= self.size:
            return None
        offset = struct.unpack_from("<H", self.data, self.vtable + slot)[0]
        return self.at + offset if offset else None

    def scalar(self, field, form, default=0):
        place = self.place(field)
        return default if place is None else struct.unpack_from("<" + form, self.data, place)[0]

    def follow(self, field):
        place = self.place(field)
        return None if place is None else place + struct.unpack_from("<I", self.data, place)[0]

    def table(self, field):
        at = self.follow(field)
        return None if at is None else Table(self.data, at)

    def tables(self, field):
        at = self.follow(field)
        count = 0 if at is None else struct.unpack_from("<I", self.data, at)[0]
        places = [at + 4 + 4 * i for i in range(count)]
        return [Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]

    def vector(self, field, dtype):
        at = self.follow(field)
        if at is None:
            return np.zeros(0, dtype)
        count = struct.unpack_from("<I", self.data, at)[0]
        return np.frombuffer(self.data, dtype, count, at + 4)

    def text(self, field):
        return self.vector(field, np.uint8).tobytes().decode()


class Tensor:
    def __init__(self, table, buffers):
        self.shape = table.vector(0, np.int32).tolist()
        self.dtype = TYPES[table.scalar(1, "b")]
        self.name = table.text(3)
        raw = buffers[table.scalar(2, "I")].vector(0, np.uint8)
        self.constant = (np.frombuffer(raw.tobytes(), self.dtype).reshape(self.shape)
                         if raw.size else None)
        quant = table.table(4)
        self.scales = quant.vector(2, np.float32) if quant else np.zeros(0, np.float32)
        self.zeros = quant.vector(3, np.int64) if quant else np.zeros(0, np.int64)

    @property
    def scale(self):
        return np.float32(self.scales[0])

    @property
    def zero(self):
        return int(self.zeros[0])


def quantize_multiplier(real):
    """(Q31 multiplier, exponent) of a real factor."""
    if real == 0:
        return 0, 0
    fraction, exponent = math.frexp(real)
    q = int(math.floor(fraction * 2**31 + 0.5))
    if q == 2**31:
        q, exponent = q // 2, exponent + 1
    return (0, 0) if exponent < -31 else (q, exponent)


def high_mul(a, b):
    """gemmlowp's SaturatingRoundingDoublingHighMul of int64 arrays that hold int32 values."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    result = np.where(nudged >= 0, nudged >> 31, -((-nudged) >> 31))  # division truncates
    return np.where((np.asarray(a) == INT32_MIN) & (np.asarray(b) == INT32_MIN), INT32_MAX, result)


def divide_by_pot(x, exponent):
    """gemmlowp's RoundingDivideByPOT."""
    x, exponent = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> exponent) + ((x & mask) > threshold)


def wrap32(x):
    return (np.asarray(x, np.int64) + 2**31) % 2**32 - 2**31


def scaled(x, factors):
    """MultiplyByQuantizedMultiplier; factors: one, or one for each index of the last dimension."""
    multipliers = np.array([f[0] for f in factors], np.int64)
    exponents = np.array([f[1] for f in factors], np.int64)
    left, right = np.maximum(exponents, 0), np.maximum(-exponents, 0)
    return divide_by_pot(high_mul(wrap32(np.asarray(x, np.int64) << left), multipliers), right)


def activation_range(code, out):
    low, high = np.iinfo(out.dtype).min, np.iinfo(out.dtype).max
    quantized = lambda x: out.zero + int(np.floor(abs(np.float32(x) / out.scale) + 0.5))
    if code in (1, 3):
        low = max(low, quantized(0))
    if code == 3:
        high = min(high, quantized(6))
    return low, high


def stored(value, code, out):
    low, high = activation_range(code, out)
    return np.clip(value + out.zero, low, high).astype(out.dtype)


def padding(code, size, kernel, stride, dilation=1):
    """(before, result's size)."""
    reach = (kernel - 1) * dilation + 1
    if code == 1:  # VALID
        return 0, (size - reach + stride) // stride
    out = (size + stride - 1) // stride
    return max(0, (out - 1) * stride + reach - size) // 2, out


def windows(x, kernel, stride, pad, out, dilation, fill):
    """[N,oh,ow,kh,kw,C] of x [N,H,W,C], `fill` outside."""
    rows = np.arange(out[0])[:, None] * stride[0] - pad[0] + np.arange(kernel[0]) * dilation[0]
    cols = np.arange(out[1])[:, None] * stride[1] - pad[1] + np.arange(kernel[1]) * dilation[1]
    inside = (((rows >= 0) & (rows < x.shape[1]))[:, None, :, None]
              & ((cols >= 0) & (cols < x.shape[2]))[None, :, None, :])
    taken = x[:, np.clip(rows, 0, x.shape[1] - 1)[:, None, :, None],
              np.clip(cols, 0, x.shape[2] - 1)[None, :, None, :]]
    return np.where(inside[None, ..., None], taken, fill), inside


def convolution(x, w, bias, geometry, depthwise):
    kernel, stride, pad, out, dilation = geometry
    taps, _ = windows(x, kernel, stride, pad, out, dilation, 0)
    if depthwise:  # w [1,kh,kw,C*M]
        multiplier = w.shape[3] // x.shape[3]
        taps = np.repeat(taps, multiplier, axis=5)
        sums = np.einsum("nhwijc,ijc->nhwc", taps, w[0])
    else:  # w [O,kh,kw,C]
        n, h, v = taps.shape[:3]
        flat = taps.reshape(n * h * v, -1).astype(np.float64)  # sums below 2^53 are exact
        sums = (flat @ w.reshape(w.shape[0], -1).astype(np.float64).T).astype(np.int64)
        sums = sums.reshape(n, h, v, -1)
    return sums + bias


def exp_on_negative(x):
    """gemmlowp's exp_on_negative_values for 5 integer bits: Q26 in, Q31 out."""
    x = np.asarray(x, np.int64)
    quarter = 1 << 24
    last = (x & (quarter - 1)) - quarter
    a = np.clip(last << 5, INT32_MIN, INT32_MAX) + (1 << 28)
    a2 = high_mul(a, a)
    a3, a4 = high_mul(a2, a), high_mul(a2, a2)
    inner = divide_by_pot(high_mul(divide_by_pot(a4, 2) + a3, 715827883) + a2, 1)
    result = 1895147668 + high_mul(1895147668, a + inner)
    rest = last - x
    powers = [1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242]
    for i, power in enumerate(powers):
        result = np.where((rest >> (24 + i)) & 1, high_mul(result, power), result)
    return np.where(x == 0, INT32_MAX, result)


def reciprocal(x):
    """(1 / x as Q31 of the normalised sum, bits over unit) for sums of 12 integer bits."""
    headroom = 32 - int(x).bit_length()
    half = ((int(x) << headroom) - (1 << 31) + INT32_MAX + 1) // 2
    y = 1515870810 + int(high_mul(half, -1010580540))
    for _ in range(3):
        error = (1 << 29) - int(high_mul(half, y))
        y += max(INT32_MIN, min(INT32_MAX, int(high_mul(y, error)) << 2))
    return max(INT32_MIN, min(INT32_MAX, y << 1)), 12 - headroom


def softmax(x, source, out, beta):
    lowest = np.iinfo(out.dtype).min
    real = min(beta * float(source.scale) * 2**26, 2.0**31 - 1)
    multiplier, left = quantize_multiplier(real)
    diff_min = -int(math.floor(31.0 * 2.0**26 / 2.0**left))
    diff = x.astype(np.int64) - x.max(axis=-1, keepdims=True)
    exps = exp_on_negative(high_mul(wrap32(diff << left), multiplier))
    kept = diff >= diff_min
    sums = np.where(kept, divide_by_pot(exps, 12), 0).sum(axis=-1)
    result = np.full(x.shape, lowest, np.int64)
    for row in np.ndindex(sums.shape):
        share, over = reciprocal(sums[row])
        value = divide_by_pot(high_mul(share, exps[row]), over + 31 - 8) + lowest
        result[row] = np.where(kept[row], np.clip(value, lowest, np.iinfo(out.dtype).max), lowest)
    return result.astype(out.dtype)


class Model:
    def __init__(self, path):
        with open(path, "rb") as stream:
            data = stream.read()
        root = Table(data, struct.unpack_from("<I", data, 0)[0])
        buffers = root.tables(4)
        codes = [max(c.scalar(0, "b"), c.scalar(3, "i")) for c in root.tables(1)]
        graph = root.tables(2)[0]
        self.tensors = [Tensor(t, buffers) for t in graph.tables(0)]
        self.inputs = graph.vector(1, np.int32).tolist()
        self.outputs = graph.vector(2, np.int32).tolist()
        self.ops = [(OPS[codes[o.scalar(0, "I")]], o.vector(1, np.int32).tolist(),
                     o.vector(2, np.int32).tolist(), o.table(4)) for o in graph.tables(3)]

    def run(self, x):
        """Stored values of every tensor, by index, for input x [N, ...] of stored values."""
        values = {self.inputs[0]: x}
        for kind, inputs, outputs, options in self.ops:
            operands = [values.get(i, self.tensors[i].constant) if i >= 0 else None
                        for i in inputs]
            values[outputs[0]] = self.apply(kind, operands, [self.tensors[i] for i in inputs
                                                             if i >= 0],
                                            self.tensors[outputs[0]], options)
        return values

    def apply(self, kind, operands, types, out, options):
        x = operands[0]
        source = types[0]
        if kind == "DEQUANTIZE" or (kind == "QUANTIZE" and not len(source.scales)):
            return x  # the border to float: stored values are what goes in and comes out here
        if kind == "RESHAPE":
            return x.reshape([len(x)] + out.shape[1:])
        if kind == "SOFTMAX":
            return softmax(x, source, out, options.scalar(0, "f", 1.0))
        if kind == "ADD":
            return self.add(operands, types, out, options)
        if kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            return self.pool(kind, x, out, options)
        if kind == "QUANTIZE":
            factor = quantize_multiplier(float(source.scale) / float(out.scale))
            return stored(scaled(x.astype(np.int64) - source.zero, [factor]), 0, out)
        return self.weighted(kind, operands, types, out, options)

    def weighted(self, kind, operands, types, out, options):
        source, weight = types[:2]
        x, w = operands[0], operands[1].astype(np.int64) - weight.zeros[0]  # 9 bits of a uint8 one
        if np.any(weight.zeros != weight.zeros[0]):
            raise NotImplementedError("a weight of several zero points")
        bias = operands[2].astype(np.int64) if len(operands) > 2 and operands[2] is not None else 0
        shifted = x.astype(np.int64) - source.zero
        if kind == "FULLY_CONNECTED":
            sums = shifted.reshape(len(x), -1) @ w.T + bias
            real = [float(np.float32(source.scale * weight.scale)) / float(out.scale)]
            if len(weight.scales) > 1:
                real = [float(source.scale) * float(s) / float(out.scale) for s in weight.scales]
            code = options.scalar(0, "b")
        else:
            depthwise = kind == "DEPTHWISE_CONV_2D"
            stride = (options.scalar(2, "i"), options.scalar(1, "i"))
            shift = 1 if depthwise else 0
            dilation = (options.scalar(5 + shift, "i", 1), options.scalar(4 + shift, "i", 1))
            kernel = w.shape[1:3]
            pads = [padding(options.scalar(0, "b"), x.shape[1 + i], kernel[i], stride[i],
                            dilation[i]) for i in (0, 1)]
            geometry = (kernel, stride, (pads[0][0], pads[1][0]), (pads[0][1], pads[1][1]),
                        dilation)
            sums = convolution(shifted, w, bias, geometry, depthwise)
            real = [float(source.scale) * float(s) / float(out.scale) for s in weight.scales]
            code = options.scalar(3 + shift, "b")
        return stored(scaled(wrap32(sums), [quantize_multiplier(r) for r in real]), code, out)

    def add(self, operands, types, out, options):
        twice = 2 * max(float(types[0].scale), float(types[1].scale))
        parts = [scaled((x.astype(np.int64) - t.zero) << 20,
                        [quantize_multiplier(float(t.scale) / twice)])
                 for x, t in zip(operands, types)]
        factor = quantize_multiplier(twice / (2**20 * float(out.scale)))
        return stored(scaled(parts[0] + parts[1], [factor]), options.scalar(0, "b"), out)

    def pool(self, kind, x, out, options):
        stride = (options.scalar(2, "i"), options.scalar(1, "i"))
        kernel = (options.scalar(4, "i"), options.scalar(3, "i"))
        pads = [padding(options.scalar(0, "b"), x.shape[1 + i], kernel[i], stride[i])
                for i in (0, 1)]
        mean = kind == "AVERAGE_POOL_2D"
        taps, inside = windows(x.astype(np.int64), kernel, stride, (pads[0][0], pads[1][0]),
                               (pads[0][1], pads[1][1]), (1, 1),
                               0 if mean else np.iinfo(out.dtype).min)
        if mean:
            sums = taps.sum(axis=(3, 4))
            counts = inside.sum(axis=(2, 3))[None, :, :, None]
            half = counts // 2
            value = np.where(sums > 0, (sums + half) // counts, -((half - sums) // counts))
        else:
            value = taps.max(axis=(3, 4))
        low, high = activation_range(options.scalar(5, "b"), out)
        return np.clip(value, low, high).astype(out.dtype)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model = Model(sys.argv[1])
    values = model.run(np.load(sys.argv[2]))
    np.save(sys.argv[3], values[model.outputs[0]])


if __name__ == "__main__":
    main()
