#!/usr/bin/env python3
"""Checks the schemas with buf: their style, a comment on everything, and that nothing breaks what
was made with the baseline.json beside them: clients of proto/, records of server/jobs/proto. And
openapi.json with redocly, which must find no error.

    check_proto.py [--update]

--update makes the baselines anew, which is right where fields were added or nothing is released
yet; review their diff. Both come from npm (proto/package.json here, into build/proto-lint). Exit 0
clean, 1 findings, 77 skipped: npm is not installed, or this is no x86-64.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Folder -> whether what was made with its schemas outlives a build.
MODULES = {"proto": True, "server/jobs/proto": True, "server/worker/proto": False}
SKIPPED = 77


def install():
    """Where the packages are; None without npm, or where buf does not run."""
    if shutil.which("npm") is None or os.uname().machine != "x86_64":
        return None
    folder = os.path.join(ROOT, "build", "proto-lint")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(HERE, "proto", name), folder)
    packages = os.path.join(folder, "node_modules")
    if not os.path.exists(os.path.join(packages, "@redocly")):
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return packages


def lint_openapi(packages):
    """Whether redocly finds no error."""
    done = subprocess.run(
        ["node", os.path.join(packages, "@redocly", "cli", "bin", "cli.js"), "lint",
         "--format", "stylish", os.path.join(ROOT, "proto", "openapi.json")],
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0:
        print(done.stdout)
    return done.returncode == 0


def image(buf, module):
    """The schemas as data, without comments and positions."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "image.json")
        subprocess.run([buf, "build", "--exclude-source-info", "-o", path], cwd=module, check=True)
        with open(path, encoding="utf-8") as f:
            return json.dumps(json.load(f), indent=1) + "\n"


def main():
    if sys.argv[1:] not in ([], ["--update"]):
        print(__doc__, file=sys.stderr)
        return 2
    packages = install()
    if packages is None:
        print("proto: skipped, buf needs npm and an x86-64")
        return SKIPPED
    buf = os.path.join(packages, "@bufbuild", "buf-linux-x64", "bin", "buf")
    failed = not lint_openapi(packages)
    for folder, outlives_build in MODULES.items():
        module = os.path.join(ROOT, folder)
        failed |= subprocess.run([buf, "lint"], cwd=module, check=False).returncode != 0
        if not outlives_build:
            continue
        baseline, now = os.path.join(module, "baseline.json"), image(buf, module)
        if sys.argv[1:]:
            with open(baseline, "w", encoding="utf-8") as f:
                f.write(now)
        failed |= subprocess.run([buf, "breaking", "--against", "baseline.json"], cwd=module,
                                 check=False).returncode != 0
        # A field that the baseline lacks could change tomorrow, and nothing would break.
        with open(baseline, encoding="utf-8") as f:
            if f.read() != now:
                print(f"{folder}/baseline.json is not what the schemas are: run with --update")
                failed = True
    print(f"proto: {'findings, see above' if failed else 'clean; nothing breaks the baselines'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
