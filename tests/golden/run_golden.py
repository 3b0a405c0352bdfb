#!/usr/bin/python3
"""Golden cases: what npuc says about models, configs and files that it refuses or doubts.

    run_golden.py [--update] [CASE...]   runs cases, compares with expected.txt (or rewrites it)
    run_golden.py --coverage [--update]  every diagnostic kind is in some case, and DIAGNOSTICS.md
                                         is what the cases and diagnostic_kinds.inc give

A case is a folder: config.yaml and other files, recipe.py whose files() returns further ones as
{name: bytes}, commands.txt with one command line a line (default: npuc config.yaml -o out).
NPUC_BIN_DIR picks the build (default build/bin). Exit 0 passed, 1 failed.
"""

import difflib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
KINDS = os.path.join(ROOT, "compiler_core", "base", "diagnostic_kinds.inc")
PAGE = os.path.join(ROOT, "compiler_core", "DIAGNOSTICS.md")
EXCEPTIONS = os.path.join(HERE, "exceptions.json")
TIMEOUT_SECONDS = 60
DEFAULT_COMMANDS = "npuc config.yaml -o out\n"
# The list of kinds without a case may only shrink: lower this with it.
EXCEPTIONS_ALLOWED = 3

sys.dont_write_bytecode = True
sys.path.insert(0, HERE)


def cases():
    return sorted(name for name in os.listdir(HERE)
                  if os.path.exists(os.path.join(HERE, name, "expected.txt"))
                  or os.path.exists(os.path.join(HERE, name, "recipe.py"))
                  or os.path.exists(os.path.join(HERE, name, "config.yaml")))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def make_files(case, folder):
    """The case's inputs, given and made, in a folder of their own."""
    source = os.path.join(HERE, case)
    for name in os.listdir(source):
        if name not in ("recipe.py", "expected.txt", "commands.txt", "__pycache__"):
            shutil.copy(os.path.join(source, name), os.path.join(folder, name))
    recipe = os.path.join(source, "recipe.py")
    if not os.path.exists(recipe):
        return
    spec = importlib.util.spec_from_file_location("recipe_" + case, recipe)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, content in module.files().items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)


