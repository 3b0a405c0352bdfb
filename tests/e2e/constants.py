"""Quantized models that compute with constants alone somewhere, on each kind of core.

Each net adds a term of constants to its input. The term is made by one operator of stored integers
behind DequantizeLinear, then quantized as exporters quantize it: moves, sums, products, functions,
and whole recurrent layers and transposed convolutions whose weights are such constants. Each core
must give what `npuc reference` gives, to a step of the result's scale; no compile and no `npuc ir
write` may crash or call the problem its own. Constants as model outputs, on GRUS, too.
"""

import os

import numpy as np

import harness  # puts tests/models on the path, so first
import onnxmodel

CORES = ("X2_1204", "Z2_0901", "APUS")
X_SCALE, Y_SCALE = 0.05, 0.1


class Net:
    """A QDQ model in parts; every tensor has a name that is never used twice."""

    def __init__(self):
        self.nodes, self.constants, self.count = [], {}, 0
        self.random = np.random.default_rng(5)

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def constant(self, array):
        name = self.name()
        self.constants[name] = array
        return name

    def op(self, kind, inputs, outputs=1, **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(onnxmodel.node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def scales(self, scale, zero, dtype):
        return [self.constant(np.array(scale, np.float32)), self.constant(np.array(zero, dtype))]

    def stored(self, shape, scale=0.02, zero=3, dtype=np.int8, axis=None):
        """Random stored integers as floats; with `axis` one scale for each of its entries."""
        values = self.random.integers(-100, 100, shape).astype(dtype)
        if axis is None:
            return self.op("DequantizeLinear", [self.constant(values),
                                                *self.scales(scale, zero, dtype)])
        scales = np.linspace(scale / 2, scale, shape[axis])
        return self.op("DequantizeLinear",
                       [self.constant(values), *self.scales(scales, np.zeros(len(scales)), dtype)],
                       axis=axis)

    def requantized(self, value, scale, zero=0, dtype=np.int8):
        names = self.scales(scale, zero, dtype)
        return self.op("DequantizeLinear", [self.op("QuantizeLinear", [value, *names]), *names])

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def save(self, path, x_shape, y, y_shape):
        outputs = [(name, shape) for name, shape in zip(np.atleast_1d(y), y_shape)]
        data = onnxmodel.model(self.nodes, [("x", x_shape)], outputs, self.constants, opset=13)
        with open(path, "wb") as f:
            f.write(data)


# Terms [2, 3] of constants alone.
TERMS = {
    "reshape": lambda n: n.op("Reshape", [n.stored([3, 2]), n.ints(2, 3)]),
    "transpose": lambda n: n.op("Transpose", [n.stored([3, 2])], perm=[1, 0]),
    "slice": lambda n: n.op("Slice", [n.stored([4, 5]), n.ints(1, 1), n.ints(3, 4), n.ints(0, 1)]),
    "slice_back": lambda n: n.op("Slice", [n.stored([4, 3]), n.ints(3), n.ints(0), n.ints(0),
                                           n.ints(-2)]),
    "gather": lambda n: n.op("Gather", [n.stored([4, 3]), n.ints(3, 1)]),
    "pad": lambda n: n.op("Pad", [n.stored([1, 2]), n.ints(0, 1, 1, 0)]),
    "pad_other": lambda n: n.op("Pad", [n.stored([1, 2]), n.ints(0, 1, 1, 0),
                                        n.constant(np.array(0.5, np.float32))]),
    "resize": lambda n: n.op("Reshape", [n.op(
        "Resize", [n.stored([1, 1, 1, 3]), "", n.constant(np.array([1, 1, 2, 1], np.float32))],
        mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor"), n.ints(2, 3)]),
    "concat": lambda n: n.op("Concat", [n.stored([1, 3]), n.stored([1, 3])], axis=0),
    "concat_unlike": lambda n: n.op("Concat", [n.stored([1, 3]), n.stored([1, 3], 0.03, -4)],
                                    axis=0),
    "split": lambda n: n.op("Split", [n.stored([4, 3])], outputs=2, axis=0)[1],
    "expand": lambda n: n.op("Expand", [n.stored([1, 3]), n.ints(2, 3)]),
    "identity": lambda n: n.op("Identity", [n.stored([2, 3])]),
    "relu": lambda n: n.op("Relu", [n.stored([2, 3])]),
    "sigmoid": lambda n: n.op("Sigmoid", [n.stored([2, 3])]),
    "softmax": lambda n: n.op("Softmax", [n.stored([2, 3])], axis=-1),
    "add": lambda n: n.op("Add", [n.stored([2, 3]), n.stored([3], 0.03, -4)]),
    "mul": lambda n: n.op("Mul", [n.stored([2, 3]), n.stored([2, 1], 0.03, -4)]),
    "matmul": lambda n: n.op("MatMul", [n.stored([2, 4]), n.stored([4, 3], axis=1)]),
    "mean": lambda n: n.op("ReduceMean", [n.stored([2, 3, 2])], axes=[2], keepdims=0),
    "channels": lambda n: n.op("Slice", [n.stored([4, 3], axis=0), n.ints(1), n.ints(3),
                                         n.ints(0)]),
    "twice": lambda n: n.requantized(n.stored([2, 3]), 0.07, 5),
    "other_type": lambda n: n.requantized(n.stored([2, 3]), 0.07, 130, np.uint8),
    "chain": lambda n: n.op("Concat", [n.op("Neg", [n.stored([1, 3])]),
                                       n.op("Transpose", [n.stored([3, 1])], perm=[1, 0])], axis=0),
}


def term_net(path, term):
    net = Net()
    x = net.requantized("x", X_SCALE)
    c = net.requantized(TERMS[term](net), 0.04, 2)
    net.save(path, [2, 3], net.requantized(net.op("Add", [x, c]), Y_SCALE, -1), [[2, 3]])
    return [2, 3]


def transposed_net(path, axis):
    net = Net()
    x = net.requantized("x", X_SCALE)
    w = net.stored([3, 4, 3, 2], 0.01, 0, axis=axis)
    y = net.op("ConvTranspose", [x, w], strides=[2, 1], pads=[1, 0, 0, 1], kernel_shape=[3, 2])
    net.save(path, [1, 3, 4, 5], net.requantized(y, Y_SCALE), [["n", "c", "h", "w"]])
    return [1, 3, 4, 5]


def recurrent_net(path, kind, states):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    net = Net()
    x = net.requantized("x", X_SCALE)
    weights = [net.stored([1, gates * 5, 4], 0.01, 0), net.stored([1, gates * 5, 5], 0.01, 0),
               net.stored([1, 2 * gates * 5], 0.01, 0)]
    inputs = [x, *weights]
    if states:
        inputs += ["", net.stored([1, 1, 5])] + ([net.stored([1, 1, 5])] if gates == 4 else [])
    y = net.op(kind, inputs, outputs=2, hidden_size=5)[0]
    net.save(path, [3, 1, 4], net.requantized(y, 0.01), [["t", "d", "n", "h"]])
    return [3, 1, 4]


def alone_net(path, term):
    """Nothing but a constant, beside an input that nothing reads."""
    net = Net()
    net.requantized("x", X_SCALE)
    net.save(path, [2, 3], net.requantized(TERMS[term](net), 0.04, 2), [[2, 3]])
    return [2, 3]


def output_net(path, term):
    """A constant as a second output, as a term gives it, and as a plain float. Without a term the
    model is in float."""
    net = Net()
    if term is None:
        y, c = net.op("Relu", ["x"]), net.constant(np.array([[1e-3, 2, -7]], np.float32))
    else:
        y = net.requantized(net.op("Relu", [net.requantized("x", X_SCALE)]), Y_SCALE)
        c = net.requantized(TERMS[term](net), 0.04, 2)
    outputs = [y, c,
               net.constant(np.linspace(-3, 5, 6, dtype=np.float32).reshape(2, 3))]
    net.save(path, [2, 3], outputs, [[2, 3]] * 3)
    return [2, 3]


NETS = {**{f"term_{term}": (term_net, term) for term in TERMS},
        **{f"transposed_{axis}": (transposed_net, axis) for axis in (None, 0, 1)},
        **{f"{kind.lower()}{'_states' * states}": (recurrent_net, kind, states)
           for kind in ("LSTM", "GRU", "RNN") for states in (False, True)},
        **{f"alone_{term}": (alone_net, term) for term in ("slice", "add")},
        **{f"output_{term}": (output_net, term) for term in ("twice", "add", "slice", None)}}
# What a core may refuse: values inside of a recurrent layer that no exporter gives a scale.
MAY_BE_REFUSED = {"lstm", "gru", "rnn", "lstm_states", "gru_states", "rnn_states",
                  "transposed_None", "transposed_0", "transposed_1"}


def outputs_in(folder):
    return {name: np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


def check_net(folder, name):
    """On every core; the cores that take it."""
    make, *arguments = NETS[name]
    shape = make(os.path.join(folder, f"{name}.onnx"), *arguments)
    data = os.path.join(folder, "x.npy")
    x = np.random.default_rng(1).integers(-40, 41, shape) * X_SCALE  # what the model rounds to
    np.save(data, x.astype(np.float32))
    calibration = os.path.join(folder, "calibration.npy")
    np.save(calibration, np.random.default_rng(2).uniform(-3, 3, [64, *shape]).astype(np.float32))
    taken = []
    for core in (*CORES, "GRUS") if name == "output_None" else CORES:
        here = os.path.join(folder, f"{name}_{core}")
        os.makedirs(here)
        config = os.path.join(here, "c.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\nFRAMEWORK: ONNX\nMODEL_FILE: {folder}/{name}.onnx\n"
                    "OUTPUT_FILE: m.h\n")
            if core == "APUS" or (name == "output_None" and core != "GRUS"):
                f.write(f"QUANT: {{calibration_data: {calibration}}}\n")
        sound(harness.npuc("ir", "write", config, "-o", os.path.join(here, "ir"), expect=None))
        result = harness.npuc(config, "-o", here, expect=None)
        sound(result)
        if result.returncode != 0:
            harness.check(name in MAY_BE_REFUSED, f"{name} on {core}: {result.stderr}")
            continue
        taken.append(core)
        harness.npuc("reference", config, "--input", f"x={data}", "--output-dir",
                     os.path.join(here, "float"))
        harness.npuc("run", os.path.join(here, "m.npuc"), "--input", f"x={data}", "--output-dir",
                     os.path.join(here, "run"))
        want, found = (outputs_in(os.path.join(here, f)) for f in ("float", "run"))
        harness.check(want.keys() == found.keys(), f"{name} on {core}: {list(found)}")
        for output, values in want.items():
            # The reference rounds where the model does; a core once more for each of its layers.
            worst = np.abs(values - found[output]).max()
            harness.check(worst <= 1.01 * Y_SCALE, f"{name} on {core}: {output}: off by {worst}")
    return taken


def sound(result):
    """Done, or refused with diagnostics that are the model's."""
    harness.check(result.returncode in (0, 1) and "NPUC1900" not in result.stderr and
                  (result.returncode == 0 or "[NPUC" in result.stderr),
                  f"exit {result.returncode}: {result.args}: {result.stderr}")


def main(arguments):
    names = [name for name in NETS if not arguments or name in arguments]
    with harness.scratch() as folder:
        taken = [check_net(folder, name) for name in names]
    harness.check(arguments or sum(map(len, taken)) >= len(TERMS) * len(CORES), f"few: {taken}")
    harness.figure(f"constants: {len(names)} nets, {sum(map(len, taken))} compiles agree with npuc "
                   "reference")
