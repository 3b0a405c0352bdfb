"""Random quantized nets with what they must answer.

`Builder(seed, form)` makes a net of one of FORMS by a seed: operators, integers, scales and zero
points, and beside them each tensor's stored integers for the net's own random inputs, by
tests/e2e/integer_rules.py. As it goes it checks that those integers lie within one step of the real
value that the format defines (`judge`), so that the rules are not taken on trust.

Tensors have the layout of their form: images are [N,H,W,C] for TFLite, [N,C,H,W] for ONNX. How a
net is written to a file: quantized_writers.py.
"""

import math
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import int8_emulation as tflite  # noqa: E402
import integer_rules as rules  # noqa: E402
from integer_rules import Scale  # noqa: E402

# The forms of a net in a file, and the types of its activations.
FORMS = {"tflite_int8": ("int8",), "tflite_uint8": ("uint8",), "tflite_int16": ("int16",),
         "onnx_qdq": ("int8", "uint8"), "onnx_qlinear": ("int8", "uint8")}
LARGEST_ELEMENTS = 2048
# An interpolated table of 257 entries is no function to the bit of 16: TFLite's own is another.
COARSE_16_BIT = ("LOGISTIC", "TANH", "SOFTMAX", "EXP")


class WrongRule(Exception):
    """The rules left what the format defines: a defect of the test, not of npuc."""


class Tensor:
    def __init__(self, name, data, scale, constant=False, scales=None, zeros=None, axis=None):
        self.name = name
        self.data = np.asarray(data, np.int64)
        self.scale = scale  # of a tensor with one
        self.constant = constant
        self.scales = [scale.scale] if scales is None else scales  # a weight's along `axis`
        self.zeros = [scale.zero] if zeros is None else zeros
        self.axis = axis
        self.known = constant  # computed when the file is read
        self.loose = False  # not to the bit; nothing reads it
        self.allowed = 0    # steps that an answer may be off; for all elements, or for each

    @property
    def shape(self):
        return list(self.data.shape)

    @property
    def dtype(self):
        return self.scale.dtype

    def real(self):
        return rules.real(self.data, self.scale)


class Op:
    def __init__(self, kind, inputs, outputs, **attrs):
        self.kind, self.inputs, self.outputs, self.attrs = kind, inputs, outputs, attrs


