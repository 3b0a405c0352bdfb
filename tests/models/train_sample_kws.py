#!/usr/bin/python3
"""Trains the sample model: a fully connected keyword net on shared/datasets/kws01.

Writes kws_fc.pb, config.yaml, test_inputs.npy, test_labels.npy and README.md into the output
folder. Pure NumPy. The same data give the same bytes on any machine:
- the random numbers come from RandomState, whose streams NumPy keeps frozen;
- every factor of a matrix product, and every term of a sum, is first rounded to a fixed binary
  grid coarse enough for double precision to hold all partial sums exactly, so that the result
  does not depend on the order in which a BLAS adds, nor on fused multiply-add;
- exp and log are computed here from additions and multiplications.

The split is stratified: of each class, two sevenths are held out for the test (200 of 700 items)
and never looked at in training. The settings were chosen by five-fold cross-validation on the
other 500 (--cross-validate), then the test items were used once, for the figure in the README.

    tests/models/train_sample_kws.py [--data ../shared/datasets/kws01] [--out deploy/samples/kws]
"""

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphdef  # noqa: E402

SEED = 20240607
FRAMES, COEFFS, CLASSES = 49, 10, 12
MEL_BINS = 40
TEST_ITEMS = 200
SHIPPED_ITEMS = 20
SCALE, ZERO_POINT = 0.58470291, 83  # real = SCALE * (q - ZERO_POINT), of shared/README.md
# The labels' order is that of the MLPerf Tiny keyword benchmark, where the data are from.
CLASS_NAMES = ("down go left no off on right stop up yes silence unknown").split()


class Settings:
    """Everything that cross-validation chose."""

    hidden = (96, 32)
    epochs = 800
    batch = 50
    learning_rate = 5.0e-3
    weight_decay = 0.02
    shift_frames = 6
    time_warp = 0.15
    voice_warp = 0.12
    noise = 0.5
    gain = 0.3
    dropout_hidden = 0.1
    label_smoothing = 0.1
    mixup = 0.5
    average = 0.99  # of the weights over the steps
    window, stride = 7, 3  # frames, of the smoothing in front of the first layer


def smoothing(s):
    """[490, features]: each coefficient averaged over windows of frames under a parabola.

    The first layer is trained behind it and then multiplied by it, so the net stays fully
    connected: what it gains is that neighbouring frames get alike weights, since 500 items are too
    few to find 490 weights a unit freely.
    """
    ramp = np.arange(1, s.window + 1)
    weights = ramp / (s.window + 1.0)
    weights = 4 * weights * (1 - weights)
    weights = weights / np.sqrt((weights * weights).sum())
    starts = range(0, FRAMES - s.window + 1, s.stride)
    matrix = np.zeros((FRAMES, COEFFS, len(starts), COEFFS))
    for i, start in enumerate(starts):
        for c in range(COEFFS):
            matrix[start:start + s.window, c, i, c] = weights
    return to_grid(matrix.reshape(FRAMES * COEFFS, -1))


# Bits behind the point. Values stay below 2^7, so products of two of them and sums of up to 2^10
# such products need 2 * (7 + GRID_BITS) + 10 bits: 52, of the 53 that a double has.
GRID_BITS = 14
GRID_LIMIT = 127.0


def to_grid(x):
    scale = float(1 << GRID_BITS)
    return np.clip(np.rint(x * scale) / scale, -GRID_LIMIT, GRID_LIMIT)


def exact_matmul(a, b):
    return to_grid(a) @ to_grid(b)


def exact_sum(x, axis):
    return to_grid(x).sum(axis=axis, keepdims=True)


def exp(x):
    """exp of values <= 0, by x = k ln 2 + r and the Taylor series of exp(r)."""
    x = np.maximum(x, -60.0)
    k = np.rint(x * 1.4426950408889634)
    r = x - k * 0.6931471805599453
    y = np.ones_like(r)
    for i in range(14, 0, -1):
        y = 1.0 + y * r / i
    return np.ldexp(y, k.astype(np.int32))


def softmax(logits):
    e = exp(logits - logits.max(axis=1, keepdims=True))
    return e / exact_sum(e, axis=1)


def load(folder):
    codes = np.load(os.path.join(folder, "inputs_int8.npy"))
    labels = np.load(os.path.join(folder, "labels.npy"))
    real = SCALE * (codes.astype(np.float64) - ZERO_POINT)
    return real.reshape(len(codes), FRAMES, COEFFS), labels.astype(np.int64)


