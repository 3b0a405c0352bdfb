"""The config keys of convolutions, one by one on one net: what each changes in the commands and
weights, and that the simulated outputs stay those of NumPy's forward pass.
"""

import json
import os
import re

import numpy as np

import guide_nets
import harness

ITEMS = 20
SEED = 5
EPSILON = 0.001
# Of the largest output: fp16 keeps 11 bits through five layers; 8-bit weights 8, of a range that
# they may share with biases.
LARGEST_ERROR = 0.01
LARGEST_COMPRESSED_ERROR = 0.03
CONVOLUTIONS = ("conv1/kernel", "conv2/kernel")


class Net:
    """conv 3x3, bias, batch norm, ReLU; depthwise 3x3, bias, ReLU; conv 1x1, bias; dense, bias."""

    def __init__(self):
        g = self.graph = guide_nets.Writer(SEED)
        g.placeholder("x", [1, 10, 10, 3])
        self.conv1 = self.convolution("conv1", "x", 3, 3, 40)
        self.norm = [g.weight(f"bn/{n}", 40, scale=0.3) for n in ("gamma", "beta", "mean")]
        self.variance = np.random.RandomState(SEED).rand(40).astype(np.float32) + 0.5
        g.const("bn/variance", self.variance)
        g.node("FusedBatchNormV3", "bn", ["conv1/bias", "bn/gamma", "bn/beta", "bn/mean",
                                          "bn/variance"],
               {"T": guide_nets.FLOAT, "U": guide_nets.FLOAT, "epsilon": EPSILON,
                "is_training": False, "data_format": b"NHWC"})
        g.op("Relu", "relu1", "bn")
        self.depthwise = (g.weight("dw/kernel", 3, 3, 40, 1, scale=0.3), self.bias("dw", 40))
        g.op("DepthwiseConv2dNative", "dw", "relu1", "dw/kernel", **self.window())
        g.op("BiasAdd", "dw/bias", "dw", "dw/b")
        g.op("Relu", "relu2", "dw/bias")
        self.conv2 = self.convolution("conv2", "relu2", 1, 40, 35)
        g.reshape("flat", "conv2/bias", [1, 6 * 6 * 35])
        self.dense = (g.weight("fc/kernel", 6 * 6 * 35, 10), self.bias("fc", 10))
        g.op("MatMul", "fc", "flat", "fc/kernel", transpose_a=False, transpose_b=False)
        g.op("BiasAdd", "y", "fc", "fc/b")

    @staticmethod
    def window():
        return {"strides": [1, 1, 1, 1], "padding": b"VALID", "data_format": b"NHWC"}

    def bias(self, name, channels):
        return self.graph.weight(f"{name}/b", channels, scale=0.5)

    def convolution(self, name, x, side, channels, outputs):
        kernel = self.graph.weight(f"{name}/kernel", side, side, channels, outputs)
        bias = self.bias(name, outputs)
        self.graph.op("Conv2D", name, x, f"{name}/kernel", **self.window())
        self.graph.op("BiasAdd", f"{name}/bias", name, f"{name}/b")
        return kernel, bias

    def forward(self, x):
        """[items,10,10,3] -> [items,10], in float64."""
        y = convolve(x.astype(np.float64), self.conv1[0]) + self.conv1[1]
        gamma, beta, mean = self.norm
        y = (y - mean) * gamma / np.sqrt(self.variance + EPSILON) + beta
        y = np.maximum(y, 0)
        kernel = self.depthwise[0][..., 0]
        y = sum(y[:, i:i + 6, j:j + 6] * kernel[i, j] for i in range(3) for j in range(3))
        y = np.maximum(y + self.depthwise[1], 0)
        y = convolve(y, self.conv2[0]) + self.conv2[1]
        return y.reshape(len(x), -1) @ self.dense[0] + self.dense[1]


def convolve(x, kernel):
    side = kernel.shape[0]
    height, width = x.shape[1] - side + 1, x.shape[2] - side + 1
    return sum(x[:, i:i + height, j:j + width] @ kernel[i, j]
               for i in range(side) for j in range(side))


