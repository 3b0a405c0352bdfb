#!/usr/bin/python3
"""Trains the sample model: a small convolutional keyword net on shared/datasets/kws01.

Writes kws.pb, config.yaml, labels.txt, test_inputs.npy, test_labels.npy and README.md into the
output folder. Pure NumPy. The same data give the same bytes on any machine:
- the random numbers come from RandomState, whose streams NumPy keeps frozen;
- every factor of a matrix product, and every term of a sum, is first rounded to a fixed binary
  grid coarse enough for double precision to hold all partial sums exactly, so that the result
  does not depend on the order in which a BLAS adds, nor on fused multiply-add;
- exp and log are computed here from additions and multiplications.

The net is trained on all twelve classes, whose recordings teach its convolutions what speech is
like; it ships with the outputs of Settings.words alone.

The split is stratified: of each class, two sevenths are held out for the test and never looked at
in training. The words and the settings were chosen by five-fold cross-validation on the other 500
(--cross-validate), then the test items were used once, for the figure in the README.

    tests/models/train_sample_kws.py [--data ../shared/datasets/kws01] [--out deploy/samples/kws]
"""

import argparse
import itertools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphdef  # noqa: E402

SEED = 20240607
FRAMES, COEFFS, CLASSES = 49, 10, 12
MEL_BINS = 40
TEST_ITEMS = 200
SHIPPED_OF_EACH = 4  # held-out items of each word
SCALE, ZERO_POINT = 0.58470291, 83  # real = SCALE * (q - ZERO_POINT), of shared/README.md
# The labels' order is that of the MLPerf Tiny keyword benchmark, where the data are from.
CLASS_NAMES = ("down go left no off on right stop up yes silence unknown").split()


class Settings:
    """Everything that cross-validation chose."""

    words = ("yes", "stop", "right", "off", "silence")
    filters = (24, 32)
    kernels = (9, 7)  # frames
    strides = (2, 1)
    epochs = 300
    batch = 50
    learning_rate = 5.0e-3
    weight_decay = 0.02
    shift_frames = 6
    time_warp = 0.15
    voice_warp = 0.12
    mask_frames = 8
    noise = 0.5
    gain = 0.3
    dropout = 0.1  # of what the convolutions found
    label_smoothing = 0.1
    mixup = 0.5
    average = 0.99  # of the weights over the steps


# Bits behind the point. Values stay below 2^7, so products of two of them and sums of up to 2^12
# such products need 2 * (7 + GRID_BITS) + 12 bits: 52, of the 53 that a double has.
GRID_BITS = 13
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
    """Other voices (warped frequencies), other speeds, shifts in time; and the targets."""
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
    """On normalised features: a change of level, noise, mixtures of two items, masked frames."""
    n = len(x)
    x = x + s.noise * (rng.random_sample(x.shape) * 2 - 1)
    x[:, :, 0] += s.gain * (rng.random_sample((n, 1)) * 2 - 1)
    other = rng.permutation(n)
    share = s.mixup * rng.random_sample(n)
    x = x + share[:, None, None] * (x[other] - x)
    target = target + share[:, None] * (target[other] - target)
    begin = rng.randint(FRAMES, size=(n, 1))
    end = begin + rng.randint(s.mask_frames + 1, size=(n, 1))
    masked = (np.arange(FRAMES) >= begin) & (np.arange(FRAMES) < end)
    return np.where(masked[:, :, None], 0.0, x), target


def initial_weights(rng, s):
    """Weights and biases of the convolutions, then of the outputs."""
    sizes = [k * n for k, n in zip(s.kernels, (COEFFS,) + s.filters)] + [s.filters[-1]]
    params = []
    for k, n in zip(sizes, s.filters + (CLASSES,)):
        bound = np.sqrt(6.0 / k)
        params += [(rng.random_sample((k, n)) * 2 - 1) * bound, np.zeros((1, n))]
    return params


def windows(x, kernel, stride):
    """[items, frames, channels] -> [items, positions, kernel * channels]."""
    begin = np.arange(0, x.shape[1] - kernel + 1, stride)
    return x[:, begin[:, None] + np.arange(kernel)].reshape(len(x), len(begin), -1)


def scatter(delta, frames, kernel, stride):
    """The transpose of windows(): what each frame gets from the windows that hold it."""
    n, positions, _ = delta.shape
    delta = delta.reshape(n, positions, kernel, -1)
    out = np.zeros((n, frames, delta.shape[3]))
    for k in range(kernel):
        out[:, k:k + stride * positions:stride][:, :positions] += delta[:, :, k]
    return out


