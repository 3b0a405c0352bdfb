"""The example nets of the vendor's guide in TensorFlow form, written as GraphDefs with seeded
weights, each with an independent NumPy forward pass of one frame.

    for net in guide_nets():
        open(net.name + ".pb", "wb").write(net.graph.serialize())

- fsmn: feed-forward memory net with Feats [1,1,64] and three states of 3, 4 and 5 past frames.
- two_input_cnn: Conv2D, MaxPool, concatenation, pooling to 1x1, flatten, dense, ReLU.
- conv_gru: Conv1D (as Conv2D of height 1) and a GRU with state [1,1,128], unrolled over its frames.
- split_gru: split, GRU, sigmoid, permute and Conv1D with seven outputs.
"""

from dataclasses import dataclass, field

import numpy as np

import graphdef

FLOAT = graphdef.DType(np.float32)
INT = graphdef.DType(np.int32)


@dataclass
class Net:
    """A net: `forward` maps one frame's inputs (states among them) by name to its outputs."""

    name: str
    graph: "Writer"
    inputs: dict                                 # shapes by name, states among them
    states: dict = field(default_factory=dict)   # state input by state output
    outputs: list = field(default_factory=list)  # states first
    forward: object = None

    def config(self, model, compress=False):
        lines = ["CORENAME: GRUS", "NPU_UNIT: NPU32", "FRAMEWORK: TF", f"MODEL_FILE: {model}",
                 "OUTPUT_TYPE: c_code", "OUTPUT_FILE: model.h",
                 f"COMPRESS: {str(compress).lower()}", "INPUT_OPS:"]
        lines += [f"  {name}: {list(shape)}" for name, shape in self.inputs.items()]
        lines.append(f"OUTPUT_OPS: [{', '.join(self.outputs)}]")
        if self.states:
            lines.append(f"FP16_OUT_OPS: [{', '.join(self.states)}]")
        return "\n".join(lines) + "\n"


class Writer(graphdef.Graph):
    """Graph with the operators that the nets use; each returns the node's name."""

    def __init__(self, seed):
        super().__init__()
        self._random = np.random.RandomState(seed)

    def weight(self, name, *shape, scale=None):
        """A seeded weight, of which the sums keep the size of the inputs."""
        rows = int(np.prod(shape[:-1])) if len(shape) > 1 else 16
        array = self._random.randn(*shape) * (scale or 1 / np.sqrt(rows))
        array = array.astype(np.float32)
        self.const(name, array)
        return array.astype(np.float64)

    def ints(self, name, values):
        return self.const(name, np.array(values, np.int32))

    def op(self, op, name, *inputs, **attrs):
        return self.node(op, name, inputs, {"T": FLOAT, **attrs})

    def reshape(self, name, x, shape):
        self.ints(name + "/shape", shape)
        return self.node("Reshape", name, [x, name + "/shape"], {"T": FLOAT, "Tshape": INT})

    def concat(self, name, values, axis):
        self.ints(name + "/axis", axis)
        return self.node("ConcatV2", name, [*values, name + "/axis"],
                         {"T": FLOAT, "Tidx": INT, "N": len(values)})

    def slice(self, name, x, begin, size):
        self.ints(name + "/begin", begin)
        self.ints(name + "/size", size)
        return self.node("Slice", name, [x, name + "/begin", name + "/size"],
                         {"T": FLOAT, "Index": INT})

    def transpose(self, name, x, perm):
        self.ints(name + "/perm", perm)
        return self.node("Transpose", name, [x, name + "/perm"], {"T": FLOAT, "Tperm": INT})

    def split(self, name, x, axis, count):
        self.ints(name + "/axis", axis)
        self.node("Split", name, [name + "/axis", x], {"T": FLOAT, "num_split": count})
        return [name] + [f"{name}:{i}" for i in range(1, count)]

    def dense(self, name, x, rows, columns):
        """x [1,rows] -> [1,columns]; the weight and the bias."""
        weight, bias = self.weight(name + "/w", rows, columns), self.weight(name + "/b", columns)
        self.op("MatMul", name + "/matmul", x, name + "/w", transpose_a=False, transpose_b=False)
        self.op("BiasAdd", name, name + "/matmul", name + "/b", data_format="NHWC")
        return weight, bias

    def conv(self, name, x, height, width, channels_in, channels, padding):
        kernel = self.weight(name + "/kernel", height, width, channels_in, channels)
        bias = self.weight(name + "/bias", channels)
        self.op("Conv2D", name + "/conv", x, name + "/kernel", strides=[1, 1, 1, 1],
                padding=padding, data_format="NHWC", dilations=[1, 1, 1, 1])
        self.op("BiasAdd", name, name + "/conv", name + "/bias", data_format="NHWC")
        return kernel, bias

    def max_pool(self, name, x, window):
        return self.op("MaxPool", name, x, ksize=[1, window, window, 1],
                       strides=[1, window, window, 1], padding="VALID", data_format="NHWC")


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _conv_valid(x, kernel, bias):
    """[h,w,c] by [kh,kw,c,n], VALID."""
    height, width = x.shape[0] - kernel.shape[0] + 1, x.shape[1] - kernel.shape[1] + 1
    out = np.zeros((height, width, kernel.shape[3]))
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += x[i:i + height, j:j + width] @ kernel[i, j]
    return out + bias


