"""Small quantized nets in the form that exporters write: operators between DequantizeLinear and
QuantizeLinear (onnxruntime's quantize_static, PyTorch, TensorFlow by tf2onnx)."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int16": TensorProto.INT16,
         "uint16": TensorProto.UINT16}
OPSET = 17
# QuantizeLinear takes 16 bits from this operator set on.
OPSET_16_BITS = 21


def seed_of(name):
    value = 7
    for byte in name.encode():
        value = (value * 131 + byte) % (1 << 31)
    return value


class Net:
    """A float net; marks say which of its tensors a quantizer stores as integers.

    op(...) marks its result; op(..., stored=False) leaves it as it is, as quantizers do between a
    convolution and its activation. const() is a float constant, weight() one of 8 bits."""

    def __init__(self, name, dtype="uint8", per_channel=False, steps=1):
        self.name, self.dtype, self.per_channel = name, dtype, per_channel
        self.steps = steps  # how far a result may be from onnxruntime's, in steps of its scale
        self.rng = np.random.default_rng(seed_of(name))
        self.nodes, self.inputs, self.outputs = [], {}, []
        self.constants, self.weights, self.biases, self.marked = {}, {}, {}, []
        self.ranges = {}   # stated by the net, not measured
        self.copies = {}   # tensors stored by another's parameters
        self.shares = {}   # integer moves: result -> operand
        self.unread = []
        self.integer_ports = False

    def input(self, *shape, name="x", read=True, low=-2.0, high=2.0):
        self.inputs[name] = (shape, low, high)
        if read:
            self.marked.append(name)
        else:
            self.unread.append(name)
        return name

    def uniform(self, *shape, scale=0.5):
        return self.rng.uniform(-scale, scale, shape).astype(np.float32)

    def const(self, array, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def weight(self, array, axis=0):
        name = f"w{len(self.weights)}"
        self.weights[name] = (np.asarray(array, np.float32), axis)
        return name

    def bias(self, array, operand, weight):
        name = f"b{len(self.biases)}"
        self.biases[name] = (np.asarray(array, np.float32), operand, weight)
        return name

    def op(self, kind, operands, stored=True, **attrs):
        result = f"t{len(self.nodes)}_{kind.lower()}"
        self.nodes.append((kind, operands, [result], attrs))
        if stored:
            self.marked.append(result)
        return result

    def same(self, kind, operand, **attrs):
        """An operator that only moves: its result keeps the operand's parameters."""
        result = self.op(kind, [operand] if isinstance(operand, str) else operand, **attrs)
        self.copies[result] = operand if isinstance(operand, str) else operand[0]
        return result

    def conv(self, x, shape, bias=True, stored=True, scale=0.4, **attrs):
        w = self.weight(self.uniform(*shape, scale=scale))
        operands = [x, w]
        if bias:
            operands.append(self.bias(self.uniform(shape[0]), x, w))
        return self.op("Conv", operands, stored=stored, **attrs)

    def output(self, *names):
        self.outputs += names

    # ---- models ---------------------------------------------------------------------------------

    def opset(self):
        return OPSET_16_BITS if "16" in self.dtype else OPSET

    def _model(self, nodes, initializers, outputs, inputs=None):
        inputs = inputs or [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                            for n, (s, _, _) in self.inputs.items()]
        graph = helper.make_graph(nodes, self.name, inputs, outputs, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset())])
        model.ir_version = 8
        return model.SerializeToString()

    def float_model(self, outputs):
        """The net before it is quantized, with those tensors as outputs."""
        arrays = dict(self.constants)
        arrays.update({n: a for n, (a, _) in self.weights.items()})
        arrays.update({n: a for n, (a, _, _) in self.biases.items()})
        nodes = [helper.make_node(k, i, o, name=o[0], **a) for k, i, o, a in self.nodes]
        return self._model(nodes, [numpy_helper.from_array(a, n) for n, a in arrays.items()],
                           [helper.make_tensor_value_info(n, TensorProto.FLOAT, None)
                            for n in outputs])

    def quantized_model(self, ranges):
        """(model, parameters of every stored tensor: {scale, zero_point, dtype})."""
        params = {n: self._params(n, ranges) for n in self.marked}
        for name, like in self.copies.items():
            while like in self.copies:
                like = self.copies[like]
            params[name] = params[like]
        nodes, initializers = [], []
        read = {}  # the tensor that stands for a float one
        self._constants(params, nodes, initializers, read)
        inputs = []
        for name, (shape, _, _) in self.inputs.items():
            if self.integer_ports:
                inputs.append(helper.make_tensor_value_info(name, TYPES[self.dtype], shape))
                read[name] = self._pair(name, name, params[name], nodes, initializers, False)
            else:
                inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
                if name in params:
                    read[name] = self._pair(name, name, params[name], nodes, initializers)
        outputs = []
        for kind, operands, results, attrs in self.nodes:
            nodes.append(helper.make_node(kind, [read.get(n, n) for n in operands], results,
                                          name=results[0], **attrs))
            for name in results:
                if name in params:
                    read[name] = self._pair(name, name, params[name], nodes, initializers)
        for name in self.outputs:
            kind = TYPES[self.dtype] if self.integer_ports else TensorProto.FLOAT
            shown = f"{name}_q" if self.integer_ports else read[name]
            outputs.append(helper.make_tensor_value_info(shown, kind, None))
        return self._model(nodes, initializers, outputs, inputs), params

    def _params(self, name, ranges):
        info = np.iinfo(self.dtype)
        low, high = self.ranges.get(name, ranges[name])
        low, high = min(low, 0.0), max(high, 0.0)
        if "16" in self.dtype:  # symmetric, as onnxruntime has it
            largest = max(-low, high, 1e-3)
            return {"scale": float(np.float32(largest / info.max)), "zero_point": 0,
                    "dtype": self.dtype}
        scale = np.float32(max(high - low, 1e-3) / (info.max - info.min))
        zero = int(np.clip(np.rint(info.min - low / scale), info.min, info.max))
        return {"scale": float(scale), "zero_point": zero, "dtype": self.dtype}

    def _numbers(self, base, params, initializers, dtype=None):
        initializers.append(numpy_helper.from_array(np.float32(params["scale"]), f"{base}_scale"))
        initializers.append(numpy_helper.from_array(
            np.asarray(params["zero_point"], dtype or params["dtype"]), f"{base}_zero"))
        return [f"{base}_scale", f"{base}_zero"]

    def _pair(self, name, tensor, params, nodes, initializers, quantize=True):
        numbers = self._numbers(name, params, initializers)
        integers = tensor
        if quantize:
            integers = f"{name}_q"
            nodes.append(helper.make_node("QuantizeLinear", [tensor] + numbers, [integers],
                                          name=f"{name}_quantize"))
        nodes.append(helper.make_node("DequantizeLinear", [integers] + numbers, [f"{name}_dq"],
                                      name=f"{name}_dequantize"))
        return f"{name}_dq"

    def _constants(self, params, nodes, initializers, read):
        for name, array in self.constants.items():
            initializers.append(numpy_helper.from_array(array, name))
        scales = {}
        for name, (array, axis) in self.weights.items():
            axes = tuple(d for d in range(array.ndim) if d != axis)
            largest = np.abs(array).max(axes) if self.per_channel else np.abs(array).max()
            scale = np.maximum(largest, 1e-3).astype(np.float32) / np.float32(127)
            shape = [-1 if d == axis else 1 for d in range(array.ndim)]
            by_channel = scale.reshape(shape) if self.per_channel else scale
            stored = np.clip(np.rint(array / by_channel), -127, 127).astype(np.int8)
            scales[name] = scale
            numbers = {"scale": scale, "zero_point": np.zeros(scale.shape), "dtype": np.int8}
            initializers.append(numpy_helper.from_array(stored, f"{name}_q"))
            nodes.append(helper.make_node(
                "DequantizeLinear", [f"{name}_q"] + self._numbers(name, numbers, initializers),
                [f"{name}_dq"], axis=axis))
            read[name] = f"{name}_dq"
        for name, (array, operand, weight) in self.biases.items():
            scale = np.float32(params[operand]["scale"]) * scales[weight]
            stored = np.rint(array / scale).astype(np.int32)
            numbers = {"scale": scale, "zero_point": np.zeros(scale.shape), "dtype": np.int32}
            initializers.append(numpy_helper.from_array(stored, f"{name}_q"))
            nodes.append(helper.make_node(
                "DequantizeLinear", [f"{name}_q"] + self._numbers(name, numbers, initializers),
                [f"{name}_dq"], axis=0))
            read[name] = f"{name}_dq"


