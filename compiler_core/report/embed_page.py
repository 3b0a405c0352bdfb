#!/usr/bin/env python3
"""Makes page_parts.cc of the files in page/: the text of two pages before and behind their JSON,
the report's and the profile's.

Usage: embed_page.py OUTPUT.cc PAGE_FOLDER

The modules that a page's script imports, directly or not, are joined into one script, each once and
behind what it imports. A module imports names as they are, from files beside it, and exports
declarations; a name that two modules declare is refused, since all of them share one scope here.
"""

import os
import re
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


IMPORT = re.compile(r"^import \{ ([\w, ]+) \} from '\./([\w.]+)';\n", re.MULTILINE)
DECLARATION = re.compile(r"^(?:export )?(?:const|let|class|function) (?:\[[^=]*\]|(\w+))",
                         re.MULTILINE)


def script(read, entry):
    """The text of a module and all that it imports, as one script without modules."""
    declared, parts, done = {}, [], set()

    def add(name):
        if name in done:
            return
        done.add(name)
        text = read(name)
        for _, imported in IMPORT.findall(text):
            add(imported)
        text = IMPORT.sub("", text)
        for symbol in DECLARATION.findall(text):
            if declared.setdefault(symbol, name) != name:
                raise SystemExit(f"embed_page.py: {declared[symbol]} and {name} declare {symbol}")
        text = re.sub(r"^export (?=const|class|function)", "", text, flags=re.MULTILINE)
        if re.search(r"^(?:import|export)\b", text, re.MULTILINE):
            raise SystemExit(f"embed_page.py: {name} imports or exports in a form not known here")
        parts.append(text.strip())

    add(entry)
    return "'use strict';\n(() => {\n" + "\n\n".join(parts) + "\n})();"


def main():
    output, folder = sys.argv[1:]

    def part(name):
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            return stream.read().rstrip("\n")

    constants = ""
    for prefix, entry in (("kPage", "report.js"), ("kProfile", "profile.js")):
        page = part("report.html")
        page = page.replace("@CSS@", part("report.css")).replace("@VIEWS_CSS@", part("views.css"))
        page = page.replace("@JS@", script(part, entry))
        before, behind = page.split("@JSON@")
        constants += (f"const char {prefix}Before[] =\n    {literal(before)};\n"
                      f"const char {prefix}Behind[] =\n    {literal(behind)};\n\n")
    with open(output, "w", encoding="utf-8") as stream:
        stream.write('#include "compiler_core/report/page.h"\n\nnamespace npuc {\n\n'
                     f"{constants}}}  // namespace npuc\n")


if __name__ == "__main__":
    main()