class Builder:
    """A net that grows operator by operator."""

    def __init__(self, seed, form):
        self.rng = np.random.default_rng(seed)
        self.dead_rng = np.random.default_rng([seed, 1])  # apart: it leaves the other draws alone
        self.seed, self.form = seed, form
        self.is_tflite = form.startswith("tflite")
        self.tensors, self.ops, self.inputs, self.outputs = [], [], [], []
        self.count = 0
        self.grow_net()
        self.finish()

    # ---- choices ----

    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def number(self, low, high):
        """low to high, both among them."""
        return int(self.rng.integers(low, high + 1))

    def name(self, kind):
        self.count += 1
        return f"{kind.lower()}_{self.count}"

    # ---- tensors ----

    def new_scale(self, low, high):
        """A scale for values from low to high, at times too narrow or too wide for them."""
        dtype = self.pick(FORMS[self.form])
        low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-6:
            high = low + 1.0
        stretch = self.pick((0.4, 0.9, 1.0, 1.0, 1.0, 1.3))
        if dtype == "int16":
            return Scale(dtype, np.float32(max(-low, high) * stretch / 32767), 0)
        least, most = rules.limits(dtype)
        if self.chance(0.2):
            middle = 0 if dtype == "int8" else 128
            return Scale(dtype, np.float32(max(-low, high) * stretch / 127), middle)
        scale = np.float32((high - low) * stretch / 255)
        return Scale(dtype, scale, int(np.clip(np.rint(least - low / scale), least, most)))

    def random_integers(self, shape, dtype):
        least, most = rules.limits(dtype)
        spread = self.pick((0.1, 0.5, 1.0))
        middle = self.number(least, most) if spread < 1 else (least + most) // 2
        reach = (most - least) / 2 * spread
        values = np.rint(middle + self.rng.uniform(-reach, reach, shape))
        return np.clip(values, least, most).astype(np.int64)

    def add_input(self):
        if self.chance(0.7):
            h, w, c = self.number(1, 8), self.number(1, 8), self.number(1, 6)
            shape = [1, h, w, c] if self.is_tflite else [1, c, h, w]
        else:
            shape = [1, self.number(1, 24)] if self.chance(0.8) else [1, self.number(2, 6),
                                                                      self.number(1, 8)]
        reach = float(self.pick((0.01, 1.0, 6.0, 100.0)))
        scale = self.new_scale(-reach * self.rng.random(), reach * self.rng.random())
        data = self.random_integers(shape, scale.dtype)
        tensor = Tensor(f"input_{len(self.inputs)}", data, scale)
        self.tensors.append(tensor)
        self.inputs.append(tensor)
        return tensor

    def constant(self, shape, scale=None):
        scale = scale or self.new_scale(-self.rng.random() * 4, self.rng.random() * 4)
        return Tensor(self.name("const"), self.random_integers(shape, scale.dtype), scale, True)

    def judge(self, kind, tensor, real_value, inputs):
        """The stored result of one layer, against the real value rounded once."""
        if np.dtype(tensor.dtype).itemsize > 1 and kind in COARSE_16_BIT:
            return
        off = np.abs(tensor.data - rules.ideal(real_value, tensor.scale)).max(initial=0)
        allowed = 1
        if kind in ("ADD", "SUB"):
            # A factor of 31 bits is off by 2^-32 of itself at most. Where two large numbers give a
            # small one, that is more than a step of fine scales.
            largest = sum(float(np.abs(i.real()).max(initial=0)) for i in inputs)
            allowed += math.floor(largest * 2.0**-31 / float(tensor.scale.scale))
        if off > allowed:
            raise WrongRule(f"{kind} of seed {self.seed} ({self.form}): off by {off}")

    def result(self, kind, inputs, data, scale, real_value, loose=False, **attrs):
        """Adds the operator with its one result."""
        tensor = Tensor(self.name(kind), data, scale)
        self.judge(kind, tensor, real_value, inputs)
        # Constants alone are computed when the file is read, in floats, and rounded once.
        tensor.known = all(i.known for i in inputs)
        moved_as_it_is = kind in MOVES and all(i.scale == scale for i in inputs)
        if tensor.known and not moved_as_it_is:
            tensor.data = rules.ideal(real_value, scale)
        tensor.loose = loose or (tensor.known and not moved_as_it_is)
        if tensor.loose:
            tensor.allowed = 1
        if tensor.loose and not tensor.known and scale.dtype == "int16":
            # A table has 257 entries with straight lines between: off by at most a quarter of the
            # distance of two entries where the function has an edge.
            tensor.allowed += math.ceil(64 * float(inputs[0].scale.scale) / float(scale.scale))
        if kind in ("MAXIMUM", "MINIMUM") and not self.is_tflite:
            # ONNX says no order of rounding and comparing. Where the real value is half way between
            # two steps, to the precision of factors, either of them is right.
            steps = np.abs(real_value / np.float64(scale.scale))
            tensor.allowed = tensor.allowed + (np.abs(steps % 1 - 0.5) < 1e-6).astype(int)
        self.ops.append(Op(kind, inputs, [tensor], **attrs))
        self.tensors.append(tensor)
        return tensor

    def operand(self, fits=lambda t: True):
        """An activation, the newest most often; None where none fits."""
        found = [t for t in self.tensors if not t.loose and t.data.size and fits(t)]
        if not found:
            return None
        return found[-1] if self.chance(0.6) else self.pick(found)

    def moved_scale(self, x, values, same):
        """Of a result that holds its operand's values: TFLite wants the operand's own."""
        if self.is_tflite or same or self.chance(0.7):
            return x.scale
        return self.new_scale(float(values.min(initial=0)), float(values.max(initial=0)))

    # ---- growing ----

    def grow_net(self):
        for _ in range(self.pick((1, 1, 1, 2, 3))):
            self.add_input()
        for _ in range(self.rng.integers(1, 8)):
            self.grow(KINDS)

    def grow(self, kinds):
        for _ in range(20):
            kind = self.pick(kinds)
            made = getattr(self, "make_" + kind)()
            if made is not None:
                return

    def finish(self):
        read = {id(t) for op in self.ops for t in op.inputs}
        computed = [t for op in self.ops for t in op.outputs]
        self.outputs = [t for t in computed
                        if id(t) not in read and (t is computed[-1] or self.chance(0.9))]
        self.outputs += [t for t in computed if id(t) in read and self.chance(0.15)]
        if self.chance(0.05):
            self.add_input()  # that nothing reads
        elif self.chance(0.9):
            self.inputs = [t for t in self.inputs if id(t) in read]

    # ---- images ----

    def nhwc(self, data):
        return data if self.is_tflite else np.moveaxis(data, 1, -1)

    def back(self, data):
        return data if self.is_tflite else np.moveaxis(data, -1, 1)

    def image(self):
        return self.operand(lambda t: len(t.shape) == 4)

    def window(self, sizes, kernel, dilations=True):
        """Strides, dilations and padding for a kernel that fits; None where none does."""
        stride = [self.number(1, 3), self.number(1, 3)]
        dilation = [self.pick((1, 1, 1, 2)) if dilations else 1 for _ in (0, 1)]
        if min(dilation) > 1 or max(dilation) > 1:
            stride = [1, 1]  # TFLite takes one or the other
        same = self.chance(0.5)
        before, after, out = [], [], []
        for i in (0, 1):
            reach = (kernel[i] - 1) * dilation[i] + 1
            if self.is_tflite or self.chance(0.5):
                count = -(-sizes[i] // stride[i])
                total = max((count - 1) * stride[i] + reach - sizes[i], 0) if same else 0
                before.append(total // 2)
                after.append(total - total // 2)
            else:
                before.append(self.number(0, kernel[i] - 1))
                after.append(self.number(0, kernel[i] - 1))
            room = sizes[i] + before[i] + after[i] - reach
            if room < 0:
                return None
            out.append(room // stride[i] + 1)
        return {"stride": stride, "dilation": dilation, "same": same, "before": before,
                "after": after, "out": out, "kernel": list(kernel)}

    def activation(self):
        return self.pick(("NONE", "NONE", "RELU", "RELU6"))

    def weight(self, shape, axis, contract):
        """shape: of the file; axis: of the result's channels; contract: values a result sums."""
        channels = shape[axis]
        unsigned = self.form == "tflite_uint8" or (not self.is_tflite and self.chance(0.3))
        dtype = "uint8" if unsigned else "int8"
        per_channel = not self.form == "tflite_uint8" and self.chance(0.5)
        reach = self.pick((0.05, 0.5)) / math.sqrt(contract)
        scales = [np.float32(reach * self.rng.uniform(0.2, 2) / 127)
                  for _ in range(channels if per_channel else 1)]
        zero = 0
        if unsigned:
            zero = self.pick((128, 128, 0, 255, self.number(1, 254)))
        elif not self.is_tflite and self.chance(0.1):
            zero = self.number(-20, 20)
        least, most = (0, 255) if unsigned else (-127 if self.chance(0.5) else -128, 127)
        data = self.rng.integers(least, most + 1, shape)
        if self.seed % 3 == 1:
            self.kill_channels(data, zero)
        return Tensor(self.name("weight"), data, Scale(dtype, scales[0], zero), True, scales,
                      [zero] * len(scales), axis)

    def kill_channels(self, data, zero):
        """Makes some inputs' and some results' weights zero, in place."""
        for axis, size in enumerate(data.shape):
            dead = self.dead_rng.random(size) < 0.3
            np.moveaxis(data, axis, 0)[dead] = zero

    def weighted(self, kind, x, w, sums, activation, to_file, **attrs):
        """The result of a layer with weights from its sums [..., channels] without a bias."""
        factors = np.array([np.float64(x.scale.scale) * np.float64(s) for s in w.scales])
        inputs, bias = [x, w], None
        spread = max(float(np.abs(sums).max(initial=0)), 1.0)
        if self.chance(0.7) and not attrs.get("no_bias"):
            wide = self.form == "tflite_int16"
            data = np.rint(self.rng.normal(0, spread / 3, sums.shape[-1])).astype(np.int64)
            bias_scales = [np.float32(x.scale.scale * s) for s in w.scales]
            bias = Tensor(self.name("bias"), data,
                          Scale("int64" if wide else "int32", bias_scales[0], 0), True,
                          bias_scales, [0] * len(bias_scales), 0)
            inputs.append(bias)
            sums = sums + data
        real_value = rules.activate(sums * factors, activation)
        out = self.new_scale(float(real_value.min(initial=0)), float(real_value.max(initial=0)))
        find = rules.dense_factors if kind == "DENSE" else rules.conv_factors
        data = rules.weighted(sums, find(x.scale, w.scales, out), activation, x.scale, out, w.dtype)
        return self.result(kind, inputs, to_file(data), out, to_file(real_value),
                           activation=activation, **attrs)

    def make_conv(self, depthwise=False):
        x = self.image()
        if x is None:
            return None
        image = self.nhwc(x.data)
        channels = image.shape[3]
        kernel = [self.number(1, 3), self.number(1, 3)]
        window = self.window(image.shape[1:3], kernel)
        groups = 1
        if depthwise:
            groups, out_c = channels, channels * self.pick((1, 1, 1, 2))
        else:
            out_c = self.number(1, 6)
            if not self.is_tflite and self.chance(0.2):
                groups = self.pick([g for g in range(1, channels + 1) if channels % g == 0])
                out_c = groups * self.number(1, 3)
        if window is None or math.prod(window["out"]) * out_c > LARGEST_ELEMENTS:
            return None
        each = channels // groups
        if not self.is_tflite:
            w = self.weight([out_c, each, *kernel], 0, each * math.prod(kernel))
            ohwi = np.moveaxis(w.data, 1, -1)
        elif depthwise:
            w = self.weight([1, *kernel, out_c], 3, math.prod(kernel))
            ohwi = np.moveaxis(w.data, 3, 0)
        else:
            w = self.weight([out_c, *kernel, channels], 0, channels * math.prod(kernel))
            ohwi = w.data
        geometry = (kernel, window["stride"], window["before"], window["out"], window["dilation"])
        sums = rules.convolve(image - x.scale.zero, ohwi - w.zeros[0], geometry, groups)
        activation = "NONE" if self.form == "onnx_qlinear" else self.activation()
        return self.weighted("DEPTHWISE" if depthwise else "CONV", x, w, sums, activation,
                             self.back, window=window, groups=groups)

    def make_depthwise(self):
        return self.make_conv(True)

    def make_dense(self):
        x = self.operand(lambda t: len(t.shape) == 2)
        if x is None:
            return None
        out_c, in_c = self.number(1, 12), x.shape[1]
        transposed = self.is_tflite or self.form == "onnx_qdq" and self.chance(0.5)
        w = self.weight([out_c, in_c] if transposed else [in_c, out_c], 0 if transposed else 1,
                        in_c)
        matrix = w.data - w.zeros[0]
        sums = (x.data - x.scale.zero) @ (matrix.T if transposed else matrix)
        activation = "NONE" if self.form == "onnx_qlinear" else self.activation()
        return self.weighted("DENSE", x, w, sums, activation, lambda d: d, transposed=transposed,
                             no_bias=self.form == "onnx_qlinear")

    def make_product(self):
        """A matrix product that is no dense layer: two activations, a constant in front, or a stack
        of constant matrices."""
        x = self.operand(lambda t: 2 <= len(t.shape) <= 4)
        if x is None:
            return None
        *batch, rows, inner = x.shape
        fits = [t for t in self.tensors if not t.loose and len(t.shape) > 1
                and t.shape[-2] == inner and all(
                    a == b or 1 in (a, b) for a, b in zip(t.shape[-3::-1], batch[::-1]))]
        adj_x = adj_y = False
        kind = self.pick(("square", "square", "front", "stack", "other", "other"))
        if kind == "other" and fits:
            a, b = x, self.pick(fits)
        elif kind == "front":
            a, b = self.constant((batch if self.chance(0.3) else []) + [self.number(1, 5), rows]), x
        elif kind == "stack" and batch:
            a, b = x, self.constant(batch + [inner, self.number(1, 5)])
        else:
            adj_x = self.chance(0.5)
            adj_y = not adj_x
            a = b = x
            if not self.is_tflite:  # a transpose of its own
                perm = list(range(len(batch))) + [len(batch) + 1, len(batch)]
                turned = self.moved("TRANSPOSE", x, x.data.transpose(perm), perm=perm)
                a, b = (turned, x) if adj_x else (x, turned)
                adj_x = adj_y = False
        left = np.swapaxes(a.data, -1, -2) if adj_x else a.data
        right = np.swapaxes(b.data, -1, -2) if adj_y else b.data
        if max((left[..., :1] * right[..., :1, :]).size, right.size) > LARGEST_ELEMENTS:
            return None
        value = rules.real(left, a.scale) @ rules.real(right, b.scale)
        out = self.new_scale(float(value.min()), float(value.max()))
        data = rules.product(left, right, a.scale, b.scale, out)
        return self.result("PRODUCT", [a, b], data, out, value, adj_x=adj_x, adj_y=adj_y)

    def make_transpose_conv(self):
        x = self.image()
        if x is None:
            return None
        image = self.nhwc(x.data)
        channels, out_c = image.shape[3], self.number(1, 4)
        kernel = [self.number(1, 3), self.number(1, 3)]
        stride = [self.number(1, 2), self.number(1, 2)]
        # Without padding: each input value spreads its kernel over the result.
        size = [(image.shape[1 + i] - 1) * stride[i] + kernel[i] for i in (0, 1)]
        if math.prod(size) * out_c > LARGEST_ELEMENTS:
            return None
        contract = channels * math.prod(kernel)
        if self.is_tflite:
            w = self.weight([out_c, *kernel, channels], 0, contract)
            ohwi = w.data
        else:
            w = self.weight([channels, out_c, *kernel], 1, contract)
            ohwi = np.moveaxis(w.data, 0, -1)
        spread = np.zeros([image.shape[0], (image.shape[1] - 1) * stride[0] + 1,
                           (image.shape[2] - 1) * stride[1] + 1, channels], np.int64)
        spread[:, ::stride[0], ::stride[1]] = image - x.scale.zero
        geometry = (kernel, (1, 1), (kernel[0] - 1, kernel[1] - 1), size, (1, 1))
        sums = rules.convolve(spread, (ohwi - w.zeros[0])[:, ::-1, ::-1], geometry, 1)
        activation = "NONE" if self.is_tflite else self.activation()
        return self.weighted("TRANSPOSE_CONV", x, w, sums, activation, self.back, stride=stride,
                             size=size)

    def make_pool(self):
        x = self.image()
        if x is None:
            return None
        image = self.nhwc(x.data)
        kind = self.pick(("MAX", "MEAN"))
        kernel = [self.number(1, min(3, image.shape[1])), self.number(1, min(3, image.shape[2]))]
        window = self.window(image.shape[1:3], kernel, dilations=False)
        if window is None:
            return None
        activation = self.activation() if self.is_tflite else "NONE"
        out = self.moved_scale(x, x.real(), False)
        geometry = (kernel, window["stride"], window["before"], window["out"])
        data = rules.pool(kind, image, geometry, x.scale, out, activation)
        taps, inside = tflite.windows(rules.real(image, x.scale), *geometry, (1, 1), 0.0)
        inside = np.broadcast_to(inside[None, ..., None], taps.shape)
        if (inside.sum(axis=(3, 4)) == 0).any():
            return None  # a window of padding alone
        if kind == "MAX":
            value = np.where(inside, taps, -np.inf).max(axis=(3, 4))
        else:
            value = np.where(inside, taps, 0).sum(axis=(3, 4)) / inside.sum(axis=(3, 4))
        value = rules.activate(value, activation)
        return self.result(kind + "_POOL", [x], self.back(data), out, self.back(value),
                           window=window, activation=activation)

    def make_mean(self):
        x = self.operand(lambda t: len(t.shape) > 1)
        if x is None:
            return None
        first = self.number(0, len(x.shape) - 1)
        axes = tuple(range(first, self.number(first, len(x.shape) - 1) + 1))
        kind = self.pick(("MEAN", "MEAN", "MAX", "SUM"))
        value = {"MEAN": np.mean, "MAX": np.max, "SUM": np.sum}[kind](x.real(), axes, keepdims=True)
        if kind == "MAX" or self.chance(0.3):
            out = self.moved_scale(x, value, False) if kind != "SUM" else None
        else:
            out = None
        out = out or self.new_scale(float(value.min()), float(value.max()))
        data = rules.reduce(kind, x.data, axes, x.scale, out)
        keep = self.chance(0.5) or len(axes) == len(x.shape)
        if not keep:
            data, value = np.squeeze(data, axes), np.squeeze(value, axes)
        return self.result("REDUCE_" + kind, [x], data, out, value, axes=list(axes), keep=keep)

    def make_resize(self):
        x = self.image()
        if x is None:
            return None
        image, factor = self.nhwc(x.data), [self.number(1, 3), self.number(1, 3)]
        size = [image.shape[1 + i] * factor[i] for i in (0, 1)]
        if image.size * math.prod(factor) > LARGEST_ELEMENTS:
            return None
        data = self.back(image.repeat(factor[0], 1).repeat(factor[1], 2))
        return self.moved("RESIZE", x, data, size=size, factor=factor)

    # ---- element by element ----

    def make_binary(self):
        kind = self.pick(("ADD", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"))
        x = self.operand()
        if x is None:
            return None
        same = self.is_tflite and kind in ("MAXIMUM", "MINIMUM")
        fitting = [t for t in self.tensors if t.shape == x.shape and not t.loose
                   and (not same or t.scale == x.scale)]
        if self.chance(0.5) and fitting:
            y = self.pick(fitting)  # x itself among them
        else:
            shape = self.pick(([1], x.shape[-1:], [1] * (len(x.shape) - 1) + x.shape[-1:], x.shape,
                               [n if self.chance(0.5) else 1 for n in x.shape]))
            y = self.constant(shape, x.scale if same else None)
        if self.chance(0.03) and not same:
            x = self.constant(x.shape)  # two constants, as often as not
        a, b = (x, y) if self.chance(0.7) else (y, x)
        value = rules.IDEAL_COMBINE[kind](a.real(), b.real())
        activation = "NONE"
        if kind in ("ADD", "SUB", "MUL"):
            activation = self.activation()
        value = rules.activate(value, activation)
        out = x.scale if same else self.new_scale(float(value.min()), float(value.max()))
        data = rules.combine(kind, a.data, b.data, a.scale, b.scale, activation, out)
        return self.result(kind, [a, b], data, out, value, activation=activation)

    def make_quotient(self):
        """The divisor is an activation: a constant one would be a factor in 16 bits."""
        x = self.operand()
        if x is None:
            return None
        fitting = [t for t in self.tensors if t.shape in (x.shape, x.shape[:-1] + [1])
                   and not t.loose and (t.data != t.scale.zero).all()]
        if not fitting:
            return None
        y = self.pick(fitting)
        a = self.constant(x.shape) if self.chance(0.2) and x.data.size > 1 else x
        value = a.real() / y.real()
        activation = self.activation()
        value = rules.activate(value, activation)
        out = self.new_scale(float(value.min()), float(value.max()))
        data = rules.combine("DIV", a.data, y.data, a.scale, y.scale, activation, out)
        return self.result("DIV", [a, y], data, out, value, activation=activation)

    def make_function(self):
        x = self.operand()
        if x is None:
            return None
        kinds = ("LOGISTIC", "TANH", "ABS", "NEG", "EXP")
        kind = self.pick(("LOGISTIC", "TANH") if self.is_tflite else kinds)
        ends = rules.real(np.array(rules.limits(x.dtype)), x.scale)
        if kind == "EXP" and np.abs(ends).max() > 20:
            return None
        value = rules.FUNCTIONS[kind](x.real())
        out = self.new_scale(float(value.min()), float(value.max()))
        if self.is_tflite:
            out = self.unit_scale(signed=kind == "TANH")
        data, doubtful = rules.lookup(kind, x.data, x.scale, out)
        return self.result(kind, [x], data, out, value, loose=doubtful)

    def unit_scale(self, signed):
        """What TFLite's kernels give functions whose results are in 0..1 or -1..1."""
        dtype = FORMS[self.form][0]
        if dtype == "int16":
            return Scale(dtype, np.float32(1 / 32768), 0)
        least = rules.limits(dtype)[0]
        if signed:
            return Scale(dtype, np.float32(1 / 128), least + 128)
        return Scale(dtype, np.float32(1 / 256), least)

    def make_softmax(self):
        x = self.operand(lambda t: len(t.shape) > 1)
        if x is None:
            return None
        e = np.exp(x.real() - x.real().max(axis=-1, keepdims=True))
        value = e / e.sum(axis=-1, keepdims=True)
        out = self.unit_scale(False) if self.is_tflite or self.chance(0.5) else \
            self.new_scale(0.0, float(value.max()))
        if not self.is_tflite and out.dtype != "int8" and self.chance(0.5):
            out = Scale("int8", np.float32(1 / 256), -128)
        return self.result("SOFTMAX", [x], rules.softmax(x.data, x.scale, out), out, value)

    def make_relu(self):
        x = self.operand()
        if x is None:
            return None
        activation = self.pick(("RELU", "RELU6"))
        value = rules.activate(x.real(), activation)
        out = x.scale if self.chance(0.5) else self.new_scale(0.0, float(value.max(initial=0)))
        data = rules.move(x.data, x.scale, out, activation)
        return self.result(activation, [x], data, out, value)

    def make_taken_apart(self):
        """Functions that npuc makes of several layers: judged within a step, read by nothing."""
        x = self.operand()
        if x is None:
            return None
        kinds = ["LEAKY_RELU", "HARD_SWISH", "PRELU"]
        kind = self.pick(kinds + (["RELU_N1_TO_1"] if self.is_tflite else ["CLIP", "HARD_SIGMOID"]))
        v, inputs, attrs = x.real(), [x], {}
        if kind == "LEAKY_RELU":
            value = np.where(v < 0, v * 0.25, v)
        elif kind == "PRELU":
            if not self.is_tflite and len(x.shape) != 4:
                return None
            inputs.append(self.constant(x.shape[-1:] if self.is_tflite else [x.shape[1], 1, 1]))
            value = np.where(v < 0, v * inputs[1].real(), v)
        elif kind == "CLIP":
            low = float(np.float32(v.min() * self.rng.random()))
            attrs = {"low": low, "high": max(low, float(np.float32(v.max())))}
            value = np.clip(v, attrs["low"], attrs["high"])
        elif kind == "RELU_N1_TO_1":
            value = np.clip(v, -1, 1)
        elif kind == "HARD_SIGMOID":
            value = np.clip(v * 0.25 + 0.5, 0, 1)
        else:
            value = v * np.clip(v + 3, 0, 6) / 6
        out = self.new_scale(float(value.min()), float(value.max()))
        return self.result(kind, inputs, rules.ideal(value, out), out, value, loose=True, **attrs)

    def make_resize_linear(self):
        """Between neighbours, by a whole factor; judged within a step."""
        x = self.image()
        if x is None:
            return None
        value, factor = self.nhwc(x.real()), [self.number(1, 3), self.number(1, 3)]
        size = [value.shape[1 + i] * factor[i] for i in (0, 1)]
        if value.size * math.prod(factor) > LARGEST_ELEMENTS:
            return None
        for axis in (1, 2):
            place = np.arange(size[axis - 1]) / factor[axis - 1]
            low = np.floor(place).astype(int)
            high = np.minimum(low + 1, value.shape[axis] - 1)
            part = (place - low).reshape([-1 if i == axis else 1 for i in range(4)])
            value = value.take(low, axis) * (1 - part) + value.take(high, axis) * part
        value = self.back(value)
        out = self.moved_scale(x, value, False)
        return self.result("RESIZE_LINEAR", [x], rules.ideal(value, out), out, value, loose=True,
                           size=size, factor=factor)

    def make_lstm(self):
        """An ONNX LSTM of floats between integers, from a state of zeros."""
        x = self.operand(lambda t: len(t.shape) == 3 and t.data.size < 200)
        if x is None or self.is_tflite:
            return None
        hidden, width = self.number(1, 4), x.shape[2]
        weights = [self.constant([1, 4 * hidden, n]) for n in (width, hidden)]
        w, r = (c.real()[0] for c in weights)
        h = np.zeros((x.shape[1], hidden))
        c, rows = h, []
        for frame in x.real():
            i, o, f, g = np.split(frame @ w.T + h @ r.T, 4, axis=1)
            c = rules.FUNCTIONS["LOGISTIC"](f) * c + rules.FUNCTIONS["LOGISTIC"](i) * np.tanh(g)
            h = rules.FUNCTIONS["LOGISTIC"](o) * np.tanh(c)
            rows.append(h)
        value = np.stack(rows)[:, None]
        out = self.new_scale(float(value.min()), float(value.max()))
        return self.result("LSTM", [x, *weights], rules.ideal(value, out), out, value, loose=True,
                           hidden=hidden)

    def make_requantize(self):
        x = self.operand()
        if x is None:
            return None
        value = x.real()
        out = self.new_scale(float(value.min()), float(value.max()))
        return self.result("QUANTIZE", [x], rules.move(x.data, x.scale, out), out, value)

    # ---- what only moves ----

    def moved(self, kind, x, data, **attrs):
        """data: the operand's integers where they go."""
        out = self.moved_scale(x, x.real(), False)
        return self.result(kind, [x], rules.move(data, x.scale, out), out,
                           rules.real(data, x.scale), **attrs)

    def movable(self):
        """An activation; now and then a constant in its place."""
        x = self.operand()
        if x is not None and self.chance(0.05):
            return self.constant(x.shape)
        return x

    def make_reshape(self):
        x = self.movable()
        if x is None:
            return None
        size = x.data.size
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        first = self.pick(divisors)
        second = self.pick([d for d in divisors if (size // first) % d == 0])
        shape = self.pick(([1, size], [1, size], [first, size // first],
                           [1, first, second, size // first // second]))
        return self.moved("RESHAPE", x, x.data.reshape(shape), shape=shape)

    def make_transpose(self):
        x = self.movable()
        if x is None or len(x.shape) < 2:
            return None
        perm = [int(i) for i in self.rng.permutation(len(x.shape))]
        return self.moved("TRANSPOSE", x, x.data.transpose(perm), perm=perm)

    def make_slice(self):
        x = self.movable()
        if x is None:
            return None
        begin, end, strides = [], [], []
        for n in x.shape:
            first = self.number(0, n - 1)
            begin.append(first)
            end.append(self.number(first + 1, n))
            strides.append(self.pick((1, 1, 1, 2)))
        where = tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides))
        return self.moved("SLICE", x, x.data[where], begin=begin, end=end, strides=strides)

    def make_split(self):
        x = self.operand(lambda t: any(n % 2 == 0 for n in t.shape))
        if x is None:
            return None
        axis = self.pick([i for i, n in enumerate(x.shape) if n % 2 == 0])
        made = []
        for part in np.split(x.data, 2, axis):
            made.append(Tensor(self.name("split"), part, x.scale))
            made[-1].known = x.known
        self.ops.append(Op("SPLIT", [x], made, axis=axis))
        self.tensors += made
        return made[0]

    def make_pad(self):
        x = self.movable()
        if x is None:
            return None
        pads = [[self.pick((0, 0, 1, 2)), self.pick((0, 0, 1))] for _ in x.shape]
        out = self.moved_scale(x, x.real(), False)
        stored = out.zero if self.chance(0.6) else self.number(*rules.limits(out.dtype))
        if math.prod(n + sum(p) for n, p in zip(x.shape, pads)) > LARGEST_ELEMENTS:
            return None
        value = float(np.float32(rules.real(np.array(stored), out)))
        data = np.pad(rules.move(x.data, x.scale, out), pads, constant_values=stored)
        return self.result("PAD", [x], data, out, np.pad(x.real(), pads, constant_values=value),
                           pads=pads, value=value, stored=stored)

    def make_concat(self):
        x = self.operand()
        if x is None:
            return None
        axis = self.number(0, len(x.shape) - 1)
        own_scale = self.form in ("tflite_int8", "tflite_int16")  # its kernels want one for all
        fits = [t for t in self.tensors if not t.loose and len(t.shape) == len(x.shape)
                and (not own_scale or t.scale == x.scale)
                and all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)]
        parts = [x]
        for _ in range(self.number(1, 3)):
            shape = list(x.shape)
            shape[axis] = self.number(1, 3)
            parts.append(self.pick(fits) if self.chance(0.6) else
                         self.constant(shape, x.scale if own_scale else None))
        order = self.rng.permutation(len(parts))
        parts = [parts[i] for i in order]
        value = np.concatenate([p.real() for p in parts], axis)
        if value.size > LARGEST_ELEMENTS:
            return None
        out = x.scale if own_scale or self.chance(0.4) else \
            self.new_scale(float(value.min()), float(value.max()))
        data = np.concatenate([rules.move(p.data, p.scale, out) for p in parts], axis)
        return self.result("CONCAT", parts, data, out, value, axis=axis)

    def make_depth_to_space(self):
        """Blocks of two by two between channels and places, in TFLite's order."""
        if not self.is_tflite:
            return None
        x = self.operand(lambda t: len(t.shape) == 4 and t.shape[1] % 2 == t.shape[2] % 2 == 0)
        if x is None:
            return None
        n, h, w, c = x.shape
        data = x.data.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(
            n, h // 2, w // 2, 4 * c)
        return self.moved("SPACE_TO_DEPTH", x, data)


BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
class Chain(Builder):
    """A net of four to eight layers in a row, most of them with weights, some of which are zero."""

    def grow_net(self):
        while not self.inputs or len(self.inputs[0].shape) != 4:
            self.inputs.clear()
            self.tensors.clear()
            self.add_input()
        for _ in range(self.number(4, 8)):
            self.grow(CHAIN_KINDS)

    def operand(self, fits=lambda t: True):
        newest = self.tensors[-1]
        return newest if fits(newest) and not newest.loose else None

    def new_scale(self, low, high):
        """Where all channels are dead only a bias is left: a scale of 1e-10 is no real net's."""
        return super().new_scale(low, max(high, low + 1e-3))

    def weight(self, shape, axis, contract):
        made = super().weight(shape, axis, contract)
        self.kill_channels(made.data, made.zeros[0])
        return made


MOVES = ("RESHAPE", "TRANSPOSE", "SLICE", "PAD", "CONCAT", "RESIZE", "SPACE_TO_DEPTH")
KINDS = (["conv"] * 4 + ["depthwise"] * 2 + ["dense"] * 4 + ["product"] * 2 + ["quotient"] * 2 +
         ["pool"] * 3 + ["mean"] * 2 +
         ["resize", "resize_linear", "transpose_conv"] + ["binary"] * 4 + ["function"] * 2 +
         ["softmax", "relu", "taken_apart", "requantize", "lstm"] + ["reshape"] * 3 +
         ["transpose", "slice", "split", "pad", "concat", "concat", "depth_to_space"])
CHAIN_KINDS = ["conv"] * 4 + ["depthwise", "pool", "relu", "pad"]
