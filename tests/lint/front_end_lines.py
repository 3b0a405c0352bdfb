#!/usr/bin/python3
"""Counts each front end's hand-written lines outside its folder: those of code, build and data that
name its format, and all lines of its rows in tables. Tests and pages are left out.

    front_end_lines.py [-v] [FOLDER...]      default: every folder of compiler_core/frontends

A front end should be its folder and a few lines elsewhere: the row of ../base/frameworks.inc, its
diagnostics, and what its files look like. Exit 0; nothing is demanded.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import ROOT, project_files, read  # noqa: E402

FRONT_ENDS = "compiler_core/frontends/"
SUFFIXES = (".cc", ".h", ".inc", ".c", ".js", ".yaml", ".cmake", "CMakeLists.txt")
# The words of lines about a format where they are not its folder's name.
WORDS = {"tensorflow": r"tensorflow|graphdef|saved_?model", "torchscript": r"torchscript|pytorch",
         "onnx": r"\bonnx", "compass": r"\bcompass_?(ir|import)|kCompass\b"}


def ends_of_row(lines, start):
    """The index behind a macro's row, whose brackets open in lines[start]."""
    depth = 0
    for i in range(start, len(lines)):
        text = re.sub(r'"(\\.|[^"\\])*"', "", lines[i])
        depth += text.count("(") - text.count(")")
        if depth <= 0:
            return i + 1
    return len(lines)


def lines_of(folder, path):
    """Numbers of the lines of a file that are about the format."""
    lines = read(ROOT, path).splitlines()
    word = re.compile(WORDS.get(folder, folder), re.IGNORECASE)
    found = set()
    for i, line in enumerate(lines):
        if not word.search(line):
            continue
        is_row = path.endswith(".inc") and re.match(r"NPUC_\w+\(", line)
        found.update(range(i, ends_of_row(lines, i) if is_row else i + 1))
    return sorted(found)


def main():
    verbose = "-v" in sys.argv
    files = [p for p in project_files() if p.endswith(SUFFIXES) and not p.startswith("tests/") and
             not re.search(r"_test(_util)?\.|_fuzz\.|/test_util\.", p)]
    folders = [a for a in sys.argv[1:] if not a.startswith("-")] or sorted(
        {p[len(FRONT_ENDS):].split("/")[0] for p in files
         if p.startswith(FRONT_ENDS) and p.count("/") > 2} - {"common"})
    for folder in folders:
        total, where = 0, []
        for path in files:
            inside = path.startswith(FRONT_ENDS) and not path.startswith(FRONT_ENDS + "common/")
            numbers = [] if inside else lines_of(folder, path)
            if numbers:
                total += len(numbers)
                where.append(f"{path} {len(numbers)}")
        print(f"{folder}: {total} lines outside its folder" + (": " + ", ".join(where)
                                                               if verbose else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
