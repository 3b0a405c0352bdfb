"""Architectures that are used on such chips, with seeded weights."""

import copy
from typing import List, Tuple

import torch
from torch import nn, Tensor
import torch.nn.functional as F

from oracle import Case


class ConvBn(nn.Sequential):
    def __init__(self, inputs, outputs, kernel, stride=1, padding=0, groups=1, act=nn.ReLU):
        layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
                  nn.BatchNorm2d(outputs)]
        super().__init__(*layers, *([act()] if act is not None else []))


class DsCnn(nn.Module):
    """Keyword spotting on 49 frames of 10 MFCCs (Zhang et al., 2017)."""

    def __init__(self, channels=32, classes=12):
        super().__init__()
        self.first = ConvBn(1, channels, (10, 4), 2, (5, 1))
        blocks = []
        for _ in range(4):
            blocks += [ConvBn(channels, channels, 3, 1, 1, channels), ConvBn(channels, channels, 1)]
        self.blocks = nn.Sequential(*blocks)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(channels, classes)

    def forward(self, mfcc: Tensor) -> Tensor:
        x = self.dropout(self.blocks(self.first(mfcc)))
        return torch.softmax(self.head(x.mean([2, 3])), 1)


class Crnn(nn.Module):
    """Convolutions over frequency, a GRU over time."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(ConvBn(1, 16, 3, (2, 1), 1), ConvBn(16, 24, 3, (2, 2), 1))
        self.gru = nn.GRU(24 * 10, 48, batch_first=True)
        self.head = nn.Linear(48, 6)

    def forward(self, mel: Tensor) -> Tensor:
        x = self.conv(mel)                       # [1, 24, 10, T]
        n, c, f, t = x.shape
        x = x.permute(0, 3, 1, 2).reshape(n, t, c * f)
        y, _ = self.gru(x)
        return self.head(y[:, -1])


class TcBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv1d(inputs, outputs, 9, stride, 4, bias=False)
        self.bn1 = nn.BatchNorm1d(outputs)
        self.conv2 = nn.Conv1d(outputs, outputs, 9, 1, 4, bias=False)
        self.bn2 = nn.BatchNorm1d(outputs)
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv1d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm1d(outputs))
        else:
            self.shortcut = nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class TcResNet8(nn.Module):
    """Time is the length, frequencies are channels (Choi et al., 2019)."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(40, 16, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(TcBlock(16, 24, 2), TcBlock(24, 32, 2), TcBlock(32, 48, 2))
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(48, 12)

    def forward(self, mfcc: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.blocks(self.conv(mfcc))), 1))


class FsmnBlock(nn.Module):
    def __init__(self, features, hidden, left, right):
        super().__init__()
        self.project = nn.Linear(features, hidden, bias=False)
        self.left, self.right = left, right
        self.memory = nn.Conv1d(hidden, hidden, left + right + 1, groups=hidden, bias=False)
        self.expand = nn.Linear(hidden, features)

    def forward(self, x: Tensor) -> Tensor:
        p = self.project(x)
        padded = F.pad(p.transpose(1, 2), (self.left, self.right))
        p = p + self.memory(padded).transpose(1, 2)
        return F.relu(self.expand(p))


class SequenceFsmn(nn.Module):
    """An FSMN over a whole utterance, with a skip connection around each block."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(40, 64)
        self.blocks = nn.ModuleList([FsmnBlock(64, 32, 5, 2) for _ in range(3)])
        self.head = nn.Linear(64, 20)

    def forward(self, feats: Tensor) -> Tensor:
        x = F.relu(self.first(feats))
        for block in self.blocks:
            x = x + block(x)
        return F.log_softmax(self.head(x), dim=-1)


class GruVad(nn.Module):
    """Voice activity, one frame a call, two layers of state."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(40, 32)
        self.gru = nn.GRU(32, 48, num_layers=2, batch_first=True)
        self.out = nn.Linear(48, 1)

    def forward(self, frame: Tensor, h: Tensor) -> Tuple[Tensor, Tensor]:
        y, h_out = self.gru(torch.tanh(self.inp(frame)), h)
        return h_out, torch.sigmoid(self.out(y))


