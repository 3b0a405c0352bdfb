"""What a quantized layer gives, in NumPy: the arithmetic of compiler_core/target/INTEGER_ISA.md for
models that bring their own scales, which is that of TensorFlow Lite's reference kernels.

Nothing here is the simulator's. Each rule has a second form, `ideal_...` or `ideal()`: the real
value that the operands stand for, rounded once. A caller compares the two, so that the arithmetic
itself is checked against what the formats define: they may differ by one step a layer.

Arrays are int64, channels last; `Scale` is a tensor's type, scale and zero point.
"""

import collections
import math

import numpy as np

import int8_emulation as tflite

Scale = collections.namedtuple("Scale", "dtype scale zero")  # scale: np.float32, zero: int


def is_wide(*dtypes):
    return any(np.dtype(d).itemsize > 1 for d in dtypes)


def limits(dtype):
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def largest_of(scale):
    """The largest size of a stored number less its zero point."""
    low, high = limits(scale.dtype)
    return max(high - scale.zero, scale.zero - low)


def real(stored, scale):
    return (np.asarray(stored, np.float64) - scale.zero) * np.float64(scale.scale)


def half_away(x):
    return np.trunc(x + np.copysign(0.5, x))


def ideal(value, out):
    """A real value rounded once to the stored integer."""
    return np.clip(np.rint(value / np.float64(out.scale)) + out.zero, *limits(out.dtype)).astype(
        np.int64)


def fits_32_bits(factor, largest):
    return largest << max(tflite.quantize_multiplier(float(factor))[1], 0) < 1 << 31


def rescaled(numbers, factor, largest):
    """numbers of at most `largest` in size times a real factor, as TensorFlow Lite's
    MultiplyByQuantizedMultiplier has it for 32 bits (QUANTIZE, ADD, SUB, MUL, MEAN and others, of 8
    bits and of 16). It defines nothing where a number leaves 32 bits: rounded once there."""
    multiplier, exponent = tflite.quantize_multiplier(float(factor))
    if fits_32_bits(factor, largest):
        return tflite.scaled(numbers, [(multiplier, exponent)])
    shift = 31 - exponent
    exact = [int(x) * multiplier for x in np.ravel(numbers)]
    rounded = [(x + (1 << shift >> 1)) >> shift if shift > 0 else x << -shift for x in exact]
    kept = np.array(np.clip(rounded, -(1 << 62), 1 << 62), np.int64)
    return kept.reshape(np.shape(numbers))


def requantized(sums, factors, wide):
    """sums of products times real factors (one, or one for each of the last dimension), rounded as
    the cores round: as `rescaled` for 8 bits, once and ties upwards with a multiplier of 15 bits
    for 16, which is TensorFlow Lite's MultiplyByQuantizedMultiplier for sums of 64 bits. It defines
    nothing for a factor of 2^15 or more: a shift to the left there."""
    pairs = [tflite.quantize_multiplier(float(f)) for f in factors]
    if not wide:
        return tflite.scaled(sums, pairs)
    multipliers, shifts = [], []
    for multiplier, exponent in pairs:
        multipliers.append((multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF)
        shifts.append(31 - exponent - 16 if multiplier else 0)
    sums, shifts = np.asarray(sums, np.int64), np.array(shifts, np.int64)
    nudge = np.where(shifts > 0, np.int64(1) << np.maximum(shifts - 1, 0), 0)
    scaled = (sums * np.array(multipliers, np.int64) + nudge) >> np.maximum(shifts, 0)
    left = np.maximum(-shifts, 0)
    most = np.int64(1) << 61 - left
    return np.clip(scaled, -most, most) << left


def activation_limits(activation, out):
    low, high = limits(out.dtype)
    stored = lambda x: out.zero + int(half_away(np.float64(x) / np.float64(out.scale)))
    if activation in ("RELU", "RELU6"):
        low = max(low, min(stored(0), high))
    if activation == "RELU6":
        high = max(min(high, stored(6)), limits(out.dtype)[0])
    return low, high


def activate(value, activation):
    if activation in ("RELU", "RELU6"):
        value = np.maximum(value, 0)
    return np.minimum(value, 6) if activation == "RELU6" else value


def stored(value, activation, out):
    return np.clip(value + out.zero, *activation_limits(activation, out))


# ---- layers with weights ----


def convolve(x, w, geometry, groups):
    """Integer sums of x [N,H,W,C] (zero points taken off) with w [O,kh,kw,C/groups]."""
    kernel, stride, pad, out, dilation = geometry
    taps, _ = tflite.windows(x, kernel, stride, pad, out, dilation, 0)  # [N,oh,ow,kh,kw,C]
    each, per = x.shape[3] // groups, w.shape[0] // groups
    parts = []
    for g in range(groups):
        part = taps[..., g * each:(g + 1) * each]
        n, h, v = part.shape[:3]
        flat = part.reshape(n * h * v, -1)
        parts.append((flat @ w[g * per:(g + 1) * per].reshape(per, -1).T).reshape(n, h, v, per))
    return np.concatenate(parts, axis=-1)


def weighted(sums, factors, activation, source, out, weight_dtype):
    """A layer's result from its sums with bias; factors: real, one or one a result channel."""
    wide = np.dtype(source.dtype).itemsize > 1 or np.dtype(weight_dtype).itemsize > 1
    if not wide:
        sums = tflite.wrap32(sums)
    return stored(requantized(sums, factors, wide), activation, out)


def conv_factors(source, weight_scales, out):
    return [float(source.scale) * float(s) / float(out.scale) for s in weight_scales]


def dense_factors(source, weight_scales, out):
    """TensorFlow Lite multiplies a single weight scale and the operand's as floats."""
    if len(weight_scales) == 1:
        return [float(np.float32(source.scale) * np.float32(weight_scales[0])) / float(out.scale)]
    return conv_factors(source, weight_scales, out)


# ---- element by element ----


def combine(kind, a, b, of_a, of_b, activation, out):
    a, b = a - of_a.zero, b - of_b.zero
    if kind == "DIV":
        return stored(divided(a, b, of_a, of_b, out), activation, out)
    if kind == "MUL":
        factor = float(np.float32(np.float32(of_a.scale * of_b.scale) / out.scale))
        value = rescaled(a * b, factor, largest_of(of_a) * largest_of(of_b))
        return stored(value, activation, out)
    twice = 2 * max(float(of_a.scale), float(of_b.scale))
    left = 15 if is_wide(of_a.dtype, of_b.dtype) else 20
    most = (largest_of(of_a) + largest_of(of_b) << left) // 2 + 1
    factor = twice / (2.0**left * float(out.scale))
    # Steps of the result too fine for TensorFlow Lite, which has no maximum of two scales.
    coarse = kind in ("MAXIMUM", "MINIMUM") and factor > 0.25
    if coarse or not fits_32_bits(factor, most):
        left, factor = 30, twice / (2.0**30 * float(out.scale))
        most <<= 30
    p = rescaled(a << left, float(of_a.scale) / twice, most)
    q = rescaled(b << left, float(of_b.scale) / twice, most)
    value = {"ADD": np.add, "SUB": np.subtract, "MAXIMUM": np.maximum,
             "MINIMUM": np.minimum}[kind](p, q)
    return stored(rescaled(value, factor, most), activation, out)


IDEAL_COMBINE = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
                 "MAXIMUM": np.maximum, "MINIMUM": np.minimum}


