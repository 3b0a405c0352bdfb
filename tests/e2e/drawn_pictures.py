"""Pictures for detectors, painted in NumPy from a seed: faces, lines of letters, plain scenes.

They stand in for photographs, of which there are none here. Faces have what a detector of faces
looks for - a lit oval, dark eyes below brows, a nose's shadow, a mouth, hair - over a background of
soft blobs.
"""

import numpy as np


class Canvas:
    """[height, width, 3] float pixels of 0 to 255, to paint on."""

    def __init__(self, height, width, rng):
        self.rng = rng
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        self.y, self.x = y, x
        self.pixels = np.empty((height, width, 3), np.float32)
        self.pixels[:] = rng.uniform(60, 190, 3)
        for _ in range(12):
            self.blob(rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.1, 0.5) * width,
                      rng.uniform(0.1, 0.5) * height, rng.uniform(30, 225, 3), soft=0.6)

    def blob(self, x, y, rx, ry, color, soft=0.08, alpha=1.0):
        """An ellipse whose edge fades over `soft` of its radius."""
        r = np.sqrt(((self.x - x) / rx) ** 2 + ((self.y - y) / ry) ** 2)
        cover = np.clip((1 - r) / soft + 0.5, 0, 1)[..., None] * alpha
        self.pixels = self.pixels * (1 - cover) + np.asarray(color, np.float32) * cover

    def bytes(self):
        noise = self.rng.normal(0, 2.5, self.pixels.shape)
        return np.clip(np.rint(self.pixels + noise), 0, 255).astype(np.uint8)


def paint_face(canvas, x, y, size):
    """A face whose height is `size`, with its middle at (x, y)."""
    rng = canvas.rng
    skin = np.array([224, 178, 150]) * rng.uniform(0.75, 1.08)
    hair = np.array([60, 42, 30]) * rng.uniform(0.4, 2.2)
    r = size / 2
    canvas.blob(x, y - 0.12 * r, 0.86 * r, 1.12 * r, hair, 0.1)
    canvas.blob(x, y + 1.25 * r, 0.42 * r, 0.5 * r, skin * 0.78, 0.2)  # neck
    canvas.blob(x, y + 1.95 * r, 1.5 * r, 0.75 * r, rng.uniform(20, 200, 3), 0.1)
    canvas.blob(x, y + 0.05 * r, 0.72 * r, 0.98 * r, skin, 0.12)
    canvas.blob(x + 0.3 * r, y + 0.1 * r, 0.4 * r, 0.8 * r, skin * 0.85, 0.9, 0.6)  # shade
    canvas.blob(x, y - 0.78 * r, 0.66 * r, 0.3 * r, hair, 0.25)
    for side in (-1, 1):
        ex, ey = x + side * 0.3 * r, y - 0.12 * r
        canvas.blob(ex, ey, 0.2 * r, 0.13 * r, skin * 0.66, 0.7, 0.9)  # socket
        canvas.blob(ex, ey, 0.145 * r, 0.075 * r, (238, 234, 230), 0.25)
        canvas.blob(ex, ey, 0.068 * r, 0.072 * r, (52, 38, 30), 0.25)
        canvas.blob(ex, ey - 0.2 * r, 0.2 * r, 0.042 * r, hair * 0.8, 0.4)
        canvas.blob(x + side * 0.1 * r, y + 0.26 * r, 0.05 * r, 0.035 * r, skin * 0.45, 0.5)
        canvas.blob(x + side * 0.36 * r, y + 0.24 * r, 0.2 * r, 0.16 * r, (225, 140, 125), 0.9,
                    0.35)
    canvas.blob(x + 0.05 * r, y + 0.08 * r, 0.07 * r, 0.24 * r, skin * 0.78, 0.8, 0.8)
    canvas.blob(x, y + 0.17 * r, 0.06 * r, 0.07 * r, skin * 1.12, 0.8, 0.7)
    canvas.blob(x, y + 0.5 * r, 0.27 * r, 0.085 * r, (172, 78, 76), 0.3)
    canvas.blob(x, y + 0.49 * r, 0.25 * r, 0.02 * r, (92, 36, 38), 0.5)
    canvas.blob(x, y + 0.68 * r, 0.2 * r, 0.04 * r, skin * 0.8, 0.9, 0.8)


def faces(seed, height, width, sizes):
    """(pixels, [(x, y, size)]): faces side by side."""
    rng = np.random.default_rng(seed)
    canvas = Canvas(height, width, rng)
    places = []
    for i, size in enumerate(sizes):
        x = width * (i + 0.5) / len(sizes) + rng.uniform(-4, 4)
        y = height * 0.42 + rng.uniform(-0.06, 0.06) * height
        paint_face(canvas, x, y, size)
        places.append((x, y, size))
    return canvas.bytes(), places