def gradients(params, x, target, rng, s):
    """The mean cross-entropy's, by back-propagation with dropout behind the pooling."""
    convolutions = len(s.filters)
    inputs, activations = [], [x]
    for i in range(convolutions):
        inputs.append(windows(activations[-1], s.kernels[i], s.strides[i]))
        z = exact_matmul(inputs[i], params[2 * i]) + params[2 * i + 1]
        activations.append(np.maximum(z, 0))
    positions = activations[-1].shape[1]
    keep = (rng.random_sample((len(x), s.filters[-1])) >= s.dropout) / (1 - s.dropout)
    pooled = exact_sum(activations[-1], axis=1)[:, 0] / positions * keep
    delta = softmax(exact_matmul(pooled, params[-2]) + params[-1]) - target
    # The divisions by the numbers of items and of positions come last: small numbers would fall
    # off the grid.
    grads = [None] * len(params)
    grads[-2] = exact_matmul(pooled.T, delta) / len(x)
    grads[-1] = exact_sum(delta, axis=0) / len(x)
    delta = (exact_matmul(delta, params[-2].T) * keep)[:, None, :]
    for i in reversed(range(convolutions)):
        delta = delta * (activations[i + 1] > 0)
        flat = delta.reshape(-1, delta.shape[2])
        columns = inputs[i].reshape(len(flat), -1)
        grads[2 * i] = exact_matmul(columns.T, flat) / (len(x) * positions)
        grads[2 * i + 1] = exact_sum(flat, axis=0) / (len(x) * positions)
        if i:
            delta = scatter(exact_matmul(delta, params[2 * i].T), activations[i].shape[1],
                            s.kernels[i], s.strides[i])
    return grads


def train(x, mean, deviation, labels, seed, s):
    """Adam with decoupled weight decay, a linear ramp down, and an average of the weights."""
    rng = np.random.RandomState(seed)
    warps = voice_warps(s)
    params = initial_weights(rng, s)
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
    window_mean, window_dev = np.tile(mean, s.kernels[0]), np.tile(deviation, s.kernels[0])
    params[1] = params[1] - exact_matmul((window_mean / window_dev)[None], params[0])
    params[0] = params[0] / window_dev[:, None]
    return params


def word_classes(s):
    return [CLASS_NAMES.index(word) for word in s.words]


def cut(params, s):
    """The net with the outputs of the words alone."""
    return params[:-2] + [p[:, word_classes(s)] for p in params[-2:]]


def only_words(items, labels, s):
    """The items that are words of the net."""
    return items[np.isin(labels[items], word_classes(s))]


def numbered(labels, s):
    """Class numbers as the net's outputs count them."""
    return np.array([word_classes(s).index(label) for label in labels])


def predict(params, x, s):
    """Logits in float32, as the frozen graph computes them."""
    x = x.astype(np.float32)
    for i in range(len(s.filters)):
        x = windows(x, s.kernels[i], s.strides[i]) @ params[2 * i].astype(np.float32)
        x = np.maximum(x + params[2 * i + 1].astype(np.float32), 0)
    return x.mean(axis=1) @ params[-2].astype(np.float32) + params[-1].astype(np.float32)


def right(params, x, labels, s):
    """How many of these items, all of them words of the net, it names."""
    return int((predict(cut(params, s), x, s).argmax(axis=1) == numbered(labels, s)).sum())


def cross_validate(x, labels, s, folds=5):
    """The logits of all twelve classes, each item's by a net that was trained without its fold."""
    logits = np.zeros((len(x), CLASSES))
    for fold in range(folds):
        left_out = np.arange(len(x)) % folds == fold
        params = fit(x[~left_out], labels[~left_out], SEED + fold, s)
        logits[left_out] = predict(params, x[left_out], s)
    return logits


def judged_among(logits, labels, classes):
    """(right, items) where a net answers these classes alone, for their items."""
    classes = np.array(classes)
    items = np.isin(labels, classes)
    answers = classes[logits[items][:, classes].argmax(axis=1)]
    return int((answers == labels[items]).sum()), int(items.sum())


def print_best_words(logits, labels):
    """The sets of four words that are best told from each other and from silence."""
    silence = CLASS_NAMES.index("silence")
    found = [(*judged_among(logits, labels, (*words, silence)), words)
             for words in itertools.combinations(range(CLASS_NAMES.index("silence")), 4)]
    for good, items, words in sorted(found, key=lambda f: -f[0] / f[1])[:5]:
        print(f"  {good / items:.1%} {' '.join(CLASS_NAMES[word] for word in words)}")