def divided(a, b, of_a, of_b, out):
    """a / b, in so many bits that the factor behind is about 2^-20; no divisor is 0."""
    whole = float(of_a.scale) / (float(of_b.scale) * float(out.scale))
    left = min(max(math.frexp(whole)[1] + 20, 0), 30)
    a, b = np.broadcast_arrays(a << left, b)
    size = (np.abs(a) + np.abs(b) // 2) // np.abs(b)
    quotients = np.where((a < 0) == (b < 0), size, -size)
    return rescaled(quotients, whole / 2.0**left, largest_of(of_a) << left)


def product(a, b, of_a, of_b, out):
    """Two activations' matrices, multiplied."""
    sums = (a - of_a.zero) @ (b - of_b.zero)
    return weighted(sums, dense_factors(of_a, [of_b.scale], out), "NONE", of_a, out, of_b.dtype)


def move(x, source, out, activation="NONE"):
    """Values that are only moved; requantized where the result's scale is another."""
    if source == out and activation == "NONE":
        return x
    factor = float(source.scale) / float(out.scale)
    return stored(rescaled(x - source.zero, factor, largest_of(source)), activation, out)


FUNCTIONS = {
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-np.clip(x, -700, 700))),
    "TANH": np.tanh,
    "ABS": np.abs,
    "NEG": np.negative,
    "EXP": np.exp,
}
PLACES = 1 << 16  # of a 16-bit operand


def table(function, points, out):
    """Entries of a function's table, and the real values, in steps, that they stand for."""
    scaled = FUNCTIONS[function](points) / np.float64(out.scale)
    low, high = limits(out.dtype)
    entries = np.clip(half_away(scaled) + out.zero, low, high).astype(np.int64)
    return entries, np.clip(scaled + out.zero, low, high)


def is_doubtful(values, out):
    """Whether one lies so near the middle of two integers that the function's last bit decides."""
    near = 2e-2 if is_wide(out.dtype) else 2e-4  # float32 has 24 bits, and so has the point
    return bool((np.abs(np.abs(values - np.floor(values)) - 0.5) < near).any())


def interpolated(entries, place, bits):
    """Entries at all places, of which a table has 2^bits + 1."""
    shift = 16 - bits
    if shift == 0:
        return entries[place]
    low, rest = place >> shift << shift, place & ((1 << shift) - 1)
    step = (entries[low + (1 << shift)] - entries[low]) * rest + (1 << (shift - 1))
    return entries[low] + (step >> shift)


