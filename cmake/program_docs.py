#!/usr/bin/python3
"""Manual page and shell completion of a program, from what its --help says, so that none of them
falls behind.

    program_docs.py PROGRAM SECTION FOLDER      writes NAME.SECTION, NAME.bash, _NAME, NAME.fish

The help is plain text: lines that begin with an option, "  --name ...", or with a command under a
heading that names commands. Commands have a help of their own.
"""

import os
import re
import subprocess
import sys

OPTION = re.compile(r"^\s+(-[A-Za-z0-9], ?)?(--[a-z][a-z0-9_-]*)")
SHORT = re.compile(r"^\s+(-[A-Za-z0-9])(?=[,\s])")
COMMAND = re.compile(r"^\s{2}([a-z][a-z-]*)\s{2,}(\S.*)$")


def help_of(program, *command):
    done = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True)
    return done.stdout


def commands_of(text):
    """Names with their first line, of the part of the help that lists commands."""
    found, inside = {}, False
    for line in text.splitlines():
        if line and not line.startswith(" "):
            inside = "ommand" in line
            continue
        match = COMMAND.match(line) if inside else None
        if match:
            found[match.group(1)] = match.group(2)
    return found


def options_of(text):
    found = []
    for line in text.splitlines():
        for pattern, group in ((SHORT, 1), (OPTION, 2)):
            match = pattern.match(line)
            if match and match.group(group) not in found:
                found.append(match.group(group))
    return found


def roff(text):
    lines = []
    for line in text.splitlines():
        line = line.replace("\\", "\\e").replace("-", "\\-")
        lines.append("\\&" + line if line[:1] in (".", "'") else line)
    return "\n".join(lines)


def man_page(name, section, whole, parts):
    first = whole.strip().splitlines()[0]
    summary = "the npuc compile service" if first.startswith("usage") else first.rstrip(".")
    page = f'.TH {name.upper()} {section} "" npuc\n.SH NAME\n{name} \\- {roff(summary)}\n'
    page += f".SH DESCRIPTION\n.nf\n{roff(whole.strip())}\n.fi\n"
    if parts:
        page += ".SH COMMANDS\n"
    for command, text in parts.items():
        page += f".SS {roff(command)}\n.nf\n{roff(text.strip())}\n.fi\n"
    return page


def bash(name, options, commands):
    function = "_" + name.replace("-", "_") + "_words"
    cases = "".join(f"    {command}) words='{' '.join(words)}' ;;\n"
                    for command, words in commands.items())
    first = " ".join([*commands, *options])
    return (f"{function}() {{\n  local current=${{COMP_WORDS[COMP_CWORD]}} words\n"
            f"  case ${{COMP_WORDS[1]}} in\n{cases}    *) words='{first}' ;;\n  esac\n"
            f"  [ $COMP_CWORD -eq 1 ] && words='{first}'\n"
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))\n}\n'
            f"complete -o default -F {function} {name}\n")


def fish(name, options, commands):
    lines = [f"complete -c {name} -n __fish_use_subcommand -f -a {command}"
             for command in commands]

    def add(option, condition=""):
        form = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
        lines.append(f"complete -c {name} {condition}{form}")
    for option in options:
        add(option)
    for command, words in commands.items():
        for option in words:
            add(option, f"-n '__fish_seen_subcommand_from {command}' ")
    return "\n".join(lines) + "\n"


def main():
    program, section, folder = sys.argv[1:]
    name = os.path.basename(program)
    whole = help_of(program)
    parts = {command: help_of(program, command) for command in commands_of(whole)
             if command != "help"}
    options = options_of(whole)
    commands = {command: options_of(text) for command, text in parts.items()}
    script = bash(name, options, commands)
    for file, text in ((f"{name}.{section}", man_page(name, section, whole, parts)),
                       (f"{name}.bash", script),
                       (f"_{name}", f"#compdef {name}\nautoload -U +X bashcompinit && "
                                    f"bashcompinit\n{script}"),
                       (f"{name}.fish", fish(name, options, commands))):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main()
