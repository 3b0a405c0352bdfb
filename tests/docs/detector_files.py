"""What client/DETECTOR.md takes for given: Yolo-Fastest and drawn pictures."""

import os
import shutil
import struct
import sys
import zlib

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import drawn_pictures  # noqa: E402


def png(pixels):
    """A PNG file of [height, width, 3] bytes."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b""))


def write(folder):
    """None, or why it cannot be written."""
    net = os.path.join(SHARED, "suites", "darknet", "yolo_fastest", "yolo-fastest-1.1")
    if not os.path.exists(net + ".cfg"):
        return f"{net}.cfg is missing (set NPUC_SHARED)"
    for ending in (".cfg", ".weights"):
        shutil.copy(net + ending, folder)
    for name in ("pictures", "camera"):
        os.mkdir(os.path.join(folder, name))
    for seed in range(100, 112):
        with open(os.path.join(folder, "pictures", f"{seed}.png"), "wb") as f:
            f.write(png(drawn_pictures.street(seed)))
    with open(os.path.join(folder, "camera", "street.png"), "wb") as f:
        f.write(png(drawn_pictures.street(0, 416)))
    return None