def run_case(case):
    """The text that expected.txt should be: commands, what they said on standard error, exits."""
    commands_file = os.path.join(HERE, case, "commands.txt")
    commands = read(commands_file) if os.path.exists(commands_file) else DEFAULT_COMMANDS
    out = ""
    with tempfile.TemporaryDirectory(prefix="npuc-golden-") as folder:
        make_files(case, folder)
        for line in commands.splitlines():
            program, *arguments = shlex.split(line)
            result = subprocess.run([os.path.join(BIN, program), *arguments], cwd=folder,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=False,
                                    env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
            said = result.stderr.decode("utf-8", "replace")
            # A data file's lines shift with every edit of it.
            out += f"$ {line}\n" + re.sub(r"(cores/\w+\.yaml):\d+", r"\1:LINE", said)
            out += f"exit {result.returncode}\n"
    return out


def expected_of(case):
    """The text of the case's expected.txt; empty where it is not written yet."""
    path = os.path.join(HERE, case, "expected.txt")
    return read(path) if os.path.exists(path) else ""


def check_cases(names, update):
    failed = 0
    for case in names:
        expected = expected_of(case)
        found = run_case(case)
        if found == expected:
            continue
        if update:
            with open(os.path.join(HERE, case, "expected.txt"), "w", encoding="utf-8") as f:
                f.write(found)
            print(f"{case}: rewritten")
            continue
        failed += 1
        sys.stdout.writelines(difflib.unified_diff(
            expected.splitlines(True), found.splitlines(True), f"{case}/expected.txt", "found"))
    print(f"golden: {len(names) - failed} of {len(names)} cases as expected")
    if failed:
        print("where the new text is right: tests/golden/run_golden.py --update, and review it")
    return failed == 0


def kinds():
    """(number, name, severity, code, summary) of every kind that is not retired."""
    found = re.findall(r'^NPUC_DIAGNOSTIC\((\d+), (\w+), k(\w+), k(\w+),\s*"((?:[^"\\]|\\.)*)"\)',
                       read(KINDS), re.M)
    retired = dict(re.findall(r'^NPUC_DIAGNOSTIC_RETIRED\((\d+),\s*"([^"]*)"\)', read(KINDS), re.M))
    return [(int(n), *rest) for n, *rest in found], {int(n): text for n, text in retired.items()}


def examples():
    """number -> (case, line): the shortest message of that kind in any case."""
    best = {}
    for case in cases():
        for line in expected_of(case).splitlines():
            match = re.search(r"\[NPUC(\d{4})\]$", line)
            if not match:
                continue
            number = int(match.group(1))
            if number not in best or len(line) < len(best[number][1]):
                best[number] = (case, line)
    return best


RANGES = {1000: "Config", 1100: "Model files and front ends", 1200: "Operator support",
          1300: "Graph", 1400: "Lowering and memory", 1500: "Artifacts, simulator and tools",
          1600: "Side inputs", 1700: "Jobs", 1800: "Other", 1900: "Internal"}


def page(all_kinds, retired, found, exceptions):
    out = ["# Diagnostics", "",
           "Generated by `tests/golden/run_golden.py --coverage --update` from",
           "`base/diagnostic_kinds.inc` and the golden cases; do not edit. An id never changes its",
           "meaning. Errors end a compile with exit code 1; warnings and notes do not. A message",
           "reads `file:line:column: node 'N' (Operator): what was found against what is allowed;",
           "what to do [id]`, and `--json` gives the same fields one by one. The link at each",
           "example is the case that produces it.", ""]
    section = None
    for number, name, severity, _, summary in all_kinds:
        if number // 100 * 100 != section:
            section = number // 100 * 100
            out += [f"## {RANGES[section]} ({section}-{section + 99})", ""]
        out += [f"### NPUC{number} {name}", "", f"{severity.capitalize()}: {summary}.", ""]
        if number in found:
            case, line = found[number]
            out += [f"[Example](../tests/golden/{case}/expected.txt):", "", f"    {line}", ""]
        else:
            out += [f"No example: {exceptions.get(str(number), 'none')}.", ""]
    if retired:
        out += ["## Retired", "", "Never used again.", ""]
        out += [f"- NPUC{number}: {text}" for number, text in sorted(retired.items())] + [""]
    return "\n".join(out)


def lines_without_fix():
    """Of what the cases expect: a diagnostic says what to do behind a semicolon."""
    for case in cases():
        for line in expected_of(case).splitlines():
            if re.search(r"\[NPUC\d+\]$", line) and "; " not in line:
                yield f"{case}: nothing says what to do: {line}"


def coverage_problems(all_kinds, retired, found, exceptions):
    known = {number for number, *_ in all_kinds}
    for number, name, *_ in all_kinds:
        if number not in found and str(number) not in exceptions:
            yield (f"NPUC{number} {name}: no golden case produces it; add one in tests/golden, and "
                   "run tests/golden/run_golden.py --update CASE")
    for number in sorted(found):
        if number not in known:
            yield f"NPUC{number} in {found[number][0]}: no such kind in diagnostic_kinds.inc"
        if str(number) in exceptions:
            yield f"NPUC{number}: {found[number][0]} produces it; take it out of exceptions.json"
    for number in exceptions:
        if int(number) not in known:
            yield f"exceptions.json: NPUC{number} is no kind"
    if len(exceptions) != EXCEPTIONS_ALLOWED:
        yield (f"exceptions.json has {len(exceptions)} entries and run_golden.py allows "
               f"{EXCEPTIONS_ALLOWED}: the list may only shrink, and the number with it")


def check_coverage(update):
    all_kinds, retired = kinds()
    found = examples()
    exceptions = json.loads(read(EXCEPTIONS))
    problems = [*coverage_problems(all_kinds, retired, found, exceptions), *lines_without_fix()]
    text = page(all_kinds, retired, found, exceptions)
    if update:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    elif not os.path.exists(PAGE) or read(PAGE) != text:
        problems.append("compiler_core/DIAGNOSTICS.md is stale: run "
                        "tests/golden/run_golden.py --coverage --update")
    for problem in problems:
        print(problem)
    print(f"diagnostics: {len(all_kinds)} kinds, {len(all_kinds) - len(exceptions)} shown by a "
          f"case, {len(exceptions)} excepted, {len(problems)} problems")
    return not problems


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    names = [a for a in arguments if not a.startswith("-")]
    if set(a for a in arguments if a.startswith("-")) - {"--update", "--coverage"}:
        print(__doc__)
        return 2
    if "--coverage" in arguments:
        return 0 if check_coverage(update) else 1
    return 0 if check_cases(names or cases(), update) else 1


if __name__ == "__main__":
    sys.exit(main())
