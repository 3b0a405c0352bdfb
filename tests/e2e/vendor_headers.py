"""`npuc dis` over every published GRUS header: all commands decoded, to the array's exact end.

Headers of unusual form, made of one of these as the vendor publishes some: structs called
input_xip, constants or structs within #if 0, an npu_size 48 bytes off. `dis`, `run` and `report`
give of each what they give of the usual one.

The array is walked here, too, from the header's text, by the documented sizes of the commands: each
line of the disassembly must show the offset and the first word of a command that this walk finds.
"""

import os
import re

import numpy as np

import harness

# Size of a command by its opcode, with header and without link word.
SIZES = {0x01: 44, 0x40: 48, 0x41: 60, 0x42: 48, 0x43: 24}
NO_LINK = 1 << 17
LAST_LINK = 0x70000000
_LINE = re.compile(r"(\d{6})  ([0-9a-f]{8})  (\w.*)$")


def cmd_content(text):
    """The words of the command array, whatever a published header calls it."""
    body = re.search(r"\w*cmd_content\s*\[[^\]]*\][^{;]*\{(.*?)\}\s*;", text, re.S)
    harness.check(body, "no cmd_content with values")
    data = bytes(int(v, 16) for v in re.findall(r"0[xX]([0-9a-fA-F]+)", body.group(1)))
    harness.check(data and len(data) % 4 == 0, f"cmd_content of {len(data)} bytes")
    return [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]


def walk(words):
    """(byte offset, header word) of each command."""
    at, commands = 0, []
    while True:
        header = words[at]
        commands.append((at * 4, header))
        harness.check(header & 0xFF in SIZES, f"unknown opcode in {header:08x} at {at * 4}")
        linked = not header & NO_LINK
        last = linked and words[at + 1] == LAST_LINK
        at += SIZES[header & 0xFF] // 4 + (1 if linked else 0)
        harness.check(at <= len(words), "the last command is cut off")
        if last:
            harness.check(at == len(words), "bytes behind the last command")
            return commands


def unusual_forms(text):
    """The header in the vendor's other forms, by name, and whether there is a warning."""
    struct = re.compile(r"struct (input|output|in_out) ")
    size = re.search(r"npu_size[^=]*= (\d+)", text)
    begin, end = text.index("const unsigned int total_size"), text.index("typedef")
    structs_end = text.rindex("} __attribute__ ((packed));")
    structs_end = text.index("\n", structs_end) + 1
    off = int(size.group(1)) - 48
    return {
        "xip": (struct.sub(r"struct \1_xip ", text), False),
        "off_constants": (text[:begin] + "#if 0\n" + text[begin:end] + "#endif\n" + text[end:],
                          True),
        "off_structs": (text[:begin] + "#if 0\n" + text[begin:structs_end] + "#endif\n" +
                        text[structs_end:], True),
        "size": (text[:size.start(1)] + str(off) + text[size.end(1):], True)}


def answers(header, folder):
    """What `dis`, `run` and `report` make of a header, and what they print beside it."""
    os.makedirs(folder)
    listing = harness.npuc("dis", header)
    commands = [l for l in listing.stdout.splitlines() if not l.startswith("#")]
    inputs = []
    with open(header, encoding="utf-8", errors="replace") as f:
        members = re.search(r"struct input(?:_xip)? \{(.*?)\}", f.read(), re.S).group(1)
    random = np.random.default_rng(3)
    for name, dims in re.findall(r"npu_data_t (\w+)((?:\[\d+\])+)", members):
        path = os.path.join(folder, name + ".npy")
        np.save(path, random.normal(size=[int(d) for d in re.findall(r"\d+", dims)]))
        inputs += ["--input", f"{name}={path}"]
    run = harness.npuc("run", header, *inputs, "-o", os.path.join(folder, "y"))
    report = harness.npuc("report", header, "-o", os.path.join(folder, "page"))
    outputs = {n: np.load(os.path.join(folder, "y", n)).tobytes()
               for n in sorted(os.listdir(os.path.join(folder, "y")))}
    pages = os.listdir(os.path.join(folder, "page"))
    harness.check(len(pages) == 1, f"{header}: pages {pages}")
    return commands, outputs, [r.stderr for r in (listing, run, report)]


def check_unusual(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    with harness.scratch() as folder:
        commands, outputs, warnings = answers(path, os.path.join(folder, "usual"))
        harness.check(not any(warnings), f"{path}: {warnings}")
        forms = unusual_forms(text)
        for name, (variant, warns) in forms.items():
            header = os.path.join(folder, f"{name}.h")
            with open(header, "w", encoding="utf-8") as f:
                f.write(variant)
            found = answers(header, os.path.join(folder, name))
            harness.check(found[0] == commands and found[1] == outputs, f"{name}: other answers")
            harness.check(all(("[NPUC1513]" in w) == warns for w in found[2]),
                          f"{name}: {found[2]}")
    return len(forms)


def main(arguments):
    folder = harness.shared("fixtures", "vendor-headers")
    headers = [os.path.join(folder, h) for h in sorted(os.listdir(folder)) if h.endswith(".h")]
    headers.append(harness.shared("fixtures", "gxdnn-mnist", "vendor_model.h"))
    total = 0
    for path in headers:
        with open(path, encoding="utf-8", errors="replace") as f:
            expected = walk(cmd_content(f.read()))
        lines = harness.npuc("dis", path).stdout.splitlines()
        commands = [_LINE.match(l) for l in lines if not l.startswith("#")]
        harness.check(all(commands), f"{path}: lines that are no command")
        shown = [(int(m.group(1)), int(m.group(2), 16)) for m in commands]
        harness.check(shown == expected, f"{path}: {len(shown)} commands, expected "
                      f"{len(expected)}, or at other places")
        bad = [m.group(0) for m in commands if re.match(r"unknown|raw", m.group(3))]
        harness.check(not bad, f"{path}: undecoded: {bad[:3]}")
        total += len(commands)
    forms = check_unusual(headers[0])
    harness.figure(f"vendor headers: {len(headers)} disassembled, {total} commands, all decoded; "
                   "each stream ends exactly where its array ends; " + f"{forms} unusual forms")
