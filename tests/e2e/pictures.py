"""Folders and archives of pictures and arrays as calibration data and as inputs of npuc.

    run_e2e.py pictures

A folder of PNG files with a pictures.yaml must give the header of an array that NumPy made of the
same pixels, to the byte, and so must a zip file of them, and npuc-remote; `npuc run`, `npuc
reference` and `npuc evaluate` must answer as for that array. Where python3-opencv is installed,
JPEG files are read and resized as OpenCV does.
"""

import json
import os
import struct
import zipfile
import zlib

import numpy as np

import harness
import onnxmodel
import service

MEAN, STD = [103.5, 116.25, 123.75], [58.5, 57.0, 60.25]
CONFIG = """CORENAME: X2_1204
FRAMEWORK: ONNX
MODEL_FILE: net.onnx
OUTPUT_FILE: net.h
QUANT:
  calibration_data: {data}
  calibration_strategy_for_activation: extrema
"""
PICTURES = f"mean: {MEAN}\nstd: {STD}\nchannels: BGR\n"
COUNT = 6
PIXELS = np.random.default_rng(8).integers(0, 256, (COUNT, 12, 10, 3), dtype=np.uint8)


def png(pixels):
    """A PNG file of [height, width, 3] bytes, its rows filtered by turns."""
    rows, above = b"", np.zeros_like(pixels[0]).astype(int)
    for y, row in enumerate(pixels.astype(int)):
        kind = y % 3
        left = np.vstack([np.zeros((1, 3), int), row[:-1]])
        guess = [0, left, above][kind]
        rows += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row

    def chunk(kind, data):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb" if isinstance(data, bytes) else "w") as f:
        f.write(data)
    return path


def prepared(pixels):
    """[3, height, width] float32: blue first, less the mean, over the deviation."""
    scale = 1 / np.array(STD)
    values = (pixels[:, :, ::-1].astype(np.float32) - np.array(MEAN)) * scale
    return values.transpose(2, 0, 1).astype(np.float32)


def make_net(folder):
    rng = np.random.default_rng(7)
    write(os.path.join(folder, "net.onnx"), onnxmodel.model(
        [onnxmodel.node("Conv", ["x", "w"], ["c"]), onnxmodel.node("Relu", ["c"], ["y"])],
        [("x", [1, 3, 12, 10])], [("y", [1, 4, 10, 8])],
        {"w": rng.standard_normal((4, 3, 3, 3)).astype(np.float32)}))
    pictures = PIXELS
    for i, pixels in enumerate(pictures):
        write(os.path.join(folder, "calib", "kind", f"{i:02}.png"), png(pixels))
    np.save(os.path.join(folder, "calib.npy"), np.stack([prepared(p) for p in pictures]))
    for i, pixels in enumerate(pictures):
        path = os.path.join(folder, "arrays", f"{i:02}.npy")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        np.save(path, prepared(pixels)[None])
    write(os.path.join(folder, "calib", "pictures.yaml"), PICTURES)
    with zipfile.ZipFile(os.path.join(folder, "calib.zip"), "w", zipfile.ZIP_DEFLATED) as z:
        for i, pixels in enumerate(pictures):
            z.writestr(f"calib/{i:02}.png", png(pixels))
        z.writestr("calib/pictures.yaml", PICTURES)


def config(folder, data):
    stem = data.strip("/").replace(".", "_")
    return write(os.path.join(folder, f"{stem}.yaml"),
                 CONFIG.format(data=data))


def header(folder, path):
    out = os.path.join(folder, "out_" + os.path.basename(path))
    harness.npuc(path, "-o", out)
    with open(os.path.join(out, "net.h"), "rb") as f:
        return f.read()


def outputs(folder, verb, first, given, *more):
    out = os.path.join(folder, f"y_{verb}_{os.path.basename(given)}")
    harness.npuc(verb, first, "--input", given, "-o", out, *more)
    return np.load(os.path.join(out, "y.npy"))


