"""Random nets: seeded TorchScript modules out of the operators and spellings that npuc takes."""

import dataclasses
import importlib.util
import os
import re
import tempfile
import types

import numpy as np
import torch

import oracle

MAX_ELEMENTS = 3000
MAX_RANK = 5
# Beyond it the rounding of an intermediate value says more than the compiler's work.
MAX_VALUE = 60.0
ITEMS = 2
MARGIN = 0.02  # between what is compared, of the largest value
PROLOGUE = """\
import math
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import nn, Tensor
import torch.nn.functional as F


def early(x: Tensor, kind: str, other: Optional[Tensor] = None) -> Tensor:
    if other is not None:
        return x * 0.5 + torch.tanh(other)
    if kind == "tanh":
        return torch.tanh(x)
    y = x * 0.25
    if y.dim() > 2:
        return y - 1.0
    return y


def scaled(x: Tensor, by: Union[int, float] = 2) -> Tensor:
    if isinstance(by, int):
        return x * float(by) * 0.25
    return x * by


class Pair(NamedTuple):
    first: Tensor
    count: int


def paired(x: Tensor) -> Pair:
    return Pair(torch.abs(x), x.size(0) + x.dim())


class Bank(nn.Module):
    def __init__(self, size: int, count: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(count)])
        self.acts = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
        self.register_buffer("shift", torch.zeros(size))
        self.scales: List[float] = [0.5, 0.25, 1.0]

    def forward(self, x: Tensor) -> Tensor:
        outs: List[Tensor] = []
        for i, layer in enumerate(self.layers):
            y = layer(x) * self.scales[i % len(self.scales)]
            for name, act in self.acts.items():
                if not (name == "relu" and i == 0):
                    y = act(y)
            outs.append(y + self.shift)
        total = outs[0]
        for y in outs[1:]:
            total = total + y
        return total


def repeated(x: Tensor, times: int, scale: float = 0.5) -> Tensor:
    for i in range(times):
        x = torch.tanh(x) * scale + float(i)
    return x


class Residual(nn.Module):
    def __init__(self, inner: nn.Module, gate: bool):
        super().__init__()
        self.inner = inner
        self.gate: Optional[float] = 0.5 if gate else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        if self.gate is not None:
            y = y * self.gate
        return x + y if x.shape == y.shape else y
"""


class Step:
    """Lines of forward that give `names` values, with the modules that they call."""

    def __init__(self, names, text, modules=()):
        self.names, self.text, self.modules = names, text, modules


class Net:
    """A module as text: inputs' shapes and steps; its outputs are the values that no step takes."""

    def __init__(self, name, shapes, steps, value_shapes):
        self.name, self.shapes, self.steps = name, shapes, steps
        self.value_shapes = value_shapes

    def outputs(self):
        made = [n for step in self.steps for n in step.names]
        used = {w for step in self.steps for w in re.findall(r"\bv\d+\b", step.text)
                if w not in step.names}
        return [n for n in made if n not in used]

    def source(self):
        lines = [PROLOGUE, "", "class Net(nn.Module):", "    def __init__(self):",
                 "        super().__init__()"]
        lines += [f"        self.{name} = {text}" for step in self.steps
                  for name, text in step.modules]
        arguments = "".join(f", x{i}: Tensor" for i in range(len(self.shapes)))
        outputs = self.outputs()
        kind = "Tensor" if len(outputs) == 1 else f"Tuple[{', '.join(['Tensor'] * len(outputs))}]"
        lines += ["", f"    def forward(self{arguments}) -> {kind}:"]
        lines += [f"        {line}" for step in self.steps for line in step.text.split("\n")]
        lines += [f"        return {', '.join(outputs)}", ""]
        return "\n".join(lines)

    def beginning(self, steps):
        return Net(f"{self.name}@{steps}", self.shapes, self.steps[:steps], self.value_shapes)


