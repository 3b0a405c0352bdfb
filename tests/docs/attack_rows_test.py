#!/usr/bin/python3
"""tests/ATTACKS.md against the tree: there is a row of each line of the issue, each row names
tests, and each test that it names exists."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINES = 33
PROGRAMS = "run_e2e.py|run_golden.py|store_attacks.py|http_attacks.py|chaos.py|drive.mjs"


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def unit_tests():
    """Suite.Name of the tests in C++, and Class.name of the lints'."""
    found = set()
    for top in ("cache", "client", "compiler_core", "server", "tests"):
        for where, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith("_test.cc"):
                    tests = re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)", read(where, name), re.M)
                    found |= {f"{suite}.{test}" for suite, test in tests}
    suite = ""
    for kind, name in re.findall(r"^ *(class|def) (\w+)", read("tests", "lint", "lint_test.py"),
                                 re.M):
        suite = name if kind == "class" else suite
        found.add(f"{suite}.{name}")
    return found


def cases():
    """What each program can be asked for."""
    listed = re.search(r"SUITES = \((.*?)\)", read("tests", "e2e", "run_e2e.py"), re.DOTALL)[1]
    fault = os.path.join("tests", "fault")
    return {"run_e2e.py": set(re.findall(r'"(\w+)"', listed)),
            "run_golden.py": set(os.listdir(os.path.join(ROOT, "tests", "golden"))),
            "store_attacks.py": tests_of(read(fault, "store_attacks.py"), "TESTS"),
            "http_attacks.py": tests_of(read(fault, "http_attacks.py"), "ATTACKS"),
            "chaos.py": {name[:-len("_main.cc")] for name in os.listdir(os.path.join(ROOT, fault))},
            "drive.mjs": set(re.findall(r"function (\w+)\(",
                                        read("client", "dashboard", "tests", "drive.mjs")))}


def tests_of(text, name):
    return set(re.findall(r"\w+", re.search(rf"^{name} = \((.*?)\)", text, re.DOTALL | re.M)[1]))


def problems_of(page, units, by_program):
    rows = re.findall(r"^\| (\d+) \|.*?\|.*?\| (`.*?) \|.*\|$", page, re.M)
    problems = [f"line {number} has no row" for number in range(1, LINES + 1)
                if [int(row[0]) for row in rows].count(number) != 1]
    for number, text in rows:
        for name in re.findall(r"`([^`]+)`", text):
            program = re.fullmatch(rf"({PROGRAMS}) (\w+)", name)
            known = program[2] in by_program[program[1]] if program else name in units
            if not known:
                problems.append(f"line {number}: there is no test {name}")
    return problems


def main():
    problems = problems_of(read("tests", "ATTACKS.md"), unit_tests(), cases())
    for problem in problems:
        print(problem)
    print(f"attacks: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
