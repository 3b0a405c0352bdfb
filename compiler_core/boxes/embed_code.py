#!/usr/bin/env python3
"""Makes a source of the C files that firmware gets as string constants.

Usage: embed_code.py OUTPUT.cc FOLDER
"""

import os
import sys

FILES = (("kBoxType", "npuc_box.h"), ("kFixedBoxType", "npuc_fixed_box.h"),
         ("kFloatNumbers", "float_numbers.c"), ("kFixedNumbers", "fixed_numbers.c"),
         ("kBoxDecoder", "decode_boxes.c"))
PIECE = 8000  # bytes of a string literal; compilers limit their length


def literal(text):
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
    return "\n    ".join(f'R"code({piece})code"' for piece in pieces)


def main():
    output, folder = sys.argv[1:]
    with open(output, "w", encoding="ascii") as stream:
        stream.write('#include "compiler_core/boxes/box_code.h"\n\nnamespace npuc {\n')
        for name, file in FILES:
            with open(os.path.join(folder, file), encoding="ascii") as source:
                stream.write(f"const char {name}[] =\n    {literal(source.read())};\n")
        stream.write("}  // namespace npuc\n")


if __name__ == "__main__":
    main()
