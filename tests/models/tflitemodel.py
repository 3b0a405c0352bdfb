"""TFLite models made by script: tensors and operators as Python values, written by flatc from our
own schema (compiler_core/frontends/tflite/schema), so that reader and writer agree only where both
agree with the format - which the oracle of tests/oracle/tflite decides.

A Net is a float graph; Net.quantized(ranges, dtype) is the same net as a converter quantizes it:
activations asymmetric over `ranges`, weights symmetric per channel, int32 biases.
"""

import json
import os
import subprocess
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "compiler_core", "frontends", "tflite", "schema",
                      "npuc_tflite.fbs")
TYPES = {"float32": "FLOAT32", "float16": "FLOAT16", "int8": "INT8", "uint8": "UINT8",
         "int16": "INT16", "int32": "INT32", "int64": "INT64", "bool": "BOOL"}
CODES = {"ADD": 0, "AVERAGE_POOL_2D": 1, "CONCATENATION": 2, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 4,
         "DEPTH_TO_SPACE": 5, "DEQUANTIZE": 6, "FULLY_CONNECTED": 9,
         "L2_NORMALIZATION": 11, "L2_POOL_2D": 12, "LOGISTIC": 14, "MAX_POOL_2D": 17, "MUL": 18,
         "RELU": 19, "RELU_N1_TO_1": 20, "RELU6": 21,
         "RESHAPE": 22, "RESIZE_BILINEAR": 23, "SOFTMAX": 25, "SPACE_TO_DEPTH": 26, "SVDF": 27,
         "TANH": 28, "PAD": 34, "UNIDIRECTIONAL_SEQUENCE_RNN": 35, "GATHER": 36,
         "BATCH_TO_SPACE_ND": 37, "SPACE_TO_BATCH_ND": 38, "TRANSPOSE": 39,
         "MEAN": 40, "SUB": 41, "DIV": 42, "SQUEEZE": 43, "UNIDIRECTIONAL_SEQUENCE_LSTM": 44,
         "STRIDED_SLICE": 45, "EXP": 47, "SPLIT": 49, "LOG_SOFTMAX": 50, "PRELU": 54,
         "MAXIMUM": 55, "MINIMUM": 57, "NEG": 59, "PADV2": 60, "SLICE": 65, "TRANSPOSE_CONV": 67,
         "TILE": 69, "EXPAND_DIMS": 70, "LOG": 73, "SUM": 74, "SQRT": 75, "RSQRT": 76, "POW": 78,
         "REDUCE_MAX": 82, "PACK": 83, "UNPACK": 88, "REDUCE_MIN": 89, "SQUARE": 92,
         "RESIZE_NEAREST_NEIGHBOR": 97, "LEAKY_RELU": 98, "SQUARED_DIFFERENCE": 99,
         "MIRROR_PAD": 100, "ABS": 101, "SPLIT_V": 102, "ELU": 111, "QUANTIZE": 114, "ROUND": 116,
         "HARD_SWISH": 117, "SELECT": 64, "ZEROS_LIKE": 93, "SELECT_V2": 123, "GELU": 150,
         "BATCH_MATMUL": 126, "BROADCAST_TO": 130}
# Operators whose quantized kernels want the operand's parameters on the result, too.
SAME_SCALE = {"AVERAGE_POOL_2D", "MAX_POOL_2D", "RESHAPE", "PAD", "PADV2", "TRANSPOSE", "SQUEEZE",
              "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "EXPAND_DIMS", "PACK", "UNPACK",
              "GATHER", "TILE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "CONCATENATION",
              "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "MIRROR_PAD", "REDUCE_MAX", "REDUCE_MIN",
              "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND",
              "MAXIMUM", "MINIMUM", "NEG"}
# Operand number: the dimension that weights have scales along.
WEIGHT_AXES = {"CONV_2D": (1, 0), "DEPTHWISE_CONV_2D": (1, 3), "FULLY_CONNECTED": (1, None),
               "TRANSPOSE_CONV": (1, 0)}


CUSTOM = 32


def operator_code(name):
    if name in CODES:
        return {"old_builtin_code": min(CODES[name], 127), "builtin_code": CODES[name],
                "version": 1}
    return {"old_builtin_code": CUSTOM, "builtin_code": CUSTOM, "custom_code": name, "version": 1}


