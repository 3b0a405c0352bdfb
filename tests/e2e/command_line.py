"""Arguments of npuc's commands: each is honoured, or is wrong usage.

Of every command that `npuc --help` names: a surplus argument is wrong usage (exit 2, and nothing is
written); every option of a compile is one of the command's own or wrong usage, before the command's
name and behind it; -o is the folder of what is written, which is made. --log-level says
which messages of a compile are printed.
"""

import os
import re
import subprocess

import numpy as np

import harness

WRONG_USAGE = 2
# What a command writes with -o.
WRITES = {"run": 1, "reference": 1, "ir write": 2, "report": 1}


def names_of(pattern, text):
    found = re.findall(pattern, text, re.M)
    harness.check(found, f"nothing like {pattern} in {text}")
    return found


def help_of(*command):
    return harness.npuc(*command, "--help").stdout


def commands_of():
    """Every command by its words: those with commands of their own by both. `help` is what this
    test reads; it takes any words and has nothing to say as JSON."""
    section = help_of().split("Subcommands:")[1].split("\n\n")[0]
    for name in names_of(r"^  (\w+)", section):
        if name == "help":
            continue
        inner = help_of(name).split("Subcommands:")
        if len(inner) == 1:
            yield (name,)
            continue
        for sub in names_of(r"^  (\w+)", inner[1].split("\n\n")[0]):
            yield (name, sub)


def options_of(text):
    """The options of a help text as sets of their spellings, and whether each takes a value."""
    found = []
    for line in text.splitlines():
        match = re.match(r"^  (-[\w,-]+)( [A-Z].*)?", line)
        if match and "--help" not in match.group(1):
            takes = bool(re.match(r" [A-Z][A-Za-z.=]*( |$)", match.group(2) or ""))
            found.append((match.group(1).split(","), takes))
    return found


def sound_arguments(folder, command):
    """Arguments of a command that does what it is for, but for its folder."""
    header, config = os.path.join(folder, "kws_cnn.h"), os.path.join(harness.SAMPLE, "config.yaml")
    model = os.path.join(harness.SAMPLE, "kws_cnn.pb")
    x = f"Feats={os.path.join(folder, 'x.npy')}"
    return {"run": [header, "--input", x], "reference": [config, "--input", x],
            "evaluate": [config, header, "--input", x], "ir write": [config, "--float"],
            "ir check": [os.path.join(folder, "ir", "kws_cnn.txt")], "report": [header],
            "dis": [header], "combine": [header], "info": [header],
            "inspect": [model],
            "init": [model],
            "explain": ["NPUC1404"]}[" ".join(command)]


def wrong(arguments, word):
    result = subprocess.run([harness.program("npuc"), *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                            check=False, universal_newlines=True)
    harness.check(result.returncode == WRONG_USAGE and word in result.stderr,
                  f"npuc {' '.join(arguments)}: exit {result.returncode}: {result.stderr}")


def check_command(folder, command):
    name = " ".join(command)
    arguments = sound_arguments(folder, command)
    out = os.path.join(folder, "out of " + name)
    whole = [*command, *arguments]
    if name in ("init", "combine"):
        written = os.path.join(folder, name + " wrote")
        harness.npuc(*whole, "-o", written)
        harness.check(os.path.getsize(written) > 0, f"{name} wrote nothing")
        whole += ["-o", written]
    elif name in WRITES:
        harness.npuc(*whole, "-o", out)
        harness.check(len(os.listdir(out)) == WRITES[name], f"{name} wrote {os.listdir(out)}")
        whole += ["-o", out]
    else:
        harness.npuc(*whole)
        wrong([*whole, "-o", out], "-o")
        harness.check(not os.path.exists(out), f"{name} made {out}")
    if name != "combine":  # takes any number of files
        wrong([*whole, "junk"], "junk")
        wrong([*whole, "dis", arguments[0]], "dis")
    own = {spelling for spellings, _ in options_of(help_of(*command)) for spelling in spellings}
    harness.check("--json" in own, f"{name} has no --json")
    tried = 0
    for spellings, takes in options_of(help_of()):
        value = ["1"] if takes else []
        if "--json" in spellings:
            continue
        for spelling in spellings:
            tried += 1
            wrong([spelling, *value, *whole], "")
            if spelling not in own:
                wrong([*whole, spelling, *value], spelling)
    wrong([arguments[0], *whole], os.path.basename(arguments[0]))
    return tried


def check_log_levels(folder):
    """A compile with a note and a warning, and one with an error; compile.log has them all."""
    with open(os.path.join(harness.SAMPLE, "config.yaml"), encoding="utf-8") as f:
        text = f.read().replace("MODEL_FILE: ", f"MODEL_FILE: {harness.SAMPLE}/")
    config = os.path.join(folder, "levels.yaml")
    for level, expected in {"note": ["note", "warning"], "warning": ["warning"],
                            "error": []}.items():
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "FUSE_BN: true\n")
        said = harness.npuc(config, "-o", folder, "--log-level", level).stderr
        printed = re.findall(r"^\S+: (note|warning): ", said, re.M)
        harness.check(printed == expected, f"--log-level {level} printed {said}")
        with open(os.path.join(folder, "compile.log"), encoding="utf-8") as f:
            log = f.read()
        harness.check(": note: " in log and ": warning: " in log, f"compile.log: {log}")
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "NO_SUCH_KEY: true\n")
        said = harness.npuc(config, "-o", folder, "--log-level", level, expect=1).stderr
        harness.check("NO_SUCH_KEY" in said, f"--log-level {level} hid an error: {said}")
    wrong([config, "--log-level", "loud"], "--log-level")


def main(arguments):
    with harness.scratch() as folder:
        harness.npuc(os.path.join(harness.SAMPLE, "config.yaml"), "-o", folder)
        harness.npuc("ir", "write", os.path.join(harness.SAMPLE, "config.yaml"), "--float", "-o",
                     os.path.join(folder, "ir"))
        np.save(os.path.join(folder, "x.npy"), np.zeros([1, 490], np.float32))
        tried = [check_command(folder, command) for command in commands_of()]
        check_log_levels(folder)
    harness.check(len(tried) >= 7, f"{len(tried)} commands")
    harness.figure(f"command line: {len(tried)} commands, {sum(tried)} options of a compile")
