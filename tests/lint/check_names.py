#!/usr/bin/python3
"""Checks that no two headers define the same qualified name, and that folders have namespaces.

Two definitions of one name in one program break the one-definition rule of C++: the linker keeps
either, and no compiler says so. Looks at types, aliases and constants at namespace scope; functions
may be overloaded over several headers and are left out. Sources of `cache/` and of each folder of
`server/` belong to the folder's namespace, npuc::cache, npuc::jobs and so on. Prints each problem
with its place; exit 1 if there is one.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import Problem, blank_cpp, line_of, project_files, read  # noqa: E402

_NAMESPACE = re.compile(r"\bnamespace\s*([\w:]*)\s*$")
_TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[\w+\]\]\s*)?"
                   r"(?:NPUC_\w+(?:\([^)]*\))?\s+)?(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.S)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=")
_CONSTANT = re.compile(r"\b(?:constexpr|constinit|const)\b[^=({]*?"
                       r"\b(\w+)\s*(?:\[[^\]]*\]\s*)*(?==|$)", re.S)
_TEMPLATE = re.compile(r"\btemplate\s*<")
_OPENED = re.compile(r"^namespace (npuc[\w:]*) \{", re.M)


def _without_preprocessor(code):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  code, flags=re.M | re.S)


def definitions(text):
    """Yields (qualified name, line) of the types, aliases and constants at namespace scope."""
    code = _without_preprocessor(blank_cpp(text))
    scopes = []  # per open brace: the namespace's name, or None inside anything else
    begin = 0
    for match in re.finditer(r"[{};]", code):
        header = code[begin:match.start()]
        inside_namespaces = None not in scopes
        line = line_of(code, begin + len(header) - len(header.lstrip()))
        names = []
        if inside_namespaces:
            alias = _ALIAS.search(header)
            constant = _CONSTANT.search(header)
            is_function = "(" in header.split("=")[0]
            if match.group(0) == "{" and (kind := _TYPE.search(header)) and not is_function:
                names.append(kind.group(1))
            elif match.group(0) == ";" and alias:
                names.append(alias.group(1))
            elif constant and not is_function and not _TEMPLATE.search(header):
                names.append(constant.group(1))
        path = "::".join(s for s in scopes if s) if inside_namespaces else ""
        for name in names:
            yield f"{path}::{name}" if path else name, line
        if match.group(0) == "{":
            space = _NAMESPACE.search(header)
            scopes.append((space.group(1) or "(anonymous)") if space else None)
        elif match.group(0) == "}" and scopes:
            scopes.pop()
        begin = match.end()


def namespace_of(path):
    """The namespace of a source's folder; None where its folder has no rule."""
    folders = path.split("/")[:-1]
    if folders == ["cache"]:
        return "npuc::cache"
    if folders == ["server"]:
        return "npuc::daemon"
    return f"npuc::{folders[1]}" if len(folders) == 2 and folders[0] == "server" else None


def check_namespace(path, text):
    """Forward declarations of other folders' types stand in a namespace of those."""
    wanted = namespace_of(path)
    opened = list(_OPENED.finditer(blank_cpp(text)))
    if wanted is None or not opened:
        return []
    if wanted in (m.group(1) for m in opened) and "npuc" not in (m.group(1) for m in opened):
        return []
    return [Problem("namespace", path, line_of(text, opened[0].start()),
                    f"a source of this folder declares in namespace {wanted}")]


def check(root):
    places = {}
    problems = []
    for path in project_files(root):
        if not path.endswith((".h", ".cc")):
            continue
        text = read(root, path)
        problems += check_namespace(path, text)
        for name, line in definitions(text) if path.endswith(".h") else ():
            places.setdefault(name, []).append((path, line))
    for name, found in sorted(places.items()):
        if len({path for path, _ in found}) > 1:
            others = ", ".join(f"{path}:{line}" for path, line in found[1:])
            problems.append(Problem("one-definition", found[0][0], found[0][1],
                                    f"{name} is defined again in {others}: rename one, or give "
                                    "its folder a namespace"))
    return problems


def main():
    from tree import ROOT
    problems = check(ROOT)
    for problem in problems:
        print(problem)
    print(f"names: {len(problems)} defined twice or outside their folder's namespace")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
