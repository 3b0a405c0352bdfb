"""The dashboard in Chromium against a real npucd: client/dashboard/tests/drive.mjs, or with --many
many.mjs, whose live updates last --minutes N; with --firefox in Debian's Firefox: firefox.mjs."""

import os
import shutil
import subprocess
import sys

import numpy as np

import harness
import service
import torch_nets

SECONDS = 570  # and the minutes that --minutes asks for


def need(found, what):
    if not found:
        print(f"skipped: no {what}")
        sys.exit(harness.SKIPPED)
    return found


def write_slow(folder, big):
    """A config whose compile takes long between two lines of its log: it calibrates."""
    np.save(os.path.join(folder, "slow.npy"),
            np.random.RandomState(4).randint(0, 8, (1000, 250)).astype(np.int8))
    with open(big, encoding="utf-8") as f:
        lines = [line for line in f if not line.startswith(("NPU_UNIT", "COMPRESS"))]
    slow = os.path.join(folder, "slow.yaml")
    with open(slow, "w", encoding="utf-8") as f:
        f.write("".join(lines).replace("GRUS", "X2_1204")
                + "QUANT: {calibration_data: slow.npy}\n")
    return slow


def drive(script, arguments, more, seconds=SECONDS):
    """Runs a script of client/dashboard/tests with Chromium."""
    build = os.path.dirname(os.path.abspath(harness.BIN))
    folder = os.path.join(build, "client", "dashboard", "npm")
    need(os.path.exists(os.path.join(harness.BIN, "dashboard", "index.html")), "built dashboard")
    need(os.path.isdir(os.path.join(folder, "node_modules", "playwright-core")), "playwright-core")
    node, chromium = need(shutil.which("node"), "node"), need(shutil.which("chromium"), "chromium")
    env = {**os.environ, "NPUC_BIN_DIR": os.path.abspath(harness.BIN),
           "NPUC_SAMPLE": harness.SAMPLE, "NPUC_CHROMIUM": chromium,
           "NPUC_SHOTS": os.environ.get("NPUC_SHOTS", os.path.join(build, "screenshots")), **more}
    done = subprocess.run([node, os.path.join("tests", script), *arguments], cwd=folder, env=env,
                          timeout=seconds, check=False, stdout=subprocess.PIPE,
                          universal_newlines=True)
    for line in done.stdout.splitlines():
        if line.startswith("FIGURE: "):
            harness.figure(line[len("FIGURE: "):])
        else:
            print(line)
    harness.check(done.returncode == 0, f"{script} failed")


def main(arguments):
    if "--firefox" in arguments:
        firefox = need(shutil.which("firefox-esr"), "firefox-esr")
        drive("firefox.mjs", arguments, {"NPUC_FIREFOX": firefox})
        return
    script = "many.mjs" if "--many" in arguments else "drive.mjs"
    minutes = float(arguments[arguments.index("--minutes") + 1]) if "--minutes" in arguments else 0
    with harness.scratch() as temporary:
        noted, = torch_nets.read_nets(os.path.join(torch_nets.RECORDED, "net_ds_cnn.tar.xz"))
        noted.unpack(temporary)
        big = service.write_model(temporary)
        drive(script, arguments,
              {"NPUC_NOTED": temporary, "NPUC_BIG": big,
               "NPUC_SLOW": write_slow(temporary, big)},
              SECONDS + 60 * minutes)
