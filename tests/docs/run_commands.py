#!/usr/bin/python3
"""Runs the commands of the documentation: every ```sh block of each page, in order, in one shell.

    run_commands.py [PAGE...]      default: all pages of PAGES, and whether PAGES is all there are

A command that fails fails the page (`set -e`, `pipefail`). The shell stands in a folder that has
the project's files as links, so that what a page writes lands beside them and not in them; $OUT is
an empty folder. Each page has a network of its own where the system lets it, so that the ports that
it names are free. Exit 0 all ran, 1 one failed, or a page has commands that nothing runs.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile

import detector_files
import own_model
import pages

BIN = os.environ.get("NPUC_BIN_DIR", os.path.join(pages.ROOT, "build", "bin"))
TIMEOUT_SECONDS = 300


def make_certificates(folder):
    """What OPERATIONS.md takes for given: a server's certificate, and an authority of clients."""
    config = os.path.join(folder, "clients.cnf")
    with open(config, "w", encoding="utf-8") as f:
        f.write("[req]\ndistinguished_name=dn\n[dn]\n[ext]\nsubjectAltName=IP:127.0.0.1\n"
                "basicConstraints=CA:TRUE\n")
    for name in ("server", "clients-ca"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN={name}",
                        "-config", config, "-extensions", "ext", "-keyout", name + ".key", "-out",
                        name + ".pem"], cwd=folder, check=True, stderr=subprocess.DEVNULL)


# Every page with commands, and what makes the files that it takes for given; where that returns a
# text, it says why it cannot, and the page is skipped.
PAGES = {
    "README.md": own_model.write,
    "CONTRIBUTING.md": None,
    "client/DETECTOR.md": detector_files.write,
    "client/PLUGINS.md": None,
    "client/TUTORIAL.md": None,
    "compiler_core/boxes/README.md": None,
    "client/examples/python/README.md": None,
    "deploy/OPERATIONS.md": make_certificates,
    "deploy/k8s/README.md": None,
    "proto/HTTP.md": None,
    "tests/fuzz/README.md": None,
    "tests/oracle/published/README.md": None,
    "tests/oracle/onnx/README.md": None,
    "tests/oracle/qdq/README.md": None,
    "tests/oracle/tflite/README.md": None,
}


def own_network():
    """What a command is begun with to have its own loopback; empty where that is not possible."""
    begin = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
             'ip link set lo up && exec "$@"', "sh"]
    try:
        works = subprocess.run([*begin, "true"], stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return []
    return begin if works.returncode == 0 else []


def script_of(page, blocks):
    lines = ["set -euo pipefail"]
    for block in blocks:
        if block.kind == "file":
            lines.append(f"cat > {block.note} <<'END OF FILE'\n{block.body}END OF FILE")
        elif block.kind == "run":
            # `set -e` does not look at "! COMMAND".
            body = re.sub(r"^! (.*)$", r"if\n\1\nthen echo 'it had to fail'; exit 1; fi",
                          block.body, flags=re.MULTILINE)
            lines.append(f"echo '--- {page}:{block.line}'\n{body}")
    return "\n".join(lines) + "\n"


def stand(folder):
    """A folder as a reader's checkout: the project's files, with `build` where the programs are."""
    for name in os.listdir(pages.ROOT):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(pages.ROOT, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "build"))
    os.symlink(os.path.abspath(BIN), os.path.join(folder, "build", "bin"))


def run_page(page, begin):
    blocks = pages.blocks(pages.read(page))
    ran = sum(block.kind == "run" for block in blocks)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        stand(folder)
        missing = PAGES[page](folder) if PAGES.get(page) else None
        if isinstance(missing, str):
            print(f"{page}: skipped: {missing}")
            return True
        env = {**os.environ, "OUT": out, "PATH": f"{os.path.abspath(BIN)}:{os.environ['PATH']}"}
        log = os.path.join(out, ".log")
        with open(log, "wb") as f:
            process = subprocess.Popen([*begin, "bash", "-c", script_of(page, blocks)], cwd=folder,
                                       env=env, stdout=f, stderr=f, start_new_session=True)
        try:
            code = process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            code = f"not within {TIMEOUT_SECONDS} s"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # a daemon that the page left
            except ProcessLookupError:
                pass
            process.wait()
        with open(log, encoding="utf-8", errors="replace") as f:
            text = f.read()
    print(f"{page}: {ran} blocks, exit {code}")
    for block in blocks:
        if block.kind == "not-run":
            print(f"    line {block.line} is not run: {block.note}")
    if code != 0:
        print(text[-4000:])
    return code == 0


def test_names():
    listed = subprocess.run(["ctest", "--test-dir", os.path.dirname(os.path.abspath(BIN)), "-N"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=True).stdout
    return re.findall(r"^ +Test +#\d+: (\S+)", listed, re.MULTILINE)


def check_list():
    """PAGES against the pages that there are, and what all pages name and start against what is
    there."""
    problems, found, tests = [], set(), test_names()
    for page in pages.all_pages():
        text = pages.read(page)
        problems += [f"{page}:{line}: a command outside a ```sh block: {command.strip()}"
                     for line, command in pages.loose_commands(text)]
        problems += pages.stale_names(page, text, tests)
        problems += pages.not_executable(page, text)
        if any(block.kind in ("run", "not-run") for block in pages.blocks(text)):
            found.add(page)
    problems += [f"{page} has commands and is not in PAGES" for page in sorted(found - set(PAGES))]
    problems += [f"{page} is in PAGES and has no commands" for page in sorted(set(PAGES) - found)]
    for problem in problems:
        print(problem)
    return not problems


def main():
    named = sys.argv[1:]
    begin = own_network()
    good = [check_list()] if not named else []
    good += [run_page(page, begin) for page in named or PAGES]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