class Compiled:
    """One compile of the net with some keys set: its report, its commands, its outputs."""

    def __init__(self, model, x, keys):
        config = ("CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
                  f"MODEL_FILE: {model}\nOUTPUT_FILE: model.h\nINPUT_OPS: {{x: [1, 10, 10, 3]}}\n"
                  f"OUTPUT_OPS: [y]\n{keys}")
        with harness.scratch() as folder:
            path = os.path.join(folder, "config.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(config)
            header = harness.compile_header(path, folder, "model.h")
            with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
                report = json.load(f)
            self.dis = harness.npuc("dis", header).stdout
            self.y = harness.simulate(header, {"x": x}, os.path.join(folder, "sim"), ["y"])["y"]
        self.y = self.y.reshape(ITEMS, 10)
        self.weights = {w["name"]: w for w in report["weights"]}
        self.bits = {name: w["bits"] for name, w in self.weights.items()}
        self.commands = sum(report["commands"].values())
        self.batch_norms = report["commands"].get("batch_norm", 0)
        self.warnings = [d["id"] for d in report["diagnostics"]]
        self.biases = len(re.findall(r"\bbias\b", re.sub(r'"[^"]*"|;.*|#.*', "", self.dis)))


def check_close(name, y, truth, allowed):
    error = float(np.abs(y - truth).max()) / float(np.abs(truth).max())
    harness.check(error <= allowed, f"{name}: off by {error:.4f} of the largest output")
    harness.figure(f"conv_keys, {name}: largest error {error:.5f} of the largest output")


def check(condition, compiled, what):
    harness.check(condition, f"{what}: bits {compiled.bits}, {compiled.commands} commands, "
                             f"{compiled.biases} biases, {compiled.warnings}")


def check_fusion(plain, bias, norm, both):
    check(plain.biases == 0 and plain.batch_norms == 1, plain, "by default nothing is fused")
    check(bias.biases == 3, bias, "FUSE_BIASADD: every convolution's command has its bias")
    check(bias.commands < plain.commands, bias, "FUSE_BIASADD: fewer commands")
    check(norm.biases == 0 and norm.batch_norms == 0, norm, "FUSE_BN: no scaling command")
    check(norm.commands < plain.commands, norm, "FUSE_BN: fewer commands")
    check(norm.weights["conv1/kernel"]["max"] != plain.weights["conv1/kernel"]["max"] and
          norm.weights["conv2/kernel"] == plain.weights["conv2/kernel"], norm,
          "FUSE_BN: the weight before the batch norm is scaled, the other is not")
    check(both.biases == 3 and both.batch_norms == 0, both,
          "FUSE_BN and FUSE_BIASADD: the batch norm's offset is the convolution's bias")


def check_compression(plain, compressed, excluded):
    check(set(plain.bits) == {*CONVOLUTIONS, "fc/kernel"} and set(plain.bits.values()) == {16},
          plain, "by default nothing is compressed")
    check(compressed.bits == {"conv1/kernel": 8, "conv2/kernel": 8, "fc/kernel": 16}, compressed,
          "CONV2D_COMPRESS: convolution weights, and no other")
    check(all(compressed.weights[n]["bytes"] < 0.8 * plain.weights[n]["bytes"]
              for n in ("conv2/kernel",)), compressed, "CONV2D_COMPRESS: fewer bytes")
    check(excluded.bits == {"conv1/kernel": 16, "conv2/kernel": 8, "fc/kernel": 16}, excluded,
          "EXCLUDE_CONV2D_COMPRESS_OPS: the named one stays")
    check(excluded.weights["conv1/kernel"] == plain.weights["conv1/kernel"], excluded,
          "EXCLUDE_CONV2D_COMPRESS_OPS: as if nothing were compressed")


def main(arguments):
    net = Net()
    x = np.random.RandomState(SEED).randn(ITEMS, 10, 10, 3).astype(np.float32)
    truth = net.forward(x)
    with harness.scratch() as folder:
        model = os.path.join(folder, "model.pb")
        with open(model, "wb") as f:
            f.write(net.graph.serialize())

        def compiled(name, keys, allowed=LARGEST_ERROR):
            result = Compiled(model, x, keys)
            check_close(name, result.y, truth, allowed)
            return result

        plain = compiled("no keys", "")
        bias = compiled("FUSE_BIASADD", "FUSE_BIASADD: true\n")
        norm = compiled("FUSE_BN", "FUSE_BN: true\n")
        both = compiled("FUSE_BN and FUSE_BIASADD", "FUSE_BN: true\nFUSE_BIASADD: true\n")
        check_fusion(plain, bias, norm, both)
        less = LARGEST_COMPRESSED_ERROR
        compressed = compiled("CONV2D_COMPRESS", "CONV2D_COMPRESS: true\n", less)
        excluded = compiled("CONV2D_COMPRESS but conv1", "CONV2D_COMPRESS: true\n"
                            "EXCLUDE_CONV2D_COMPRESS_OPS: [conv1/kernel]\n", less)
        check_compression(plain, compressed, excluded)
        every = compiled("all", "FUSE_BN: true\nFUSE_BIASADD: true\nCONV2D_COMPRESS: true\n"
                         "COMPRESS: true\n", less)
        check(set(every.bits.values()) == {8} and every.biases == 3, every, "all keys")
        check(every.warnings.count("NPUC1409") == 2, every,
              "a warning for each fusion into compressed weights")
