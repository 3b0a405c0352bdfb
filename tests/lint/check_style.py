#!/usr/bin/python3
"""Checks the rules of style that no compiler and no clang-tidy check knows.

Prints the findings of each rule that has more than its number in ratchet.json (zero where none is
named); exit 1 if there is one, and also where a number could be lowered: counts may only fall.
`--lower` writes the lower numbers.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import ROOT, Problem, blank_cpp, is_cpp, line_of, project_files, read  # noqa: E402

MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 800
MAX_LINE_COLUMNS = 100
RATCHET = "tests/lint/ratchet.json"
OPERATORS = "compiler_core/ir/graph/op_list.inc"
METRICS = "server/observe/metric_list.inc"

# rule, where it holds, where it does not, pattern in code (strings and comments blanked), message.
BANNED = [
    ("core-exit", r"compiler_core/", r"compiler_core/tools/",
     r"\b(?:std::)?(?:_?exit|_Exit|quick_exit)\s*\(", "ends the process; return a status"),
    ("core-abort", r"compiler_core/", r"compiler_core/base/status\.h$",
     r"\babort\s*\(", "aborts; use NPUC_CHECK for an invariant, a status for anything else"),
    ("core-getenv", r"compiler_core/", r"compiler_core/tools/|.*_test\.cc$|.*test_util",
     r"\b(?:secure_)?getenv\s*\(", "reads the environment; take an option"),
    ("core-stdout", r"compiler_core/", r"compiler_core/tools/|compiler_core/base/status\.h$",
     r"\bstd::(?:cout|cerr|clog)\b|(?<![\w])(?:std::)?(?:v?printf|puts|putchar)\s*\(|\bstdout\b"
     r"|(?<![\w])(?:std::)?fprintf\s*\(", "writes to the terminal; report through the observer"),
    ("core-clock", r"compiler_core/", r"compiler_core/tools/|.*_test\.cc$",
     r"\babsl::Now\s*\(|\bsystem_clock\b|(?<![\w.>])(?:std::)?time\s*\(\s*(?:nullptr|NULL|0|&)",
     "reads the clock; results may not depend on it"),
    ("std-string-view", r".*", r"^$", r"\bstd::string_view\b|<string_view>",
     "std::string_view does not convert to absl::string_view here; use the latter"),
    ("test-sleep", r".*(_test\.cc|tests/.*\.cc)$", r"^$",
     r"\b(?:sleep_for|sleep_until|SleepFor|usleep|nanosleep)\s*\(|(?<![\w.>:])sleep\s*\(",
     "sleeps in a test; wait for the event, or inject a clock"),
    ("own-allocator", r".*", r"^$", r"(?<!::)\boperator\s+(?:new|delete)\b",
     "replaces the allocator, which no sanitizer then sees; use a kept library"),
    ("disabled-test", r".*", r"^$", r"\bDISABLED_\w+", "a disabled test; mend or delete it"),
    ("random-device", r"compiler_core/", r"^$", r"\brandom_device\b|(?<![\w])s?rand\s*\(",
     "unseeded random numbers; same input, same bytes"),
]

TEXT_SUFFIXES = (".cc", ".h", ".inc", ".py", ".sh", ".cmake", ".proto", ".md", ".yaml", ".yml",
                 "CMakeLists.txt")
# Folders of code that need no README of their own, and where they are described instead.
NO_README = [
    r"compiler_core/ops/.+",  # compiler_core/ops/README.md and each op's restrictions
    r"proto/.+",  # proto/README.md
    r"server/(jobs|worker)/proto/.+",  # the room's
    r"compiler_core/frontends/[^/]+/proto(/.*)?",  # the front end's
    r"tests/fuzz/corpus(/.*)?", r"tests/golden/.+",  # tests/README.md
    r"\.ci", r"",
]
CODE_SUFFIXES = (".cc", ".h", ".py", ".sh", ".proto", ".cmake", ".js", ".html")
# Written by us, but not compiled by the build: included by other files or by their users.
NOT_COMPILED = re.compile(r"tests/golden/")

_UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


def check_banned(path, text, problems):
    code = blank_cpp(text)
    for rule, where, but_not, pattern, message in BANNED:
        if not re.match(where, path) or re.match(but_not, path):
            continue
        for match in re.finditer(pattern, code):
            if rule == "core-stdout" and re.match(r"\(\s*stderr", code[match.end() - 1:]):
                if path.endswith(("_test.cc", "_fuzz.cc")):
                    continue
            problems.append(Problem(rule, path, line_of(code, match.start()),
                                    f"'{match.group(0).strip()}' {message}"))


# Texts name operators in the front ends and in the text form of graphs; elsewhere they are an enum.
_NAMES_OPERATORS = re.compile(r"compiler_core/(?:frontends/|ir/graph/text\.cc$)")
_OPERATOR_AS_TEXT = re.compile(
    r'(?:\b(?:op|op_name|name)(?:\(\))?|\bNameOf\([^()]*\))\s*[!=]=\s*"([A-Z]\w*)"'
    r'|"([A-Z]\w*)"\s*[!=]=\s*[\w.>()-]*\b(?:op|NameOf)\b')


def check_operator_texts(path, text, operators, problems):
    if not path.startswith("compiler_core/") or _NAMES_OPERATORS.match(path):
        return
    for match in _OPERATOR_AS_TEXT.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if (match.group(1) or match.group(2)) in operators and "//" not in line:
            problems.append(Problem("operator-text", path, line_of(text, match.start()),
                                    f"'{match.group(0)}' compares an operator's name; compare Op"))


_SCOPE = re.compile(r"^\s*(?:inline\s+)?namespace\b|^\s*extern\s*$")
_TYPE = re.compile(r"\b(?:class|struct|union|enum)\b")


def _kind_of_block(header, outer):
    """What a '{' opens, by the text since the last ';' or brace."""
    if outer not in ("scope", "type"):
        return "inner"
    if _SCOPE.match(header):
        return "scope"
    if header.strip() == "" or header.lstrip().startswith((",", ":")):
        return "function"  # the body behind a braced member initialiser
    before_parenthesis = header.split("(")[0]
    if _TYPE.search(before_parenthesis) and not re.search(r"\)\s*(const\s*)?$", header):
        return "type"
    return "function" if "(" in header else "inner"


def _opens_data(before):
    """Whether a '{' inside a function opens an initialiser list rather than code."""
    return re.search(r"(?:[=(,{]|\breturn|\bnew\s+[\w:<>,\s]+)\s*$", before) is not None


def functions(text):
    """Yields (first line, lines) of each function body with its header; a heuristic on braces.

    Lines inside a braced initialiser, such as a test's table of cases, are data and do not count.
    """
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  blank_cpp(text), flags=re.M | re.S)
    stack = []
    start = parentheses = data_lines = data_start = 0
    for match in re.finditer(r"[{};()]", code):
        char, at = match.group(0), match.start()
        outer = stack[-1][0] if stack else "scope"
        if char in "()":
            parentheses += 1 if char == "(" else -1
        elif char == "{":
            header = code[start:at]
            kind = "inner" if parentheses else _kind_of_block(header, outer)
            first = start + len(header) - len(header.lstrip())
            if outer in ("data", "in data"):
                kind = "in data"
            elif outer in ("function", "inner") and _opens_data(code[max(0, at - 40):at]):
                kind = "data"
            stack.append((kind, line_of(code, first), parentheses))
            if kind == "function":
                data_lines = 0
            elif kind == "data":
                data_start = line_of(code, at)
            parentheses = 0
            start = at + 1
        elif char == "}":
            if stack:
                kind, line, parentheses = stack.pop()
                if kind == "function":
                    yield line, line_of(code, at) - line + 1 - data_lines
                elif kind == "data":
                    data_lines += line_of(code, at) - data_start
            start = at + 1
        elif parentheses == 0:
            start = at + 1


def check_lengths(path, text, problems):
    lines = text.count("\n")
    # A page that a program writes is as long as what it tells.
    generated = path.endswith(".md") and "\n\nGenerated by `tests/" in text[:200]
    if lines > MAX_FILE_LINES and not generated:
        problems.append(Problem("file-length", path, 0,
                                f"{lines} lines; at most {MAX_FILE_LINES}: split it"))
    if path.endswith((".cc", ".h")):
        for line, length in functions(text):
            if length > MAX_FUNCTION_LINES:
                problems.append(Problem("function-length", path, line,
                                        f"a function of {length} lines; at most "
                                        f"{MAX_FUNCTION_LINES}: split it"))
    if path.endswith((".py", ".sh", ".cmake", ".proto", "CMakeLists.txt")):
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MAX_LINE_COLUMNS:
                problems.append(Problem("line-length", path, number,
                                        f"{len(line)} columns; at most {MAX_LINE_COLUMNS}"))


def check_guard(path, text, problems):
    guard = "NPUC_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
    code = blank_cpp(text)
    if not re.match(rf"\s*#ifndef {guard}\s*\n#define {guard}\s*\n", code):
        problems.append(Problem("header-guard", path, 1, f"the header guard is not {guard}"))


def check_text(path, text, problems):
    for number, line in enumerate(text.split("\n"), 1):
        if _UNFINISHED.search(line):
            problems.append(Problem("unfinished", path, number,
                                    f"'{_UNFINISHED.search(line).group(0)}': do it, or write an "
                                    "issue"))
    if is_cpp(path) or path.endswith((".cmake", "CMakeLists.txt")):
        code = blank_cpp(text, keep_comments=True) if is_cpp(path) else text
        for number, line in enumerate(code.split("\n"), 1):
            if not line.isascii():
                problems.append(Problem("non-ascii", path, number, "not ASCII outside a string"))


def check_orphans(root, files, operators, problems):
    """Every source is in a CMakeLists.txt of its folder or of one above it; that of an operator is
    in the list of operators."""
    of_operators = {f"compiler_core/ops/{o}/{o}.cc" for o in map(str.lower, operators)}
    listings = {os.path.dirname(f): read(root, f) for f in files if f.endswith("CMakeLists.txt")}
    for path in files:
        if (not path.endswith((".cc", ".proto")) or NOT_COMPILED.match(path)
                or path in of_operators):
            continue
        folder = os.path.dirname(path)
        while True:
            name = re.escape(os.path.relpath(path, folder or "."))
            if path.endswith(".proto"):
                # Named from its import root, as often as not without the suffix.
                name = re.sub(r"^proto/", "(?:proto/)?", name).replace(r"\.proto", r"(?:\.proto)?")
            if re.search(rf"(?<![\w./-])(?:\$\{{\w+\}}/)?{name}(?![\w.-])",
                         listings.get(folder, "")):
                break
            if folder == "":
                # npuc.cmake's own functions add these.
                if path not in read(root, "cmake/npuc.cmake"):
                    problems.append(Problem("orphan", path, 0, "in no CMakeLists.txt"))
                break
            folder = os.path.dirname(folder)


def check_metrics(root, files, problems):
    """A metric that nothing counts is a promise of deploy/METRICS.md that nobody keeps."""
    text = read(root, METRICS) if METRICS in files else ""
    code = "".join(read(root, f) for f in files if text and re.match(r"server/.*\.(cc|h)$", f)
                   and not f.endswith("_test.cc"))
    for match in re.finditer(r"^NPUC_METRIC\((\w+)", text, re.M):
        if not re.search(rf"\bMetric::{match.group(1)}\b", code):
            problems.append(Problem("unset-metric", METRICS, line_of(text, match.start()),
                                    f"no source of server/ sets {match.group(1)}"))


def check_readmes(files, problems):
    folders = {os.path.dirname(f) for f in files if f.endswith(CODE_SUFFIXES)}
    for folder in sorted(folders):
        if any(re.fullmatch(p, folder) for p in NO_README):
            continue
        if f"{folder}/README.md" not in files:
            problems.append(Problem("readme", folder, 0, "the folder has no README.md"))


def check(root):
    problems = []
    files = project_files(root)
    operators = set()
    if OPERATORS in files:
        operators.update(re.findall(r"^NPUC_OP\((\w+)\)", read(root, OPERATORS), flags=re.M))
    for path in files:
        if not path.endswith(TEXT_SUFFIXES):
            continue
        text = read(root, path)
        check_text(path, text, problems)
        check_lengths(path, text, problems)
        if is_cpp(path):
            check_banned(path, text, problems)
            check_operator_texts(path, text, operators, problems)
        if path.endswith(".h"):
            check_guard(path, text, problems)
    check_orphans(root, files, operators, problems)
    check_metrics(root, files, problems)
    check_readmes(set(files), problems)
    return problems


def ratchet(problems, allowed):
    """(rules above their number, rules below it) as dicts rule -> count."""
    counts = {}
    for problem in problems:
        counts[problem.rule] = counts.get(problem.rule, 0) + 1
    above = {rule: n for rule, n in counts.items() if n > allowed.get(rule, 0)}
    below = {rule: counts.get(rule, 0) for rule, n in allowed.items() if counts.get(rule, 0) < n}
    return above, below


def main():
    problems = check(ROOT)
    with open(os.path.join(ROOT, RATCHET), encoding="utf-8") as f:
        allowed = json.load(f)
    above, below = ratchet(problems, allowed)
    if "--lower" in sys.argv[1:]:
        lowered = {r: min(n, below.get(r, n)) for r, n in allowed.items()}
        with open(os.path.join(ROOT, RATCHET), "w", encoding="utf-8") as f:
            json.dump({r: n for r, n in lowered.items() if n}, f, indent=2, sort_keys=True)
            f.write("\n")
        below = {}
    for problem in problems:
        if problem.rule in above:
            print(problem)
    for rule, count in sorted(above.items()):
        print(f"style: {rule}: {count}, allowed {allowed.get(rule, 0)}")
    for rule, count in sorted(below.items()):
        print(f"style: {rule} fell to {count}: run tests/lint/check_style.py --lower")
    print(f"style: {len(problems)} findings, {sum(above.values())} of rules above their number")
    return 1 if above or below else 0


if __name__ == "__main__":
    sys.exit(main())
