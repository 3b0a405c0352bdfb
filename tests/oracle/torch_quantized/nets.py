"""Nets that PyTorch quantizes: seeded weights, calibrated on seeded samples."""

import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.quantization import quantize_fx

ITEMS = 6


class Case:
    """A net: `steps` is how many steps of its scale a stored result may be off PyTorch's, one for
    each layer that rounds on the way; `engine` has weights by tensor (qnnpack) or by channel
    (onednn). needs_float: it has layers that become several, between which no scale is stated, so
    that an integer core refuses it."""

    def __init__(self, name, build, shape, steps=1, engine="qnnpack", fuse=(), graph_mode=False,
                 dynamic=False, needs_float=False):
        self.name, self.build, self.shape, self.steps = name, build, shape, steps
        self.engine, self.fuse = engine, list(fuse)
        self.graph_mode, self.dynamic = graph_mode, dynamic
        self.needs_float = needs_float

    def samples(self, count, seed):
        torch.manual_seed(seed)
        return [torch.randn(*self.shape) for _ in range(count)]

    def quantized(self):
        torch.backends.quantized.engine = self.engine
        torch.manual_seed(sum(self.name.encode()))
        net = self.build().eval()
        with torch.no_grad():
            for module in net.modules():
                if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
                    module.running_mean.uniform_(-0.2, 0.2)
                    module.running_var.uniform_(0.5, 1.5)
        if self.dynamic:
            kinds = {nn.Linear, nn.LSTM, nn.GRU}
            return tq.quantize_dynamic(net, kinds, dtype=torch.qint8)
        # Seven bits of activations, as for FBGEMM: without VNNI onednn adds two products of eight
        # bits in sixteen, which saturate, and PyTorch is off its own definition by 50 steps.
        kind = "fbgemm" if self.engine == "onednn" else self.engine
        if self.graph_mode:
            made = quantize_fx.prepare_fx(net, tq.get_default_qconfig_mapping(kind),
                                          (torch.randn(*self.shape),))
        else:
            made = tq.fuse_modules(net, self.fuse) if self.fuse else net
            made.qconfig = tq.get_default_qconfig(kind)
            made = tq.prepare(made)
        with torch.no_grad():
            for sample in self.samples(32, 5):
                made(sample)
        return quantize_fx.convert_fx(made) if self.graph_mode else tq.convert(made)


class Between(nn.Module):
    """Layers between a quantizer and a dequantizer."""

    def __init__(self, *layers):
        super().__init__()
        self.quantize, self.dequantize = tq.QuantStub(), tq.DeQuantStub()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.dequantize(self.layers(self.quantize(x)))


class Residual(nn.Module):
    """Sums, products and joins of two branches, and numbers."""

    def __init__(self):
        super().__init__()
        self.quantize, self.dequantize = tq.QuantStub(), tq.DeQuantStub()
        self.a, self.b = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 1)
        self.add, self.mul = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()
        self.cat, self.number = nn.quantized.FloatFunctional(), nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.a(self.quantize(x))
        y = self.add.add_relu(x, self.b(x))
        z = self.mul.mul(x, y)
        z = self.number.mul_scalar(self.number.add_scalar(z, 0.5), -0.25)
        return self.dequantize(self.cat.cat([y, z], 1))


class Scalars(nn.Module):
    """A number added beyond the range of the integers, and one that is within."""

    def __init__(self):
        super().__init__()
        self.quantize, self.dequantize = tq.QuantStub(), tq.DeQuantStub()
        self.f = nn.quantized.FloatFunctional()

    def forward(self, x):
        x = self.quantize(x)
        return [self.dequantize(y) for y in (self.f.add_scalar(x, 0.75),
                                             self.f.add_scalar(x, -9.0),
                                             self.f.add_scalar(x, 9.0),
                                             self.f.mul_scalar(x, 1.5),
                                             self.f.mul_scalar(x, -0.5))]


class Moves(nn.Module):
    """What gives elements of a quantized tensor as they are."""

    def __init__(self):
        super().__init__()
        self.quantize, self.dequantize = tq.QuantStub(), tq.DeQuantStub()
        self.conv, self.linear = nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.Linear(32, 5)

    def forward(self, x):
        x = self.conv(self.quantize(x))
        a, b = torch.chunk(x, 2, 1)
        x = torch.max_pool2d(b, 2).permute(0, 2, 3, 1).contiguous()
        x = x.reshape(x.shape[0], 4, -1).transpose(1, 2).flatten(1)
        y = nn.functional.interpolate(a, scale_factor=2.0)
        return self.dequantize(self.linear(torch.cat([x, x], 1))), self.dequantize(y[:, 1:3])


