#!/usr/bin/python3
"""client/GAPS.md against the tree: each suite and each unit test that a row names exists, and a row
of a promise that is done, or known, names one. With the shared folder, each row of spec/gaps.md is
in the table."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
_TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)", re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def unit_tests():
    """Suite.Name of every gtest."""
    found = set()
    for where, _, files in os.walk(os.path.join(ROOT, "compiler_core")):
        for name in files:
            if name.endswith("_test.cc"):
                text = read(os.path.join(where, name))
                found |= {f"{suite}.{test}" for suite, test in _TEST.findall(text)}
    return found


def suites():
    text = read(os.path.join(ROOT, "tests", "e2e", "run_e2e.py"))
    return set(re.findall(r'"(\w+)"', re.search(r"SUITES = \((.*?)\)", text, re.DOTALL)[1]))


def rows():
    """(numbers, what is there now, test) of each row; the last table has no numbers."""
    for line in read(os.path.join(ROOT, "client", "GAPS.md")).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("| ") or cells[-1] in ("test, or why not", "now"):
            continue
        yield (cells[0], cells[2], cells[3]) if len(cells) == 4 else ("", cells[2], cells[2])


def numbers_of(text):
    """The rows of "2.14 to 2.19, 2.21"."""
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition(" to ")
        chapter, _, start = first.partition(".")
        end = last.partition(".")[2] if last else start
        yield from (f"{chapter}.{number}" for number in range(int(start), int(end) + 1))


def problems_of(text, known, named):
    """What is wrong with the tests that a cell names: `suite` of run_e2e.py, `Suite` or
    `Suite.Test` of gtest, which may end in `*`."""
    yield from (f"there is no suite {name}" for name in re.findall(r"`([a-z]\w*)`", text)
                if name not in named)
    for name in re.findall(r"`([A-Z]\w*[a-z][\w.]*\*?)`", text):
        pattern = re.escape(name.rstrip("*")) + ("" if "." in name else r"\.") + (
            ".*" if "*" in name or "." not in name else "")
        if not any(re.fullmatch(pattern, test) for test in known):
            yield f"there is no test {name}"


def main():
    known, named, listed, problems, count = unit_tests(), suites(), set(), [], 0
    for numbers, now, test in rows():
        count += 1
        listed |= set(numbers_of(numbers))
        problems += [f"{numbers or now}: {text}" for text in problems_of(test, known, named)]
        if now.startswith(("done", "known")) and not re.search(r"`\w+", test):
            problems.append(f"{numbers}: it is {now.split()[0].strip(',')} and names no test")
    wanted = os.path.join(SHARED, "spec", "gaps.md")
    if os.path.exists(wanted):
        of_list = re.findall(r"^\| (\d+\.\d+) \|", read(wanted), re.MULTILINE)
        problems += [f"{number} has no row" for number in of_list if number not in listed]
    for problem in problems:
        print(problem)
    print(f"gaps: {count} rows, {len(problems)} problems")
    return 1 if problems or count < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
