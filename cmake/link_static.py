#!/usr/bin/env python3
"""Runs a link command with every shared library that has an archive beside it replaced by that.

    link_static.py COMPILER ARGUMENT...

CMake's packages for Abseil, protobuf and yaml-cpp name Debian's shared libraries alone. A program
that is started for every compile spends more time loading those forty than compiling a small net,
so npuc links their archives, and libc. Programs that use gRPC must not: gRPC's own library brings
the shared Abseil, and two copies in one process would each have their own globals.
"""

import pathlib
import re
import subprocess
import sys


def archive_of(argument):
    match = re.fullmatch(r"(/.*/lib[^/]+?)\.so[.\d]*", argument)
    if not match:
        return argument
    archive = pathlib.Path(match[1] + ".a")
    if not archive.exists():
        sys.exit(f"link_static.py: {argument} has no archive {archive} beside it; "
                 "install the package's development files, or set NPUC_STATIC=OFF")
    return str(archive)


def main():
    command = [archive_of(argument) for argument in sys.argv[1:]]
    return subprocess.run(command + ["-static"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
