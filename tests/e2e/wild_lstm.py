"""What tflm_dtln_ns_int8 should have answered.

TensorFlow Lite 2.9's integer LSTM subtracts the zero point of the hidden state where it should add
it; the second layer's is -4, so that its state is off by 8 steps and the recorded outputs by up to
54. Here is the net in floats, its stored values rounded, from a state of zeros: with the wrong sign
it answers what was recorded (`check_recording`), with the right one what npuc has to answer.
"""

import numpy as np

import harness
import int8_emulation

UNIDIRECTIONAL_SEQUENCE_LSTM = 44
# Roundings inside of two LSTM layers and the product behind them give so many steps.
ALLOWED_STEPS = 4
GATES = {"input": (1, 12), "forget": (2, 13), "cell": (3, 14), "output": (4, 15)}


def sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(x, -60, 60)))


class Net:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        root = int8_emulation.Table(data, int.from_bytes(data[:4], "little"))
        buffers, graph = root.tables(4), root.tables(2)[0]
        self.tensors = [int8_emulation.Tensor(t, buffers) for t in graph.tables(0)]
        self.ops = [(o.vector(1, np.int32).tolist(), o.vector(2, np.int32).tolist())
                    for o in graph.tables(3)]

    def constant(self, index):
        tensor = self.tensors[index]
        return (tensor.constant.astype(np.float64) - tensor.zero) * float(tensor.scale)

    def rounded(self, x, index):
        tensor = self.tensors[index]
        stored = np.clip(np.rint(x / float(tensor.scale)) + tensor.zero, -128, 127)
        return (stored - tensor.zero) * float(tensor.scale)

    def lstm(self, x, op, zero_point_sign):
        """One step from a state of zeros, so that the recurrent weights multiply nothing."""
        inputs, outputs = op
        gates = {g: self.constant(inputs[w]) @ x + self.constant(inputs[b])
                 for g, (w, b) in GATES.items()}
        cell = sigmoid(gates["input"]) * np.tanh(gates["cell"])
        hidden = self.rounded(sigmoid(gates["output"]) * np.tanh(cell), outputs[0])
        out = self.tensors[outputs[0]]
        return hidden + (zero_point_sign - 1) * out.zero * float(out.scale)

    def answer(self, frame, zero_point_sign):
        """Stored outputs for one stored frame."""
        source = self.tensors[self.ops[0][0][0]]
        x = (frame.ravel().astype(np.float64) - source.zero) * float(source.scale)
        for op in self.ops[:2]:
            x = self.lstm(x, op, zero_point_sign)
        inputs, outputs = self.ops[2]
        x = self.rounded(self.constant(inputs[1]) @ x + self.constant(inputs[2]), outputs[0])
        out = self.tensors[self.ops[3][1][0]]
        return np.clip(np.rint(sigmoid(x) / float(out.scale)) + out.zero, -128, 127)


def corrected(path, frames, recorded):
    """The outputs as they should be; a failure where the wrong sign does not explain the recorded
    ones."""
    net = Net(path)
    answers = {sign: np.array([net.answer(f, sign) for f in frames]) for sign in (-1, 1)}
    off = int(np.abs(answers[-1] - recorded.reshape(answers[-1].shape)).max())
    harness.check(off <= ALLOWED_STEPS, f"{path}: the recording is {off} steps off the wrong sign")
    return answers[1].reshape(recorded.shape).astype(recorded.dtype)
