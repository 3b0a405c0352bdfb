"""The four example nets of the vendor's guide in PyTorch form, run for 50 frames with their states
fed back; each also with INPUT_NCX_TO_NXC where an input goes into a convolution."""

from typing import List, Tuple

import torch
from torch import nn, Tensor

from oracle import Case

FRAMES = 50


class FsmnLayer(nn.Module):
    """A memory of the last frames: the state holds them, a depthwise sum weighs them."""

    def __init__(self, features: int, past: int):
        super().__init__()
        self.dense = nn.Linear(features, features)
        self.memory = nn.Conv1d(features, features, past + 1, groups=features, bias=False)

    def forward(self, x: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        h = torch.relu(self.dense(x))
        frames = torch.cat([state, h], dim=1)
        memory = self.memory(frames.transpose(1, 2)).transpose(1, 2)
        return h + memory, frames[:, 1:]


class Fsmn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer0 = FsmnLayer(64, 3)
        self.layer1 = FsmnLayer(64, 4)
        self.layer2 = FsmnLayer(64, 5)
        self.head = nn.Linear(64, 10)

    def forward(self, Feats: Tensor, State_c0: Tensor, State_c1: Tensor, State_c2: Tensor):
        x, c0 = self.layer0(Feats, State_c0)
        x, c1 = self.layer1(x, State_c1)
        x, c2 = self.layer2(x, State_c2)
        return c0, c1, c2, torch.softmax(self.head(x), dim=-1)


class TwoInputCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(2, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(16, 24, 3)
        self.global_pool = nn.AdaptiveMaxPool2d((1, 1))
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(24, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, image: Tensor, depth: Tensor) -> Tensor:
        a = self.pool(torch.relu(self.conv1(image)))
        b = self.pool(torch.relu(self.conv2(depth)))
        x = self.global_pool(torch.relu(self.conv3(torch.cat([a, b], 1))))
        return self.fc2(torch.relu(self.fc1(self.flatten(x))))


class ConvGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(40, 64, 3)
        self.gru = nn.GRU(64, 128, batch_first=True)
        self.head = nn.Linear(128, 4)

    def forward(self, feats: Tensor, state: Tensor) -> Tuple[Tensor, Tensor]:
        x = torch.relu(self.conv(feats)).permute(0, 2, 1)
        y, state_out = self.gru(x, state)
        return state_out, torch.sigmoid(self.head(y))


class SplitGru(nn.Module):
    """Seven outputs: t, a list of four; y, a tuple of two of which the second is the state; o."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(32, 64, batch_first=True)
        self.conv = nn.Conv1d(64, 16, 3, padding=1)

    def forward(self, x: Tensor, state: Tensor) -> Tuple[List[Tensor], Tuple[Tensor, Tensor],
                                                         Tensor]:
        t = torch.split(x, 8, dim=2)
        y, h = self.gru(x, state)
        o = self.conv(torch.sigmoid(y).permute(0, 2, 1))
        return [t[0], torch.sigmoid(t[1]), t[2], torch.relu(t[3])], (y, h), o


def cases():
    fp16 = "FP16_OUT_OPS"
    nxc = "INPUT_NCX_TO_NXC"
    return [
        Case("guide_fsmn", Fsmn, [(1, 1, 64), (1, 3, 64), (1, 4, 64), (1, 5, 64)], items=FRAMES,
             states={0: 1, 1: 2, 2: 3}, configs={"": {fp16: [0, 1, 2]}}),
        Case("guide_two_input_cnn", TwoInputCnn, [(1, 1, 16, 16), (1, 2, 16, 16)], items=FRAMES,
             configs={"": {}, "nxc": {nxc: [0, 1]}}, gain=1.4),
        Case("guide_conv_gru", ConvGru, [(1, 40, 6), (1, 1, 128)], items=FRAMES, states={0: 1},
             configs={"": {fp16: [0]}, "nxc": {fp16: [0], nxc: [0]}}),
        Case("guide_split_gru", SplitGru, [(1, 5, 32), (1, 1, 64)], items=FRAMES, states={5: 1},
             configs={"": {fp16: [5]}}),
    ]