class Classifier(nn.Module):
    """A small image classifier, for the quantizer of graphs."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8),
                                  nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False),
                                   nn.BatchNorm2d(8), nn.ReLU())
        self.point = nn.Conv2d(8, 8, 1)
        self.squeeze, self.excite = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.point(self.depth(x))
        gate = torch.relu(self.squeeze(nn.functional.adaptive_avg_pool2d(y, 1)))
        y = y * nn.functional.hardsigmoid(self.excite(gate))
        x = (x + y).mean([2, 3])
        return self.head(x)


class Recurrent(nn.Module):
    """A recurrent layer and a linear one, of the kind that is quantized while it runs."""

    def __init__(self, kind):
        super().__init__()
        self.rnn, self.head = kind(12, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.head(y[:, -1])


def conv_block(*layers):
    return Between(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), *layers)


FUSED = [["layers.0", "layers.1", "layers.2"]]


def all_cases():
    functions = [("sigmoid", nn.Sigmoid, 1), ("tanh", nn.Tanh, 1), ("relu", nn.ReLU, 1),
                 ("relu6", nn.ReLU6, 1), ("hardswish", nn.Hardswish, 1), ("elu", nn.ELU, 1),
                 ("leaky_relu", lambda: nn.LeakyReLU(0.1), 1), ("hardtanh", nn.Hardtanh, 1),
                 ("hardsigmoid", nn.Hardsigmoid, 1)]
    cases = [Case(f"function_{name}", lambda make=make: Between(make()), (1, 6, 4, 4), steps)
             for name, make, steps in functions]
    # QNNPACK's relu6 in PyTorch 1.13 permutes what a convolution gives: it takes channels that lie
    # last for such that do not.
    for engine, act in (("qnnpack", nn.ReLU), ("onednn", nn.ReLU6)):
        cases += [
            Case(f"conv_{engine}", lambda: conv_block(nn.Conv2d(8, 6, 1)), (1, 3, 8, 8), 2, engine,
                 FUSED),
            Case(f"depthwise_{engine}",
                 lambda act=act: conv_block(nn.Conv2d(8, 8, 3, 2, 1, groups=8), act(),
                                            nn.Conv2d(8, 4, 1)), (1, 3, 9, 9), 3, engine, FUSED),
            Case(f"linear_{engine}", lambda: Between(nn.Linear(20, 12), nn.ReLU(),
                                                     nn.Linear(12, 7)), (1, 20), 2, engine,
                 [["layers.0", "layers.1"]]),
            Case(f"conv1d_{engine}", lambda: Between(nn.Conv1d(4, 8, 5, 2, 2), nn.ReLU(),
                                                     nn.Conv1d(8, 4, 3, dilation=2)),
                 (1, 4, 32), 2, engine, [["layers.0", "layers.1"]]),
            Case(f"graph_{engine}", Classifier, (1, 3, 16, 16), 4, engine, graph_mode=True),
        ]
    cases += [
        Case("transposed", lambda: Between(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1)), (1, 4, 5, 5)),
        Case("transposed_1d", lambda: Between(nn.ConvTranspose1d(4, 6, 4, 2, 1)), (1, 4, 9)),
        Case("groups", lambda: Between(nn.Conv2d(8, 12, 3, groups=2)), (1, 8, 6, 6)),
        Case("reflected", lambda: Between(nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect")),
             (1, 3, 6, 6)),
        Case("pools", lambda: conv_block(nn.MaxPool2d(2), nn.AvgPool2d(2),
                                         nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                         nn.Linear(8, 4)), (1, 3, 8, 8), 3, fuse=FUSED),
        Case("norms", lambda: Between(nn.BatchNorm2d(6), nn.InstanceNorm2d(6, affine=True),
                                      nn.GroupNorm(2, 6)), (1, 6, 5, 5), 3,
             needs_float=True),
        Case("layer_norm", lambda: Between(nn.LayerNorm(16)), (1, 7, 16), needs_float=True),
        Case("residual", Residual, (1, 3, 6, 6), 3),
        Case("scalars", Scalars, (1, 12)),
        Case("dynamic_linear", lambda: nn.Sequential(nn.Linear(16, 24), nn.ReLU(),
                                                     nn.Linear(24, 5)), (1, 16), 0, "onednn",
             dynamic=True),
        Case("dynamic_lstm", lambda: Recurrent(nn.LSTM), (1, 6, 12), 0, "onednn", dynamic=True),
        Case("dynamic_gru", lambda: Recurrent(nn.GRU), (1, 6, 12), 0, "onednn", dynamic=True),
        Case("moves", Moves, (1, 4, 8, 8), 2),
    ]
    return cases
