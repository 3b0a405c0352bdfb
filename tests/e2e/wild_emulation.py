"""int8_emulation.py for the published models of `wild`: beside its operators those that only move
values, MEAN, and a softmax of uint8. TensorFlow Lite's kernels for x86 give these nets other values
here and there, since they round once where the reference kernels round twice.
"""

import numpy as np

import int8_emulation
import integer_rules as rules


def scale_of(tensor):
    return rules.Scale(np.dtype(tensor.dtype).name, tensor.scale, tensor.zero)


class Model(int8_emulation.Model):
    def apply(self, kind, operands, types, out, options):
        x = operands[0].astype(np.int64)
        if kind == "PAD":
            return np.pad(x, operands[1], constant_values=out.zero).astype(out.dtype)
        if kind == "TRANSPOSE":
            return operands[0].transpose(operands[1])
        if kind == "MEAN":
            axes = tuple(int(a) for a in np.ravel(operands[1]))
            value = rules.reduce("MEAN", x, axes, scale_of(types[0]), scale_of(out))
            return value.reshape([len(x)] + out.shape[1:]).astype(out.dtype)
        if kind == "SOFTMAX" and out.dtype == np.uint8:
            return rules.softmax(x, scale_of(types[0]), scale_of(out)).astype(out.dtype)
        return super().apply(kind, operands, types, out, options)
