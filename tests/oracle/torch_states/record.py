#!/usr/bin/python3
"""Records what PyTorch answers where a model keeps its state in attributes.

    record.py > tests/oracle/torch_states/recorded.json

The frames are those of frames(), which the suite torch_states makes again. Needs python3-torch and
the shared folder.
"""

import json
import os
import sys

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "e2e"))
import torch_states  # noqa: E402


class Streaming(torch.nn.Module):
    """A delay line that is written in place, a running mean that is assigned, a list of two frames,
    and a counter of the first call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("line", torch.zeros(1, 4, 6))
        self.mean = torch.zeros(0)
        self.frames = [torch.zeros(1, 6), torch.zeros(1, 6)]
        self.is_first = True
        self.linear = torch.nn.Linear(12, 3)

    def forward(self, x):
        self.line.copy_(torch.cat([self.line[:, 1:], x.unsqueeze(1)], 1))
        if self.is_first:
            self.mean = x * 0
            self.is_first = False
        self.mean = self.mean * 0.75 + x * 0.25
        self.frames.append(x)
        oldest = self.frames.pop(0)
        y = self.linear(torch.cat([self.line.mean(1), oldest - self.mean], 1))
        return {"scores": torch.tanh(y), "level": self.mean.abs().sum(1)}, None


def streaming():
    torch.manual_seed(3)
    module = Streaming().eval()
    for parameter in module.parameters():
        with torch.no_grad():
            parameter.copy_((parameter * 64).round() / 64)
    return module


def run(module, frames, *more):
    with torch.no_grad():
        return [module(torch.from_numpy(frame), *more) for frame in frames]


def main():
    scripted = torch.jit.script(streaming())
    path = os.path.join(HERE, "streaming.pt")
    if not os.path.exists(path):
        torch.jit.save(scripted, path)
    answers = run(scripted, torch_states.frames("streaming"))
    recorded = {"streaming": [[a[key].numpy().ravel().tolist() for a, _ in answers]
                              for key in ("scores", "level")]}
    silero = torch.jit.load(torch_states.SILERO).eval()
    answers = run(silero, torch_states.frames("silero"), 16000)
    recorded["silero"] = [[a.numpy().ravel().tolist() for a in answers]]
    print(json.dumps(recorded))


if __name__ == "__main__":
    main()
