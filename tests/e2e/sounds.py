"""Sound files as calibration data and as inputs of npuc.

    run_e2e.py sounds

A folder of WAV files with a sounds.yaml must give the header of the array that NumPy makes of the
same samples, and `npuc run` the same answers: samples, spectra, mels and coefficients, by the
formulas of quant/data/sound_form.h, of every width of sample. What does not fit is refused.
"""

import os
import struct

import numpy as np

import harness
import onnxmodel

RATE, WINDOW, HOP, FFT = 8000, 100, 40, 128
FRAMES, COUNT = 5, 6
LENGTH = WINDOW + (FRAMES - 1) * HOP
CONFIG = """CORENAME: X2_1204
FRAMEWORK: ONNX
MODEL_FILE: {net}.onnx
OUTPUT_FILE: net.h
QUANT:
  calibration_data: {data}
  calibration_strategy_for_activation: extrema
"""
WINDOWED = f"rate: {RATE}\nwindow: {WINDOW}\nhop: {HOP}\nfft: {FFT}\n"


def wav(samples, rate=RATE, bits=16, tag=1, extra=b""):
    """A WAV file of [count, channels] samples from -1 to 1."""
    scaled = np.asarray(samples, np.float64)
    if tag == 3:
        data = scaled.astype("<f4" if bits == 32 else "<f8").tobytes()
    elif bits == 8:
        data = (np.round(scaled * 128) + 128).astype(np.uint8).tobytes()
    else:
        whole = np.round(scaled * 2 ** (bits - 1)).astype(np.int64).ravel()
        data = b"".join(int(v).to_bytes(bits // 8, "little", signed=True) for v in whole)
    channels = scaled.shape[1]
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * bits // 8,
                      channels * bits // 8, bits)
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt + extra
    chunks += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def sounds():
    """COUNT sounds [LENGTH], each a number of 1/128, which every width holds."""
    rng = np.random.default_rng(5)
    return np.round(rng.uniform(-1, 0.99, (COUNT, LENGTH)) * 100) / 128


def spectra(sound):
    """[FRAMES, FFT / 2 + 1] sizes of NumPy's transform of Hann windows."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    frames = np.stack([sound[i * HOP:i * HOP + WINDOW] * window for i in range(FRAMES)])
    return np.abs(np.fft.rfft(frames, FFT))


def mels(sound, count, low, high):
    """Sums of the power under triangles, as tf.signal.linear_to_mel_weight_matrix has them."""
    def mel(hz):
        return 1127 * np.log(1 + hz / 700)
    bins = mel(np.arange(1, FFT // 2 + 1) * RATE / FFT)[:, None]
    edges = np.linspace(mel(low), mel(high), count + 2)
    rise = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return spectra(sound)[:, 1:] ** 2 @ np.maximum(0, np.minimum(rise, fall))


def mfcc(sound, count, coefficients):
    logs = np.log(np.maximum(mels(sound, count, 60, 3800), 1e-4))
    k, n = np.arange(coefficients)[:, None], np.arange(count)[None]
    basis = np.cos(np.pi * k * (n + 0.5) / count) * np.sqrt(np.where(k == 0, 1, 2) / count)
    return logs @ basis.T


# name: (what sounds.yaml says, what NumPy makes of a sound)
FORMS = {
    "samples": (f"rate: {RATE}\nmean: 0.25\nstd: 2\n", lambda s: (s - 0.25) / 2),
    "spectrum": (WINDOWED + "features: spectrum\n", spectra),
    "power": (WINDOWED + "features: power\nlog: db\nfloor: 1e-3\n",
              lambda s: 10 * np.log10(np.maximum(spectra(s) ** 2, 1e-3))),
    "mel": (WINDOWED + "features: mel\nmels: 12\nlow: 50\nlog: log10\nfloor: 0.01\nscale: 0.5\n",
            lambda s: np.log10(np.maximum(mels(s, 12, 50, RATE / 2), 0.01)) / 2),
    "mfcc": (WINDOWED + "features: mfcc\nmels: 12\nlow: 60\nhigh: 3800\nfloor: 1e-4\n"
             "coefficients: 8\n", lambda s: mfcc(s, 12, 8)),
}


def make_net(folder, name, size):
    rng = np.random.default_rng(7)
    write(os.path.join(folder, f"{name}.onnx"), onnxmodel.model(
        [onnxmodel.node("MatMul", ["x", "w"], ["y"])],
        [("x", [1, size])], [("y", [1, 4])],
        {"w": (rng.standard_normal((size, 4)) / np.sqrt(size)).astype(np.float32)}))


def header(folder, net, data):
    config = write(os.path.join(folder, f"{net}_{data.replace('.', '_')}.yaml"),
                   CONFIG.format(net=net, data=data))
    out = os.path.join(folder, "out_" + os.path.basename(config))
    harness.npuc(config, "-o", out)
    with open(os.path.join(out, "net.h"), "rb") as f:
        return f.read(), config


def outputs(folder, config, given):
    out = os.path.join(folder, "y_" + os.path.basename(given))
    harness.npuc("reference", config, "--input", given, "-o", out)
    return np.load(os.path.join(out, "y.npy"))


def check_forms(folder):
    for name, (form, made) in FORMS.items():
        values = np.stack([made(s).ravel() for s in sounds()]).astype(np.float32)
        make_net(folder, name, values.shape[1])
        np.save(os.path.join(folder, f"{name}.npy"), values[:, None])
        for i, sound in enumerate(sounds()):
            write(os.path.join(folder, name, f"{i}.wav"), wav(sound[:, None]))
        write(os.path.join(folder, name, "sounds.yaml"), form)
        config = header(folder, name, f"{name}.npy")[1]
        header(folder, name, name)  # calibrates on the folder
        got = outputs(folder, config, os.path.join(folder, name))
        want = outputs(folder, config, os.path.join(folder, f"{name}.npy"))
        error = np.abs(got - want).max() / np.abs(want).max()
        harness.check(error < 1e-5, f"{name}: off by {error}")
        one = outputs(folder, config, os.path.join(folder, name, "3.wav"))
        harness.check(np.array_equal(one, got[3:4]), f"{name}: one sound")


def check_widths(folder):
    """Every width holds the same samples, so the same answer comes of all."""
    sound, config = sounds()[0], os.path.join(folder, "samples_samples_npy.yaml")
    want = outputs(folder, config, os.path.join(folder, "samples", "0.wav"))
    stereo = np.stack([sound, -sound], 1)
    files = {"8": wav(sound[:, None], bits=8), "24": wav(sound[:, None], bits=24),
             "32": wav(sound[:, None], bits=32), "f32": wav(sound[:, None], bits=32, tag=3),
             "f64": wav(sound[:, None], bits=64, tag=3),
             "list": wav(sound[:, None], extra=b"LIST\x03\x00\x00\x00abc\x00"),
             "first": wav(stereo), "long": wav(np.concatenate([sound, sound])[:, None])}
    more = {"first": "channel: first\n", "long": "fit: true\n"}
    for name, data in files.items():
        path = write(os.path.join(folder, f"width_{name}", "a.wav"), data)
        write(os.path.join(folder, f"width_{name}", "sounds.yaml"),
              FORMS["samples"][0] + more.get(name, ""))
        harness.check(np.array_equal(outputs(folder, config, path), want), name)
    return len(files)


def check_refusals(folder):
    config, sound = os.path.join(folder, "samples_samples_npy.yaml"), sounds()[0][:, None]
    cases = [("rate", wav(sound, rate=16000), "", "has 16000 samples a second, and the input "
              "takes 8000; resample it"),
             ("stereo", wav(np.hstack([sound, sound])), "", "it has 2 channels; write channel: "),
             ("short", wav(sound[:-1]), "", "fit: true"),
             ("law", wav(sound, bits=8, tag=7), "", "format 7 with 8 bits; allowed are PCM"),
             ("cut", wav(sound)[:-9], "", "whose samples are cut short"),
             ("key", wav(sound), "hops: 3\n", "line 4: 'hops' is none of rate"),
             ("fft", wav(sound), "fft: 500\n", "fft is 500 for a window of 400"),
             ("value", wav(sound), "log: ln2\n", "log takes none or ln or log10 or db")]
    for name, data, more, words in cases:
        path = write(os.path.join(folder, f"no_{name}", "a.wav"), data)
        write(os.path.join(folder, f"no_{name}", "sounds.yaml"), FORMS["samples"][0] + more)
        said = harness.npuc("reference", config, "--input", path, "-o", folder, expect=1).stderr
        harness.check(words in said, f"{name}: {said}")
    return len(cases)


def main(arguments):
    harness.check(not arguments, "sounds takes no arguments")
    with harness.scratch() as folder:
        check_forms(folder)
        widths, refusals = check_widths(folder), check_refusals(folder)
    harness.figure(f"sounds: {len(FORMS)} forms of features equal NumPy's, {widths} forms of WAV "
                   f"files, {refusals} refusals")
