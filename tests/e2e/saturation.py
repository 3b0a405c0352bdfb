"""A quantized model turned back into float keeps what its integers saturate at.

    run_e2e.py saturation

The published uint8 MobileNet has no activation function: each of its ReLU6 is the range of a
result's integers. On APUS always, and with force_float_ir on an integer core, its weights are
taken as real numbers and quantized again, with 16 bits here. The simulated outputs must be those of
the forward pass in NumPy that clips every result to its range and rounds nothing.
"""

import os

import numpy as np

import harness
import int8_emulation

FOLDER = ("models", "wild", "tflite")
MODEL = "tfls_mnv1_025_u8"
QUANT = {"APUS": "{calibration_data: x.npy}",
         "X2_1204": "{calibration_data: x.npy, force_float_ir: true, activation_bits: 16, "
                    "weight_bits: 16, calibration_strategy_for_activation: extrema}"}
# Of a softmax's result. Rounding every weight and every result to 16 bits with a power of two as
# scale, in this forward pass, moves it by 0.0023; results alone by 0.00014.
LARGEST_ERROR = 0.003


def model_file():
    return harness.shared(*FOLDER, f"{MODEL}.tflite")


class Real(int8_emulation.Model):
    """The forward pass in float64: constants as their scales say, each result clipped."""

    def apply(self, kind, operands, types, out, options):
        if kind == "RESHAPE":
            return operands[0].reshape([len(operands[0])] + out.shape[1:])
        limits = np.iinfo(out.dtype)
        low, high = ((float(q) - out.zero) * float(out.scale) for q in (limits.min, limits.max))
        return np.clip(self.computed(kind, operands, types, options), low, high)

    def computed(self, kind, operands, types, options):
        x = operands[0]
        if kind == "SOFTMAX":
            e = np.exp(x - x.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)
        shift = 1 if kind == "DEPTHWISE_CONV_2D" else 0
        stride = (options.scalar(2, "i"), options.scalar(1, "i"))
        kernel = (operands[1].shape[1:3] if kind != "AVERAGE_POOL_2D" else
                  (options.scalar(4, "i"), options.scalar(3, "i")))
        pads = [int8_emulation.padding(options.scalar(0, "b"), x.shape[1 + i], kernel[i], stride[i])
                for i in (0, 1)]
        taps, inside = int8_emulation.windows(x, kernel, stride, (pads[0][0], pads[1][0]),
                                              (pads[0][1], pads[1][1]), (1, 1), 0.0)
        if kind == "AVERAGE_POOL_2D":
            return taps.sum(axis=(3, 4)) / inside.sum(axis=(2, 3))[None, :, :, None]
        weight, bias = ((o.astype(np.float64) - t.zero) * np.float64(t.scale)
                        for o, t in zip(operands[1:], types[1:]))
        if shift:
            return np.einsum("nhwijc,ijc->nhwc", taps, weight[0]) + bias
        return np.einsum("nhwijc,oijc->nhwo", taps, weight, optimize=True) + bias


def check_core(core, model, x, expected):
    with harness.scratch() as folder:
        np.save(os.path.join(folder, "x.npy"), x.astype(np.float32))
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\nFRAMEWORK: TFLITE\nOUTPUT_FILE: m.h\n"
                    f"MODEL_FILE: {model_file()}\nQUANT: {QUANT[core]}\n")
        harness.npuc(config, "-o", folder)
        source, name = model.tensors[model.inputs[0]].name, model.tensors[model.outputs[0]].name
        found = harness.simulate(os.path.join(folder, "m.npuc"), {source: x.astype(np.float32)},
                                 os.path.join(folder, "out"), [name])[name]
    error = float(np.abs(found.reshape(expected.shape) - expected).max())
    text = f"{core}: off the clipped forward pass by {error:.5f}, whose largest is " \
           f"{expected.max():.3f}"
    harness.figure(f"saturation, {text}")
    harness.check(error <= LARGEST_ERROR, text)


def main(_):
    model = Real(model_file())
    recorded = np.load(harness.shared(*FOLDER, f"{MODEL}.oracle.npz"))
    stored = np.concatenate(list(recorded["in0"]))
    source = model.tensors[model.inputs[0]]
    x = (stored.astype(np.float64) - source.zero) * float(source.scale)
    expected = model.run(x)[model.outputs[0]]
    for core in QUANT:
        check_core(core, model, x, expected)
