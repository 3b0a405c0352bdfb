#!/usr/bin/python3
"""The tables of errors in proto/API.md and HTTP.md against the code: every reason that the service
can answer with has a row, every row is of a reason that the code knows, and some unit test expects
it. Every call of the protos has its place in API.md's table of rights, is made by each identity in
server/rpc/isolation_test.cc, and by client/lib."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODES = {"CANCELLED", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
         "UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "OUT_OF_RANGE", "INTERNAL",
         "UNAVAILABLE", "DATA_LOSS", "UNIMPLEMENTED"}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def rows(text):
    """Reason -> codes, of the table with the columns reason, code, ..."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        reasons = re.fullmatch(r"[A-Z_]+(?:, [A-Z_]+)*", cells[0]) if len(cells) >= 3 else None
        codes = set(cells[1].split(", ")) if reasons else set()
        if reasons and codes and codes <= CODES:
            for reason in cells[0].split(", "):
                found[reason] = codes
    return found


def sources(folder):
    for where, _, files in os.walk(os.path.join(ROOT, folder)):
        for name in files:
            if name.endswith((".cc", ".h")):
                yield name, read(os.path.join(where, name))


def problems_of_calls(protos, page, test, client):
    """Of the calls in the texts of the protos."""
    calls = set(re.findall(r"^  rpc (\w+)\(", protos, re.M))
    table = page.split("| right | calls |", 1)[-1].split("\n\n", 1)[0]
    listed = set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w*", table))
    made = set(re.findall(r'^ +\{"(\w+)",$', test, re.M))
    return ([f"proto/API.md has {c} under no right" for c in sorted(calls - listed)] +
            [f"proto/API.md: {c} is no call" for c in sorted(listed - calls)] +
            [f"isolation_test.cc has no row {c}" for c in sorted(calls - made)] +
            [f"client/lib makes no call of {c}"
             for c in sorted(calls - set(re.findall(r"\bPrepareAsync(\w+)", client)))])


def main():
    table = rows(read(os.path.join(ROOT, "proto", "API.md")))
    table.update(rows(read(os.path.join(ROOT, "proto", "HTTP.md"))))
    made, tested = set(), ""
    for name, text in sources("server"):
        if "_test" in name:
            tested += text
        else:
            made |= set(re.findall(
                r'(?:\.reason = |ToStatus\(|return )"([A-Z]+(?:_[A-Z]+)+)"', text))
            made |= set(re.findall(r'/\*reason=\*/"([A-Z_]+)"', text))
    all_code = "".join(text for name, text in sources("server") if "_test" not in name)
    problems = [f"proto/API.md and HTTP.md have no row for {r}" for r in sorted(made - set(table))
                if re.search(rf'\.reason = "{r}"|ToStatus\("{r}"', all_code)]
    problems += [f"{r} has a row in proto/, and nothing answers with it" for r in sorted(table)
                 if f'"{r}"' not in all_code]
    problems += [f"no unit test of server/ expects {r}" for r in sorted(table)
                 if f'"{r}"' not in tested]
    folder = os.path.join(ROOT, "proto", "npuc", "v1")
    problems += problems_of_calls(
        "".join(read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))),
        read(os.path.join(ROOT, "proto", "API.md")),
        read(os.path.join(ROOT, "server", "rpc", "isolation_test.cc")),
        "".join(text for _, text in sources("client/lib")))
    for problem in problems:
        print(problem)
    print(f"error rows: {len(table)} reasons, {len(problems)} problems")
    return 1 if problems or len(table) < 15 else 0


if __name__ == "__main__":
    sys.exit(main())
