"""What the end-to-end suites share: where things are, running programs, skipping, figures."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(ROOT, "build", "bin"))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))
SAMPLE = os.path.join(ROOT, "deploy", "samples", "kws")
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
TIMEOUT_SECONDS = 120
# Pins the time in model_info, the one thing that differs between two compiles.
EPOCH = "1700000000"
# A float16 has 11 significant bits: rounding to it is off by at most this part of the value.
FP16_UNIT = 2.0**-11

sys.path.insert(0, os.path.join(ROOT, "tests", "models"))


class Failure(Exception):
    """A check that did not hold; its text is the whole report."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def shared(*parts):
    """A path below the shared folder; skips the suite where that is missing."""
    path = os.path.join(SHARED, *parts)
    if not os.path.exists(path):
        print(f"skipped: {path} is missing (set NPUC_SHARED)")
        sys.exit(SKIPPED)
    return path


def program(name):
    path = os.path.join(BIN, name)
    check(os.access(path, os.X_OK), f"{path} is not built")
    return path


def figure(text):
    """Prints a measured figure, and keeps it for the summary of tests/run.sh."""
    print(f"FIGURE: {text}", flush=True)
    if os.environ.get("NPUC_FIGURES"):
        with open(os.environ["NPUC_FIGURES"], "a", encoding="utf-8") as f:
            f.write(f"FIGURE: {text}\n")


def keep_sums(command):
    """Where NPUC_CORPUS names a file, appends a line for each artifact of a compile: suite, config,
    artifact, SHA-256. Two such files of two builds, sorted, are equal where both write the same
    bytes; a refactoring shows this of all suites (tests/e2e/README.md)."""
    if "NPUC_CORPUS" not in os.environ or "-o" not in command[:-1]:
        return
    config, folder = command[1], command[command.index("-o") + 1]
    if not config.endswith((".yaml", ".cfg")) or not os.path.isdir(folder):
        return
    suite = os.path.basename(sys.argv[1] if len(sys.argv) > 1 else sys.argv[0])
    config = re.sub(r".*/npuc-e2e-[^/]*/", "", os.path.abspath(config))
    lines = []
    for name in sorted(set(os.listdir(folder)) - {"compile.log"}):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                content = hashlib.sha256(f.read()).hexdigest()
            lines.append(f"{suite} {config} {name} {content}\n")
    with open(os.environ["NPUC_CORPUS"], "a", encoding="utf-8") as f:
        f.write("".join(lines))


def run(*command, expect=0, env=None, timeout=TIMEOUT_SECONDS):
    """Runs a program; `expect` is the exit code demanded, None for any. Returns the process."""
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=timeout, check=False,
                            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **(env or {})},
                            universal_newlines=True, errors="replace")
    if expect is not None:
        check(result.returncode == expect,
              f"{' '.join(str(c) for c in command)}: exit {result.returncode}, not {expect}\n"
              f"{result.stdout[-2000:]}{result.stderr[-4000:]}")
    if result.returncode == 0:
        keep_sums([str(c) for c in command])
    return result


def npuc(*arguments, **options):
    return run(program("npuc"), *arguments, **options)


def attempt(*arguments, timeout):
    """(exit code or "hang", what npuc said) of a command that may fail in any way."""
    try:
        done = subprocess.run([program("npuc"), *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False,
                              universal_newlines=True, errors="replace",
                              env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    except subprocess.TimeoutExpired:
        return "hang", ""
    if done.returncode == 0:
        keep_sums(["npuc", *[str(a) for a in arguments]])
    return done.returncode, done.stderr.strip()


def compile_header(config, folder, name):
    """Compiles a config and returns the path of its C header, of which every rule is checked: the
    suites compile by this, so a wrong header fails whichever net shows it."""
    import headers  # here, since headers needs this module
    npuc(config, "-o", folder)
    path = os.path.join(folder, name)
    headers.check_header(path)
    return path


def output_file(folder, name):
    """Where `npuc run` and `npuc reference` leave output NAME. A C header knows a name only as an
    identifier, so there other bytes become '_' as well."""
    stem = name.replace("/", "_").replace(":", "_")
    if len(stem) > 200:  # a file name has at most 255 bytes
        stem = f"{stem[:183]}_{hashlib.md5(name.encode()).hexdigest()[:16]}"
    path = os.path.join(folder, stem + ".npy")
    if os.path.exists(path):
        return path
    return os.path.join(folder, re.sub(r"[^A-Za-z0-9_]", "_", name) + ".npy")


def simulate(artifact, inputs, folder, output_names, verb="run"):
    """`npuc run` (or `reference`) on arrays by name; the outputs as a dict of arrays."""
    os.makedirs(folder, exist_ok=True)
    arguments = []
    for i, (name, array) in enumerate(inputs.items()):
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    npuc(verb, artifact, *arguments, "--output-dir", folder)
    return {name: np.load(output_file(folder, name)) for name in output_names}


@contextlib.contextmanager
def scratch():
    folder = tempfile.mkdtemp(prefix="npuc-e2e-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill_disk(path, leave_bytes):
    """A file that leaves so many bytes of its disk, on which others write meanwhile."""
    piece = 64 << 20  # a large one would come too late for what others write
    size = 0
    with open(path, "wb") as f:
        for _ in range(10000):
            info = os.statvfs(os.path.dirname(path))
            free_bytes = info.f_bavail * info.f_frsize
            if free_bytes <= leave_bytes:
                return
            with contextlib.suppress(OSError):
                some = min(piece, free_bytes - leave_bytes)
                os.posix_fallocate(f.fileno(), size, some)
                size += some
    raise Failure(f"{path} cannot be made; {free_bytes} bytes are free")


def wait_for(condition, what, seconds=30.0, interval=0.002):
    """Polls until condition() is true and returns its value; a Failure after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f"no {what} within {seconds:g} s")
        time.sleep(interval)