def split(labels, rng):
    """Indices of the training and of the test items, stratified by class."""
    train, test = [], []
    for c in range(CLASSES):
        items = rng.permutation(np.flatnonzero(labels == c))
        held_out = round(len(items) * TEST_ITEMS / len(labels))
        test.extend(items[:held_out])
        train.extend(items[held_out:])
    train, test = rng.permutation(train), rng.permutation(test)
    extra = len(test) - TEST_ITEMS  # rounding may leave the total off by a few
    if extra > 0:
        train, test = np.concatenate([train, test[:extra]]), test[extra:]
    elif extra < 0:
        train, test = train[-extra:], np.concatenate([test, train[:-extra]])
    return train, test


def voice_warps(s):
    """[warps, 10, 10]: maps of a frame's MFCCs as if the speaker's vocal tract differed in length.

    MFCCs -> smooth log-mel spectrum (inverse cosine transform) -> the same read at scaled
    frequencies -> MFCCs. Linear, so a matrix each.
    """
    bins = np.arange(MEL_BINS)
    basis = np.sqrt(2.0 / MEL_BINS) * np.cos(
        np.pi * np.arange(COEFFS)[:, None] * (bins[None, :] + 0.5) / MEL_BINS)
    inverse = basis.copy()
    inverse[0] /= 2
    maps = []
    for warp in np.linspace(1 - s.voice_warp, 1 + s.voice_warp, 9):
        at = np.clip(bins * warp, 0, MEL_BINS - 1)
        left = np.minimum(at.astype(np.int64), MEL_BINS - 2)
        read = np.zeros((MEL_BINS, MEL_BINS))
        read[left, bins] += 1 - (at - left)
        read[left + 1, bins] += at - left
        maps.append(inverse @ read @ basis.T)
    return to_grid(np.array(maps))


def augment(x, labels, rng, s, warps):
    """Other voices (warped frequencies), other speeds, shifts in time, noise, mixtures of two."""
    n = len(x)
    x = np.matmul(to_grid(x), warps[rng.randint(len(warps), size=n)])
    centre = (FRAMES - 1) / 2.0
    speed = 1 + s.time_warp * (rng.random_sample((n, 1)) * 2 - 1)
    shift = s.shift_frames * (rng.random_sample((n, 1)) * 2 - 1)
    at = np.clip(centre + (np.arange(FRAMES) - centre) * speed + shift, 0, FRAMES - 1)
    left = np.minimum(at.astype(np.int64), FRAMES - 2)
    share, items = (at - left)[:, :, None], np.arange(n)[:, None]
    x = x[items, left] * (1 - share) + x[items, left + 1] * share
    target = np.full((n, CLASSES), s.label_smoothing / CLASSES)
    target[np.arange(n), labels] += 1 - s.label_smoothing
    return x, target


def disturb(x, target, rng, s):
    """On normalised features: a change of level, noise, and mixtures of two items."""
    n = len(x)
    x = x + s.noise * (rng.random_sample(x.shape) * 2 - 1)
    x[:, :, 0] += s.gain * (rng.random_sample((n, 1)) * 2 - 1)
    other = rng.permutation(n)
    share = s.mixup * rng.random_sample(n)
    x = x + share[:, None, None] * (x[other] - x)
    target = target + share[:, None] * (target[other] - target)
    return x.reshape(n, -1), target


def initial_weights(features, rng, s):
    sizes = (features,) + tuple(s.hidden) + (CLASSES,)
    params = []
    for k, n in zip(sizes, sizes[1:]):
        bound = np.sqrt(6.0 / k)
        params += [(rng.random_sample((k, n)) * 2 - 1) * bound, np.zeros((1, n))]
    return params


def gradients(params, x, target, rng, s):
    """Of the mean cross-entropy, by back-propagation with dropout on the hidden layers."""
    activations, masks = [x], []
    layers = len(params) // 2
    for i in range(layers):
        z = exact_matmul(activations[-1], params[2 * i]) + params[2 * i + 1]
        if i + 1 < layers:
            keep = (rng.random_sample(z.shape) >= s.dropout_hidden) / (1 - s.dropout_hidden)
            masks.append(keep * (z > 0))
            z = np.maximum(z, 0) * keep
        activations.append(z)
    # Left unscaled by 1 / batch until the products are done: small numbers would fall off the grid.
    delta = softmax(activations[-1]) - target
    grads = [None] * len(params)
    for i in reversed(range(layers)):
        grads[2 * i] = exact_matmul(activations[i].T, delta) / len(x)
        grads[2 * i + 1] = exact_sum(delta, axis=0) / len(x)
        if i:
            delta = exact_matmul(delta, params[2 * i].T) * masks[i - 1]
    return grads


