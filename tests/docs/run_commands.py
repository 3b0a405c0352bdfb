#!/usr/bin/python3
"""Runs the commands of the documentation: every ```sh block of each page, in order, in one shell.

    run_commands.py [PAGE...]      default: all pages of PAGES

A command that fails fails the page (`set -e`, `pipefail`). The shell stands in the project's root,
as a reader would; $OUT is an empty folder. Exit 0 all ran, 1 one failed.
"""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ("client/TUTORIAL.md",)
TIMEOUT_SECONDS = 300
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        text = f.read()
    blocks = [(text[:m.start()].count("\n") + 2, m.group(1)) for m in BLOCK.finditer(text)]
    script = "set -euo pipefail\n"
    for line, block in blocks:
        script += f"echo '--- {page}:{line}'\n{block}"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env={**os.environ, "OUT": folder},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TIMEOUT_SECONDS, check=False)
    if done.returncode == 0 and blocks:
        print(f"{page}: {len(blocks)} blocks ran")
        return True
    print(done.stdout[-4000:])
    print(f"{page}: FAILED ({len(blocks)} blocks)")
    return False


def main():
    pages = sys.argv[1:] or PAGES
    return 0 if all([run_page(page) for page in pages]) else 1


if __name__ == "__main__":
    sys.exit(main())