def frozen_graph(params, s):
    """The GraphDef as TensorFlow would freeze it: variables are Const plus Identity '/read'."""
    graph = graphdef.Graph()
    t = {"T": graphdef.DType(np.float32)}
    last = graph.placeholder("Feats", [1, FRAMES * COEFFS])
    # Time is the height, the coefficients are the channels.
    shape = graph.const("frames/shape", np.array([1, FRAMES, 1, COEFFS], np.int32))
    last = graph.node("Reshape", "frames", [last, shape], {**t, "Tshape": graphdef.DType(np.int32)})

    def with_bias(scope, product, biases):
        name = graph.variable(f"{scope}/biases", biases[0].astype(np.float32))
        return graph.node("BiasAdd", f"{scope}/BiasAdd", [product, name],
                          {**t, "data_format": "NHWC"})

    channels = COEFFS
    for i, (filters, kernel, stride) in enumerate(zip(s.filters, s.kernels, s.strides)):
        weights = params[2 * i].astype(np.float32).reshape(kernel, 1, channels, filters)
        name = graph.variable(f"conv{i + 1}/weights", weights)
        last = graph.node("Conv2D", f"conv{i + 1}/Conv2D", [last, name],
                          {**t, "strides": [1, stride, 1, 1], "padding": "VALID",
                           "dilations": [1, 1, 1, 1], "data_format": "NHWC"})
        last = with_bias(f"conv{i + 1}", last, params[2 * i + 1])
        last = graph.node("Relu", f"conv{i + 1}/Relu", [last], t)
        channels = filters
    axes = graph.const("pool/axes", np.array([1, 2], np.int32))
    last = graph.node("Mean", "pool", [last, axes],
                      {**t, "Tidx": graphdef.DType(np.int32), "keep_dims": False})
    weights = graph.variable("labels/weights", params[-2].astype(np.float32))
    last = graph.node("MatMul", "labels/MatMul", [last, weights],
                      {**t, "transpose_a": False, "transpose_b": False})
    graph.node("Softmax", "labels_softmax", [with_bias("labels", last, params[-1])], t)
    return graph.serialize()


CONFIG = """\
# The sample: a small convolutional keyword net. Compile it with
#   build/bin/npuc deploy/samples/kws/config.yaml -o OUT
CORENAME: GRUS
NPU_UNIT: NPU32
FRAMEWORK: TF
MODEL_FILE: kws_cnn.pb
OUTPUT_TYPE: c_code
OUTPUT_FILE: kws_cnn.h
COMPRESS: true # 8-bit codes for the weights
CONV2D_COMPRESS: true # those of the convolutions, too
INPUT_OPS:
  Feats: [1, 490] # 49 frames of 10 MFCCs, frame after frame
OUTPUT_OPS: [labels_softmax]
"""

README = """\
# kws: the sample model

A small convolutional keyword net: it says whether a second of sound, given as 49 frames of 10
MFCCs, is {words}.
Two convolutions over time with ReLU
({shape}),
the mean over time, a fully connected layer, softmax. `tests/models/train_sample_kws.py` wrote this
folder but for `compare.py`, and gives the same files again from the same data.

- Data: 700 recordings' features from MLPerf Tiny's keyword benchmark, 12 classes
  ({classes}),
  split by class with seed {seed}: {n_train} to train on, {n_test} held out. The net is trained
  on all twelve, so that its convolutions hear much speech, and ships with the outputs of {n_words}.
- **Top-1 accuracy on the {n_judged} held-out items of these {n_words}, float32: {share:.1%}**
  ({right} of {n_judged}; on so few items the 95 % interval, Wilson's, is {low:.0%} to {high:.0%}).
  On their training items: {train:.1%}. Guessing gives {guess:.0%}.
- Words and settings were chosen by five-fold cross-validation on the training items alone:
  {cv:.1%} there ({cv_right} of {cv_items}; the best of 210 sets of words, which flatters it). The
  held-out items were then used once.
- It is an example to compile and run, not a product: it calls any other sound one of the
  {n_words}, and 500 recordings are few. Where all twelve classes are answers, these settings get
  {cv_all:.0%} right, cross-validated; MLPerf Tiny's own net, trained on the 85,000 recordings of
  Speech Commands, 628 of all 700.

| file | what it is |
|---|---|
| `kws_cnn.pb` | the frozen TensorFlow graph, {size} bytes, {params} parameters |
| `config.yaml` | gxnpuc-style config for GRUS, weights compressed |
| `labels.txt` | the word of each output |
| `test_inputs.npy` | held-out items, the first {each} of each word as drawn; [{n_ship}, 490] |
| `test_labels.npy` | the right outputs; the float model gets {ship_right} of these {n_ship} right |
| `compare.py` | shows what was said and what was answered |
"""