def conv_nets():
    activations = {"relu": [("Relu", [])], "relu6": [("Clip", [0, 6])],
                   "clip": [("Clip", [-0.5, 1.25])], "clip_above": [("Clip", [None, 0.7])],
                   "clip_below": [("Clip", [0.25, None])], "none": []}
    for dtype in ("uint8", "int8", "int16"):
        for per_channel in (False, True):
            for name, chain in activations.items():
                net = Net(f"conv_{name}_{dtype}{'_channels' if per_channel else ''}", dtype,
                          per_channel)
                x = net.input(1, 3, 9, 8)
                y = net.conv(x, (5, 3, 3, 3), stored=not chain, pads=[1, 1, 1, 1], strides=[2, 1])
                for kind, bounds in chain:
                    extra = ["" if b is None else net.const(b) for b in bounds]
                    y = net.op(kind, [y] + extra)
                net.output(y)
                yield net
    # The activation lies in the zero point alone: values below 0 saturate.
    for dtype in ("uint8", "int8"):
        net = Net(f"conv_saturates_{dtype}", dtype)
        y = net.conv(net.input(1, 3, 6, 6), (4, 3, 3, 3))
        net.ranges[y] = (0.0, 1.5)
        net.output(net.conv(y, (2, 4, 1, 1)))
        net.steps = 2
        yield net
    net = Net("depthwise_relu", "int8", per_channel=True)
    x = net.input(1, 4, 7, 7)
    y = net.op("Relu", [net.conv(x, (4, 1, 3, 3), stored=False, group=4, pads=[1, 1, 1, 1])])
    y = net.conv(y, (6, 4, 1, 1), stored=False)
    net.output(net.op("Clip", [y, net.const(0), net.const(2)]))
    net.steps = 2
    yield net
    net = Net("conv_1d_relu", "uint8")
    y = net.op("Relu", [net.conv(net.input(1, 3, 20), (4, 3, 5), stored=False, strides=[2])])
    net.output(y)
    yield net
    net = Net("conv_two_activations", "uint8")
    y = net.op("Relu", [net.conv(net.input(1, 3, 6, 6), (4, 3, 3, 3), stored=False)], stored=False)
    net.output(net.op("Clip", [y, net.const(0.125), net.const(0.75)]))
    yield net