def train(x, mean, deviation, labels, seed, s):
    """Adam with decoupled weight decay, a linear ramp down, and an average of the weights."""
    rng = np.random.RandomState(seed)
    smooth, warps = smoothing(s), voice_warps(s)
    params = initial_weights(smooth.shape[1], rng, s)
    first = [np.zeros_like(p) for p in params]
    second = [np.zeros_like(p) for p in params]
    averaged = [p.copy() for p in params]
    steps_per_epoch = max(1, len(x) // s.batch)
    total = s.epochs * steps_per_epoch
    decay1 = decay2 = 1.0
    for step in range(total):
        if step % steps_per_epoch == 0:
            order = rng.permutation(len(x))
        at = (step % steps_per_epoch) * s.batch
        batch = order[at:at + s.batch]
        inputs, target = augment(x[batch], labels[batch], rng, s, warps)
        inputs, target = disturb((inputs - mean) / deviation, target, rng, s)
        inputs = exact_matmul(inputs, smooth)
        rate = s.learning_rate * min(1.0, 2.0 * (1 - step / total))
        decay1, decay2 = decay1 * 0.9, decay2 * 0.999
        for i, g in enumerate(gradients(params, inputs, target, rng, s)):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g * g
            update = (first[i] / (1 - decay1)) / (np.sqrt(second[i] / (1 - decay2)) + 1e-8)
            if i % 2 == 0:
                update = update + s.weight_decay * params[i]
            params[i] = params[i] - rate * update
            averaged[i] = averaged[i] + (1 - s.average) * (params[i] - averaged[i])
    return averaged


def predict(params, x):
    """Logits in float32, as the frozen graph computes them."""
    x = x.reshape(len(x), -1).astype(np.float32)
    layers = len(params) // 2
    for i in range(layers):
        x = x @ params[2 * i].astype(np.float32) + params[2 * i + 1].astype(np.float32)
        if i + 1 < layers:
            x = np.maximum(x, 0)
    return x


def normalisation(x):
    """Mean and deviation of each coefficient over the items and frames."""
    count = x.shape[0] * FRAMES
    mean = exact_sum(x.reshape(-1, COEFFS), axis=0)[0] / count
    centred = x.reshape(-1, COEFFS) - mean
    # A sixteenth of the square, so that the grid's limit is not reached.
    deviation = np.sqrt(exact_sum(centred * centred / 16.0 / 64.0, axis=0)[0] / count * 64.0) * 4.0
    return mean, deviation


def fit(x, labels, seed, s):
    """Trains on normalised data and folds the normalisation into the first layer."""
    mean, deviation = normalisation(x)
    params = train(x, mean, deviation, labels, seed, s)
    per_input_mean, per_input_dev = np.tile(mean, FRAMES), np.tile(deviation, FRAMES)
    params[0] = exact_matmul(smoothing(s), params[0])
    params[1] = params[1] - exact_matmul((per_input_mean / per_input_dev)[None], params[0])
    params[0] = params[0] / per_input_dev[:, None]
    return params


def accuracy(params, x, labels):
    return float((predict(params, x).argmax(axis=1) == labels).mean())


def cross_validate(x, labels, s, folds=5):
    """Mean accuracy on the fold left out."""
    scores = []
    for fold in range(folds):
        left_out = np.arange(len(x)) % folds == fold
        params = fit(x[~left_out], labels[~left_out], SEED + fold, s)
        scores.append(accuracy(params, x[left_out], labels[left_out]))
    return float(np.mean(scores)), scores


def frozen_graph(params):
    """The GraphDef as TensorFlow would freeze it: variables are Const plus Identity '/read'."""
    graph = graphdef.Graph()
    last = graph.placeholder("Feats", [1, FRAMES * COEFFS])
    t = {"T": graphdef.DType(np.float32)}
    layers = len(params) // 2
    for i in range(layers):
        scope = f"fc{i + 1}" if i + 1 < layers else "labels"
        weights = graph.variable(f"{scope}/weights", params[2 * i].astype(np.float32))
        biases = graph.variable(f"{scope}/biases", params[2 * i + 1][0].astype(np.float32))
        last = graph.node("MatMul", f"{scope}/MatMul", [last, weights],
                          {**t, "transpose_a": False, "transpose_b": False})
        last = graph.node("BiasAdd", f"{scope}/BiasAdd", [last, biases],
                          {**t, "data_format": "NHWC"})
        if i + 1 < layers:
            last = graph.node("Relu", f"{scope}/Relu", [last], t)
    graph.node("Softmax", "labels_softmax", [last], t)
    return graph.serialize()


CONFIG = """\
# The sample: a fully connected keyword net. Compile it with
#   build/bin/npuc deploy/samples/kws/config.yaml -o OUT
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
MODEL_FILE: kws_fc.pb
OUTPUT_TYPE: c_code
OUTPUT_FILE: kws_fc.h
COMPRESS: true # 8-bit codes for the weights
INPUT_OPS:
  Feats: [1, 490] # 49 frames of 10 MFCCs, frame after frame
OUTPUT_OPS: [labels_softmax]
"""

README = """\
# kws: the sample model

A keyword net of three fully connected layers (490 -> {h0} -> {h1} -> 12, ReLU between, softmax
behind) for 49 frames of 10 MFCCs. Written by `tests/models/train_sample_kws.py`, which gives these
very files again from the same data.

- Data: 700 recordings' features from MLPerf Tiny's keyword benchmark, 12 classes
  ({classes}),
  split by class with seed {seed}: {n_train} to train on, {n_test} held out.
- **Top-1 accuracy on the {n_test} held-out items, float32: {test:.1%}** ({right} of {n_test}; on
  so few items give or take {margin:.1%}, at 95 %). On the training items: {train:.1%}. Guessing
  gives 8.3%.
- The settings were chosen by five-fold cross-validation on the {n_train} training items alone,
  with a mean accuracy of {cv:.1%} there; the held-out items were then used once.
- It is an example to compile and run, not a product: {n_train} recordings are few. Published nets
  of this kind, trained on the 85,000 of Speech Commands, reach about 84%.

| file | what it is |
|---|---|
| `kws_fc.pb` | the frozen TensorFlow graph, {size} bytes, {params} parameters |
| `config.yaml` | gxnpuc-style config for GRUS, weights compressed |
| `test_inputs.npy` | {n_ship} of the held-out items, float32 [{n_ship}, 490] |
| `test_labels.npy` | int32; the float model gets {ship_right} of these {n_ship} right |
"""


def write_sample(out, x, labels, params, train_items, test_items, cv_score):
    os.makedirs(out, exist_ok=True)
    model = frozen_graph(params)
    shipped = test_items[:SHIPPED_ITEMS]
    right = round(accuracy(params, x[test_items], labels[test_items]) * len(test_items))
    share = right / len(test_items)
    s = Settings()
    text = README.format(
        h0=s.hidden[0], h1=s.hidden[1], classes=", ".join(CLASS_NAMES), seed=SEED,
        n_train=len(train_items), n_test=len(test_items), test=share, right=right,
        margin=1.96 * (share * (1 - share) / len(test_items)) ** 0.5,
        train=accuracy(params, x[train_items], labels[train_items]), cv=cv_score, size=len(model),
        params=sum(p.size for p in params), n_ship=len(shipped),
        ship_right=round(accuracy(params, x[shipped], labels[shipped]) * len(shipped)))
    for name, data in (("kws_fc.pb", model), ("config.yaml", CONFIG.encode()),
                       ("README.md", text.encode())):
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)
    np.save(os.path.join(out, "test_inputs.npy"),
            x[shipped].reshape(len(shipped), -1).astype(np.float32))
    np.save(os.path.join(out, "test_labels.npy"), labels[shipped].astype(np.int32))
    return share, len(model)


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    shared = os.environ.get("NPUC_SHARED", os.path.join(root, "..", "shared"))
    parser = argparse.ArgumentParser(description="trains deploy/samples/kws/kws_fc.pb")
    parser.add_argument("--data", default=os.path.join(shared, "datasets", "kws01"))
    parser.add_argument("--out", default=os.path.join(root, "deploy", "samples", "kws"))
    parser.add_argument("--cross-validate", action="store_true",
                        help="only print the cross-validated accuracy of the settings")
    args = parser.parse_args()
    x, labels = load(args.data)
    train_items, test_items = split(labels, np.random.RandomState(SEED))
    s = Settings()
    score, scores = cross_validate(x[train_items], labels[train_items], s)
    print(f"cross-validated accuracy on the training items: {score:.1%}",
          " ".join(f"{v:.0%}" for v in scores))
    if args.cross_validate:
        return
    params = fit(x[train_items], labels[train_items], SEED, s)
    share, size = write_sample(args.out, x, labels, params, train_items, test_items, score)
    print(f"{len(test_items)} held-out items: {share:.1%} right; kws_fc.pb is {size} bytes")


if __name__ == "__main__":
    main()
