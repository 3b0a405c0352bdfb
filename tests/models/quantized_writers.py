"""Writes the nets of quantized_nets.py as files: TFLite models by flatc from our own schema, ONNX
models by onnxmodel.py.

ONNX nets have opset 13. In the QDQ form every operator computes floats between DequantizeLinear and
QuantizeLinear; in the QLinear form convolutions and matrix products are QLinearConv and
QLinearMatMul, the rest as in QDQ. A fused activation is a Relu or Clip before the QuantizeLinear.
"""

import json
import os
import subprocess

import numpy as np

import onnxmodel
import tflitemodel

OPTIONS = {"CONV": "Conv2DOptions", "DEPTHWISE": "DepthwiseConv2DOptions",
           "DENSE": "FullyConnectedOptions", "TRANSPOSE_CONV": "TransposeConvOptions",
           "MAX_POOL": "Pool2DOptions", "MEAN_POOL": "Pool2DOptions",
           "REDUCE_MEAN": "ReducerOptions", "REDUCE_MAX": "ReducerOptions",
           "REDUCE_SUM": "ReducerOptions", "RESIZE": "ResizeNearestOptions",
           "RESIZE_LINEAR": "ResizeBilinearOptions", "ADD": "AddOptions",
           "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions",
           "PRODUCT": "BatchMatMulOptions", "SOFTMAX": "SoftmaxOptions",
           "LEAKY_RELU": "LeakyReluOptions", "SLICE": "StridedSliceOptions",
           "SPLIT": "SplitOptions", "CONCAT": "ConcatenationOptions",
           "SPACE_TO_DEPTH": "SpaceToDepthOptions"}
CODES = {"CONV": "CONV_2D", "DEPTHWISE": "DEPTHWISE_CONV_2D", "DENSE": "FULLY_CONNECTED",
         "MAX_POOL": "MAX_POOL_2D", "MEAN_POOL": "AVERAGE_POOL_2D", "REDUCE_MEAN": "MEAN",
         "REDUCE_SUM": "SUM", "PRODUCT": "BATCH_MATMUL", "RESIZE": "RESIZE_NEAREST_NEIGHBOR",
         "RESIZE_LINEAR": "RESIZE_BILINEAR", "CONCAT": "CONCATENATION"}


# ---- TFLite ----