def _max_pool(x, window):
    h, w, c = x.shape
    return x.reshape(h // window, window, w // window, window, c).max(axis=(1, 3))


class _Gru:
    """PyTorch's GRU cell: reset, update and candidate gates, the reset behind the product."""

    def __init__(self, g, name, features, units):
        self.g, self.name, self.units = g, name, units
        self.w = g.weight(name + "/w_ih", features, 3 * units)
        self.u = g.weight(name + "/w_hh", units, 3 * units)
        self.b = g.weight(name + "/b_ih", 3 * units)
        self.c = g.weight(name + "/b_hh", 3 * units)
        g.const(name + "/one", np.float32(1))

    def write(self, step, x, h):
        """One step on x [1,features] and h [1,units]; the name of the new h."""
        g, n = self.g, f"{self.name}/{step}"
        for part, value, weight, bias in (("i", x, "w_ih", "b_ih"), ("h", h, "w_hh", "b_hh")):
            g.op("MatMul", f"{n}/{part}/matmul", value, f"{self.name}/{weight}", transpose_a=False,
                 transpose_b=False)
            g.op("BiasAdd", f"{n}/{part}", f"{n}/{part}/matmul", f"{self.name}/{bias}",
                 data_format="NHWC")
        ir, iz, ic = g.split(f"{n}/i_gates", f"{n}/i", 1, 3)
        hr, hz, hc = g.split(f"{n}/h_gates", f"{n}/h", 1, 3)
        r = g.op("Sigmoid", f"{n}/r", g.op("AddV2", f"{n}/r_sum", ir, hr))
        z = g.op("Sigmoid", f"{n}/z", g.op("AddV2", f"{n}/z_sum", iz, hz))
        reset = g.op("Mul", f"{n}/reset", r, hc)
        c = g.op("Tanh", f"{n}/c", g.op("AddV2", f"{n}/c_sum", ic, reset))
        rest = g.op("Sub", f"{n}/rest", self.name + "/one", z)
        return g.op("AddV2", f"{n}/h_new", g.op("Mul", f"{n}/fresh", rest, c),
                    g.op("Mul", f"{n}/kept", z, h))

    def forward(self, x, h):
        i, j = x @ self.w + self.b, h @ self.u + self.c
        n = self.units
        r, z = _sigmoid(i[:n] + j[:n]), _sigmoid(i[n:2 * n] + j[n:2 * n])
        c = np.tanh(i[2 * n:] + r * j[2 * n:])
        return (1 - z) * c + z * h


def fsmn(seed=1):
    g = Writer(seed)
    width, lengths = 64, (3, 4, 5)
    inputs = {"Feats": (1, 1, width)}
    inputs.update({f"State_c{i}": (1, n, width) for i, n in enumerate(lengths)})
    for name, shape in inputs.items():
        g.placeholder(name, list(shape))
    x, layers = "Feats", []
    for i, n in enumerate(lengths):
        name = f"block{i}"
        past = g.concat(name + "/past", [f"State_c{i}", x], 1)
        taps = g.weight(name + "/taps", 1, n + 1, width, scale=1 / np.sqrt(n + 1))
        g.op("Mul", name + "/tapped", past, name + "/taps")
        g.ints(name + "/time", [1])
        g.node("Sum", name + "/memory", [name + "/tapped", name + "/time"],
               {"T": FLOAT, "Tidx": INT, "keep_dims": True})
        joined = g.op("AddV2", name + "/joined", name + "/memory", x)
        weight, bias = g.dense(name + "/fc", g.reshape(name + "/flat", joined, [1, width]), width,
                               width)
        x = g.reshape(name + "/out", g.op("Relu", name + "/relu", name + "/fc"), [1, 1, width])
        g.slice(f"State_c{i}_out", past, [0, 1, 0], [1, n, width])
        layers.append((taps[0], weight, bias))
    weight, bias = g.dense("logits", g.reshape("flat", x, [1, width]), width, 10)
    g.op("Softmax", "phone_prob", "logits")

    def forward(frame, at=None):
        """at: a format of apus_emulation.py, which sees each tensor by the name of its node."""
        value = at or (lambda name, y: y)
        weights = at.weighted if at else (lambda name, source, w, b=None: (w, b))
        out, x, source = {}, value("Feats", frame["Feats"][0, 0]), "Feats"
        for i, (taps, w, b) in enumerate(layers):
            state, name = f"State_c{i}", f"block{i}"
            past = value(name + "/past", np.vstack([value(state, frame[state][0]), x]))
            out[state + "_out"] = value(state, past[None, 1:])
            tapped = value(name + "/tapped", past * weights(name + "/tapped", source, taps)[0])
            memory = value(name + "/memory", tapped.sum(axis=0))
            joined = value(name + "/joined", memory + x)
            w, b = weights(name + "/fc/matmul", name + "/joined", w, b)
            source = name + "/fc/matmul"
            x = value(source, np.maximum(joined @ w + b, 0))
        w, b = weights("logits/matmul", source, weight, bias)
        logits = np.exp(value("logits/matmul", x @ w + b))
        return {**out, "phone_prob": value("phone_prob", logits / logits.sum())[None]}

    states = {f"State_c{i}_out": f"State_c{i}" for i in range(len(lengths))}
    return Net("fsmn", g, inputs, states, [*states, "phone_prob"], forward)


def two_input_cnn(seed=2):
    g = Writer(seed)
    inputs = {"left": (1, 18, 18, 4), "right": (1, 18, 18, 4)}
    pooled, layers = [], {}
    for name, shape in inputs.items():
        g.placeholder(name, list(shape))
        layers[name] = g.conv(name + "_conv", name, 3, 3, 4, 8, "VALID")
        relu = g.op("Relu", name + "_relu", name + "_conv")
        pooled.append(g.max_pool(name + "_pool", relu, 2))
    whole = g.max_pool("whole", g.concat("both", pooled, 3), 8)
    weight, bias = g.dense("fc", g.reshape("flat", whole, [1, 16]), 16, 10)
    g.op("Relu", "scores", "fc")

    def forward(frame):
        parts = [_max_pool(np.maximum(_conv_valid(frame[n][0], *layers[n]), 0), 2) for n in inputs]
        flat = np.concatenate(parts, axis=2).max(axis=(0, 1))
        return {"scores": np.maximum(flat @ weight + bias, 0)[None]}

    return Net("two_input_cnn", g, inputs, {}, ["scores"], forward)


def conv_gru(seed=3):
    g = Writer(seed)
    frames, features, channels, units = 5, 40, 64, 128
    inputs = {"feats": (1, frames, features), "state": (1, 1, units)}
    for name, shape in inputs.items():
        g.placeholder(name, list(shape))
    kernel, bias = g.conv("conv", g.reshape("row", "feats", [1, 1, frames, features]), 1, 3,
                          features, channels, "VALID")
    relu = g.op("Relu", "relu", "conv")
    gru = _Gru(g, "gru", channels, units)
    h, turns = g.reshape("h", "state", [1, units]), frames - 2
    for t in range(turns):
        x = g.slice(f"x{t}", relu, [0, 0, t, 0], [1, 1, 1, channels])
        h = gru.write(t, g.reshape(f"x{t}_flat", x, [1, channels]), h)
    g.reshape("state_out", h, [1, 1, units])
    w, b = g.dense("fc", h, units, 12)
    g.op("Sigmoid", "prob", "fc")

    def forward(frame):
        x = np.maximum(_conv_valid(frame["feats"], kernel, bias), 0)[0]
        h = frame["state"][0, 0]
        for t in range(turns):
            h = gru.forward(x[t], h)
        return {"state_out": h[None, None], "prob": _sigmoid(h @ w + b)[None]}

    return Net("conv_gru", g, inputs, {"state_out": "state"}, ["state_out", "prob"], forward)


def split_gru(seed=4):
    g = Writer(seed)
    frames, features, units, channels = 4, 64, 32, 16
    inputs = {"feats": (1, frames, features), "h": (1, 1, units)}
    for name, shape in inputs.items():
        g.placeholder(name, list(shape))
    for i, part in enumerate(g.split("split", "feats", 2, 4)):
        g.op("Sigmoid", f"t{i}", part)
    gru = _Gru(g, "gru", features, units)
    h, rows = g.reshape("h0", "h", [1, units]), []
    for t in range(frames):
        x = g.slice(f"x{t}", "feats", [0, t, 0], [1, 1, features])
        h = gru.write(t, g.reshape(f"x{t}_flat", x, [1, features]), h)
        rows.append(g.reshape(f"y{t}", h, [1, 1, units]))
    g.reshape("h_out", h, [1, 1, units])
    y = g.op("Sigmoid", "y", g.concat("ys", rows, 1))
    # As in the original, frames are the channels of the Conv1D: [1,frames,units] is permuted.
    turned = g.transpose("turned", y, [0, 2, 1])
    kernel, bias = g.conv("conv", g.reshape("row", turned, [1, 1, units, frames]), 1, 3, frames,
                          channels, "VALID")
    g.reshape("o", "conv", [1, units - 2, channels])

    def forward(frame):
        x, h, hs = frame["feats"][0], frame["h"][0, 0], []
        out = {f"t{i}": _sigmoid(x[None, :, 16 * i:16 * i + 16]) for i in range(4)}
        for t in range(frames):
            h = gru.forward(x[t], h)
            hs.append(h)
        y = _sigmoid(np.array(hs))
        out.update({"h_out": h[None, None], "y": y[None],
                    "o": _conv_valid(y.T[None], kernel, bias)})
        return out

    outputs = ["h_out", "t0", "t1", "t2", "t3", "y", "o"]
    return Net("split_gru", g, inputs, {"h_out": "h"}, outputs, forward)


def guide_nets():
    return [fsmn(), two_input_cnn(), conv_gru(), split_gru()]
