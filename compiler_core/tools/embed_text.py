#!/usr/bin/env python3
"""Makes a C++ file of a text: `extern const char NAME[]` in namespace npuc.

Usage: embed_text.py OUTPUT.cc NAME INPUT
"""

import sys

PIECE = 8000  # bytes of a string literal; compilers limit their length


def main():
    output, name, source = sys.argv[1:]
    with open(source, "rb") as stream:
        data = stream.read()
    if b')text"' in data or b"\x00" in data:
        raise SystemExit(f"{source} contains the end of a raw string")
    pieces = []
    while data:
        end = min(PIECE, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # not inside a UTF-8 character
            end -= 1
        pieces.append('R"text(' + data[:end].decode() + ')text"')
        data = data[end:]
    literal = "\n    ".join(pieces) or '""'
    with open(output, "w", encoding="utf-8") as stream:
        stream.write(f"namespace npuc {{\n\nextern const char {name}[];\n"
                     f"const char {name}[] =\n    {literal};\n\n}}  // namespace npuc\n")


if __name__ == "__main__":
    main()
