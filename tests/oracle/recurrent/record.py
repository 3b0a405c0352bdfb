#!/usr/bin/python3
"""Writes what PyTorch computes with small recurrent layers, for unit tests of the front ends.

    record.py > compiler_core/frontends/common/recurrent_cases.inc

Weights and operands are numbers of a formula (FILL), so tests make the same ones. Needs
python3-torch.
"""

import numpy as np
import torch

STEPS, BATCH, INPUT, HIDDEN = 3, 2, 3, 2
# (name of the case, PyTorch's class, its arguments)
CASES = (("Lstm", torch.nn.LSTM, {}),
         ("TwoWayLstm", torch.nn.LSTM, {"bidirectional": True, "num_layers": 2}),
         ("Gru", torch.nn.GRU, {}),
         ("TwoWayGru", torch.nn.GRU, {"bidirectional": True, "num_layers": 2}),
         ("TanhRnn", torch.nn.RNN, {}),
         ("ReluRnn", torch.nn.RNN, {"nonlinearity": "relu"}))


def fill(count, first):
    """FILL: number i of the whole case is ((37 i + 11) mod 101) / 101 - 0.5."""
    i = np.arange(first, first + count)
    return (((37 * i + 11) % 101) / 101 - 0.5).astype(np.float32)


def numbers(values):
    return ", ".join(f"{v:.7g}" + ("f" if any(c in f"{v:.7g}" for c in ".e") else ".0f")
                     for v in values.detach().numpy().ravel())


def main():
    print("// Written by tests/oracle/recurrent/record.py; do not edit. Rows of RecurrentCase.")
    for name, kind, arguments in CASES:
        layer = kind(INPUT, HIDDEN, **arguments)
        at = 0
        for parameter in layer.parameters():
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(fill(parameter.numel(), at))
                                .reshape(parameter.shape))
            at += parameter.numel()
        states = arguments.get("num_layers", 1) * (2 if "bidirectional" in arguments else 1)

        def take(*shape):
            nonlocal at
            count = int(np.prod(shape))
            at += count
            return torch.from_numpy(fill(count, at - count)).reshape(shape)
        x, h = take(STEPS, BATCH, INPUT), take(states, BATCH, HIDDEN)
        if kind is torch.nn.LSTM:
            y, (h, c) = layer(x, (h, take(states, BATCH, HIDDEN)))
        else:
            (y, h), c = layer(x, h), torch.zeros(0)
        print(f'{{"{name}", {states}, {{{numbers(y)}}}, {{{numbers(h)}}}, {{{numbers(c)}}}}},')


if __name__ == "__main__":
    main()