class Writer:
    """Adds steps at random; runs each at once, so that shapes and ranges are known."""

    def __init__(self, name):
        self.name = name
        self.random = np.random.RandomState(oracle.seed_of(name))
        torch.manual_seed(oracle.seed_of(name))
        self.modules, self.steps = {}, []
        self.scope = {}
        exec(PROLOGUE, self.scope)  # noqa: S102
        self.shapes = []
        for _ in range(self.pick([1, 1, 1, 2])):
            self.shapes.append(self.pick([self.image, self.image, self.frames, self.row])())
        # By name, of the first input and of the others that the case has.
        inputs = oracle.make_inputs(oracle.Case(name, None, self.shapes, "outside", items=ITEMS))
        self.values, *self.more_values = (
            {f"x{i}": torch.from_numpy(array[k]) for i, array in enumerate(inputs)}
            for k in range(ITEMS))

    # Choices.

    def pick(self, options):
        return options[self.random.randint(len(options))]

    def to(self, low, high):
        return int(self.random.randint(low, high + 1))

    def chance(self, part):
        return self.random.rand() < part

    def image(self):
        return (1, self.to(1, 6), self.to(2, 12), self.to(2, 12))

    def frames(self):
        return (1, self.to(1, 10), self.to(2, 16))

    def row(self):
        return (1, self.to(2, 40))

    def value(self, rank=None):
        names = [n for n, t in self.values.items() if rank is None or t.dim() == rank]
        if not names:
            return None, None
        # The latest ones mostly: nets are deep rather than wide.
        name = names[-1 - min(int(self.random.exponential(1.2)), len(names) - 1)]
        return name, self.values[name]

    # Adding.

    def module(self, text):
        name = f"m{len(self.modules)}"
        made = eval(text, self.scope)  # noqa: S307 text of this file alone
        oracle.set_weights(made, f"{self.name}.{name}")
        self.modules[name] = made.eval()
        return name, text

    def new(self, count=1):
        first = sum(n[0] == "v" for n in self.values)
        return [f"v{first + i}" for i in range(count)]

    def add(self, expression, modules=(), count=1, hidden=False):
        """A step that assigns an expression; `hidden`: to a value and another that nobody takes."""
        names = self.new(count)
        shown = ", ".join(names + ["_"] if hidden else names)
        return self.lines(f"{shown} = {expression}", modules, names)

    def lines(self, text, modules=(), names=None):
        """Runs a step's text; keeps the step unless PyTorch or the bounds refuse its values."""
        names = names or self.new()
        results = [self.results(text, names, values) for values in self.all_values()]
        if not all(found and all(self.fits(t) for t in found) for found in results):
            for name, _ in modules:
                del self.modules[name]
            return False
        for values, found in zip(self.all_values(), results):
            values.update(zip(names, found))
        self.steps.append(Step(names, text, modules))
        return True

    def all_values(self):
        return [self.values, *self.more_values]

    def results(self, text, names, values):
        """What a step gives on these values; nothing where PyTorch refuses it."""
        scope = {**self.scope, **values, "self": types.SimpleNamespace(**self.modules)}
        try:
            with torch.no_grad():
                exec(text, scope)  # noqa: S102 text of this file alone
            return [scope[n] for n in names]
        except (RuntimeError, IndexError, ValueError):
            return []

    @staticmethod
    def fits(t):
        return (isinstance(t, torch.Tensor) and t.dtype == torch.float32
                and 1 <= t.dim() <= MAX_RANK and 0 < t.numel() <= MAX_ELEMENTS
                and bool(torch.isfinite(t).all()) and float(t.abs().max()) <= MAX_VALUE)

    def call(self, text, name):
        module = self.module(text)
        return self.add(f"self.{module[0]}({name})", [module])

    # Kinds of steps: each gives False where it does not apply.

    def convolution(self):
        rank = self.pick([3, 4])
        name, t = self.value(rank)
        if name is None:
            return False
        channels, sizes = t.shape[1], t.shape[2:]
        kernel = tuple(self.to(1, min(5, 2 + n)) for n in sizes)
        stride = tuple(self.to(1, 3) for _ in sizes)
        dilation = tuple(self.pick([1, 1, 1, 2]) for _ in sizes)
        padding = tuple(self.to(0, k // 2 + 1) if self.chance(0.5) else 0 for k in kernel)
        groups = self.pick([1, 1, channels, self.divisor(channels)])
        out = groups * self.to(1, max(1, 12 // groups))
        if self.chance(0.15):
            stride, padding = (1,) * len(sizes), "'same'"
        if len(sizes) == 1:
            kernel, stride, dilation = kernel[0], stride[0], dilation[0]
            padding = padding if isinstance(padding, str) else padding[0]
        return self.call(f"nn.Conv{rank - 2}d({channels}, {out}, {kernel}, stride={stride}, "
                         f"padding={padding}, dilation={dilation}, groups={groups}, "
                         f"bias={self.chance(0.7)})", name)

    def divisor(self, n):
        return self.pick([d for d in range(1, n + 1) if n % d == 0])

    def transposed_convolution(self):
        rank = self.pick([3, 4])
        name, t = self.value(rank)
        if name is None:
            return False
        dims, channels = rank - 2, t.shape[1]
        kernel = [self.to(1, 4) for _ in range(dims)]
        stride = kernel if self.chance(0.3) else [self.to(1, 3) for _ in range(dims)]
        dilation = [self.pick([1, 1, 2]) for _ in range(dims)]
        padding = [self.to(0, k) if self.chance(0.5) else 0 for k in kernel]
        extra = [self.to(0, max(s, d) - 1) if self.chance(0.3) else 0
                 for s, d in zip(stride, dilation)]
        groups = self.pick([1, 1, 1, channels, self.divisor(channels)])
        return self.call(f"nn.ConvTranspose{dims}d({channels}, "
                         f"{groups * self.to(1, max(1, 8 // groups))}, {kernel}, stride={stride}, "
                         f"padding={padding}, output_padding={extra}, groups={groups}, "
                         f"dilation={dilation}, bias={self.chance(0.7)})", name)

    def interpolation(self):
        rank = self.pick([3, 4, 4])
        name, t = self.value(rank)
        if name is None:
            return False
        mode = "linear" if rank == 3 else self.pick(["bilinear", "bilinear", "bicubic"])
        size = f"size={[self.to(1, 2 * n + 2) for n in t.shape[2:]]}"
        scale = f"scale_factor={self.pick([2.0, 0.5, 1.5, 3.0])}"
        if self.chance(0.2) and rank == 4:
            scale = f"scale_factor=[{self.pick([1.0, 2.0])}, {self.pick([0.75, 2.0])}]"
        return self.add(f"F.interpolate({name}, {self.pick([size, scale])}, mode='{mode}', "
                        f"align_corners={self.chance(0.4)})")

    def pool(self):
        name, t = self.value(4)
        if name is None:
            return False
        kind = self.pick(["max", "avg"])
        kernel = [self.divisor(n) for n in t.shape[2:]]
        extra = ""
        if self.chance(0.3):
            kernel = [self.to(1, min(4, n)) for n in t.shape[2:]]
            extra = f", {[self.to(1, 3) for _ in kernel]}"
            if self.chance(0.5):
                extra += f", {[self.to(0, k // 2) for k in kernel]}"
                extra += ", ceil_mode=True" if self.chance(0.3) else ""
                if kind == "avg" and self.chance(0.5):
                    extra += ", count_include_pad=False"
        if self.chance(0.3):
            size = self.pick(["1", "(1, 1)", f"({self.to(1, t.shape[2])}, {self.to(1, 4)})"])
            return self.add(f"F.adaptive_{kind}_pool2d({name}, {size})")
        return self.add(f"F.{kind}_pool2d({name}, {kernel}{extra})")

    def normalisation(self):
        rank = self.pick([2, 3, 4])
        name, t = self.value(rank)
        if name is None:
            return False
        dims = 2 if rank == 4 else 1
        return self.call(self.pick([f"nn.BatchNorm{dims}d({t.shape[1]})",
                                    f"nn.BatchNorm{dims}d({t.shape[1]}, affine=False)"]), name)

    def linear(self):
        name, t = self.value()
        return self.call(f"nn.Linear({t.shape[-1]}, {self.to(1, 24)}, bias={self.chance(0.7)})",
                         name)

    def recurrent(self):
        name, t = self.value(3)
        if name is None or t.shape[1] > 12:
            return False
        kind = self.pick(["GRU", "GRU", "LSTM", "RNN"])
        options = f", bidirectional={self.chance(0.3)}, num_layers={self.pick([1, 1, 2])}"
        options += f", bias={self.chance(0.8)}"
        module = self.module(f"nn.{kind}({t.shape[2]}, {self.to(1, 8)}, batch_first=True{options})")
        return self.add(f"self.{module[0]}({name})", [module], hidden=True)

    def activation(self):
        name, t = self.value()
        if t.dim() >= 2 and self.chance(0.1):
            return self.call(self.pick(["nn.PReLU()", f"nn.PReLU({t.shape[1]})"]), name)
        return self.add(self.pick([
            f"torch.relu({name})", f"F.relu6({name} * 2.0)", f"torch.sigmoid({name})",
            f"{name}.tanh()", f"F.selu({name})", f"F.leaky_relu({name}, 0.125)",
            f"F.hardswish({name})", f"F.silu({name})", f"F.hardtanh({name}, 0.0, 1.5)",
            f"torch.clamp({name}, -0.5, 1.0)", f"{name}.clamp(min=0.25)", f"F.hardsigmoid({name})",
            f"F.elu({name})",
            f"F.gelu({name}, approximate='tanh')"]))

    def unary(self):
        name, _ = self.value()
        return self.add(self.pick([
            f"torch.exp(torch.tanh({name}))", f"torch.log({name} * {name} + 1.0)",
            f"torch.sqrt(torch.abs({name}) + 0.25)", f"torch.rsqrt({name}.abs() + 1.0)",
            f"torch.reciprocal(torch.abs({name}) + 1.0)", f"torch.square({name}) * 0.25",
            f"torch.pow({name}, 2) * 0.25", f"({name}.abs() + 0.5) ** 0.5", f"torch.neg({name})",
            f"torch.abs({name})", f"{name}.to(dtype=torch.float32, copy=True)",
            f"{name} * {self.pick([0.5, 2.0, -1.5])}", f"{name} + {self.pick([1.0, -0.25])}",
            f"1.0 - {name}", f"{name} / 4.0",
            f"torch.rsub({name}, 1.0)", f"1.0 / ({name}.abs() + 1.0)"]))

    def binary(self):
        name, t = self.value()
        others = []
        for other, u in self.values.items():
            try:
                torch.broadcast_shapes(t.shape, u.shape)
                others.append(other)
            except RuntimeError:
                pass
        other = self.pick(others)
        return self.add(self.pick([
            f"{name} + {other}", f"{name} - {other}", f"torch.mul({name}, {other})",
            f"{name} / ({other}.abs() + 1.0)", f"torch.maximum({name}, {other})",
            f"torch.minimum({other}, {name})", f"torch.add({name}, {other}, alpha=2)",
            f"torch.sub({other}, {name}, alpha=0.5)"]))

    def threshold(self, name):
        """A number that no value is near, so that rounding to float16 moves none across it; None
        where the values lie too close."""
        values = np.unique(np.concatenate([values[name].numpy().ravel()
                                           for values in self.all_values()]))
        if len(values) < 2:
            return None
        gaps = np.diff(values)
        at = int(gaps.argmax())
        if gaps[at] < MARGIN * max(1.0, np.abs(values).max()):
            return None
        return round(float(values[at] + gaps[at] / 2), 6)

    def comparison(self, shape):
        """A condition on values of a shape, or one that is known before."""
        sign, n = self.pick([">", ">=", "<", "<="]), shape[-1]
        if self.chance(0.25):
            known = [f"(torch.arange({n}) {sign} {self.to(0, n)})",
                     f"torch.tensor({[self.chance(0.5) for _ in range(n)]})"]
            if len(shape) > 1 and shape[-2] == n:
                known.append(f"torch.tril(torch.ones({n}, {n})).to(torch.bool)")
            return self.pick(known)
        name = self.pick([n for n, t in self.values.items() if t.shape == shape])
        bound = self.threshold(name)
        return None if bound is None else f"({name} {sign} {bound})"

    def condition(self, shape):
        first, second = self.comparison(shape), self.comparison(shape)
        if first is None or second is None:
            return None
        return self.pick([first, first, f"torch.logical_not({first})", f"(~{first})",
                          f"({first} & {second})", f"torch.logical_or({first}, ~{second})",
                          f"torch.logical_and({first}, {second})", f"({first} ^ {second})"])

    def selection(self):
        a, t = self.value()
        text = self.condition(t.shape)
        if text is None:
            return False
        b = self.pick([n for n, u in self.values.items() if u.shape == t.shape])
        rounding = self.pick(["floor", "ceil", "round", "trunc"])
        return self.add(self.pick([
            f"torch.where({text}, {a}, {b} * 0.5)", f"{a}.masked_fill({text}, 0.75)",
            f"torch.where({text}, {a}, torch.zeros_like({a}))", f"{text}.float() * {a}",
            f"{text}.to(torch.float32) - 0.5 * {b}",
            f"torch.where({text}, {a}, torch.full_like({b}, -0.25))",
            f"{a} + torch.{rounding}({text}.float() * 2.625 - 1.25)"]))

    def index(self):
        """The place of the largest or least along an axis, by a margin."""
        name, t = self.value()
        axis = self.to(0, t.dim() - 1)
        n = t.shape[axis]
        if n < 2 or t.dim() < 2:
            return False
        which = self.pick(["max", "min"])
        for values in self.all_values():
            ordered = torch.sort(values[name], axis, descending=which == "max")[0]
            lead = (ordered.narrow(axis, 0, 1) - ordered.narrow(axis, 1, 1)).abs().min()
            if float(lead) < MARGIN * max(1.0, float(values[name].abs().max())):
                return False
        place = f"torch.arg{which}({name}, {axis})"
        if self.chance(0.3):
            module = self.module(f"nn.Embedding({n}, {self.to(2, 8)})")
            return self.add(f"self.{module[0]}({place})", [module])
        return self.add(self.pick([
            f"{place}.float()", f"torch.arg{which}({name}, {axis}, keepdim=True).to(torch.float32)",
            f"F.one_hot({place}, {n}).float()",
            f"torch.topk({name}, 1, {axis}, {which == 'max'})[0]"]))

    def product(self):
        name, t = self.value()
        if t.dim() < 2:
            return False
        fitting = [o for o, u in self.values.items()
                   if u.dim() == t.dim() and u.shape[-2] == t.shape[-1]]
        other = self.pick(fitting) if fitting and self.chance(0.6) else f"{name}.transpose(-1, -2)"
        return self.add(f"torch.matmul({name}, {other}) * 0.25")

    def axes(self):
        name, t = self.value()
        if t.dim() < 2:
            return False
        order = [int(d) for d in self.random.permutation(t.dim())]
        a, b = self.to(0, t.dim() - 1), self.to(-t.dim(), -1)
        return self.add(self.pick([f"{name}.permute({', '.join(map(str, order))})",
                                   f"torch.permute({name}, {order})",
                                   f"torch.transpose({name}, {a}, {b})"]))

    def shape(self):
        name, t = self.value()
        sizes, left = [], t.numel()
        while left > 1 and len(sizes) < 3 and self.chance(0.8):
            sizes.append(self.divisor(left))
            left //= sizes[-1]
        sizes = [1, *sizes, left] if self.chance(0.7) else [*sizes, left]
        unknown = list(sizes)
        unknown[self.to(0, len(sizes) - 1)] = -1
        axis = self.to(0, t.dim())
        ones = [d for d, n in enumerate(t.shape) if n == 1]
        options = [f"{name}.reshape({sizes})", f"torch.reshape({name}, {unknown})",
                   f"{name}.contiguous().view({unknown})", f"{name}.flatten({self.to(0, 1)})",
                   f"torch.unsqueeze({name}, {axis})",
                   f"{name}.contiguous().view({name}.size(0), -1)",
                   f"{name}.reshape({name}.shape[0], -1)"]
        if ones:
            options += [f"torch.squeeze({name}, {self.pick(ones)})",
                        f"{name}.squeeze({self.pick(ones) - t.dim()})"]
            if t.dim() > len(ones):
                options.append(f"torch.squeeze({name})")
        return self.add(self.pick(options))

    def part(self):
        name, t = self.value()
        axis = self.pick([d for d, n in enumerate(t.shape) if n > 1] or [0])
        n = t.shape[axis]
        begin = self.to(0, n - 1)
        end = self.to(begin + 1, n)
        before = ":, " * axis
        options = [f"{name}[{before}{begin}:{end}]", f"{name}[{before}{begin}:]",
                   f"{name}[{before}:{end}]", f"{name}[{before}{begin}:{end}:2]",
                   f"{name}.narrow({axis}, {begin}, {end - begin})",
                   f"{name}[{before}:{name}.size({axis}) // 2 + 1]"]
        if t.dim() > 1:
            options += [f"{name}.select({axis}, {begin})", f"{name}[{before}-1]"]
        return self.add(self.pick(options))

    def parts(self):
        name, t = self.value()
        axis = self.pick([d for d, n in enumerate(t.shape) if n > 1] or [0])
        n = t.shape[axis]
        if n < 2:
            return False
        if n <= 4 and t.dim() > 1 and self.chance(0.3):
            return self.add(f"torch.unbind({name}, {axis})", count=n)
        size = self.to(1, n - 1)
        if -(-n // size) > 4:
            return False
        if self.chance(0.3):
            return self.add(f"torch.split({name}, [{size}, {n - size}], {axis})", count=2)
        return self.add(self.pick([f"torch.split({name}, {size}, dim={axis})",
                                   f"{name}.split({size}, {axis})",
                                   f"torch.tensor_split({name}, [{size}], {axis})",
                                   f"torch.chunk({name}, {-(-n // size)}, {axis})"]),
                        count=-(-n // size))

    def join(self):
        name, t = self.value()
        axis = self.to(0, t.dim() - 1)
        fitting = [o for o, u in self.values.items() if u.dim() == t.dim()
                   and all(a == b for d, (a, b) in enumerate(zip(t.shape, u.shape)) if d != axis)]
        chosen = [name] + [self.pick(fitting) for _ in range(self.to(1, 2))]
        if self.chance(0.2):
            same = [o for o, u in self.values.items() if u.shape == t.shape]
            return self.add(f"torch.stack([{name}, {self.pick(same)}], {self.to(0, t.dim())})")
        if self.chance(0.1):
            return self.add(f"torch.{self.pick(['h', 'v', 'd'])}stack([{name}, {name}])")
        return self.add(f"torch.cat([{', '.join(chosen)}], {axis - self.pick([0, t.dim()])})")

    def reduction(self):
        name, t = self.value()
        dims = [d for d in range(t.dim()) if self.chance(0.4)] or [t.dim() - 1]
        keep = f", keepdim={self.chance(0.5)}"
        if t.dim() == len(dims) and "False" in keep:
            return False
        return self.add(self.pick([f"torch.mean({name}, {dims}{keep})",
                                   f"{name}.mean({dims}{keep})",
                                   f"torch.sum({name}, dim={dims}{keep}) * 0.25",
                                   f"torch.amax({name}, {dims}{keep})",
                                   f"torch.logsumexp({name}, {dims}{keep})",
                                   f"torch.max({name}, {dims[0]}{keep})[0]"]))

    def distribution(self):
        name, t = self.value()
        axis = self.to(-t.dim(), t.dim() - 1)
        return self.add(self.pick([f"torch.softmax({name}, {axis})", f"F.softmax({name}, {axis})",
                                   f"F.log_softmax({name}, dim={axis})"]))

    def enlarge(self):
        name, t = self.value(self.pick([2, 3, 4]))
        if name is None:
            return False
        ones = [d for d, n in enumerate(t.shape) if n == 1]
        pads = [self.to(0, 2) for _ in range(2 * self.to(1, min(2, t.dim() - 1)))]
        options = [f"F.pad({name}, {pads})"]
        if t.dim() == 4:
            options += [f"F.interpolate({name}, scale_factor=2.0, mode='nearest')",
                        f"F.channel_shuffle({name}, {self.divisor(t.shape[1])})",
                        f"F.upsample_nearest({name}, scale_factor=2.0)"]
        if ones:
            sizes = [-1] * t.dim()
            sizes[self.pick(ones)] = self.to(2, 4)
            options.append(f"{name}.expand({sizes})")
            options.append(f"{name}.repeat_interleave({self.to(1, 3)}, dim={self.pick(ones)})")
            options.append(f"{name}.repeat({[1 if n < 0 else n for n in sizes]})")
        return self.add(self.pick(options))

    def in_place(self):
        name, _ = self.value()
        made, = self.new()
        change = self.pick([f"{made} += 0.5", f"{made}.mul_(0.5)", f"{made}.relu_()",
                            f"{made} -= {name}.tanh()", f"F.relu({made}, inplace=True)"])
        return self.lines(f"{made} = {name}.clone()\n{change}")

    def control_flow(self):
        name, t = self.value()
        made, = self.new()
        axis = self.to(0, t.dim() - 1)
        times = self.to(1, 4)
        return self.lines(self.pick([
            f"{made} = {name}\n"
            f"for i in range({times}):\n"
            f"    {made} = torch.relu({made} - float(i) * 0.25)",
            f"{made} = {name}\n"
            f"left = {name}.size({axis})\n"
            f"while left > 1:\n"
            f"    {made} = {made} * 0.5 + 1.0 if left % 2 == 0 else {made} - 0.25\n"
            f"    left = left // 2",
            f"if {name}.size({axis}) % 2 == 0 and {name}.dim() > {self.to(1, 3)}:\n"
            f"    {made} = torch.sigmoid({name})\n"
            f"elif {name}.numel() > {self.to(1, 400)}:\n"
            f"    {made} = -{name}\n"
            f"else:\n"
            f"    {made} = {name} * 2.0",
            f"{made} = repeated({name}, {times})",
            f"{made} = repeated(repeated({name}, 1, scale=0.25), {times})",
            f"table: Dict[str, int] = {{'a': {times}, 'b': 2}}\n"
            f"{made} = {name}\n"
            f"for key, count in table.items():\n"
            f"    {made} = {made} * (0.5 if key == 'a' else 0.25) + float(count)",
            f"{made} = {name}\n"
            f"for i in range(6):\n"
            f"    if i == 1:\n"
            f"        continue\n"
            f"    if i > {times}:\n"
            f"        break\n"
            f"    {made} = {made} * 0.5 + float(i) / math.sqrt(2.0)",
            f"{made} = early({name}, '{self.pick(['tanh', 'none'])}')",
            f"{made} = early({name}, 'tanh', other={name} - 1.0)",
            f"{made} = scaled({name}) + scaled({name}, 0.5) - scaled({name}, by={times})",
            f"sizes = [n * 2 for n in {name}.shape]\n"
            f"total = sum(sizes) + max(sizes + [1]) - min([3, {times}])\n"
            f"{made} = {name} * (float(total % 7) * 0.25 - 0.5)",
            f"got = paired({name})\n"
            f"{made} = got.first * (1.0 / float(got.count))",
            f"assert {name}.dim() < 9, f'rank {{{name}.dim()}}'\n"
            f"{made} = {name}\n"
            f"for a, b in zip([1, 2, {times}], [0.5, 0.25]):\n"
            f"    {made} = torch.sigmoid({made} * float(a)) - b",
            f"seen: Dict[int, float] = {{}}\n"
            f"for n in {name}.shape:\n"
            f"    seen[int(n)] = seen.get(int(n), 0.0) + 0.5\n"
            f"{made} = {name} * float(len(seen)) * 0.25 + seen[int({name}.size({axis}))]",
            f"rows = [[1, 2], [{times}, 4]]\n"
            f"flat = [float(rows[1][0]), float(rows[0][1])]\n"
            f"{made} = {name} / (flat[0] + flat[-1])",
            f"left, right = {name} * 0.5, -{name}\n"
            f"left, right = right, left\n"
            f"{made} = left - right * 0.25",
            f"pair: Tuple[Tensor, int] = (torch.abs({name}), {times})\n"
            f"first, second = pair\n"
            f"{made} = first / float(second)"]))

    def listed(self):
        name, t = self.value()
        axis = self.to(0, t.dim() - 1)
        if t.shape[axis] > 6 or t.dim() < 2:
            return False
        made, = self.new()
        return self.lines(self.pick([
            f"parts: List[Tensor] = []\n"
            f"for j in range({name}.size({axis})):\n"
            f"    parts.append({name}.select({axis}, j) * (0.5 + float(j)))\n"
            f"{made} = torch.stack(parts, {axis})",
            f"{made} = torch.cat([y * 2.0 for y in torch.chunk({name}, 2, {axis})], {axis})",
            f"pieces = [{name}, torch.relu({name})]\n"
            f"pieces += [pieces[-1] - 1.0]\n"
            f"pieces.insert(1, pieces.pop())\n"
            f"{made} = torch.cat(pieces[::-1], {axis})",
            f"total = torch.zeros_like({name})\n"
            f"for k, y in enumerate(torch.split({name}, 1, {axis})):\n"
            f"    total = total + y * float(k)\n"
            f"{made} = total"]))

    def residual(self):
        name, t = self.value()
        if t.dim() == 4 and self.chance(0.7):
            c, k = t.shape[1], self.pick([1, 3])
            inner = (f"nn.Conv2d({c}, {c}, {k}, padding={k // 2}), nn.BatchNorm2d({c}), nn.ReLU(), "
                     f"nn.Conv2d({c}, {self.pick([c, c, self.to(1, 8)])}, 1)")
        elif t.dim() == 3 and self.chance(0.7):
            c = t.shape[1]
            inner = (f"nn.Conv1d({c}, {c}, 3, padding=1, groups={c}), nn.ReLU(), "
                     f"nn.Conv1d({c}, {c}, 1)")
        else:
            n = t.shape[-1]
            width = self.to(1, 16)
            inner = f"nn.Linear({n}, {width}), nn.Tanh(), nn.Linear({width}, {n})"
        gate = self.chance(0.5)
        if self.chance(0.3):
            return self.call(f"Bank({t.shape[-1]}, {self.to(1, 3)})", name)
        return self.call(f"Residual(nn.Sequential({inner}), {gate})", name)

    KINDS = [(convolution, 6), (transposed_convolution, 2),
             (interpolation, 2), (pool, 4), (normalisation, 2),
             (linear, 3), (recurrent, 2), (activation, 6), (unary, 4), (binary, 6), (product, 2),
             (axes, 4), (shape, 5), (part, 4), (parts, 2), (join, 3), (reduction, 3),
             (distribution, 2), (enlarge, 3), (in_place, 2),
             (control_flow, 2), (listed, 2), (residual, 2), (selection, 3), (index, 2)]

    def write(self, steps):
        kinds = [kind for kind, weight in self.KINDS for _ in range(weight)]
        for _ in range(20 * steps):
            if len(self.steps) >= steps:
                break
            self.pick(kinds)(self)
        return Net(self.name, self.shapes, self.steps,
                   {name: tuple(t.shape) for name, t in self.values.items()})


def write_net(name, steps):
    count = 1 + oracle.seed_of(name + " length") % steps
    return Writer(name).write(count)


def case_of(net, folder):
    """The oracle's case of a net, whose source must be a file for torch.jit.script."""
    path = os.path.join(folder, re.sub(r"\W", "_", net.name) + ".py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(net.source())
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Refused with a diagnostic, or compiled and equal: what "outside" asks of any rule.
    return oracle.Case(net.name, module.Net, net.shapes, "outside", items=ITEMS,
                       configs={"": keys_of(net)})


def keys_of(net):
    """Further keys of a net's config: none for half of the nets."""
    random = np.random.RandomState(oracle.seed_of(net.name + " keys"))
    if random.rand() < 0.5:
        return {}
    keys = {"INPUT_NCX_TO_NXC": [i for i, shape in enumerate(net.shapes)
                                 if len(shape) > 2 and random.rand() < 0.7],
            # One of an input's size would be its next state.
            "FP16_OUT_OPS": [k for k, name in enumerate(net.outputs()) if random.rand() < 0.3
                             and np.prod(net.value_shapes[name]) not in map(np.prod, net.shapes)]}
    keys = {key: value for key, value in keys.items() if value}
    if random.rand() < 0.5:
        keys["FUSE_BN"] = "true"
    return keys


# Scripting reads a module's source when it is asked to: files that live as long as the process.
SOURCES = tempfile.TemporaryDirectory(prefix="npuc-oracle-")
RECORDED, STEPS = 48, 12


def cases():
    """Those that are recorded; random_nets.py tries as many as one likes."""
    return [dataclasses.replace(case_of(write_net(f"random_{i}", STEPS), SOURCES.name),
                                expect="passes") for i in range(RECORDED)]
