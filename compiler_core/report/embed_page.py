#!/usr/bin/env python3
"""Makes page_parts.cc of page/report.{html,css,js}: the page's text before and behind the JSON.

Usage: embed_page.py OUTPUT.cc PAGE_FOLDER
"""

import os
import sys

PIECE = 8000  # bytes of a string literal; compilers limit their length


def literal(text):
    """Raw string literals side by side, which the compiler joins."""
    data = text.encode()
    if b')page"' in data or b"\x00" in data:
        raise SystemExit("embed_page.py: the page contains the end of a raw string")
    pieces = []
    while data:
        end = min(PIECE, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # not inside a UTF-8 character
            end -= 1
        pieces.append(f'R"page({data[:end].decode()})page"')
        data = data[end:]
    return "\n    ".join(pieces) or '""'


def main():
    output, folder = sys.argv[1:]

    def part(name):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            return stream.read().rstrip("\n")

    page = part("report.html")
    page = page.replace("@CSS@", part("report.css")).replace("@JS@", part("report.js"))
    before, behind = page.split("@JSON@")
    with open(output, "w", encoding="utf-8") as stream:
        stream.write('#include "compiler_core/report/page.h"\n\nnamespace npuc {\n\n'
                     f"const char kPageBefore[] =\n    {literal(before)};\n"
                     f"const char kPageBehind[] =\n    {literal(behind)};\n\n"
                     "}  // namespace npuc\n")


if __name__ == "__main__":
    main()
