#!/usr/bin/python3
"""A newcomer with a model: a fresh clone, README.md and nothing else, to a header of their own.

    newcomer.py [--build]

Clones what is committed, and types what the clone's README.md shows: the first of "Two commands",
then those of "Ten minutes with a model of your own"; the config is README's, the model and its
inputs are made here (own_model.py). At most five commands may be needed. What the simulated NPU and
`npuc reference` answer is compared with NumPy. Without --build the programs of this build stand in
for what the first command builds, so that it takes seconds; with it, what that built is all that is
installed. Prints the time of each. Exit 0 or 1.
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import own_model
import pages

BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(pages.ROOT, "build", "bin"))
MAX_COMMANDS = 5
FLOAT_LIMIT = 1e-5  # single precision, another order of sums
NPU_LIMIT = 0.02  # of probabilities: what fp16 and 8-bit weights may cost


class Newcomer:
    def __init__(self, folder):
        self.folder, self.count, self.begin = folder, 0, time.monotonic()

    def type(self, command):
        self.count += 1
        begin = time.monotonic()
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        print(f"{time.monotonic() - begin:7.1f} s  {command}", flush=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout[-4000:]}\nexit {done.returncode}")


def commands_of(block):
    lines = [line.split("  #")[0].strip() for line in block.body.splitlines()]
    return [line for line in lines if line]


def readme(folder):
    """(What builds, the config's name and text, what compiles, what simulates) of the clone's."""
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as f:
        blocks = pages.blocks(f.read())
    at = next(i for i, block in enumerate(blocks) if block.kind == "file")
    return (commands_of(blocks[0])[0], blocks[at], commands_of(blocks[at + 1]),
            commands_of(blocks[at + 2]))


def compare(folder, expected):
    for name, limit in (("float", FLOAT_LIMIT), ("sim", NPU_LIMIT)):
        got = np.load(os.path.join(folder, name, "labels_softmax.npy")).reshape(expected.shape)
        error = float(np.abs(got - expected).max())
        print(f"           {name}: at most {error:.2g} from NumPy")
        if not error <= limit or (got.argmax(1) != expected.argmax(1)).any():
            sys.exit(f"{name} differs from NumPy by {error}, at most {limit} is right")


def main():
    build = "--build" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as parent:
        one = Newcomer(parent)
        one.type(f"git clone --quiet --no-hardlinks '{pages.ROOT}' npuc")
        one.folder = os.path.join(parent, "npuc")
        first, config, compile_it, simulate = readme(one.folder)
        if build:
            one.type(first)
            subprocess.run(["cmake", "--install", "build", "--prefix", os.path.join(parent, "p")],
                           cwd=one.folder, stdout=subprocess.DEVNULL, check=True)
        else:
            one.count += 1
            print(f"      - s  {first} (left out: the programs are those of {BIN})")
            os.mkdir(os.path.join(one.folder, "build"))
            os.symlink(os.path.abspath(BIN), os.path.join(one.folder, "build", "bin"))
        expected = own_model.write(one.folder)
        with open(os.path.join(one.folder, config.note), "w", encoding="utf-8") as f:
            f.write(config.body)
        for command in compile_it:
            one.type(command)
        to_header, took = one.count, time.monotonic() - one.begin
        size = os.path.getsize(os.path.join(one.folder, "out", "model.h"))
        for command in simulate:
            one.type(command)
        compare(one.folder, expected)
        print(f"a header of {size} bytes after {to_header} commands and {took:.1f} s; simulated "
              f"and compared after {one.count} and {time.monotonic() - one.begin:.1f} s")
        if one.count > MAX_COMMANDS:
            sys.exit(f"{one.count} commands, at most {MAX_COMMANDS} are a newcomer's patience")
    return 0


if __name__ == "__main__":
    sys.exit(main())
