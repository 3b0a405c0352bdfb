"""The project's files, as the lints see them."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Problem:
    """One finding. `rule` is the name under which the ratchet counts it."""

    def __init__(self, rule, path, line, message):
        self.rule, self.path, self.line, self.message = rule, path, line, message

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message} [{self.rule}]"


def project_files(root=ROOT):
    """Paths relative to root, with forward slashes, sorted: what git tracks or would add."""
    if os.path.exists(os.path.join(root, ".git")):
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root,
                             check=True, stdout=subprocess.PIPE).stdout
        names = [n.decode() for n in out.split(b"\0") if n]
        # A file deleted but not yet committed is still listed.
        return sorted({n for n in names if os.path.isfile(os.path.join(root, n))})
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, n), root).replace(os.sep, "/")
                  for n in names]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_cpp(path):
    return path.endswith((".cc", ".h", ".inc"))


_CPP_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-FxX])'(?:\\.|[^'\\\n])+'", re.S)


def blank_cpp(text, keep_comments=False):
    """The same text with strings, and comments unless kept, overwritten by blanks; lines stay."""
    def blank(match):
        token = match.group(0)
        if keep_comments and token[0] == "/":
            return token
        return re.sub(r"[^\n]", " ", token)
    return _CPP_TOKENS.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
