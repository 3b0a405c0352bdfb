"""What is installed works from outside: the programs, the C++ library by find_package, and Python
by generated stubs, each compiling the sample to the bytes that npuc makes.
"""

import importlib.util
import os
import subprocess
import sys
import urllib.request

import harness
import service

SAMPLE_CONFIG = os.path.join(harness.SAMPLE, "config.yaml")
SAMPLE_MODEL = os.path.join(harness.SAMPLE, "kws_cnn.pb")
BUILD = os.path.dirname(harness.BIN)


def check_same(what, folder, plain):
    for name in ("kws_cnn.h", "kws_cnn.npuc", "report.json"):
        with open(os.path.join(folder, name), "rb") as a, \
                open(os.path.join(plain, name), "rb") as b:
            # model_info has the time, which neither example pins.
            ours, wanted = (b"\n".join(l for l in f.read().split(b"\n") if b"model_info" not in l)
                            for f in (a, b))
            if name == "kws_cnn.npuc":
                harness.check(len(ours) == len(wanted), f"{what}: {name} has another size")
            else:
                harness.check(ours == wanted, f"{what}: {name} differs from npuc's")


def check_dashboard(folder, prefix):
    """Installed, npucd serves the page that this build has."""
    page = os.path.join(harness.BIN, "dashboard", "index.html")
    if not os.path.exists(page):
        harness.figure("installed dashboard skipped: this build had no npm")
        return
    own = os.path.join(folder, "installed")
    os.mkdir(own)
    daemon = service.Daemon(own, ("--insecure", "--web", "127.0.0.1:0"),
                            os.path.join(prefix, "bin", "npucd"))
    daemon.start()
    try:
        with open(os.path.join(own, "port"), encoding="utf-8") as f:
            web = dict(line.strip().split("=", 1) for line in f)["web"]
        with urllib.request.urlopen(f"http://{web}/", timeout=30) as answer, open(page, "rb") as f:
            harness.check(answer.read() == f.read(), "the installed npucd serves another page")
    finally:
        daemon.stop()


def main(arguments):
    with harness.scratch() as folder, service.daemon(folder) as server:
        plain = os.path.join(folder, "plain")
        harness.npuc(SAMPLE_CONFIG, "-o", plain)
        prefix = os.path.join(folder, "prefix")
        harness.run("cmake", "--install", BUILD, "--prefix", prefix)
        for program in ("npuc", "npucd", "npuc-remote"):
            harness.run(os.path.join(prefix, "bin", program), "--help")
        for doc in ("share/man/man1/npuc-remote.1",
                    "share/bash-completion/completions/npuc-remote"):
            harness.check(os.path.getsize(os.path.join(prefix, doc)) > 1000, f"{doc} is small")
        check_dashboard(folder, prefix)

        example = os.path.join(folder, "example")
        harness.run("cmake", "-S", os.path.join(harness.ROOT, "client", "examples", "cpp"), "-B",
                    example, f"-DCMAKE_PREFIX_PATH={prefix}")
        harness.run("cmake", "--build", example)
        out = os.path.join(folder, "cpp")
        os.mkdir(out)
        harness.run(os.path.join(example, "compile_one"), server.address, SAMPLE_CONFIG,
                    SAMPLE_MODEL, out)
        check_same("C++", out, plain)
        harness.figure("client library: installed, built against and run")

        if importlib.util.find_spec("grpc") is None:
            harness.figure("Python example skipped: python3-grpcio is missing")
            return
        stubs = os.path.join(folder, "stubs")
        python = os.path.join(harness.ROOT, "client", "examples", "python")
        harness.run(os.path.join(python, "generate.sh"), stubs)
        out = os.path.join(folder, "python")
        subprocess.run([sys.executable, os.path.join(python, "compile_one.py"), server.address,
                        SAMPLE_CONFIG, SAMPLE_MODEL, out], check=True, timeout=120,
                       env={**os.environ, "PYTHONPATH": stubs}, stdout=subprocess.DEVNULL)
        check_same("Python", out, plain)
        harness.figure("Python stubs: generated and run")