def check_commands(folder, with_pictures, artifact):
    array, pictures = os.path.join(folder, "calib.npy"), os.path.join(folder, "calib")
    for given in (pictures, os.path.join(folder, "calib.zip"), os.path.join(folder, "arrays")):
        run = outputs(folder, "run", artifact, given)
        harness.check(np.array_equal(run, outputs(folder, "run", artifact, array)) and
                      len(run) == COUNT, f"run on {given}")
        reference = outputs(folder, "reference", with_pictures, given)
        harness.check(np.array_equal(reference, outputs(folder, "reference", with_pictures, array)),
                      f"reference on {given}")
    write(os.path.join(folder, "one", "pictures.yaml"), PICTURES)
    path = write(os.path.join(folder, "one", "03.png"), png(PIXELS[3]))
    one = outputs(folder, "run", artifact, path)
    harness.check(np.array_equal(one, outputs(folder, "run", artifact, array)[3:4]), "one picture")
    said = [json.loads(harness.npuc("evaluate", with_pictures, artifact, "--input", given,
                                    "--json").stdout)["metrics"] for given in (pictures, array)]
    harness.check(said[0] == said[1], f"evaluate: {said}")


def check_service(folder, wanted, path):
    daemon = service.Daemon(folder)
    try:
        daemon.start()
        hits = []
        for step in range(3):
            if step == 2:  # another picture is another job
                write(os.path.join(folder, "calib", "kind", "00.png"),
                      png(np.zeros((12, 10, 3), np.uint8)))
            out = os.path.join(folder, f"remote_{step}")
            job = daemon.json("compile", path, "-o", out)[-1]
            harness.check(job["state"] == "SUCCEEDED", job)
            hits.append(job["cache_hit"])
            with open(os.path.join(out, "net.h"), "rb") as f:
                harness.check((f.read() == wanted) == (step < 2), f"header of step {step}")
        harness.check(hits == [False, True, False], f"cache hits: {hits}")
    finally:
        daemon.stop()


def check_refusals(folder):
    write(os.path.join(folder, "wrong", "pictures.yaml"), "mean: [1, 2]\n")
    said = harness.npuc(config(folder, "wrong"), expect=1).stderr
    harness.check("wrong:pictures.yaml: line 1: mean takes a number or a list of 3" in said, said)
    write(os.path.join(folder, "odd", "a.png"), png(np.zeros((5, 10, 3), np.uint8)))
    said = harness.npuc(config(folder, "odd"), expect=1).stderr
    harness.check("a.png: the picture has 5 x 10 pixels, and the input 12 x 10" in said and
                  "resize: true" in said, said)
    write(os.path.join(folder, "notes", "a.txt"), "hello")
    said = harness.npuc(config(folder, "notes"), expect=1).stderr
    harness.check("a.txt: not a usable .npy file" in said, said)


def check_opencv(folder):
    try:
        import cv2
    except ImportError:
        return "python3-opencv is not installed"
    rng = np.random.default_rng(3)
    small = rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)
    picture = cv2.resize(small, (31, 27), interpolation=cv2.INTER_CUBIC)
    os.makedirs(os.path.join(folder, "photo"))
    path = os.path.join(folder, "photo", "a.jpg")
    cv2.imwrite(path, picture, [cv2.IMWRITE_JPEG_QUALITY, 80])
    read = cv2.imread(path).astype(np.float32)  # blue first
    wanted = cv2.resize(read, (10, 12), interpolation=cv2.INTER_LINEAR)
    np.save(os.path.join(folder, "photo.npy"), wanted.transpose(2, 0, 1)[None])
    write(os.path.join(folder, "photo", "pictures.yaml"), "channels: BGR\nresize: true\n")
    got, want = (outputs(folder, "reference", config(folder, "calib.npy"),
                         os.path.join(folder, name)) for name in ("photo/a.jpg", "photo.npy"))
    # OpenCV's weights are float32, sums in another order.
    harness.check(np.abs(got - want).max() <= 1e-4 * np.abs(want).max(), "JPEG, resized")
    return "JPEG files are read and resized as by OpenCV"


def main(arguments):
    harness.check(not arguments, "pictures takes no arguments")
    with harness.scratch() as folder:
        make_net(folder)
        wanted = header(folder, config(folder, "calib.npy"))
        with_pictures = config(folder, "calib/")
        for path in (with_pictures, config(folder, "calib.zip"),
                     config(folder, "arrays")):
            harness.check(header(folder, path) == wanted, f"{path}: another header")
        artifact = os.path.join(folder, "out_calib.yaml", "net.h")
        check_commands(folder, with_pictures, artifact)
        opencv = check_opencv(folder)
        check_service(folder, wanted, with_pictures)
        check_refusals(folder)
    harness.figure(f"pictures: {COUNT} PNG files in a folder and a zip file give the header of "
                   f"NumPy's array, from npuc and the service; {opencv}")