class TfliteWriter:
    def __init__(self, builder):
        self.net = tflitemodel.Net(f"seed_{builder.seed}")
        self.known = set()
        self.builder = builder
        for tensor in builder.inputs:
            self.net.inputs.append(self.add(tensor))
        for op in builder.ops:
            self.write(op)
        self.net.outputs = [t.name for t in builder.outputs]

    def add(self, tensor):
        if tensor.name not in self.known:
            self.known.add(tensor.name)
            quant = {"scale": [float(s) for s in tensor.scales],
                     "zero_point": [int(z) for z in tensor.zeros]}
            if tensor.axis is not None:
                quant["quantized_dimension"] = tensor.axis
            value = tensor.data.astype(tensor.dtype) if tensor.constant else None
            self.net._add(tensor.name, tensor.shape, tensor.dtype, value, quant)
        return tensor.name

    def integers(self, values):
        name = f"integers_{len(self.net.tensors)}"
        return self.net.const(name, np.array(values, np.int32))

    def fields(self, op):
        a = op.attrs
        fields = {}
        if a.get("activation", "NONE") != "NONE":
            fields["activation"] = a["activation"]
        window = a.get("window")
        if window:
            fields |= {"padding": "SAME" if window["same"] else "VALID",
                       "stride_h": window["stride"][0], "stride_w": window["stride"][1]}
        if op.kind in ("CONV", "DEPTHWISE"):
            fields |= {"dilation_h": window["dilation"][0], "dilation_w": window["dilation"][1]}
        if op.kind == "DEPTHWISE":
            fields["depth_multiplier"] = op.inputs[1].shape[3] // op.inputs[0].shape[3]
        if op.kind.endswith("_POOL"):
            fields |= {"filter_h": window["kernel"][0], "filter_w": window["kernel"][1]}
        if op.kind.startswith("REDUCE"):
            fields["keep_dims"] = a["keep"]
        more = {"TRANSPOSE_CONV": lambda: {"padding": "VALID", "stride_h": a["stride"][0],
                                           "stride_w": a["stride"][1]},
                "SOFTMAX": lambda: {"beta": 1.0}, "LEAKY_RELU": lambda: {"alpha": 0.25},
                "SPLIT": lambda: {"num_splits": 2}, "CONCAT": lambda: {"axis": a["axis"]},
                "ADD": lambda: {"pot_scale_int16": False},
                "SUB": lambda: {"pot_scale_int16": False},
                "PRODUCT": lambda: {"adj_x": a["adj_x"], "adj_y": a["adj_y"]},
                "SPACE_TO_DEPTH": lambda: {"block_size": 2}}
        return fields | more.get(op.kind, dict)()

    def write(self, op):
        a, kind = op.attrs, op.kind
        code = CODES.get(kind, kind)
        inputs = [self.add(t) for t in op.inputs]
        options = OPTIONS.get(kind)
        if kind.startswith("REDUCE"):
            inputs.append(self.integers(a["axes"]))
        elif kind == "TRANSPOSE_CONV":
            shape = [op.inputs[0].shape[0], *a["size"], op.inputs[1].shape[0]]
            inputs = [self.integers(shape), inputs[1], inputs[0], *inputs[2:]]
        elif kind in ("RESIZE", "RESIZE_LINEAR"):
            inputs.append(self.integers(a["size"]))
        elif kind == "RESHAPE":
            inputs.append(self.integers(a["shape"]))
        elif kind == "TRANSPOSE":
            inputs.append(self.integers(a["perm"]))
        elif kind == "SLICE":
            if all(s == 1 for s in a["strides"]):
                sizes = [e - b for b, e in zip(a["begin"], a["end"])]
                inputs += [self.integers(a["begin"]), self.integers(sizes)]
                options = None
            else:
                code = "STRIDED_SLICE"
                inputs += [self.integers(a[k]) for k in ("begin", "end", "strides")]
        elif kind == "SPLIT":
            inputs = [self.integers(a["axis"]), inputs[0]]
        elif kind == "PAD":
            inputs.append(self.integers(a["pads"]))
            out = op.outputs[0]
            if a["stored"] != out.scale.zero:
                code = "PADV2"
                name = f"value_{len(self.net.tensors)}"
                quant = {"scale": [float(out.scale.scale)], "zero_point": [out.scale.zero]}
                inputs.append(self.net._add(name, [1], out.dtype,
                                            np.array([a["stored"]], out.dtype), quant))
        outputs = [self.add(t) for t in op.outputs]
        self.net.ops.append({"code": code, "inputs": inputs, "outputs": outputs,
                             "options": options, "fields": self.fields(op), "custom": None})


def write_tflite(builders, folder):
    """Writes one file a net, all by one call of flatc; their paths."""
    sources = []
    for i, builder in enumerate(builders):
        sources.append(os.path.join(folder, f"net_{i}.json"))
        with open(sources[-1], "w", encoding="utf-8") as f:
            json.dump(TfliteWriter(builder).net.to_json(), f)
    if sources:
        subprocess.run(["flatc", "--binary", "-o", folder, tflitemodel.SCHEMA, *sources],
                       check=True, capture_output=True)
    return [s[:-len("json")] + "bin" for s in sources]


# ---- ONNX ----

ELEMENT_TYPES = {"int8": 3, "uint8": 2, "float32": 1}


