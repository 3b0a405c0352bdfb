#!/usr/bin/python3
"""Counts the worst patterns of prose in comments and pages; the counts may only fall.

STYLE.md, "Prose", has the rules and pairs of before and after. prose.json holds each top folder's
count of each pattern; exit 1 where one grew. `--lower` writes the lower numbers; `--list FOLDER`
prints the places.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import ROOT, is_cpp, project_files, read  # noqa: E402

ALLOWED = "tests/lint/prose.json"
# Name, what is wrong, pattern over the text of one comment or paragraph.
PATTERNS = [
    ("headline", "begins with a genitive or a bare question word; begin with the subject",
     re.compile(r"^(?:Of|The same|What|Who|Whose|Whether|How|That of|Those of) ")),
    ("told", "'told' or 'tells of' for emit, report or say",
     re.compile(r"\b(?:is|are|was|were) told\b|\btells? of\b|\btold of\b")),
    ("german-not", "'needs ... not', 'has not': use do not, has no",
     re.compile(r"\b(?:needs?|knows?|takes?|has|have) (?:\w+ )?not\b(?! (?:been|yet|to|only|so))")),
    ("let-go", "'lets go', 'gets ready', 'gives way': name the action",
     re.compile(r"\b(?:lets?|let) go\b|\bgets? ready\b|\bgives? way\b")),
    ("bare-who", "a relative clause without a noun: write the noun",
     re.compile(r"(?:^|[;,:.] )(?:[Ww]ho|[Ww]hose) (?!is\b.*\?)")),
]


def comments(path, text):
    """The comments of a source, the paragraphs of a page: one string each, lines joined."""
    if is_cpp(path):
        pattern, mark = r"(?:^[ \t]*//[^\n]*\n)+|[^\n/\"]//[^\n]*\n", r"^[ \t]*//+ ?"
    elif path.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")):
        pattern, mark = r"(?:^[ \t]*#[^\n]*\n)+", r"^[ \t]*#+ ?"
    elif path.endswith(".md"):
        pattern, mark = r"(?:^[^\n]+\n)+", r"^[ \t]*(?:[-*] |\d+\. )?"
    else:
        return
    for match in re.finditer(pattern, text + "\n", re.M):
        block = match.group(0)
        if not is_cpp(path) or block.lstrip().startswith("//"):
            lines = [re.sub(mark, "", line) for line in block.strip("\n").split("\n")]
        else:
            lines = [block[block.index("//"):].lstrip("/ ").rstrip("\n")]
        yield text.count("\n", 0, match.start()) + 1, " ".join(line.strip() for line in lines)


def findings(root):
    for path in project_files(root):
        # Pages that show what to avoid, or that programs write.
        if path == "STYLE.md" or path.endswith(("DIAGNOSTICS.md", "OPERATORS.md", "EXAMPLES.md")):
            continue
        for line, text in comments(path, read(root, path)):
            for name, what, pattern in PATTERNS:
                for _ in pattern.finditer(text):
                    yield name, path, line, what


def counts(found):
    result = {}
    for name, path, _, _ in found:
        folder = path.split("/")[0] if "/" in path else "."
        folder_counts = result.setdefault(folder, {})
        folder_counts[name] = folder_counts.get(name, 0) + 1
    return result


def compare(now, allowed):
    """(grown, fallen): lists of (folder, pattern, now, allowed)."""
    keys = {(folder, name) for table in (now, allowed) for folder in table
            for name in table[folder]}
    rows = [(folder, name, now.get(folder, {}).get(name, 0), allowed.get(folder, {}).get(name, 0))
            for folder, name in sorted(keys)]
    return [r for r in rows if r[2] > r[3]], [r for r in rows if r[2] < r[3]]


def main():
    found = list(findings(ROOT))
    if sys.argv[1:2] == ["--list"]:
        for name, path, line, what in found:
            if path.startswith(sys.argv[2]):
                print(f"{path}:{line}: {name}: {what}")
        return 0
    now = counts(found)
    with open(os.path.join(ROOT, ALLOWED), encoding="utf-8") as f:
        allowed = json.load(f)
    grown, fallen = compare(now, allowed)
    if "--lower" in sys.argv[1:]:
        for folder, name, count, _ in fallen:
            allowed[folder][name] = count
        with open(os.path.join(ROOT, ALLOWED), "w", encoding="utf-8") as f:
            json.dump(allowed, f, indent=2, sort_keys=True)
            f.write("\n")
        fallen = []
    for folder, name, count, limit in grown:
        print(f"prose: {name} in {folder}: {count}, allowed {limit}; "
              f"tests/lint/check_prose.py --list {folder}")
    for folder, name, count, limit in fallen:
        print(f"prose: {name} in {folder} fell to {count} from {limit}: "
              "run tests/lint/check_prose.py --lower")
    print(f"prose: {len(found)} findings, {len(grown)} counts grew")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
