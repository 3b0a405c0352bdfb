"""`npuc dis` over every published GRUS header: all commands decoded, to the array's exact end.

The array is walked here, too, from the header's text, by the documented sizes of the commands: each
line of the disassembly must show the offset and the first word of a command that this walk finds.
"""

import os
import re

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
    harness.figure(f"vendor headers: {len(headers)} disassembled, {total} commands, all decoded; "
                   "each stream ends exactly where its array ends")
