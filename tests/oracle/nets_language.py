"""Nets that use more of the language and of aten than the operator list names: control flow over
constants, lists, in-place operators, further spellings; and what must be refused."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import nn, Tensor
import torch.nn.functional as F

from oracle import Case


class ControlFlow(nn.Module):
    """Loops and conditions over shapes, constants and optionals; lists, dicts, f-strings aside."""

    steps: int

    def __init__(self):
        super().__init__()
        self.steps = 3
        self.names = ["a", "b"]
        self.bias: Optional[Tensor] = None
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        if x.dim() == 2 and x.size(1) == 8:
            y = x
        else:
            y = x.view(-1, 8)
        if self.bias is not None:
            y = y + self.bias
        for layer in self.layers:
            y = torch.relu(layer(y))
        parts: List[Tensor] = []
        for i in range(self.steps):
            if i % 2 == 0:
                parts.append(y[:, i:i + 2] * float(i + 1))
            else:
                parts.append(y[:, i:i + 2])
        table: Dict[str, int] = {"a": 1, "b": 2}
        total = 0
        for name in self.names:
            total += table[name]
        i = 0
        while i < total:
            i += 2
        return torch.cat(parts, dim=1) * scale + float(i)


def free_function(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = torch.tanh(x)
    return x


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(6))

    def shift(self, x: Tensor) -> Tensor:
        return x + self.offset


class Inherited(Base):
    """A method of the base class, a free function, a buffer, in-place operators."""

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y = self.shift(x)
        y += 1.0
        y.mul_(0.5)
        z = y.clone()
        z.relu_()
        z = F.relu(z, inplace=True)
        return free_function(y, 2), z


class Matrices(nn.Module):
    """matmul, mm, bmm, addmm and t of values and weights."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(6, 4))
        self.b = nn.Parameter(torch.zeros(4))

    def forward(self, x: Tensor) -> List[Tensor]:
        y = torch.matmul(x, self.a)
        z = torch.addmm(self.b, x, self.a, beta=1.0, alpha=1.0)
        w = torch.mm(x, self.a)
        return [y @ self.a.t(), z, w]


class Attention(nn.Module):
    """Products of two values that both come from the input."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.35, dim=-1)
        return torch.bmm(weights, v)


class MoreActivations(nn.Module):
    """Those without a unit of their own."""

    def __init__(self):
        super().__init__()
        self.leaky, self.silu = nn.LeakyReLU(0.125), nn.SiLU()
        self.hardswish, self.hardsigmoid = nn.Hardswish(), nn.Hardsigmoid()
        self.elu, self.softplus = nn.ELU(), nn.Softplus()

    def forward(self, x: Tensor) -> List[Tensor]:
        return [self.leaky(x), self.silu(x), self.hardswish(x), self.hardsigmoid(x)]


class Gelu(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [F.gelu(x), torch.erf(x)]


class Softmaxes(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [F.softmax(x, -1), torch.log_softmax(x, 1), torch.softmax(x, 1)]


class AdaptivePools(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, (1, 1)),
                F.adaptive_avg_pool2d(x, (2, 3))]


class Indexing(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        first, second = x.unbind(1)
        return [x.select(1, 0) + first, x.narrow(2, 1, 2), torch.stack([first, second], 2),
                first.unsqueeze(1).expand(-1, 3, -1), second.contiguous().flatten(),
                x.reshape(2, -1).t()]


class Clamps(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [torch.clamp(x, min=0.25), x.clamp(max=0.5), torch.maximum(x, -x),
                torch.minimum(x, 2 * x), torch.max(x, x * x)]


class TransposedConvolutions(nn.Module):
    """As steps as wide as the kernel, and overlapping, cropped, grouped, dilated."""

    def __init__(self):
        super().__init__()
        self.wide = nn.ConvTranspose2d(4, 3, 2, 2)
        self.plain = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)
        self.grouped = nn.ConvTranspose2d(4, 6, (3, 2), stride=(1, 3), groups=2, bias=False)
        self.cropped = nn.ConvTranspose2d(4, 2, 2, stride=2, padding=2, dilation=(1, 2))
        self.signal = nn.ConvTranspose1d(4, 5, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> List[Tensor]:
        return [self.wide(x), self.plain(x), self.grouped(x), self.cropped(x),
                self.signal(x[:, :, 0]), F.conv_transpose1d(x[:, :, 1], self.signal.weight)]


class Interpolations(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False),
                F.interpolate(x, size=[7, 5], mode="bilinear", align_corners=True),
                F.interpolate(x, scale_factor=[1.5, 0.5], mode="bilinear", align_corners=False),
                F.interpolate(x, size=[6, 9], mode="bicubic", align_corners=False),
                F.interpolate(x[:, 0], scale_factor=3.0, mode="linear", align_corners=False)]


class MoreParts(nn.Module):
    """Parts by other names, repetitions, stacks, channels among themselves."""

    def forward(self, x: Tensor) -> List[Tensor]:
        a, b, c = torch.tensor_split(x, 3, 2)
        d, e = torch.hsplit(x, 2)
        return [torch.dstack([a, b]), c.repeat_interleave(2, dim=1), d - e,
                torch.tensor_split(x, [1, 4], 2)[1], F.channel_shuffle(x, 2),
                torch.outer(x[0, 0], x[0, 1]), torch.logsumexp(x, [1, 2]),
                torch.logsumexp(x, 2, keepdim=True), x.to(dtype=torch.float32) + 1.0]


class ListsAndStrings(nn.Module):
    """What Python computes beside the tensors: slices with steps, texts."""

    def forward(self, x: Tensor) -> Tensor:
        pieces = [x, torch.relu(x), x - 1.0]
        pieces.insert(1, pieces.pop())
        kind = "causal"[::2]
        if kind == "cua" and "causal".find("us") == 2:
            pieces = pieces[::-1]
        return torch.cat(pieces[-2:] + pieces[:1], 1)


class FastAttention(nn.Module):
    """Traced in eval mode, both are one operator each."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.first = nn.TransformerEncoderLayer(8, 4, 12, batch_first=True, norm_first=True)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        y, scores = self.attention(x, x, x)
        assert scores is not None
        return self.first(self.layer(y)), scores