class Net:
    """Tensors by name. Values: numpy arrays of constants, or None."""

    def __init__(self, name):
        self.name = name
        self.tensors = {}  # name -> dict(shape, type, value, quant)
        self.ops = []
        self.inputs = []
        self.outputs = []

    def _add(self, name, shape, dtype="float32", value=None, quant=None):
        self.tensors[name] = {"shape": list(shape), "type": dtype, "value": value, "quant": quant}
        return name

    def input(self, name, shape):
        self.inputs.append(name)
        return self._add(name, shape)

    def const(self, name, value):
        value = np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        if value.dtype == np.int64:
            value = value.astype(np.int32)
        return self._add(name, value.shape, str(value.dtype), value)

    def op(self, code, inputs, shapes, options=None, fields=None, names=None, custom=None):
        """Results' names; `shapes` is a list of shapes, one a result. `custom`: the bytes of a
        custom operator's options; then `code` is its name."""
        names = names or [f"{code.lower()}_{len(self.ops)}" + (f"_{i}" if i else "")
                          for i in range(len(shapes))]
        for name, shape in zip(names, shapes):
            self._add(name, shape)
        self.ops.append({"code": code, "inputs": list(inputs), "outputs": names,
                         "options": options, "fields": fields or {}, "custom": custom})
        return names[0] if len(names) == 1 else names

    def output(self, *names):
        self.outputs += names
        return self

    # ---- writing ----

    def to_json(self, outputs=None):
        order = {name: i for i, name in enumerate(self.tensors)}
        codes = sorted({op["code"] for op in self.ops})
        buffers, tensors = [{}], []
        for name, t in self.tensors.items():
            entry = {"shape": t["shape"], "type": TYPES[t["type"]], "name": name, "buffer": 0}
            if t["value"] is not None:
                entry["buffer"] = len(buffers)
                buffers.append({"data": list(np.ascontiguousarray(t["value"]).tobytes())})
            if t.get("variable"):
                entry["is_variable"] = True
            if t["quant"]:
                entry["quantization"] = t["quant"]
            tensors.append(entry)
        operators = []
        for op in self.ops:
            entry = {"opcode_index": codes.index(op["code"]),
                     "inputs": [-1 if n is None else order[n] for n in op["inputs"]],
                     "outputs": [order[n] for n in op["outputs"]]}
            if op["options"]:
                entry["options_type"] = op["options"]
                entry["options"] = op["fields"]
            if op["custom"]:
                entry["custom_options"] = list(op["custom"])
            operators.append(entry)
        return {"version": 3,
                "operator_codes": [operator_code(c) for c in codes],
                "subgraphs": [{"tensors": tensors, "inputs": [order[n] for n in self.inputs],
                               "outputs": [order[n] for n in outputs or self.outputs],
                               "operators": operators, "name": self.name}],
                "buffers": buffers}

    def to_bytes(self, outputs=None):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "net.json")
            with open(source, "w", encoding="utf-8") as f:
                json.dump(self.to_json(outputs), f)
            subprocess.run(["flatc", "--binary", "-o", folder, SCHEMA, source], check=True,
                           capture_output=True)
            with open(os.path.join(folder, "net.bin"), "rb") as f:
                return f.read()

    # ---- quantizing ----

    def quantized(self, ranges, dtype="int8"):
        """ranges: (lowest, highest) of each activation by name, as the float net has them."""
        net = Net(f"{self.name}_{dtype}")
        net.inputs, net.outputs = list(self.inputs), list(self.outputs)
        info = np.iinfo(dtype)
        lowest = -info.max if dtype == "int16" else info.min
        params = {}

        def activation(low, high):
            low, high = min(low, 0.0), max(high, 0.0)
            if high == low:
                high = 1.0
            if dtype == "int16":
                return np.float32(max(-low, high) / info.max), 0
            scale = np.float32((high - low) / (info.max - lowest))
            return scale, int(np.clip(np.rint(lowest - low / scale), lowest, info.max))

        for name in self.inputs:
            params[name] = activation(*ranges[name])
        for op in self.ops:
            code, results = op["code"], op["outputs"]
            sources = [n for n in op["inputs"] if n is not None]
            flowing = [n for n in sources if self.tensors[n]["value"] is None]
            for name in results:
                params[name] = activation(*ranges[name])
                if code in SAME_SCALE and flowing:
                    params[name] = params[flowing[0]]
                if code in ("SOFTMAX", "LOGISTIC") and dtype != "int16":
                    params[name] = (np.float32(1 / 256), lowest)
                if code == "LOG_SOFTMAX":
                    params[name] = (np.float32(16 / 256), info.max)
                if code == "TANH" and dtype != "int16":
                    params[name] = (np.float32(1 / 128), (lowest + info.max + 1) // 2)
                if code in ("SOFTMAX", "LOGISTIC", "TANH") and dtype == "int16":
                    params[name] = (np.float32(1 / 32768), 0)
        constants = self._quantize_constants(net, params, dtype, activation)
        for name, t in self.tensors.items():
            if name in constants:
                net.tensors[name] = constants[name]
            elif name in params:
                scale, zero = params[name]
                net._add(name, t["shape"], dtype, None,
                         {"scale": [float(scale)], "zero_point": [int(zero)]})
            else:
                net.tensors[name] = dict(t)
        net.ops = [dict(op) for op in self.ops]
        return net

    def _quantize_constants(self, net, params, dtype, activation):
        done = {}
        for op in self.ops:
            weight_at, axis = WEIGHT_AXES.get(op["code"], (None, None))
            bias_at = 3 if op["code"] == "TRANSPOSE_CONV" else 2
            source = op["inputs"][2 if op["code"] == "TRANSPOSE_CONV" else 0]
            for i, name in enumerate(op["inputs"]):
                value = None if name is None else self.tensors[name]["value"]
                if value is None or value.dtype != np.float32 or name in done:
                    continue
                if i == weight_at:
                    done[name] = self._weight(value, axis, dtype)
                elif weight_at is not None and i == bias_at:
                    w = np.array(done[op["inputs"][weight_at]]["quant"]["scale"], np.float32)
                    scale = (w * params[source][0]).astype(np.float32)
                    kind = np.int64 if dtype == "int16" else np.int32
                    q = np.rint(value / scale).astype(kind)
                    done[name] = {"shape": list(value.shape), "type": np.dtype(kind).name,
                                  "value": q,
                                  "quant": {"scale": scale.tolist(),
                                            "zero_point": [0] * len(scale),
                                            "quantized_dimension": 0}}
                else:
                    scale, zero = activation(float(value.min()), float(value.max()))
                    if op["code"] in SAME_SCALE:
                        scale, zero = params[op["outputs"][0]]
                    info = np.iinfo(dtype)
                    q = np.clip(np.rint(value / scale) + zero, info.min, info.max).astype(dtype)
                    done[name] = {"shape": list(value.shape), "type": dtype, "value": q,
                                  "quant": {"scale": [float(scale)], "zero_point": [int(zero)]}}
        return done

    @staticmethod
    def _weight(value, axis, dtype):
        unsigned = dtype == "uint8"
        if axis is None or unsigned:  # one scale for all
            greatest = np.array([np.abs(value).max()])
            shape = [1] * value.ndim
        else:
            greatest = np.abs(value).max(tuple(i for i in range(value.ndim) if i != axis))
            shape = [-1 if i == axis else 1 for i in range(value.ndim)]
        scale = (np.maximum(greatest, 1e-6) / 127).astype(np.float32)
        zero = 128 if unsigned else 0
        q = (np.clip(np.rint(value / scale.reshape(shape)), -127, 127) + zero).astype(
            "uint8" if unsigned else "int8")
        return {"shape": list(value.shape), "type": str(q.dtype), "value": q,
                "quant": {"scale": scale.tolist(), "zero_point": [zero] * len(scale),
                          "quantized_dimension": axis or 0}}



def read(path):
    """A model as flatc's JSON."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["flatc", "--json", "--strict-json", "--raw-binary", "-o", folder, SCHEMA,
                        "--", path], check=True, capture_output=True)
        name = os.path.splitext(os.path.basename(path))[0] + ".json"
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            return json.load(f)


def from_json(model):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "net.json")
        with open(source, "w", encoding="utf-8") as f:
            json.dump(model, f)
        subprocess.run(["flatc", "--binary", "-o", folder, SCHEMA, source], check=True,
                       capture_output=True)
        with open(os.path.join(folder, "net.bin"), "rb") as f:
            return f.read()


def _activations(graph):
    """Indices of the tensors that operators compute."""
    return {t for op in graph["operators"] for t in op["outputs"]}


def float_weights(path):
    """A model of 8-bit weights and float activations with its weights as floats; else None."""
    model = read(path)
    graph = model["subgraphs"][0]
    tensors = graph["tensors"]
    flowing = _activations(graph) | set(graph["inputs"])
    if any(tensors[t].get("type", "FLOAT32") != "FLOAT32" for t in flowing):
        return None
    changed = False
    for t in tensors:
        if t.get("type") != "INT8" or "scale" not in t.get("quantization", {}):
            continue
        q = t["quantization"]
        raw = np.array(model["buffers"][t["buffer"]]["data"], np.uint8).view(np.int8)
        shape = [1] * len(t["shape"])
        if len(q["scale"]) > 1:
            shape[q.get("quantized_dimension", 0)] = -1
        value = raw.reshape(t["shape"]).astype(np.float64) * np.array(q["scale"]).reshape(shape)
        model["buffers"][t["buffer"]]["data"] = list(value.astype(np.float32).tobytes())
        t["type"] = "FLOAT32"
        del t["quantization"]
        changed = True
    return from_json(model) if changed else None


def all_results(path):
    """For a model of integer activations: the layers as [result, [activations it takes]] by name,
    and the model with every result as an output. Else (None, None)."""
    model = read(path)
    graph = model["subgraphs"][0]
    tensors = graph["tensors"]
    computed = _activations(graph)
    if not any(tensors[t].get("type") == "INT8" for t in computed):
        return None, None
    flowing = computed | set(graph["inputs"])
    layers = [[tensors[op["outputs"][0]]["name"],
               [tensors[t]["name"] for t in op["inputs"] if t in flowing]]
              for op in graph["operators"]]
    graph["outputs"] = [op["outputs"][0] for op in graph["operators"]]
    return layers, from_json(model)