def table_bits(entries, values, most):
    """The least number of bits whose table is nowhere further than `most` from the values, and
    whether the last bits of the function decide that."""
    place = np.arange(PLACES)
    doubtful = False
    for bits in range(4, 17):
        worst = np.abs(interpolated(entries, place, bits) - values[:PLACES]).max()
        doubtful = doubtful or abs(worst - most) < 2e-2 * most
        if worst <= most:
            return bits, doubtful
    return 16, doubtful


def lookup(function, x, source, out):
    """(result, doubtful)."""
    low, high = limits(source.dtype)
    if not is_wide(source.dtype):
        entries, values = table(function, real(np.arange(low, high + 1), source), out)
        return entries[x - low], is_doubtful(values, out)
    entries, values = table(function, real(low + np.arange(PLACES + 1), source), out)
    bits, doubtful = table_bits(entries, values, 1.5)
    return interpolated(entries, x - low, bits), (
        doubtful or is_doubtful(values[::1 << (16 - bits)], out))


def softmax(x, source, out):
    """Along the last dimension: TFLite's fixed point where the result is as its int8 kernel gives
    it and its sum has room for the row, else the table form of the document."""
    if (np.dtype(source.dtype), np.dtype(out.dtype)) == (np.int8, np.int8) and \
            out.scale == np.float32(1 / 256) and out.zero == -128 and x.shape[-1] < 1 << 12:
        return tflite.softmax(x.astype(np.int8), source, out, 1.0).astype(np.int64)
    distance = x.max(axis=-1, keepdims=True) - x
    one = 1 << 30
    if is_wide(source.dtype):
        behind = (PLACES - 1 - np.arange(PLACES + 1)) * float(source.scale)
        values = np.minimum(one * np.exp(-behind), 2.0**31)
        entries = np.rint(values).astype(np.int64)
        step = np.clip(float(out.scale), 2.0**-11, 2.0**-8)
        bits, _ = table_bits(entries, values, one * step / 2)
        e = interpolated(entries, PLACES - 1 - distance, bits)
    else:
        e = np.rint(one * np.exp(-np.arange(256) * float(source.scale))).astype(np.int64)[distance]
    total = np.maximum(e.sum(axis=-1, keepdims=True), 1)
    share = ((e << 24) + total // 2) // total
    multiplier, exponent = tflite.quantize_multiplier(2.0**-24 / float(out.scale))
    return stored(half_even_shift(share * multiplier, 31 - exponent), "NONE", out)


def half_even_shift(x, shift):
    """x / 2^shift to the nearest integer, ties to even."""
    if shift <= 0:
        return x << -shift
    floor, rest = x >> shift, x & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return floor + ((rest > half) | ((rest == half) & (floor & 1 == 1)))


# ---- windows ----


def pool(kind, x, geometry, source, out, activation="NONE"):
    """x [N,H,W,C]; kind MAX or MEAN, padding counts for nothing."""
    kernel, stride, pad, size = geometry
    fill = limits(source.dtype)[0] if kind == "MAX" else source.zero
    taps, inside = tflite.windows(x, kernel, stride, pad, size, (1, 1), fill)
    low, high = activation_limits(activation, out)
    if kind == "MAX":
        value = taps.max(axis=(3, 4))
        if source == out:
            return np.clip(value, low, high)
        return move(value, source, out, activation)
    counts = inside.sum(axis=(2, 3))[None, :, :, None]
    if source == out:
        sums = np.where(inside[None, ..., None], taps, 0).sum(axis=(3, 4))
        return np.clip(mean(sums, counts), low, high)
    sums = (taps - source.zero).sum(axis=(3, 4))
    return stored(scaled_mean(sums, counts, counts, source, out), activation, out)


def mean(sums, counts):
    """Divided to nearest, ties away from zero."""
    half = counts // 2
    return np.where(sums > 0, (sums + half) // counts, -((half - sums) // counts))


def scaled_mean(sums, counts, divisors, source, out):
    """counts: how many numbers each sum has; divisors: by what it is divided."""
    counts = np.broadcast_to(counts, sums.shape)
    divisors = np.broadcast_to(divisors, sums.shape)
    result = np.zeros(sums.shape, np.int64)
    for count, divisor in set(zip(np.ravel(counts).tolist(), np.ravel(divisors).tolist())):
        factor = float(source.scale) / (float(out.scale) * divisor)
        value = rescaled(sums, factor, largest_of(source) * count)
        result = np.where((counts == count) & (divisors == divisor), value, result)
    return result


def reduce(kind, x, axes, source, out):
    """MEAN, SUM or MAX over axes, which are kept with size 1."""
    if kind == "MAX":
        return move(x.max(axis=axes, keepdims=True), source, out)
    count = math.prod(x.shape[a] for a in axes)
    if kind == "MEAN" and source == out:
        return np.clip(mean(x.sum(axis=axes, keepdims=True), count), *limits(out.dtype))
    sums = (x - source.zero).sum(axis=axes, keepdims=True)
    divisor = count if kind == "MEAN" else 1
    return stored(scaled_mean(sums, count, divisor, source, out), "NONE", out)
