#!/usr/bin/python3
"""server/LIMITS.md against the code: each row's constant has the row's value; its test exists."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def tests():
    """Suite.Name of every gtest of server/ and cache/."""
    found = set()
    for folder in ("server", "cache"):
        for where, _, files in os.walk(os.path.join(ROOT, folder)):
            for name in files:
                if name.endswith("_test.cc"):
                    text = read(os.path.join(where, name))
                    found |= {f"{suite}.{test}" for suite, test in re.findall(
                        r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.MULTILINE)}
    return found


def check_constant(cell, value):
    name, _, path = cell.partition(" in ")
    if not path or not os.path.exists(os.path.join(ROOT, path)):
        return f"'{cell}' is not NAME in PATH"
    values = re.findall(rf"\b{name} = ([^;]+);", read(path))
    return None if value in values else f"{name} in {path} is {values}, the row says {value}"


def main():
    known, rows, problems = tests(), 0, []
    for line in read("server/LIMITS.md").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 6 or cells[0] == "limit" or set(cells[0]) == {"-"}:
            continue
        rows += 1
        if cells[5] not in known:
            problems.append(f"{cells[0]}: there is no test {cells[5]}")
        wrong = check_constant(cells[1], cells[2]) if cells[1] != "-" else None
        if wrong:
            problems.append(f"{cells[0]}: {wrong}")
    for problem in problems:
        print(problem)
    print(f"limits: {rows} rows, {len(problems)} problems")
    return 1 if problems or rows < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