class LstmWakeWord(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(20)
        self.lstm = nn.LSTM(20, 40, batch_first=True)
        self.head = nn.Sequential(nn.Linear(40, 24), nn.ReLU(), nn.Linear(24, 3))

    def forward(self, mfcc: Tensor) -> Tensor:
        x = self.norm(mfcc).transpose(1, 2)
        y, (h, c) = self.lstm(x)
        return self.head(h[-1])


class Conv1dAutoencoder(nn.Module):
    """Halves the length twice and doubles it again, by channels that become positions."""

    def __init__(self):
        super().__init__()
        self.down1 = nn.Conv1d(8, 16, 4, 2, 1)
        self.down2 = nn.Conv1d(16, 24, 4, 2, 1)
        self.up1 = nn.Conv1d(24, 32, 3, padding=1)
        self.up2 = nn.Conv1d(16, 16, 3, padding=1)

    def double(self, x: Tensor) -> Tensor:
        n, c, length = x.shape
        x = x.view(n, c // 2, 2, length).permute(0, 1, 3, 2)
        return x.reshape(n, c // 2, 2 * length)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.relu(self.down2(torch.relu(self.down1(x))))
        return self.double(self.up2(torch.relu(self.double(self.up1(z)))))


class MobileNetV1(nn.Module):
    def __init__(self, alpha=0.25, classes=10):
        super().__init__()
        plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1),
                (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1)]
        c = int(32 * alpha)
        layers = [ConvBn(3, c, 3, 2, 1)]
        for outputs, stride in plan:
            n = int(outputs * alpha)
            layers += [ConvBn(c, c, 3, stride, 1, c), ConvBn(c, n, 1)]
            c = n
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(c, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.pool(self.features(image))
        return self.head(x.view(x.size(0), -1))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        hidden = inputs * expand
        layers = [ConvBn(inputs, hidden, 1, act=nn.ReLU6)] if expand != 1 else []
        layers += [ConvBn(hidden, hidden, 3, stride, 1, hidden, nn.ReLU6),
                   ConvBn(hidden, outputs, 1, act=None)]
        self.conv = nn.Sequential(*layers)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        if self.skip:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, alpha=0.35, classes=10):
        super().__init__()

        def width(c):
            n = max(8, int(c * alpha + 4) // 8 * 8)
            return n + 8 if n < 0.9 * c * alpha else n

        c = width(32)
        layers = [ConvBn(3, c, 3, 2, 1, act=nn.ReLU6)]
        for expand, outputs, repeat, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                                (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                                (6, 320, 1, 1)]:
            for i in range(repeat):
                layers.append(InvertedResidual(c, width(outputs), stride if i == 0 else 1, expand))
                c = width(outputs)
        layers.append(ConvBn(c, 640, 1, act=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(640, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(image), (1, 1))
        return self.head(torch.flatten(x, 1))


class ResBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a = ConvBn(inputs, outputs, 3, stride, 1)
        self.b = ConvBn(outputs, outputs, 3, 1, 1, act=None)
        self.down = ConvBn(inputs, outputs, 1, stride, act=None) if stride != 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.b(self.a(x))
        y += self.down(x)
        return torch.relu_(y)


class ResNet8(nn.Module):
    """MLPerf Tiny's image classifier."""

    def __init__(self):
        super().__init__()
        self.stem = ConvBn(3, 16, 3, 1, 1)
        self.blocks = nn.Sequential(ResBlock(16, 16, 1), ResBlock(16, 32, 2), ResBlock(32, 64, 2))
        self.pool = nn.AvgPool2d(8)
        self.head = nn.Linear(64, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(image))).flatten(1))


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand1 = nn.Conv2d(squeeze, expand, 1)
        self.expand3 = nn.Conv2d(squeeze, expand, 3, padding=1)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.squeeze(x))
        return torch.cat([self.act(self.expand1(x)), self.act(self.expand3(x))], 1)


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1 at a quarter of its width, with pools of 2x2."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            Fire(16, 4, 16), Fire(32, 4, 16), nn.MaxPool2d(2),
            Fire(32, 8, 32), Fire(64, 8, 32), nn.MaxPool2d(2),
            Fire(64, 12, 48), Fire(96, 16, 64))
        self.classifier = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(128, 10, 1),
                                        nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))

    def forward(self, image: Tensor) -> Tensor:
        return torch.flatten(self.classifier(self.features(image)), 1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = ConvBn(1, 8, 3, 1, 1)
        self.enc2 = ConvBn(8, 16, 3, 1, 1)
        self.mid = ConvBn(16, 32, 3, 1, 1)
        self.dec2 = ConvBn(32 + 16, 16, 3, 1, 1)
        self.dec1 = ConvBn(16 + 8, 8, 3, 1, 1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        a = self.enc1(image)
        b = self.enc2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        d = self.dec2(torch.cat([F.interpolate(m, scale_factor=2.0), b], 1))
        d = self.dec1(torch.cat([F.interpolate(d, scale_factor=2.0, mode="nearest"), a], 1))
        return torch.sigmoid(self.out(d))


class Separable1d(nn.Module):
    def __init__(self):
        super().__init__()
        layers: List[nn.Module] = [nn.Conv1d(40, 32, 3), nn.ReLU()]
        for kernel in (5, 7, 9):
            layers += [nn.Conv1d(32, 32, kernel, groups=32, bias=False), nn.Conv1d(32, 32, 1),
                       nn.BatchNorm1d(32), nn.Hardtanh(0.0, 6.0)]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(32, 8)

    def forward(self, mel: Tensor) -> Tensor:
        return self.head(self.layers(mel).mean(dim=2))


class KeywordTransformer(nn.Module):
    """Frames as tokens: a linear embedding, places, encoder layers, the mean, class scores."""

    def __init__(self, frames: int = 49, features: int = 20, width: int = 48):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.places = nn.Parameter(torch.zeros(1, frames, width))
        layer = nn.TransformerEncoderLayer(width, 3, 96, batch_first=True)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(3)])
        self.head = nn.Linear(width, 12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def cases():
    nxc = {"": {}, "nxc": {"INPUT_NCX_TO_NXC": [0]}}
    relu = {"gain": 1.4, "head": "head"}
    return [
        Case("net_ds_cnn", DsCnn, [(1, 1, 49, 10)], items=8, configs=nxc, **relu),
        Case("net_crnn", Crnn, [(1, 1, 40, 24)], items=8, **relu),
        Case("net_tc_resnet8", TcResNet8, [(1, 40, 98)], items=8, configs=nxc, **relu),
        Case("net_fsmn", SequenceFsmn, [(1, 24, 40)], items=4, gain=1.0, head="head"),
        Case("net_gru_vad", GruVad, [(1, 1, 40), (2, 1, 48)], items=50, states={0: 1},
             configs={"": {"FP16_OUT_OPS": [0]}}),
        Case("net_lstm_wake_word", LstmWakeWord, [(1, 20, 30)], items=8, head="head.2"),
        Case("net_conv1d_autoencoder", Conv1dAutoencoder, [(1, 8, 64)], items=8, gain=1.4,
             configs=nxc),
        Case("net_mobilenet_v1_025", MobileNetV1, [(1, 3, 96, 96)], items=4, configs=nxc, gain=1.6,
             head="head"),
        Case("net_mobilenet_v2_035", MobileNetV2, [(1, 3, 96, 96)], items=4, gain=1.2, head="head"),
        Case("net_resnet8", ResNet8, [(1, 3, 32, 32)], items=6, **relu),
        Case("net_squeezenet", SqueezeNet, [(1, 3, 64, 64)], items=6, gain=1.4,
             head="classifier.1"),
        Case("net_unet", UNet, [(1, 1, 32, 32)], items=4, gain=1.4, configs=nxc),
        Case("net_keyword_transformer", KeywordTransformer, [(1, 49, 20)], items=8, head="head"),
        Case("net_separable_1d", Separable1d, [(1, 40, 50)], items=8, **relu),
    ]