class WeightNormed(nn.Module):
    """The weights are computed in forward; torch.jit.script does not take the hook."""

    def __init__(self):
        super().__init__()
        self.one = nn.utils.weight_norm(nn.Conv1d(4, 6, 3))
        self.two = nn.utils.weight_norm(nn.Linear(6, 5), dim=None)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(torch.relu(self.one(x)).transpose(1, 2))


class DataCondition(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x


class ListInput(nn.Module):
    def forward(self, x: List[Tensor]) -> Tensor:
        return x[0] + x[1]


class DataLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = int(x[0, 0].item())
        for _ in range(n):
            x = x + 1
        return x


class Embedding(nn.Module):
    """An operator that no row has."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cumsum(torch.sort(x, dim=1)[0], 1)


class Masks(nn.Module):
    """Booleans that are computed and known: moved, filled, summed, asked for their type."""

    def forward(self, x: Tensor) -> List[Tensor]:
        above = x > 0.25
        below = torch.tril(torch.ones(4, 4, dtype=torch.bool))
        written = x * 1
        written[above] = 0.0
        rows = x * 1
        rows[:, (x > 0.5).any(-1)[0]] = 2.0
        if torch.is_floating_point(above):
            chosen = x + above
        else:
            chosen = x.masked_fill(above, 1.0)
        part = torch.cat([above[:, :2], (x < 0)[:, 2:]], 1).transpose(1, 2)
        fills = x.masked_fill(below, -float("inf")).masked_fill(~below.t(), 0.5)
        return [written, rows, chosen, (above + (x > 0.5)).to(x.dtype),
                x.masked_fill(~below, 0.5), torch.where(~part, x, x * 2), torch.softmax(fills, -1)]


class Numbers(nn.Module):
    """Integers of many elements, stated types, a bound that is a tensor."""

    def forward(self, x: Tensor) -> List[Tensor]:
        position = torch.arange(128, dtype=torch.float32)
        sine = 100 ** (2 * torch.div(position, 2, rounding_mode="floor") / 128)
        return [x + sine, x + torch.arange(128) / 64, x + torch.full([128], 2.75, dtype=torch.long),
                torch.clamp_max(x, torch.arange(128) / 64 - 1),
                x + torch.tensor([2.75], dtype=torch.long)]


class Memory(nn.Module):
    """In-place operators on views of parts and on conversions."""

    def forward(self, x: Tensor) -> List[Tensor]:
        wide = x.to(torch.float64)
        wide.mul_(2)
        y = x * 1
        column = y[:, :, 1:3]
        seen = column.unsqueeze(3)
        y.mul_(2)
        column.squeeze(0).add_(1)
        return [x + wide, seen * 1, y]


class MaskIndex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0]


def cases():
    return [
        Case("control_flow", ControlFlow, [(1, 8)], items=4),
        Case("inherited", Inherited, [(1, 6)], items=4),
        Case("matrices", Matrices, [(1, 6)], items=4),
        Case("attention", Attention, [(1, 5, 8)], items=4),
        Case("more_activations", MoreActivations, [(1, 30)], items=4, input_scale=2.0),
        Case("gelu", Gelu, [(1, 30)], items=4, input_scale=2.0),
        Case("softmaxes", Softmaxes, [(1, 12)], items=4),
        Case("adaptive_pools", AdaptivePools, [(1, 3, 4, 6)]),
        Case("indexing", Indexing, [(1, 2, 4)]),
        Case("clamps", Clamps, [(1, 12)], items=4),
        Case("transposed_convolutions", TransposedConvolutions, [(1, 4, 5, 3)]),
        Case("interpolations", Interpolations, [(1, 3, 4, 6)]),
        Case("more_parts", MoreParts, [(1, 4, 6)]),
        Case("lists_and_strings", ListsAndStrings, [(1, 4)]),
        Case("weight_normed", WeightNormed, [(1, 4, 8)], variants=("traced",)),
        Case("fast_attention", FastAttention, [(1, 5, 8)]),
        Case("masks", Masks, [(1, 4, 4)], variants=("scripted",)),
        Case("numbers", Numbers, [(1, 128)], variants=("scripted",)),
        Case("memory", Memory, [(1, 3, 4)], variants=("scripted",)),
        Case("refused_data_condition", DataCondition, [(1, 4)], "refused", "condition|x.sum",
             variants=("scripted",)),
        Case("refused_data_loop", DataLoop, [(1, 4)], "refused", "item|input",
             variants=("scripted",)),
        Case("refused_list_input", ListInput, [(1, 4), (1, 4)], "refused", "list|List|split",
             variants=("scripted",)),
        Case("refused_mask_index", MaskIndex, [(1, 4)], "refused", "indexing by a mask"),
        Case("refused_operator", Embedding, [(1, 4)], "refused", "sort|cumsum"),
    ]
