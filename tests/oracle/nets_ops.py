"""One net or more per row of the GRUS/PT list in ops.yaml: under the API names of the row, and each
restriction just inside and just outside."""

from typing import List, Tuple

import torch
from torch import nn, Tensor
import torch.nn.functional as F

from oracle import Case


class Chain(nn.Module):
    """One module of torch.nn, as it is."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


class FunctionalConv2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 3, 3, 3))
        self.bias = nn.Parameter(torch.zeros(5))
        self.depthwise = nn.Parameter(torch.zeros(5, 1, 3, 3))
        self.grouped = nn.Parameter(torch.zeros(4, 1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = F.conv2d(x, self.weight, self.bias, stride=2, padding=1)
        return F.conv2d(y, self.depthwise, groups=5)


class FunctionalConv1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(6, 4, 3))
        self.depthwise = nn.Parameter(torch.zeros(6, 1, 3))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv1d(F.conv1d(x, self.weight, padding=2, dilation=2), self.depthwise, groups=6)


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.maximum = nn.MaxPool2d((2, 3))
        self.average = nn.AvgPool2d(2)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        a = F.avg_pool2d(self.maximum(x), [2, 2])
        b = F.max_pool2d(self.average(x), kernel_size=3, stride=3)
        return a, b


class Activations(nn.Module):
    """Both spellings of each activation that has no restriction."""

    def __init__(self):
        super().__init__()
        self.relu, self.relu6, self.prelu = nn.ReLU(), nn.ReLU6(), nn.PReLU(4)
        self.selu, self.sigmoid, self.tanh = nn.SELU(), nn.Sigmoid(), nn.Tanh()
        self.slope = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> List[Tensor]:
        return [self.relu(x) + F.relu(x + 1), self.relu6(3 * x) - F.relu6(x),
                self.prelu(x) + F.prelu(x, self.slope), self.selu(x) + F.selu(x * 2),
                self.sigmoid(x) * F.sigmoid(x + 1), self.tanh(x) + F.tanh(x - 1)]


class FunctionalHardtanh(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, 0.0, 2.0) + torch.clamp(x, 0.0, 1.5)


class Flattens(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return self.flatten(x), torch.flatten(x * 2, 1)


class FlattenFrom(nn.Module):
    def __init__(self, start: int):
        super().__init__()
        self.start = start

    def forward(self, x: Tensor) -> Tensor:
        return torch.flatten(x, self.start)


class Linears(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(12, 8)
        self.two = nn.Linear(8, 7, bias=False)
        self.weight = nn.Parameter(torch.zeros(5, 7))
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.two(torch.relu(self.one(x))), self.weight, self.bias)


class Permutes(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.permute(x, (0, 3, 1, 2)), x.permute(0, 2, 1, 3), torch.transpose(x, 1, 3),
                x.transpose(-1, -2)]


class BatchNorms(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.BatchNorm2d(3)
        self.two = nn.BatchNorm1d(3)
        self.plain = nn.BatchNorm1d(3, affine=False)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = self.one(x)
        z = self.two(y[:, :, 0])
        z = F.batch_norm(z, self.plain.running_mean, self.plain.running_var)
        return y, self.plain(z.mean(dim=2))


class Pads(nn.Module):
    def __init__(self):
        super().__init__()
        self.zero, self.two = nn.ZeroPad2d((1, 2, 0, 3)), nn.ConstantPad2d(1, 0.0)
        self.one = nn.ConstantPad1d((2, 1), 0.0)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return self.two(self.zero(x)), self.one(x[:, 0])


class FunctionalPad(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, [1, 1, 0, 2], "constant", 0.0)


class Reshapes(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return torch.reshape(x, (1, 6, -1)), x.reshape(x.size(0), 2, 12), x.view(-1, 24)


class Concats(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
        return torch.cat([x, y, x], 1), torch.concat((x, x), dim=-1)


class Squeezes(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return (torch.squeeze(x, 1), torch.unsqueeze(x, 0).squeeze(0) * 2,
                torch.unsqueeze(x.squeeze(1), -1))


class Add(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y, alpha=2) + self.bias + 0.5


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sub(x, y) - torch.subtract(self.bias, x) + (1.0 - y)


class Mul(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(5))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.mul(x, y) * self.scale + torch.multiply(x, 0.5)


class Div(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.div(x, y) + x / 4.0 + torch.divide(1.0 + y, y)


class Slices(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [x[:, 1:3, ::2], x[..., -3:], x[:, 2], x[:, :, 1:-1] * 2]


class Sums(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.sum(x, 1), torch.sum(x, dim=[2, 3], keepdim=True), x.sum(-1) * 0.5]


class Means(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.mean(x, 1), torch.mean(x, dim=[2, 3]), x.mean(-1, keepdim=True)]


class PositiveFunctions(nn.Module):
    """log, sqrt, rsqrt, reciprocal, pow: of positive values."""

    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.log(x), torch.sqrt(x), torch.rsqrt(x), torch.reciprocal(x),
                torch.pow(x, 1.5), x ** 2]


class AnyFunctions(nn.Module):
    """exp, square, neg, abs under each name."""

    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.exp(x), torch.square(x), torch.neg(x) * 2, torch.negative(x + 1),
                torch.abs(x) + 1, torch.absolute(x - 1), -x + 0.5]


class Upsample(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=self.scale, mode="nearest") + 1.0


class OldUpsample(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return F.upsample_nearest(x, scale_factor=2.0), F.upsample(x, scale_factor=3.0)


class UpsampleTo(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, size=[7, 9])


class UpsampleUneven(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=[2.0, 3.0])


class Splits(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        a, b = torch.split(x, 3, dim=1)
        c, d, e = torch.split(x, [1, 2, 3], 1)
        f, g = x.chunk(2, -1)
        return [a * 2, b, c, d, e + 1, f, g]


class StateGru(nn.Module):
    """GRU with its state as input and output."""

    def __init__(self, layers=1, batch_first=True, bias=True, bidirectional=False):
        super().__init__()
        self.gru = nn.GRU(6, 8, layers, batch_first=batch_first, bias=bias,
                          bidirectional=bidirectional)

    def forward(self, x: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        y, state = self.gru(x, h)
        return state, y


class OtherRecurrent(nn.Module):
    """LSTM and RNN, which GRUS has no units for: decomposed."""

    def __init__(self, kind):
        super().__init__()
        self.rnn = kind

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


def _module(name, make, shape, expect="passes", rule="", row="", **options):
    return Case(name, lambda: Chain(make()), [shape], expect, rule, row, **options)


def _convolutions():
    both = {"": {}, "nxc": {"INPUT_NCX_TO_NXC": [0]}}
    yield Case("conv2d_functional", FunctionalConv2d, [(1, 3, 9, 8)], row="Conv2d DepthwiseConv2d",
               configs=both)
    inside = {"kernel": dict(k=(15, 15)), "stride": dict(k=3, s=15), "dilation": dict(k=2, d=15)}
    outside = {"kernel_h": dict(k=(16, 1)), "kernel_w": dict(k=(1, 16)),
               "stride_h": dict(s=(16, 1)), "stride_w": dict(s=(1, 16)),
               "dilation_h": dict(k=2, d=(16, 1)), "dilation_w": dict(k=2, d=(1, 16))}
    for suffix, limits in (("in", inside), ("out", outside)):
        for what, o in limits.items():
            yield _module(f"conv2d_{what}_{suffix}",
                          lambda o=o: nn.Conv2d(2, 3, o.get("k", 1), o.get("s", 1), 0,
                                                o.get("d", 1)), (1, 2, 19, 20),
                          "passes" if suffix == "in" else "outside", what.split("_")[0],
                          "Conv2d")
    inside = {"kernel_h": dict(k=(11, 4)), "kernel_w": dict(k=(4, 11)), "product": dict(k=(7, 7)),
              "stride": dict(k=3, s=4)}
    outside = {"kernel_h": dict(k=(12, 1)), "kernel_w": dict(k=(1, 12)), "product": dict(k=(5, 10)),
               "stride_h": dict(k=3, s=(5, 1)), "stride_w": dict(k=3, s=(1, 5)),
               "dilation_h": dict(k=2, d=(2, 1)), "dilation_w": dict(k=2, d=(1, 2)),
               "padding": dict(k=3, p=1)}
    for suffix, limits in (("in", inside), ("out", outside)):
        for what, o in limits.items():
            yield _module(f"depthwise2d_{what}_{suffix}",
                          lambda o=o: nn.Conv2d(4, 4, o["k"], o.get("s", 1), o.get("p", 0),
                                                o.get("d", 1), groups=4), (1, 4, 14, 15),
                          "passes" if suffix == "in" else "outside",
                          "pad" if what == "padding" else what.split("_")[0].replace("product",
                                                                                    "kernel"),
                          "DepthwiseConv2d")
    yield Case("conv1d_functional", FunctionalConv1d, [(1, 4, 12)], row="Conv1d DepthwiseConv1d",
               configs=both)
    for name, row, groups, inside, outside in (
            ("conv1d", "Conv1d", 1, dict(kernel=dict(k=15), stride=dict(k=3, s=15),
                                         dilation=dict(k=2, d=15)),
             dict(kernel=dict(k=16), stride=dict(k=3, s=16), dilation=dict(k=2, d=16))),
            ("depthwise1d", "DepthwiseConv1d", 4, dict(kernel=dict(k=11), stride=dict(k=3, s=4)),
             dict(kernel=dict(k=12), stride=dict(k=3, s=5), dilation=dict(k=2, d=2),
                  padding=dict(k=3, p=1)))):
        for suffix, limits in (("in", inside), ("out", outside)):
            for what, o in limits.items():
                yield _module(f"{name}_{what}_{suffix}",
                              lambda o=o, g=groups: nn.Conv1d(4, 4, o["k"], o.get("s", 1),
                                                              o.get("p", 0), o.get("d", 1), g),
                              (1, 4, 24), "passes" if suffix == "in" else "outside",
                              "pad" if what == "padding" else what, row)


def _pools():
    yield Case("pools_functional", Pools, [(1, 3, 12, 12)], row="MaxPool2d AvgPool2d")
    for name, row, make in (("max_pool", "MaxPool2d", nn.MaxPool2d),
                            ("avg_pool", "AvgPool2d", nn.AvgPool2d)):
        for what, window, shape in (("largest", 15, (1, 2, 30, 15)), ("wide", (1, 2), (1, 2, 5, 6)),
                                    ("divisible", (3, 2), (1, 2, 9, 8))):
            yield _module(f"{name}_{what}_in", lambda m=make, w=window: m(w), shape, row=row)
        for what, window, stride, shape, rule in (
                ("window_h", (16, 1), None, (1, 2, 32, 4), "pool_h"),
                ("window_w", (1, 16), None, (1, 2, 4, 32), "pool_w"),
                ("both_one", 1, None, (1, 2, 4, 4), "pool"),
                ("stride_h", (2, 2), (1, 2), (1, 2, 6, 6), "stride"),
                ("stride_w", (2, 2), (2, 1), (1, 2, 6, 6), "stride"),
                ("divisible_h", 2, None, (1, 2, 7, 6), "multiple|divisible|input_h"),
                ("divisible_w", 2, None, (1, 2, 6, 7), "multiple|divisible|input_w")):
            yield _module(f"{name}_{what}_out", lambda m=make, w=window, s=stride: m(w, s), shape,
                          "outside", rule, row)
    yield _module("max_pool_dilation_out", lambda: nn.MaxPool2d(2, dilation=2), (1, 2, 6, 6),
                  "outside", "dilation", "MaxPool2d")


def _elementwise():
    yield Case("activations", Activations, [(1, 4, 5, 3)],
               row="Relu Relu6 PRelu Selu Sigmoid Tanh", items=4)
    yield _module("hardtanh_in", lambda: nn.Hardtanh(0.0, 3.0), (1, 4, 5), row="HardTanh")
    yield Case("hardtanh_functional", FunctionalHardtanh, [(1, 20)], row="HardTanh")
    yield _module("hardtanh_out", lambda: nn.Hardtanh(-1.0, 1.0), (1, 4, 5), "outside", "min_val",
                  "HardTanh")
    for name, make, row in (("add", Add, "Add"), ("sub", Sub, "Sub"), ("mul", Mul, "Mul"),
                            ("div", Div, "Div")):
        yield Case(f"{name}_broadcast", make, [(1, 3, 4, 5), (1, 1, 4, 1)], row=row,
                   positive=name == "div")
        yield Case(f"{name}_rank5_in", make, [(1, 2, 2, 3, 5)] * 2, row=row,
                   positive=name == "div")
        yield Case(f"{name}_rank6_out", make, [(1, 2, 1, 2, 3, 5)] * 2, "outside", "rank", row,
                   positive=name == "div")
    yield Case("positive_functions", PositiveFunctions, [(1, 24)],
               row="Log Sqrt Rsqrt Reciprocal Pow", positive=True,
               items=4)
    yield Case("any_functions", AnyFunctions, [(1, 3, 8)], row="Exp Square Neg Abs", items=4)


def _shapes():
    yield Case("flatten_in", Flattens, [(1, 3, 4, 2)], row="Flatten")
    yield Case("flatten_out", lambda: FlattenFrom(2), [(1, 3, 4, 2)], "outside", "dimension",
               "Flatten")
    yield Case("linear", Linears, [(1, 12)], row="Linear", items=4)
    yield Case("linear_sequence", Linears, [(1, 5, 12)], row="Linear")
    yield Case("permute", Permutes, [(1, 3, 4, 5)], row="Permute")
    yield Case("batch_norm", BatchNorms, [(1, 3, 4, 5)], row="BatchNorm2d BatchNorm1d")
    yield Case("pad_in", Pads, [(1, 3, 4, 5)], row="Pad")
    yield Case("pad_functional", FunctionalPad, [(1, 3, 4, 5)], row="Pad")
    yield _module("pad_rank5_out", lambda: nn.ConstantPad3d(1, 0.0), (1, 2, 3, 2, 2), "outside",
                  "rank", "Pad")
    yield _module("pad_value_out", lambda: nn.ConstantPad2d(1, 1.0), (1, 2, 3, 4), "outside",
                  "value", "Pad")
    yield Case("reshape", Reshapes, [(1, 4, 6)], row="Reshape")
    yield Case("concat", Concats, [(1, 3, 4), (1, 2, 4)], row="Concat")
    yield Case("squeeze", Squeezes, [(1, 1, 4, 3)], row="Squeeze UnSqueeze")
    yield Case("slice", Slices, [(1, 4, 6)], row="Slice")
    yield Case("sum", Sums, [(1, 3, 4, 5)], row="ReduceSum")
    yield Case("mean", Means, [(1, 3, 4, 5)], row="ReduceMean")
    yield Case("upsample_in", lambda: Upsample(2.0), [(1, 2, 3, 4)], row="UpSample")
    yield Case("upsample_old_names", OldUpsample, [(1, 2, 3, 4)], row="UpSample")
    yield Case("upsample_size_out", UpsampleTo, [(1, 2, 3, 4)], "outside", "scale_factor",
               "UpSample")
    yield Case("upsample_uneven_out", UpsampleUneven, [(1, 2, 3, 4)], "outside", "scale",
               "UpSample")
    yield Case("upsample_rank3_out", lambda: Upsample(2.0), [(1, 2, 5)], "outside", "rank",
               "UpSample")
    yield Case("split", Splits, [(1, 6, 4)], row="Split")


def _recurrent():
    state = {"": {"FP16_OUT_OPS": [0]}}
    common = dict(row="GRU", items=8, states={0: 1}, configs=state)
    yield Case("gru_batch_first", StateGru, [(1, 3, 6), (1, 1, 8)], **common)
    yield Case("gru_time_first", lambda: StateGru(batch_first=False), [(3, 1, 6), (1, 1, 8)],
               **common)
    yield Case("gru_no_bias", lambda: StateGru(bias=False), [(1, 2, 6), (1, 1, 8)], **common)
    yield Case("gru_two_layers", lambda: StateGru(layers=2), [(1, 2, 6), (2, 1, 8)], **common)
    yield Case("gru_bidirectional", lambda: StateGru(bidirectional=True), [(1, 4, 6), (2, 1, 8)],
               **common)
    for name, make in (("lstm", lambda: nn.LSTM(6, 8, batch_first=True)),
                       ("lstm_two_layers_both_ways",
                        lambda: nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)),
                       ("rnn_tanh", lambda: nn.RNN(6, 8)),
                       ("rnn_relu", lambda: nn.RNN(6, 8, nonlinearity="relu", batch_first=True))):
        shape = (3, 1, 6) if name == "rnn_tanh" else (1, 3, 6)
        yield Case(name, lambda m=make: OtherRecurrent(m()), [shape], row="GRU", items=4)


def cases():
    groups = (_convolutions, _pools, _elementwise, _shapes, _recurrent)
    return [case for group in groups for case in group()]