def interval(right_ones, items):
    """Wilson's interval of a share, at 95 %."""
    z, share = 1.96, right_ones / items
    centre = share + z * z / (2 * items)
    half = z * (share * (1 - share) / items + z * z / (4 * items * items)) ** 0.5
    return [(centre + sign * half) / (1 + z * z / items) for sign in (-1, 1)]


def shipped_items(test_items, labels, s):
    """The first few of each word among the test items, in whose order chance has put them."""
    return np.array([item for at, item in enumerate(test_items)
                     if labels[item] in word_classes(s)
                     and (labels[test_items[:at]] == labels[item]).sum() < SHIPPED_OF_EACH])


def facts(params, x, labels, train_items, test_items, s):
    """The figures that README states."""
    judged, shipped = only_words(test_items, labels, s), shipped_items(test_items, labels, s)
    known = only_words(train_items, labels, s)
    found = right(params, x[judged], labels[judged], s)
    low, high = interval(found, len(judged))
    layers = zip((COEFFS,) + s.filters, s.filters, s.kernels, s.strides)
    return {
        "words": ", ".join(f'"{w}"' for w in s.words[:-1]) + f' or "{s.words[-1]}"',
        "shape": "; ".join(f"{a} -> {b} channels, {k} frames, step {n}"
                           for a, b, k, n in layers),
        "classes": ", ".join(CLASS_NAMES), "seed": SEED, "n_words": len(s.words),
        "n_train": len(train_items), "n_test": len(test_items), "n_judged": len(judged),
        "right": found, "share": found / len(judged), "low": low, "high": high,
        "train": right(params, x[known], labels[known], s) / len(known),
        "guess": 1 / len(s.words), "params": sum(p.size for p in cut(params, s)),
        "n_ship": len(shipped), "each": SHIPPED_OF_EACH,
        "ship_right": right(params, x[shipped], labels[shipped], s)}


def write_sample(out, model, x, labels, text):
    """The files; x and labels are the shipped items."""
    s = Settings()
    os.makedirs(out, exist_ok=True)
    for name, data in (("kws_cnn.pb", model), ("config.yaml", CONFIG.encode()),
                       ("labels.txt", "".join(f"{word}\n" for word in s.words).encode()),
                       ("README.md", text.encode())):
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)
    np.save(os.path.join(out, "test_inputs.npy"), x.reshape(len(x), -1).astype(np.float32))
    np.save(os.path.join(out, "test_labels.npy"), numbered(labels, s).astype(np.int32))


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    shared = os.environ.get("NPUC_SHARED", os.path.join(root, "..", "shared"))
    parser = argparse.ArgumentParser(description="trains deploy/samples/kws/kws_cnn.pb")
    parser.add_argument("--data", default=os.path.join(shared, "datasets", "kws01"))
    parser.add_argument("--out", default=os.path.join(root, "deploy", "samples", "kws"))
    parser.add_argument("--cross-validate", action="store_true",
                        help="only print the cross-validated accuracy of the settings")
    args = parser.parse_args()
    x, labels = load(args.data)
    train_items, test_items = split(labels, np.random.RandomState(SEED))
    s = Settings()
    logits = cross_validate(x[train_items], labels[train_items], s)
    cv_right, cv_items = judged_among(logits, labels[train_items], word_classes(s))
    cv_all, _ = judged_among(logits, labels[train_items], range(CLASSES))
    print(f"cross-validated on the training items: {cv_right} of {cv_items} right, {cv_all} of "
          f"{len(train_items)} where all classes are answers; the best words:")
    print_best_words(logits, labels[train_items])
    if args.cross_validate:
        return
    params = fit(x[train_items], labels[train_items], SEED, s)
    model = frozen_graph(cut(params, s), s)
    known = facts(params, x, labels, train_items, test_items, s)
    text = README.format(cv=cv_right / cv_items, cv_right=cv_right, cv_items=cv_items,
                         cv_all=cv_all / len(train_items), size=len(model), **known)
    shipped = shipped_items(test_items, labels, s)
    write_sample(args.out, model, x[shipped], labels[shipped], text)
    print(f"{known['right']} of {known['n_judged']} held-out items right; kws_cnn.pb has "
          f"{len(model)} bytes")


if __name__ == "__main__":
    main()
