#!/usr/bin/python3
"""Runs clang-tidy on the .cc files of the tree, in parallel; a clean result is cached.

Tests and fuzz targets are left out: both compilers check them, and they would double the time.

The cache's key is a digest of all that the result depends on: clang-tidy's version, .clang-tidy,
the compile command, the file, every project or generated header it reaches, and the installed
versions of the libraries. So a second run, or a fresh build folder, checks what changed.

    run_tidy.py BUILD_DIR [--cache DIR] [--jobs N] [FILE...]

BUILD_DIR holds compile_commands.json and the generated headers.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import ROOT, project_files  # noqa: E402

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)


class Headers:
    """Resolves includes to files of the project or of its build folder, and digests files."""

    def __init__(self, search):
        self._search = search
        self._includes = {}
        self._digests = {}

    def _scan(self, path):
        if path not in self._includes:
            with open(path, "rb") as f:
                data = f.read()
            self._digests[path] = hashlib.sha256(data).hexdigest()
            found = []
            for name in _INCLUDE.findall(data):
                for folder in [os.path.dirname(path)] + self._search:
                    candidate = os.path.normpath(os.path.join(folder, name.decode()))
                    if os.path.isfile(candidate):
                        found.append(candidate)
                        break
            self._includes[path] = found
        return self._includes[path]

    def reached(self, path):
        """(path, digest) of the file and of everything it includes, however deep; sorted."""
        seen, todo = {path}, [path]
        while todo:
            for header in self._scan(todo.pop()):
                if header not in seen:
                    seen.add(header)
                    todo.append(header)
        for header in seen:
            self._scan(header)
        return sorted((p, self._digests[p]) for p in seen)


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True)


def project_include_folders(arguments, root):
    """-I and -isystem folders below the project's root (the build folder's included)."""
    folders = []
    for i, argument in enumerate(arguments):
        if argument in ("-I", "-isystem"):
            folders.append(arguments[i + 1])
        elif argument.startswith("-I"):
            folders.append(argument[2:])
    return [f for f in folders if os.path.abspath(f).startswith(root)]


def environment_digest(root):
    """Of everything outside the tree that a result depends on."""
    packages = run(os.path.join(root, "deploy", "install_deps.sh"), "--list").stdout.split()
    versions = run("dpkg-query", "-W", *packages).stdout if packages else ""
    with open(os.path.join(root, ".clang-tidy"), encoding="utf-8") as f:
        checks = f.read()
    return hashlib.sha256("\0".join([run("clang-tidy", "--version").stdout, versions,
                                     checks]).encode()).hexdigest()


def key_of(entry, headers, environment):
    digest = hashlib.sha256(environment.encode())
    # The build folder's place must not matter, nor that of the tree.
    command = entry.get("command") or shlex.join(entry["arguments"])
    digest.update(command.replace(entry["directory"], "BUILD").replace(ROOT, "ROOT").encode())
    for path, content in headers.reached(entry["file"]):
        digest.update(f"{os.path.relpath(path, ROOT)} {content}\n".encode())
    return digest.hexdigest()


def each_alone(entry):
    """The entries of the sources that are compiled together (CMake's unity builds) in this one."""
    together = os.path.join(entry["directory"], entry["file"])
    if f"{os.sep}Unity{os.sep}" not in together:
        return [entry]
    with open(together, encoding="utf-8") as f:
        sources = re.findall(r'^#include "(.*)"$', f.read(), re.M)
    command = entry.get("command") or shlex.join(entry["arguments"])
    return [{"directory": entry["directory"], "file": source,
             "command": command.replace(entry["file"], source)} for source in sources]


def write_commands(build_dir):
    """A compile_commands.json that has each source alone; its folder."""
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as f:
        commands = [alone for entry in json.load(f) for alone in each_alone(entry)]
    folder = os.path.join(build_dir, "tidy")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as f:
        json.dump(commands, f)
    return folder


def entries_of(commands_dir, wanted):
    with open(os.path.join(commands_dir, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    by_file = {os.path.abspath(os.path.join(e["directory"], e["file"])): e for e in commands}
    entries, unknown = [], []
    for path in wanted:
        full = os.path.join(ROOT, path)
        (entries if full in by_file else unknown).append(by_file.get(full, path))
    return entries, unknown


def tidy(entry, commands_dir):
    started = time.monotonic()
    result = run("clang-tidy", "--quiet", "-p", commands_dir, entry["file"])
    lines = [l for l in result.stdout.splitlines()
             if not re.match(r"\d+ warnings? (and \d+ errors? )?(generated|treated)", l)]
    return result.returncode, "\n".join(lines), time.monotonic() - started


def default_cache():
    """Beside the user's other caches, so that a fresh clone profits as it does from ccache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "npuc-tidy")


def main():
    parser = argparse.ArgumentParser(description="clang-tidy with a cache")
    parser.add_argument("build_dir")
    parser.add_argument("--cache", default=default_cache())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    wanted = args.files or [f for f in project_files() if f.endswith(".cc")
                            and not f.endswith(("_test.cc", "_fuzz.cc", "_test_util.cc"))]
    commands_dir = write_commands(args.build_dir)
    entries, unknown = entries_of(commands_dir, wanted)
    os.makedirs(args.cache, exist_ok=True)
    environment = environment_digest(ROOT)
    resolvers, pending = {}, []
    for entry in entries:
        arguments = shlex.split(entry.get("command", "")) or entry["arguments"]
        search = tuple(project_include_folders(arguments, ROOT))
        headers = resolvers.setdefault(search, Headers(list(search)))
        key = os.path.join(args.cache, key_of(entry, headers, environment))
        if os.path.exists(key):
            os.utime(key)
        else:
            pending.append((entry, key))
    print(f"clang-tidy: {len(entries)} files, {len(entries) - len(pending)} unchanged since they "
          f"were clean, {len(pending)} to check", flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        runs = {pool.submit(tidy, entry, commands_dir): (entry, key) for entry, key in pending}
        for done in concurrent.futures.as_completed(runs):
            entry, key = runs[done]
            code, output, seconds = done.result()
            name = os.path.relpath(entry["file"], ROOT)
            if code == 0:
                with open(key, "w", encoding="utf-8") as f:
                    f.write(name + "\n")
            else:
                failed += 1
                print(f"{name}: ({seconds:.0f} s)\n{output}", flush=True)
    for path in unknown:
        print(f"{path}: not compiled in {args.build_dir}, so not checked")
    print(f"clang-tidy: {failed} of {len(entries)} files with findings")
    return 1 if failed or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
