#!/usr/bin/python3
"""Checks the form of commit messages: CONTRIBUTING.md, "Commits".

    check_commits.py             every commit since the rule began, merges left out
    check_commits.py --file F    the message in F; what the hook tests/lint/hooks/commit-msg calls

Prints each problem; exit 1 if there is one.
"""

import re
import subprocess
import sys

SUBJECT_COLUMNS = 72
# The last commit before the rule.
BEGIN = "333aac56e3b427edd21b32ca10309539e922143b"

_PREFIX = re.compile(r"^[\w./-]+: ")
_NO_VERB = {"a", "an", "the", "this", "that", "it", "its", "what", "who", "where", "which", "more",
            "some", "all", "no", "each", "every", "of", "in", "on", "for", "with", "and", "new"}
# Imperatives that look like another form.
_IMPERATIVE = {"embed", "feed", "need", "seed", "shed", "speed", "bring", "string", "process",
               "pass", "address", "compress", "access", "express", "discuss", "focus", "bypass",
               "suppress", "press", "guess", "miss", "cross", "toss", "bless", "witness",
               "harness", "ring", "spring", "sing", "ping", "swing", "red", "shred", "exceed",
               "proceed", "succeed", "wed", "bias", "alias", "canvas"}


def _is_imperative(word):
    word = word.lower()
    if word in _IMPERATIVE:
        return True
    return word not in _NO_VERB and not re.search(r"(?:ed|ing|s)$", word)


def problems_of(message):
    """What is wrong with a message, one sentence each; comment lines of git are left out."""
    lines = [line for line in message.rstrip().split("\n") if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if re.match(r"(?:Merge|Revert|fixup!|squash!) ?", subject):
        return []
    problems = []
    if len(subject) > SUBJECT_COLUMNS:
        problems.append(f"the subject has {len(subject)} columns, at most {SUBJECT_COLUMNS}")
    words = _PREFIX.sub("", subject).split()
    if not words or not _is_imperative(words[0]):
        problems.append("the subject does not begin with a verb in the imperative: say what the "
                        "commit does, as in 'Refuse two Host headers'")
    if subject.endswith("."):
        problems.append("the subject ends with a full stop")
    if len(lines) > 1 and lines[1].strip():
        problems.append("no blank line behind the subject")
    elif not any(line.strip() for line in lines[1:]):
        problems.append("no body: say why, and what was left out or rejected")
    return problems


def commits():
    """(short hash, message) of the commits since the rule began; none in a clone without it."""
    known = subprocess.run(["git", "cat-file", "-e", f"{BEGIN}^{{commit}}"], check=False,
                           stderr=subprocess.DEVNULL).returncode == 0
    if not known:
        return []
    out = subprocess.run(["git", "log", "--no-merges", "--format=%h%n%B%x00", f"{BEGIN}..HEAD"],
                         check=True, stdout=subprocess.PIPE).stdout.decode(errors="replace")
    return [tuple(entry.strip("\n").split("\n", 1)) for entry in out.split("\0") if entry.strip()]


def main():
    if sys.argv[1:2] == ["--file"]:
        with open(sys.argv[2], encoding="utf-8", errors="replace") as f:
            found = problems_of(f.read())
        for problem in found:
            print(f"commit message: {problem}", file=sys.stderr)
        return 1 if found else 0
    count = bad = 0
    for name, message in commits():
        count += 1
        found = problems_of(message)
        bad += bool(found)
        for problem in found:
            print(f"{name} '{message.splitlines()[0][:60]}': {problem}")
    print(f"commits: {bad} of {count} since the rule began are not in the form")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