class OnnxWriter:
    def __init__(self, builder):
        self.builder = builder
        self.nodes, self.initializers = [], {}
        self.known = set()
        self.linear = builder.form == "onnx_qlinear"
        inputs = []
        for tensor in builder.inputs:
            inputs.append((tensor.name, tensor.shape))
            self.known.add(tensor.name)
            self.store(tensor.name, tensor)
        for op in builder.ops:
            self.write(op)
        outputs = [(self.floats(t), t.shape) for t in builder.outputs]
        self.outputs = {t.name: self.floats(t) for t in builder.outputs}
        self.data = onnxmodel.model(self.nodes, inputs, outputs, self.initializers, opset=13)

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append(onnxmodel.node(op, inputs, outputs, **attributes))
        return outputs[0]

    def constant(self, value):
        name = f"c_{len(self.initializers)}"
        self.initializers[name] = np.asarray(value)
        return name

    def params(self, tensor):
        """Names of the scale and zero point."""
        scalar = tensor.axis is None or len(tensor.scales) == 1
        scale, zero = np.array(tensor.scales, np.float32), np.array(tensor.zeros)
        zero = zero.astype(tensor.dtype)
        return [self.constant(scale[0] if scalar else scale),
                self.constant(zero[0] if scalar else zero)]

    def store(self, floats, tensor):
        """floats -> the tensor's integers -> floats again."""
        params = self.params(tensor)
        self.node("QuantizeLinear", [floats, *params], [tensor.name + "_q"])
        self.node("DequantizeLinear", [tensor.name + "_q", *params], [tensor.name + "_f"])

    def integers(self, tensor):
        if tensor.constant and tensor.name not in self.known:
            self.known.add(tensor.name)
            self.initializers[tensor.name + "_q"] = tensor.data.astype(tensor.dtype)
        return tensor.name + "_q"

    def floats(self, tensor):
        if tensor.constant and tensor.name + "_f" not in self.known:
            self.known.add(tensor.name + "_f")
            per_channel = tensor.axis is not None and len(tensor.scales) > 1
            attributes = {"axis": tensor.axis} if per_channel else {}
            params = self.params(tensor)
            if tensor.dtype == "int32":
                params = params[:1]
            self.node("DequantizeLinear", [self.integers(tensor), *params], [tensor.name + "_f"],
                      **attributes)
        return tensor.name + "_f"

    def write(self, op):
        if self.linear and op.kind in ("CONV", "DEPTHWISE", "DENSE", "PRODUCT"):
            return self.write_linear(op)
        emit = getattr(self, "emit_" + op.kind.lower(), self.emit_simple)
        results = [t.name + "_x" for t in op.outputs]
        emit(op, [self.floats(t) for t in op.inputs], results)
        for result, tensor in zip(results, op.outputs):
            activation = op.attrs.get("activation", "NONE")
            if activation == "RELU":
                result = self.node("Relu", [result], [result + "_relu"])
            elif activation == "RELU6":
                bounds = [self.constant(np.float32(0)), self.constant(np.float32(6))]
                result = self.node("Clip", [result, *bounds], [result + "_clip"])
            self.store(result, tensor)
        return None

    def write_linear(self, op):
        x, w, out = op.inputs[0], op.inputs[1], op.outputs[0]
        inputs = []
        for tensor in (x, w):
            inputs += [self.integers(tensor), *self.params(tensor)]
        inputs += self.params(out)
        if op.kind in ("DENSE", "PRODUCT"):
            self.node("QLinearMatMul", inputs, [out.name + "_q"])
        else:
            inputs += [self.integers(b) for b in op.inputs[2:]]
            self.node("QLinearConv", inputs, [out.name + "_q"], **self.window(op))
        self.node("DequantizeLinear", [out.name + "_q", *self.params(out)], [out.name + "_f"])

    @staticmethod
    def window(op):
        w = op.attrs["window"]
        attributes = {"strides": w["stride"], "pads": w["before"] + w["after"],
                      "kernel_shape": w["kernel"]}
        if op.kind in ("CONV", "DEPTHWISE"):
            attributes |= {"dilations": w["dilation"], "group": op.attrs["groups"]}
        return attributes

    NAMES = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div", "PRODUCT": "MatMul",
             "MAXIMUM": "Max", "MINIMUM": "Min",
             "LOGISTIC": "Sigmoid", "TANH": "Tanh", "ABS": "Abs", "NEG": "Neg", "EXP": "Exp",
             "RELU": "Relu", "HARD_SWISH": "HardSwish"}

    def emit_simple(self, op, x, y):
        self.node(self.NAMES[op.kind], x, y)

    def emit_conv(self, op, x, y):
        self.node("Conv", x, y, **self.window(op))

    emit_depthwise = emit_conv

    def emit_dense(self, op, x, y):
        if op.attrs["transposed"]:
            self.node("Gemm", x, y, transB=1)
        elif len(x) == 3:
            self.node("Add", [self.node("MatMul", x[:2], [y[0] + "_m"]), x[2]], y)
        else:
            self.node("MatMul", x, y)

    def emit_transpose_conv(self, op, x, y):
        self.node("ConvTranspose", x, y, strides=op.attrs["stride"])

    def emit_max_pool(self, op, x, y):
        self.node("MaxPool", x, y, **self.window(op))

    def emit_mean_pool(self, op, x, y):
        self.node("AveragePool", x, y, **self.window(op))

    def emit_reduce_mean(self, op, x, y):
        self.node("ReduceMean", x, y, axes=op.attrs["axes"], keepdims=int(op.attrs["keep"]))

    def emit_reduce_max(self, op, x, y):
        self.node("ReduceMax", x, y, axes=op.attrs["axes"], keepdims=int(op.attrs["keep"]))

    def emit_reduce_sum(self, op, x, y):
        axes = self.constant(np.array(op.attrs["axes"], np.int64))
        self.node("ReduceSum", [*x, axes], y, keepdims=int(op.attrs["keep"]))

    def emit_resize(self, op, x, y):
        scales = self.constant(np.array([1, 1, *op.attrs["factor"]], np.float32))
        self.node("Resize", [*x, "", scales], y, mode="nearest", nearest_mode="floor",
                  coordinate_transformation_mode="asymmetric")

    def emit_resize_linear(self, op, x, y):
        scales = self.constant(np.array([1, 1, *op.attrs["factor"]], np.float32))
        self.node("Resize", [*x, "", scales], y, mode="linear",
                  coordinate_transformation_mode="asymmetric")

    def emit_lstm(self, op, x, y):
        self.node("LSTM", x, y, hidden_size=op.attrs["hidden"])

    def emit_prelu(self, op, x, y):
        self.node("PRelu", x, y)

    def emit_clip(self, op, x, y):
        self.node("Clip", [*x, *(self.constant(np.float32(op.attrs[k])) for k in ("low", "high"))],
                  y)

    def emit_hard_sigmoid(self, op, x, y):
        self.node("HardSigmoid", x, y, alpha=0.25, beta=0.5)

    def emit_softmax(self, op, x, y):
        self.node("Softmax", x, y, axis=-1)

    def emit_relu6(self, op, x, y):
        self.node("Clip", [*x, self.constant(np.float32(0)), self.constant(np.float32(6))], y)

    def emit_leaky_relu(self, op, x, y):
        self.node("LeakyRelu", x, y, alpha=0.25)

    def emit_hard_swish(self, op, x, y):
        gate = self.node("HardSigmoid", x, [y[0] + "_g"], alpha=float(np.float32(1 / 6)), beta=0.5)
        self.node("Mul", [x[0], gate], y)

    def emit_quantize(self, op, x, y):
        self.node("Identity", x, y)

    def emit_reshape(self, op, x, y):
        self.node("Reshape", [*x, self.constant(np.array(op.attrs["shape"], np.int64))], y)

    def emit_transpose(self, op, x, y):
        self.node("Transpose", x, y, perm=op.attrs["perm"])

    def emit_slice(self, op, x, y):
        a = op.attrs
        parts = [self.constant(np.array(v, np.int64)) for v in
                 (a["begin"], a["end"], list(range(len(a["begin"]))), a["strides"])]
        self.node("Slice", [*x, *parts], y)

    def emit_split(self, op, x, y):
        self.node("Split", x, y, axis=op.attrs["axis"])

    def emit_pad(self, op, x, y):
        pads = [p[0] for p in op.attrs["pads"]] + [p[1] for p in op.attrs["pads"]]
        self.node("Pad", [*x, self.constant(np.array(pads, np.int64)),
                          self.constant(np.float32(op.attrs["value"]))], y, mode="constant")

    def emit_concat(self, op, x, y):
        self.node("Concat", x, y, axis=op.attrs["axis"])


def write(builders, folder):
    """Writes the nets; (path, name of each output in the file) of each, in their order."""
    tflite = [b for b in builders if b.is_tflite]
    paths = dict(zip(map(id, tflite), write_tflite(tflite, folder)))
    written = []
    for i, builder in enumerate(builders):
        if builder.is_tflite:
            written.append((paths[id(builder)], {t.name: t.name for t in builder.outputs}))
            continue
        writer = OnnxWriter(builder)
        path = os.path.join(folder, f"net_{i}.onnx")
        with open(path, "wb") as f:
            f.write(writer.data)
        written.append((path, writer.outputs))
    return written