# Five columns of seven rows each.
LETTERS = {
    "S": ("01110", "10001", "10000", "01110", "00001", "10001", "01110"),
    "T": ("11111", "00100", "00100", "00100", "00100", "00100", "00100"),
    "O": ("01110", "10001", "10001", "10001", "10001", "10001", "01110"),
    "P": ("11110", "10001", "10001", "11110", "10000", "10000", "10000"),
    "E": ("11111", "10000", "10000", "11110", "10000", "10000", "11111"),
    "H": ("10001", "10001", "10001", "11111", "10001", "10001", "10001"),
    "I": ("01110", "00100", "00100", "00100", "00100", "00100", "01110"),
    "L": ("10000", "10000", "10000", "10000", "10000", "10000", "11111"),
    "N": ("10001", "11001", "10101", "10011", "10001", "10001", "10001"),
    "1": ("00100", "01100", "00100", "00100", "00100", "00100", "01110"),
    "7": ("11111", "00001", "00010", "00100", "01000", "01000", "01000"),
    "4": ("00010", "00110", "01010", "10010", "11111", "00010", "00010"),
}


def write_text(canvas, text, left, top, height, color):
    """A line of letters, the strokes smooth: each pixel takes its part of the letters' cells."""
    cell = height / 7
    rows = np.zeros((7, 6 * len(text)), np.float32)
    for i, letter in enumerate(text):
        rows[:, 6 * i:6 * i + 5] = [[int(bit) for bit in line] for line in LETTERS[letter]]
    cover = np.zeros(canvas.x.shape, np.float32)
    parts = 4  # samples a pixel, each way
    for dy in range(parts):
        for dx in range(parts):
            row = np.floor((canvas.y + (dy + 0.5) / parts - top) / cell).astype(int)
            column = np.floor((canvas.x + (dx + 0.5) / parts - left) / cell).astype(int)
            inside = (row >= 0) & (row < 7) & (column >= 0) & (column < rows.shape[1])
            cover += np.where(inside, rows[np.clip(row, 0, 6),
                                           np.clip(column, 0, rows.shape[1] - 1)], 0)
    cover = (cover / parts**2)[..., None]
    canvas.pixels = canvas.pixels * (1 - cover) + np.asarray(color, np.float32) * cover


def paint_stop_sign(canvas, x, y, radius):
    """An octagon with its word, on a post."""
    canvas.blob(x, y + 1.9 * radius, 0.09 * radius, 2 * radius, (125, 125, 128), 0.1)
    angle = np.arctan2(canvas.y - y, canvas.x - x)
    distance = np.hypot(canvas.x - x, canvas.y - y)
    turn = np.abs((angle + np.pi / 8) % (np.pi / 4) - np.pi / 8)
    edge = radius * np.cos(np.pi / 8) / np.cos(turn)
    for part, color in ((1.0, (240, 240, 240)), (0.94, (200, 25, 35))):
        cover = np.clip(edge * part - distance + 0.5, 0, 1)[..., None]
        canvas.pixels = canvas.pixels * (1 - cover) + np.asarray(color, np.float32) * cover
    height = 0.52 * radius
    write_text(canvas, "STOP", x - height / 7 * 11.5, y - height / 2, height, (245, 245, 245))


def street(seed, side=320):
    """[side, side, 3]: a stop sign with a person beside it or alone, or a person alone."""
    rng = np.random.default_rng(seed)
    canvas = Canvas(side, side, rng)
    if seed % 3 == 2:
        paint_face(canvas, side * rng.uniform(0.46, 0.54), side * 0.41, side * 0.53)
        return canvas.bytes()
    if seed % 3 == 0:
        paint_face(canvas, side * rng.uniform(0.25, 0.32), side * 0.42,
                   side * rng.uniform(0.3, 0.42))
    paint_stop_sign(canvas, side * rng.uniform(0.7, 0.76), side * rng.uniform(0.36, 0.42),
                    side * rng.uniform(0.16, 0.2))
    return canvas.bytes()


def words(seed, height, width):
    """Two lines of letters on a plain ground."""
    rng = np.random.default_rng(seed)
    canvas = Canvas(height, width, rng)
    canvas.pixels[:] = 205 + 0.2 * (canvas.pixels - 128)
    choice = ("STOP", "HOTEL", "TILE17", "NOTES", "HILL4", "POINT")
    for line in range(2):
        size = height * rng.uniform(0.2, 0.24)
        write_text(canvas, choice[rng.integers(len(choice))], width * rng.uniform(0.08, 0.2),
                   height * (0.18 + 0.42 * line), size, (25, 25, 40))
    return canvas.bytes()


def digits(seed, count):
    """[count, 28, 28] of 0 to 1: a stroke or a ring each, light on dark as MNIST's."""
    rng = np.random.default_rng(seed)
    pictures = []
    for i in range(count):
        canvas = Canvas(28, 28, rng)
        canvas.pixels[:] = 0
        x, y = rng.uniform(12, 16, 2)
        if i % 2:
            canvas.blob(x, y, 7, 9, (255, 255, 255), 0.3)
            canvas.blob(x, y, 4, 6, (0, 0, 0), 0.3)
        else:
            canvas.blob(x, y, 2, 10, (255, 255, 255), 0.4)
        pictures.append(canvas.pixels[..., 0] / 255)
    return np.stack(pictures).astype(np.float32)