def whole_nets():
    for dtype, per_channel in (("uint8", False), ("int8", True), ("int16", True)):
        net = Net(f"net_residual_{dtype}", dtype, per_channel, steps=4)
        x = net.input(1, 3, 12, 12)
        a = net.op("Relu", [net.conv(x, (8, 3, 3, 3), stored=False, pads=[1, 1, 1, 1])])
        b = net.op("Relu", [net.conv(a, (8, 8, 3, 3), stored=False, pads=[1, 1, 1, 1], scale=0.2)])
        c = net.conv(b, (8, 8, 1, 1))
        d = net.op("Relu", [net.op("Add", [a, c], stored=False)])
        e = net.same("MaxPool", d, kernel_shape=[2, 2], strides=[2, 2])
        f = net.op("Clip", [net.conv(e, (6, 8, 3, 3), stored=False, scale=0.2), net.const(0),
                            net.const(6)])
        g = net.op("Concat", [f, net.op("Sigmoid", [f])], axis=1)
        h = net.op("GlobalAveragePool", [g])
        i = net.same("Flatten", h)
        w = net.weight(net.uniform(5, 12), axis=0)
        j = net.op("Gemm", [i, w, net.bias(net.uniform(5), i, w)], transB=1)
        k = net.op("Softmax", [j], axis=-1)
        net.output(k)
        yield net
    # A step of the product is some four of the result, whose range is that much smaller.
    net = Net("net_flatten_gemm", "uint8", steps=6)
    y = net.op("Relu", [net.conv(net.input(1, 3, 8, 8), (4, 3, 3, 3), stored=False)])
    y = net.op("AveragePool", [y], kernel_shape=[2, 2], strides=[2, 2])
    y = net.same("Flatten", y)
    w = net.weight(net.uniform(36, 7, scale=0.2), axis=1)
    y = net.op("MatMul", [y, w])
    y = net.op("Relu", [net.op("Add", [y, net.const(net.uniform(7))], stored=False)])
    net.output(y)
    yield net
    net = Net("net_matmul_add", "int8", steps=2)
    w = net.weight(net.uniform(12, 7, scale=0.2), axis=1)
    y = net.op("MatMul", [net.input(5, 12), w], stored=False)
    net.output(net.op("Add", [net.bias(net.uniform(7), "x", w), y]))
    yield net
    net = Net("net_branches", "int8", steps=3)
    a = net.op("Relu", [net.conv(net.input(1, 4, 8, 8), (4, 4, 3, 3), stored=False)])
    b = net.op("Relu", [net.conv(a, (4, 4, 1, 1), stored=False)])
    c = net.op("Clip", [net.conv(a, (3, 4, 1, 1), stored=False), net.const(0), net.const(1)])
    net.output(net.op("Concat", [b, c, a], axis=1), a)
    yield net


