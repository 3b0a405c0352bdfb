"""`npuc dis` over every published GRUS header: all commands decoded, to the array's exact end."""

import os
import re

import harness


def cmd_bytes(text):
    """Size of the command array by the text of the header itself."""
    match = re.search(r"\bcmd_content|_cmd_content", text)
    harness.check(match, "no cmd_content")
    body = re.search(r"\w*cmd_content\s*\[[^\]]*\][^{;]*\{(.*?)\}\s*;", text, re.S)
    harness.check(body, "cmd_content has no values")
    return len(re.findall(r"0[xX][0-9a-fA-F]+", body.group(1)))


def main(arguments):
    folder = harness.shared("fixtures", "vendor-headers")
    headers = sorted(h for h in os.listdir(folder) if h.endswith(".h"))
    headers = [os.path.join(folder, h) for h in headers]
    headers.append(harness.shared("fixtures", "gxdnn-mnist", "vendor_model.h"))
    commands = 0
    for path in headers:
        result = harness.npuc("dis", path)
        with open(path, encoding="utf-8", errors="replace") as f:
            size = cmd_bytes(f.read())
        lines = [l for l in result.stdout.splitlines() if re.match(r"\s*(0x)?[0-9a-fA-F]+:", l)]
        harness.check(lines, f"{path}: no command lines:\n{result.stdout[:500]}")
        bad = [l for l in lines if re.search(r"unknown|undecoded|\.word|\?\?", l)]
        harness.check(not bad, f"{path}: undecoded: {bad[:3]}")
        walked = sum(command_bytes(l) for l in lines)
        harness.check(walked == size, f"{path}: the commands take {walked} bytes of {size}")
        commands += len(lines)
    harness.figure(f"vendor headers: {len(headers)} disassembled, {commands} commands, each stream "
                   "ends exactly where its array ends")


def command_bytes(line):
    """Size of a disassembled command: the raw words that the line shows between brackets."""
    words = re.search(r"\[((?:[0-9a-fA-F]{8} ?)+)\]", line)
    harness.check(words, f"no raw words in: {line}")
    return 4 * len(words.group(1).split())
