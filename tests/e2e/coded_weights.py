"""Weights in their lossless code give the bits of plain weights, in fewer bytes.

    coded_weights [NAME...]

Compiles each published int8 net twice, with CODE_WEIGHTS true and false, runs both on the same
seeded inputs and demands equal outputs, byte for byte, and at most so many bytes of commands and
weights. A decoder in Python, written after target/INTEGER_ISA.md, decodes the weights of each
convolution from the bytes of the header, and demands those of the other. Headers with changed
bytes must be refused or run; none may hang.
"""

import os
import re
import struct

import numpy as np

import harness
from dead_channels import outputs_of, random_inputs, report_of

# name: (inputs, bytes of commands and weights at most)
NETS = {"kws_ref_model_int8": (200, 30000), "resnet8_int8": (50, 79000),
        "vww_96_int8": (20, 40000), "ad01_int8": (200, 182000)}
SHARES = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)
SEED = 22
DAMAGED = 25  # headers of each net
# The usual values of a convolve's words, which its stream leaves out.
USUAL = (0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, *[1] * 8, *[1] * 6, 0, 0, 0, 1, 0, -128, 127)


def array(text, name):
    body = re.search(name + r"\[\d+\][^{]*\{([^}]*)\}", text).group(1)
    return bytes(int(value, 16) for value in re.findall(r"0x[0-9a-f]{2}", body))


def decode(coded, count, table):
    shares = [SHARES[table[i // 2] >> (i % 2 * 4) & 15] for i in range(256)]
    total, present = sum(shares), sum(s > 0 for s in shares)
    borders, below, before = [], 0, 0
    for share in shares:
        borders.append(below * (4096 - present) // total + before)
        below, before = below + share, before + (share > 0)
    borders.append(4096)
    value_of = [v for v in range(256) for _ in range(borders[v + 1] - borders[v])]
    state, at, values = int.from_bytes(coded[:4], "big"), 4, []
    for _ in range(count):
        harness.check(2**23 <= state < 2**31, f"state {state}")
        rest = state % 4096
        value = value_of[rest]
        values.append(value - 128)
        state = state // 4096 * (borders[value + 1] - borders[value]) + rest - borders[value]
        while state < 2**23:
            state, at = 256 * state + coded[at], at + 1
    harness.check(state == 2**23 and at == len(coded), "the code goes on")
    return values


def convolutions(header):
    """The plain weights of each convolve command, and how many of them are coded."""
    with open(header, encoding="utf-8") as f:
        text = f.read()
    commands, content = array(text, "cmd_content"), array(text, "weight_content")
    at, found, coded_count = 0, [], 0
    while at < len(commands):
        head, = struct.unpack_from("<I", commands, at)
        mask, = struct.unpack_from("<I", commands, at + 4)
        given = iter(struct.unpack_from(f"<{(head >> 16) - 1}i", commands, at + 8))
        at += 4 + 4 * (head >> 16)
        if head & 0xff != 0x80:
            continue
        words = [next(given) if mask >> i & 1 else usual for i, usual in enumerate(USUAL)]
        weights, _, coded_bytes, table = words[3] & 0xfffffff, words[4], words[5], words[6]
        in_c, out_c, groups, kernel_h, kernel_w = words[14], words[17], *words[18:21]
        count = out_c * kernel_h * kernel_w * (in_c // groups)
        if coded_bytes == 0:
            plain = np.frombuffer(content, np.int8, count, weights)
            found.append(plain.tolist())
            continue
        coded_count += 1
        table &= 0xfffffff
        found.append(decode(content[weights:weights + coded_bytes], count,
                            content[table:table + 128]))
    return found, coded_count


def check_damaged(name, folder):
    """Changed bytes of commands and weights: refused with a diagnostic, or run."""
    with open(os.path.join(folder, "net.h"), encoding="utf-8") as f:
        text = f.read()
    places = [m.start() for m in re.finditer(r"0x[0-9a-f]{2}", text)]
    random = np.random.default_rng(SEED)
    path = os.path.join(folder, "damaged.h")
    for _ in range(DAMAGED):
        at = places[random.integers(len(places))]
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{text[:at]}0x{random.integers(256):02x}{text[at + 4:]}")
        code, said = harness.attempt("run", path, "--output-dir", os.path.join(folder, "x"),
                                     timeout=60)
        harness.check(code in (0, 1) and (code == 0 or "[NPUC" in said), f"{name}: {code} {said}")


def published(name, items, most):
    model = harness.shared("models", "tflite", "mlperf_tiny", f"{name}.tflite")
    with harness.scratch() as folder:
        folders = []
        for coded in (True, False):
            inside = os.path.join(folder, str(coded))
            os.makedirs(inside)
            path = os.path.join(inside, "net.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"CORENAME: Z2_0901\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\n"
                        f"OUTPUT_FILE: net.h\nCODE_WEIGHTS: {str(coded).lower()}\n")
            harness.npuc(path, "-o", inside)
            folders.append(inside)
        reports = [report_of(f) for f in folders]
        inputs = random_inputs(reports[0], items, folder, True)
        outputs = [outputs_of(f, inputs, True) for f in folders]
        harness.check(outputs[0] == outputs[1], f"{name}: outputs differ by the code")
        weights, coded_count = convolutions(os.path.join(folders[0], "net.h"))
        plain, none = convolutions(os.path.join(folders[1], "net.h"))
        harness.check(none == 0 and weights == plain, f"{name}: other weights")
        check_damaged(name, folders[0])
    sizes = [r["sizes_bytes"]["cmd_content"] + r["sizes_bytes"]["weight_content"] for r in reports]
    harness.figure(f"{name}: {sizes[0]} bytes of commands and weights, {sizes[1]} with plain "
                   f"weights; {coded_count} of {len(weights)} convolutions coded; outputs of "
                   f"{items} inputs equal")
    harness.check(sizes[0] <= min(most, sizes[1]), f"{name}: {sizes} bytes, at most {most}")


def main(arguments):
    for name, (items, most) in NETS.items():
        if not arguments or name in arguments:
            published(name, items, most)