def function_nets():
    def one(name, build, shape=(1, 3, 5, 4), dtype="uint8", steps=1, **options):
        net = Net(name, dtype, steps=steps)
        x = net.input(*shape, **options)
        net.output(build(net, x))
        return net

    slopes = [[[0.1]], [[-0.4]], [[2]]]
    functions = {
        "clip_alone": lambda n, x: n.op("Clip", [x, n.const(-0.7), n.const(1.1)]),
        "hard_sigmoid": lambda n, x: n.op("HardSigmoid", [x], alpha=0.3),
        "leaky_relu": lambda n, x: n.op("LeakyRelu", [x], alpha=0.2),
        "prelu": lambda n, x: n.op("PRelu", [x, n.const(slopes)]),
        "prelu_one": lambda n, x: n.op("PRelu", [x, n.const([0.3])]),
        "elu": lambda n, x: n.op("Elu", [x]),
        "scaled": lambda n, x: n.op("Mul", [x, n.const(0.37)])}
    for dtype in ("uint8", "int8"):
        for name, build in functions.items():
            yield one(f"{name}_{dtype}", build, dtype=dtype)
    yield one("prelu_int16", functions["prelu"], dtype="int16", steps=4)  # five commands
    yield one("clip_alone_int16", functions["clip_alone"], dtype="int16")
    net = Net("hard_swish_behind_conv", "uint8", steps=2)
    y = net.conv(net.input(1, 3, 6, 6), (4, 3, 3, 3))
    net.output(net.op("Mul", [y, net.op("HardSigmoid", [y], alpha=1 / 6)]))
    yield net
    yield one("resize_linear", lambda n, x: n.op(
        "Resize", [x, "", n.const([1, 1, 2, 2])], mode="linear",
        coordinate_transformation_mode="half_pixel"))
    yield one("resize_linear_int8", lambda n, x: n.op(
        "Resize", [x, "", n.const([1, 1, 3, 1.5])], mode="linear",
        coordinate_transformation_mode="asymmetric"), dtype="int8")
    yield one("resize_nearest", lambda n, x: n.same(
        "Resize", [x, "", n.const([1, 1, 2, 2])], mode="nearest"))
    for alpha, beta in ((0.5, 1.0), (1.0, 0.25), (2.0, 3.0)):
        def gemm(n, x, alpha=alpha, beta=beta):
            w = n.weight(n.uniform(6, 9), axis=0)
            b = n.bias(n.uniform(6), x, w)
            return n.op("Gemm", [x, w, b], alpha=alpha, beta=beta, transB=1)
        yield one(f"gemm_{alpha}_{beta}", gemm, shape=(4, 9))
    yield one("gemm_negative", lambda n, x: n.op(
        "Gemm", [x, n.weight(n.uniform(9, 6), axis=1)], alpha=-0.75), shape=(4, 9))
    yield one("pad", lambda n, x: n.same("Pad", [x, n.const([0, 0, 1, 2, 0, 0, 0, 1], np.int64)]))
    yield one("conv_transpose", lambda n, x: n.op(
        "Relu", [n.op("ConvTranspose", [x, n.weight(n.uniform(3, 4, 3, 3), axis=1)], stored=False,
                      strides=[2, 2])]))
    # Between convolutions, which run channels last, these dimensions are not the last, and no
    # neighbours.
    for name, kind, attrs in (("softmax_rows", "Softmax", {"axis": -1}),
                              ("mean_apart", "ReduceMean", {"axes": [1, 3], "keepdims": 1})):
        net = Net(name, "int8", steps=3)
        y = net.op(kind, [net.conv(net.input(1, 3, 6, 5), (4, 3, 3, 3))], **attrs)
        net.output(net.conv(y, (2, 4 if kind == "Softmax" else 1, 1, 1)))
        yield net
    # One value twice, and a clamp: 16 bits of a sum, not a table.
    net = Net("twice_int16", "int16")
    x = net.input(1, 3, 5, 4)
    y = net.op("Add", [x, x], stored=False)
    net.output(net.op("Clip", [y, net.const(-0.7), net.const(1.1)]))
    yield net
    net = one("unread_input", lambda n, x: n.op("Relu", [n.conv(x, (2, 3, 1, 1), stored=False)]))
    net.input(2, 3, name="spare", read=False)
    yield net
    net = one("integer_ports", lambda n, x: n.op("Relu", [n.conv(x, (2, 3, 1, 1), stored=False)]))
    net.integer_ports = True
    yield net


def all_nets():
    yield from conv_nets()
    yield from whole_nets()
    yield from function_nets()
