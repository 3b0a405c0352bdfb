"""The pages of the documentation: which of their blocks are commands, and which are files.

    ```sh                       commands; run in the order of the page
    ```sh not-run: REASON       commands that no test runs, and why
    ```yaml my.yaml             a file of that name, or FOLDER/my.yaml, where the commands run

A block may stand in a list, indented. A line that looks like a command outside such blocks is a
finding: nothing would run it.
"""

import os
import re
import textwrap
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LEFT_OUT = {"build", "node_modules", ".git", "_deps"}
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$",
                    re.MULTILINE | re.DOTALL)
# How an indented line of a page begins where it is a command and not data.
_COMMAND = re.compile(
    r"^ {4,}(?:\$ |sudo |[A-Z_]+=\S+ )*(?:build/bin/|deploy/\S+\.sh|tests/\S+\.(?:sh|py)|"
    r"client/\S+\.(?:sh|py)|(?:npucd?|npuc-remote|cmake|ctest|npm|apt-get|curl|nice|git|openssl|"
    r"(?:/usr/bin/)?python3|\w+\.py) \S)")


@dataclass
class Block:
    kind: str  # "run", "not-run" or "file"
    line: int  # of the page, from 1
    body: str
    note: str = ""  # why it is not run; the file's name


def all_pages():
    for where, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(files):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(where, name), ROOT)


def read(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        return f.read()


def blocks(text):
    """Those that are commands or files, in order. ValueError: a block says neither."""
    found = []
    for match in _FENCE.finditer(text):
        language, _, rest = match["info"].strip().partition(" ")
        line = text[:match.start()].count("\n") + 2
        body = textwrap.dedent(match["body"])
        if language == "sh" and rest.startswith("not-run: ") and len(rest) > len("not-run: "):
            found.append(Block("not-run", line, body, rest[len("not-run: "):]))
        elif language == "sh" and not rest:
            found.append(Block("run", line, body))
        elif language == "sh":
            raise ValueError(f"line {line - 1}: '{rest}' is not 'not-run: REASON'")
        elif rest:
            if not re.fullmatch(r"(?:\w[\w.-]*/)?[\w.-]+", rest):
                raise ValueError(f"line {line - 1}: '{rest}' is not a file's name")
            found.append(Block("file", line, body, rest))
    return found


def loose_commands(text):
    """Lines that look like commands and stand in no block: (number, line)."""
    inside = set()
    for match in _FENCE.finditer(text):
        first = text[:match.start()].count("\n") + 1
        inside |= set(range(first, first + match[0].count("\n") + 1))
    return [(i, line) for i, line in enumerate(text.split("\n"), 1)
            if i not in inside and _COMMAND.match(line)]


# A script that a line of commands starts by its path, behind settings of the environment.
_STARTED = re.compile(r"^ *(?:[A-Za-z_]+=\S+ +|nice(?: -n ?\d+)? +|sudo +)*"
                      r"(?P<path>[\w.-]+/[\w./-]+\.(?:py|sh))(?![\w./-])", re.MULTILINE)


def not_executable(page, text):
    """Scripts that commands of a page start by their path and that nobody may execute."""
    paths = {match["path"] for block in blocks(text) if block.kind != "file"
             for match in _STARTED.finditer(block.body)}
    return [f"{page}: {path} is not executable (git update-index --chmod=+x)"
            for path in sorted(paths)
            if os.path.isfile(os.path.join(ROOT, path))
            and not os.access(os.path.join(ROOT, path), os.X_OK)]


def stale_names(page, text, tests):
    """What `inline code` of a page names and is not there: files of the project, by their path from
    its root or from the page, and tests of `ctest -R`, by `tests`, the names that there are."""
    found = []
    tops = {name for name in os.listdir(ROOT) if name not in _LEFT_OUT}
    for code in re.findall(r"`([^`\n]+)`", text):
        for word in code.split():
            places = (os.path.join(ROOT, word), os.path.join(ROOT, os.path.dirname(page), word))
            if (re.fullmatch(r"[\w.-]+/[\w./-]+", word) and word.split("/")[0] in tops
                    and not any(os.path.exists(place) for place in places)):
                found.append(f"{page}: {word} is not there")
        for pattern in re.findall(r"ctest [^|;]*?-R '?([^' ]+)", code):
            found += [f"{page}: no test is named {name}" for name in pattern.split("|")
                      if not any(re.search(name, test) for test in tests)]
    return found
