"""What the nets of the oracle share: the description of a case, seeded weights, running a case in
PyTorch, and the figures from which its tolerance follows.

Weights and inputs are multiples of a power of two and small, so that float16 holds them exactly:
what differs on the NPU is the rounding of results alone.
"""

from dataclasses import dataclass, field
import math
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

VARIANTS = ("scripted", "traced")
INPUT_STEP = 64.0


@dataclass
class Case:
    """One net with its inputs.

    expect: passes   it compiles and agrees with PyTorch
            outside  just outside of a restriction: refused with a diagnostic that matches `rule`,
                     or compiled with a note of the rewrite, and then it agrees with PyTorch
            refused  refused with a diagnostic that matches `rule`
    """

    name: str
    build: object                                  # () -> nn.Module
    inputs: list                                   # a shape each, as PyTorch takes it
    expect: str = "passes"
    rule: str = ""                                 # a regular expression on the diagnostics
    row: str = ""                                  # rows of the GRUS/PT list, by spaces
    items: int = 2                                 # inputs tried, or frames where there are states
    states: dict = field(default_factory=dict)     # input index by flattened output index
    configs: dict = field(default_factory=lambda: {"": {}})  # further config keys by suffix
    variants: tuple = VARIANTS
    gain: float = 1.0                              # of the weights
    positive: bool = False                         # inputs above 0
    # The layer that gives class scores, the last output: its bias is centred and its weight scaled
    # over the inputs, so that classes compete as in a trained net.
    head: str = ""
    input_scale: float = 1.0
    published: str = ""                            # path below shared/models/torchscript


def seed_of(name):
    return zlib.crc32(name.encode()) & 0x7fffffff


def _multiples(random, shape, std, finest=1 / 1024):
    """Normal values rounded to multiples of a power of two about a quarter of std."""
    step = max(2.0 ** math.floor(math.log2(std / 3)), finest)
    return np.round(random.randn(*shape) * std / step) * step


def set_weights(module, name, gain=1.0):
    """Seeded values for every parameter and buffer; the sums keep the size of their inputs."""
    random = np.random.RandomState(seed_of(name))
    for key, tensor in list(module.named_parameters()) + list(module.named_buffers()):
        if not tensor.dtype.is_floating_point:
            continue
        shape = tuple(tensor.shape)
        leaf = key.rsplit(".", 1)[-1]
        if leaf == "running_var":
            value = np.round(random.uniform(0.5, 1.5, shape) * 64) / 64
        elif leaf == "running_mean":
            value = _multiples(random, shape, 0.2)
        elif len(shape) >= 2:
            value = _multiples(random, shape, gain / math.sqrt(np.prod(shape[1:])))
        elif leaf == "weight":
            value = 1 + _multiples(random, shape, 0.1)
        else:
            value = _multiples(random, shape, 0.1)
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(np.asarray(value, np.float32)).reshape(shape))


def _patches(random, shape):
    """Normal values in patches of 8 along each axis behind the channels: something to classify."""
    sizes = [n if axis < 2 else -(-n // 8) for axis, n in enumerate(shape)]
    value = random.randn(*sizes)
    for axis in range(2, len(shape)):
        value = np.repeat(value, 8, axis).take(range(shape[axis]), axis)
    return value


def make_inputs(case):
    """Arrays [items, *shape] by input; the states' are the first frame's zeros."""
    random = np.random.RandomState(seed_of(case.name) ^ 0x5eed)
    arrays = []
    for i, shape in enumerate(case.inputs):
        if i in case.states.values():
            arrays.append(np.zeros((1, *shape), np.float32))
            continue
        value = random.randn(case.items, *shape)
        if case.head:
            value = 0.4 * value + 1.2 * _patches(random, (case.items, *shape))
        value = np.clip(value, -3, 3) * case.input_scale
        if case.positive:
            value = np.abs(value) + 0.25
        arrays.append((np.round(value * INPUT_STEP) / INPUT_STEP).astype(np.float32))
    return arrays


def make_module(case):
    torch.manual_seed(seed_of(case.name))
    module = case.build()
    set_weights(module, case.name, case.gain)
    module.eval()
    if case.head:
        centre_head(case, module)
    return module


def centre_head(case, module):
    layer = module.get_submodule(case.head)
    scores = []
    hook = layer.register_forward_hook(lambda _module, _inputs, output: scores.append(output))
    run(case, module, make_inputs(case))
    hook.remove()
    axis = 1 if isinstance(layer, nn.Conv2d) else -1
    rows = torch.cat([s.movedim(axis, -1).reshape(-1, layer.bias.numel()) for s in scores])
    scale = 2.0 ** max(0, min(6, round(math.log2(1.5 / float(rows.std(0).mean())))))
    with torch.no_grad():
        mean = (rows.mean(0) - layer.bias) * scale
        layer.weight.mul_(scale)
        layer.bias.copy_(-torch.round(mean * 64) / 64)


def example(case, arrays):
    return tuple(torch.from_numpy(a[0].copy()) for a in arrays)


def make_variant(case, module, arrays, variant):
    with torch.no_grad():
        if variant == "scripted":
            return torch.jit.script(module)
        return torch.jit.trace(module, example(case, arrays), check_trace=False)


def flatten(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in flatten(part)]


def run(case, module, arrays):
    """Every item, or all frames with the states fed back; outputs stacked, in float32."""
    states = {i: torch.from_numpy(arrays[i][0].copy()) for i in case.states.values()}
    outputs = None
    for t in range(case.items):
        values = [states[i] if i in states else torch.from_numpy(a[t].copy())
                  for i, a in enumerate(arrays)]
        with torch.no_grad():
            result = flatten(module(*values))
        outputs = outputs or [[] for _ in result]
        for k, tensor in enumerate(result):
            outputs[k].append(tensor.detach().numpy().astype(np.float32).copy())
        states = {i: result[k].detach().clone() for k, i in case.states.items()}
    return [np.stack(values) for values in outputs]


class Float16Rounding(TorchDispatchMode):
    """Rounds every result of a float operator to float16, as the NPU stores it."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = {t.storage().data_ptr() for t in flatten_tensors(args)}

        def rounded(tensor):
            if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.float32:
                return tensor
            if tensor.numel() == 0:
                return tensor
            if tensor.storage().data_ptr() in given:
                in_place = function._schema.name.endswith("_")
                return tensor.copy_(tensor.half().float()) if in_place else tensor
            return tensor.half().float()

        if isinstance(result, (tuple, list)):
            return type(result)(rounded(t) for t in result)
        return rounded(result)


def flatten_tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from flatten_tensors(value)


def float16_errors(case, module, arrays, outputs):
    """The largest error of each output where every operator's result is rounded to float16."""
    with Float16Rounding():
        rounded = run(case, module, arrays)
    return [float(np.abs(a.astype(np.float64) - b).max()) if a.size else 0.0
            for a, b in zip(rounded, outputs)]
