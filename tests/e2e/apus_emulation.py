"""What a fixed-point core can do at best, in NumPy: every tensor rounded once to 16 bits at its Q,
all else in float64. Written apart from npuc and reading models by itself.

A forward pass takes a format that sees each tensor by name: Exact leaves it, Watch notes its
greatest magnitude, Rounded rounds it (or some tensors alone, which bounds what any arithmetic on
them costs), RoundedByChannel at a Q a channel.
"""

import numpy as np

import int8_emulation

GREATEST = 32767.5  # a magnitude up to here rounds into 16 bits, the lowest value being -32768


def largest_q(magnitude):
    """The largest Q at which `magnitude` > 0 fits 16 bits."""
    return int(np.floor(np.log2(GREATEST / magnitude)))


def to_q(x, q):
    return np.clip(np.rint(x * 2.0**q), -32768, 32767) / 2.0**q


class Exact:
    def __call__(self, name, x):
        return x

    def weighted(self, name, source, weight, bias=None):
        """Weight and bias of layer `name`, which reads tensor `source`."""
        return weight, bias


class Watch(Exact):
    def __init__(self):
        self.magnitudes = {}
        self.channels = {}  # of each place in the last dimension

    def __call__(self, name, x):
        channels = np.abs(x).reshape(-1, x.shape[-1]).max(0)
        self.channels[name] = np.maximum(self.channels.get(name, 0.0), channels)
        self.magnitudes[name] = max(self.magnitudes.get(name, 0.0), float(np.abs(x).max()))
        return x

    def qs(self):
        return {name: largest_q(m) for name, m in self.magnitudes.items()}


class Rounded(Exact):
    """Rounds every tensor, weight and bias; only=NAMES: these tensors alone, and no weight."""

    def __init__(self, qs, only=None):
        self.qs, self.only = qs, only

    def __call__(self, name, x):
        return to_q(x, self.qs[name]) if self.only is None or name in self.only else x

    def weighted(self, name, source, weight, bias=None):
        if self.only is not None:
            return weight, bias
        q = largest_q(np.abs(weight).max())
        if bias is not None:  # 48 bits at the Q of the sums: no bias of these nets leaves them
            unit = 2.0**(self.qs[source] + q)
            bias = np.rint(bias * unit) / unit
        return to_q(weight, q), bias


class RoundedByChannel(Exact):
    """What powers of two moved from channels of one layer into the next can give at most: every
    tensor but `ports` has a Q a channel, higher by as often as the channel's greatest magnitude can
    be doubled within the tensor's; weights stay exact."""

    def __init__(self, watch, qs, ports):
        self.qs = {name: q if name in ports else q + np.floor(np.log2(
            watch.magnitudes[name] / np.maximum(watch.channels[name], 1e-9)))
                   for name, q in qs.items()}

    def __call__(self, name, x):
        return to_q(x, self.qs[name])


class TfliteNet:
    """A TFLite net of convolutions, pools and dense layers in float64; constants of 8 bits with one
    scale stand for their float values."""

    def __init__(self, path):
        self.model = int8_emulation.Model(path)
        self.names = {i: t.name for i, t in enumerate(self.model.tensors)}
        self.input = self.names[self.model.inputs[0]]
        self.output = self.names[self.model.outputs[0]]

    def constant(self, index):
        tensor = self.model.tensors[index]
        if tensor.dtype != np.int8:
            return tensor.constant.astype(np.float64)
        return (tensor.constant * tensor.scale).astype(np.float64)  # a float32 product

    def forward(self, x, at):
        """Values of all layers by name, for x [N, ...]."""
        values = {self.model.inputs[0]: at(self.input, x.astype(np.float64))}
        for kind, inputs, outputs, options in self.model.ops:
            a = values[inputs[0]]
            if kind == "RESHAPE":  # the same tensor
                values[outputs[0]] = a.reshape(len(a), -1)
                self.names[outputs[0]] = self.names[inputs[0]]
                continue
            weight, bias = None, None
            if len(inputs) > 1:
                weight, bias = at.weighted(self.names[outputs[0]], self.names[inputs[0]],
                                           self.constant(inputs[1]), self.constant(inputs[2]))
            y = self.layer(kind, a, weight, bias, options)
            values[outputs[0]] = at(self.names[outputs[0]], y)
        return {self.names[i]: v for i, v in values.items()}

    @staticmethod
    def layer(kind, a, weight, bias, options):
        if kind == "SOFTMAX":
            e = np.exp(a - a.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)
        if kind == "AVERAGE_POOL_2D":  # of the whole
            kernel = (options.scalar(4, "i"), options.scalar(3, "i"))
            assert kernel == a.shape[1:3], "a mean of a part"
            return a.mean(axis=(1, 2), keepdims=True)
        if kind == "FULLY_CONNECTED":
            assert options.scalar(0, "b") == 0, "a fused activation"
            return a.reshape(len(a), -1) @ weight.T + bias
        depthwise = kind == "DEPTHWISE_CONV_2D"
        assert depthwise or kind == "CONV_2D", kind
        stride = (options.scalar(2, "i"), options.scalar(1, "i"))
        kernel = weight.shape[1:3]
        pads = [int8_emulation.padding(options.scalar(0, "b"), a.shape[1 + i], kernel[i],
                                       stride[i]) for i in (0, 1)]
        taps, _ = int8_emulation.windows(a, kernel, stride, (pads[0][0], pads[1][0]),
                                         (pads[0][1], pads[1][1]), (1, 1), 0.0)
        if depthwise:
            sums = np.einsum("nhwijc,ijc->nhwc", taps, weight[0])
        else:
            flat = taps.reshape(-1, weight[0].size) @ weight.reshape(weight.shape[0], -1).T
            sums = flat.reshape(taps.shape[:3] + (-1,))
        sums = sums + bias
        return np.maximum(sums, 0) if options.scalar(4 if depthwise else 3, "b") == 1 else sums


def frames(net, feats, at):
    """A net of guide_nets whose forward takes a format, states fed back, over feats by frame:
    every input and output stacked."""
    state = {name: np.zeros(net.inputs[name]) for name in net.states.values()}
    stacked = {}
    for x in feats:
        frame = {"Feats": x[None].astype(np.float64), **state}
        result = net.forward(frame, at)
        for name, value in {**frame, **result}.items():
            stacked.setdefault(name, []).append(value)
        state = {i: result[o] for o, i in net.states.items()}
    return {name: np.concatenate(values) for name, values in stacked.items()}
