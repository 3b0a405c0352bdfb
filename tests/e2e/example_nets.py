"""The four example nets of the vendor's guide in TensorFlow form (tests/models/guide_nets.py):
compiled, run for 50 frames with their states fed back, and compared with `npuc reference` and with
an independent NumPy forward pass.
"""

import os

import numpy as np

import harness  # puts tests/models on the path, so first
import guide_nets

FRAMES = 50
SEED = 5
# Of the largest magnitude of an output. fp16 keeps 11 bits, and a state carries the rounding of the
# frames before; 8-bit weights are 4 to 8 times as coarse as that on each product.
LARGEST_ERROR = {False: 0.01, True: 0.08}


def run_numpy(net, frames):
    """All frames by the net's forward pass, states fed back; outputs stacked by name."""
    states = {n: np.zeros(net.inputs[n]) for n in net.states.values()}
    outputs = {name: [] for name in net.outputs}
    for t in range(FRAMES):
        frame = {n: x[t:t + 1].astype(np.float64) for n, x in frames.items()}
        result = net.forward({**frame, **states})
        for name in net.outputs:
            outputs[name].append(result[name])
        states = {i: result[o] for o, i in net.states.items()}
    return {name: np.concatenate(values) for name, values in outputs.items()}


def compare(net, compress):
    random = np.random.RandomState(SEED)
    frames = {n: random.randn(FRAMES, *shape[1:]).astype(np.float32)
              for n, shape in net.inputs.items() if n not in net.states.values()}
    truth = run_numpy(net, frames)
    with harness.scratch() as folder:
        model, config = (os.path.join(folder, n) for n in ("model.pb", "config.yaml"))
        with open(model, "wb") as f:
            f.write(net.graph.serialize())
        with open(config, "w", encoding="utf-8") as f:
            f.write(net.config(model, compress))
        header = harness.compile_header(config, folder, "model.h")
        simulated = harness.simulate(header, frames, os.path.join(folder, "sim"), net.outputs)
        reference = harness.simulate(config, frames, os.path.join(folder, "ref"), net.outputs,
                                     verb="reference")
    worst = reference_error = 0.0
    for name, want in truth.items():
        scale = max(1.0, float(np.abs(want).max()))
        shape = want.shape
        harness.check(np.abs(want).max() > 0.01, f"{net.name}: {name} is all but zero")
        reference_error = max(reference_error,
                              float(np.abs(reference[name].reshape(shape) - want).max()) / scale)
        got = simulated[name].reshape(shape).astype(np.float64)
        harness.check(np.isfinite(got).all(), f"{net.name}: {name} is not finite")
        worst = max(worst, float(np.abs(got - want).max()) / scale)
    harness.figure(f"{net.name}, COMPRESS {compress}: {FRAMES} frames, {len(net.states)} states, "
                   f"{len(net.outputs)} outputs: largest error {worst:.5f} against NumPy; "
                   f"reference against NumPy {reference_error:.1e}")
    harness.check(reference_error < 1e-3, f"{net.name}: npuc reference differs from NumPy")
    harness.check(worst <= LARGEST_ERROR[compress],
                  f"{net.name}: the largest error is above {LARGEST_ERROR[compress]}")


def main(arguments):
    """Arguments: names of nets, all where there are none."""
    nets = guide_nets.guide_nets()
    chosen = [net for net in nets if not arguments or net.name in arguments]
    harness.check(chosen, f"no net is named so; there are {[n.name for n in nets]}")
    for net in chosen:
        for compress in (False, True):
            compare(net, compress)
