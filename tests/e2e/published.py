"""Further published models, which lie outside of the tree: what npuc does with each of them.

    published FOLDER [--list LIST.csv] [-v] [--update] [NAME...]

LIST (default published.csv) names for each model its repository, commit and path, the SHA-256 of
the file, the shapes of inputs that the model does not state (const:NAME=VALUE for an input that is
always the same), the files that belong beside it (weights, prototxt, variables) as path@SHA-256,
and, where a run differs from the reference, why. FOLDER holds the files, whatever their names: they
are found by their sums, and models that miss one are left out.

Each model goes the way of a newcomer on GRUS, X2_1204 and APUS: `npuc init`, the samples that its
config asks for (seeded ones), a compile, and a run on the simulator, whose results are compared
with `npuc reference` on the same random input. Nothing from outside judges the numbers here: `wild`
does that. A crash, a hang, an internal error, or a compile that fails in spite of what init said is
WRONG. `--update` stores the verdicts of the run in published_verdicts.csv, beside those that other
runs left there of other models, and writes PUBLISHED.md from all of them.
"""

import argparse
import collections
import concurrent.futures
import csv
import datetime
import hashlib
import os
import re
import subprocess

import numpy as np

import harness
import wild
import wild_judges

PAGE = os.path.join(harness.ROOT, "tests", "e2e", "PUBLISHED.md")
LIST = os.path.join(harness.ROOT, "tests", "e2e", "published.csv")
VERDICTS = os.path.join(harness.ROOT, "tests", "e2e", "published_verdicts.csv")
CORES = ("GRUS", "X2_1204", "APUS")
WORDS = ("compiles", "differs", "refused", "WRONG")
TIMEOUT_SECONDS = 900
SAMPLES = 8
LARGEST_INDEX = 3  # of a table that may have as few rows
# float16 has 11 bits; eight bits leave about two digits of a result. GRUS and APUS compute a net of
# integers without its rounding, which `npuc reference` has.
LEAST_COSINE = {"GRUS": 0.999, "X2_1204": 0.9, "APUS": 0.99}
LEAST_COSINE_UNROUNDED = 0.98
CONST = "const:"  # of a fact in the column `shapes`: an input's value in place of a shape
REASON_LENGTH = 90  # of a cell of the table

Verdict = collections.namedtuple("Verdict", "word text")  # a word of WORDS; a cosine or reasons
Stored = collections.namedtuple("Stored", "day verdicts")  # of one model: of each core


class Model:
    """A row of the list, and its file under the name that it has in its repository; None where the
    file is not there."""

    def __init__(self, row, path=None):
        self.row, self.path = row, path
        self.name = row["name"]
        self.format = os.path.splitext(row["path"])[1][1:] or os.path.basename(row["path"])
        self.shapes = [a for fact in row["shapes"].split()
                       for a in (("--const", fact[len(CONST):]) if fact.startswith(CONST)
                                 else ("--input-shape", fact))]


def parts_of(row):
    """[(path, SHA-256)] of the model's file and of those that belong beside it."""
    beside = [part.rsplit("@", 1) for part in row["beside"].split(";") if part]
    return [(row["path"], row["sha256"])] + [(path, sha256) for path, sha256 in beside]


def stage(row, files, folder):
    """Links the files of a model into a folder of its own, by their names. The model's path."""
    parts = parts_of(row)
    home = os.path.join(folder, row["name"])
    for path, sha256 in parts:
        name = os.path.relpath(path, os.path.dirname(row["path"]) or ".")
        name = os.path.basename(path) if name.startswith("..") else name
        os.makedirs(os.path.dirname(os.path.join(home, name)), exist_ok=True)
        os.symlink(files[sha256], os.path.join(home, name))
    name = os.path.basename(row["path"])
    # The variables of a SavedModel lie in a folder beside it: the model is the whole.
    return home if name == "saved_model.pb" else os.path.join(home, name)


def models(folder, list_path, names, staged):
    """The models of the list whose files are in the folder, linked into the folder `staged`."""
    files = {}
    for where, _, found in os.walk(folder):
        for name in found:
            path = os.path.abspath(os.path.join(where, name))
            with open(path, "rb") as f:
                files[hashlib.sha256(f.read()).hexdigest()] = path
    with open(list_path, encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    return [Model(row, stage(row, files, staged)) for row in rows
            if all(sha256 in files for _, sha256 in parts_of(row))
            and (not names or any(n in row["name"] for n in names))]


def npuc(*arguments):
    """(exit code or "hang", what npuc said in both streams)."""
    try:
        done = harness.npuc(*arguments, expect=None, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return "hang", ""
    return done.returncode, done.stdout + done.stderr


def failed(step, code, said):
    found = wild.failed(step, code, said)
    return Verdict(found.verdict, found.text)


def stated_inputs(model):
    """The inputs as a TFLite model states them; none of other models."""
    return wild_judges.tflite_inputs(model.path) if model.format == "tflite" else []


def ports_of(model, text):
    """[(name, shape, type)] of the INPUT_OPS of a config, or of the model where the config has none
    since it cannot write a name."""
    block = re.search(r"^INPUT_OPS:\n((?:  .*\n)+)", text, re.M)
    if not block:
        return [(facts["name"], facts["shape"], "float32") for facts in stated_inputs(model)]
    return [(name.strip("\"'"), [int(d) for d in dims.split(",") if d.strip()], dtype)
            for name, dims, dtype in
            re.findall(r"^  (.+): \[([\d, ]*)\](?:  # (\w+))?", block[1], re.M)]


def values_of(model, name, shape, dtype, random):
    """Seeded values of an input: all that an integer with a scale can be, indices where it is one
    without, else uniform ones."""
    for facts in stated_inputs(model):
        if facts["scale"] > 0 and facts["name"] == name:
            info = np.iinfo(facts["dtype"])
            stored = random.integers(info.min, info.max, shape, endpoint=True)
            return wild_judges.real(stored, facts)
    if re.match("u?int|bool", dtype):
        return random.integers(0, 1 if dtype == "bool" else LARGEST_INDEX, shape,
                               endpoint=True).astype(np.float32)
    return random.uniform(-1, 1, shape).astype(np.float32)


def inputs_of(model, text, folder):
    """The arguments of a run: values_of() for each input of the config; npuc's own random ones
    where it has no names for them."""
    ports, arguments = ports_of(model, text), []
    random = np.random.default_rng(7)
    if not ports or (len(ports) > 1 and "FRAMEWORK: PT" in text):
        return ["--input", "random:3"]
    for i, (name, shape, dtype) in enumerate(ports):
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, values_of(model, name, shape, dtype, random))
        arguments += ["--input", path if len(ports) == 1 else f"{name}={path}"]
    return arguments


def add_samples(config, model, folder):
    """Writes the samples that a config of init asks for, and takes its comment signs away. The
    arguments that run it on another input."""
    with open(config, encoding="utf-8") as f:
        text = f.read()
    template = re.search(r"# QUANT:\n(?:#   .*\n)+", text)
    if not template:
        return inputs_of(model, text, folder)
    random, arguments = np.random.default_rng(5), []
    ports = ports_of(model, text)
    asked = re.findall(r"(\S.*): (samples\S*\.npy)   #", template.group(0))
    for (stated, shape, dtype), (port, name) in zip(ports, asked):
        values = values_of(model, stated, [SAMPLES + 1] + shape, dtype, random)
        np.save(os.path.join(folder, name), values[1:].reshape([-1] + shape[1:]))
        path = os.path.join(folder, "one_" + name)
        np.save(path, values[0])
        port = "" if "calibration_data" in port else port.lstrip("# ").strip("\"'") + "="
        arguments += ["--input", port + path]
    lines = re.sub(r"^# ", "", template.group(0), flags=re.M)
    with open(config, "w", encoding="utf-8") as f:
        f.write(text.replace(template.group(0), lines))
    return arguments


def has_samples(config):
    with open(config, encoding="utf-8") as f:
        return re.search("^QUANT:", f.read(), re.M) is not None


def likeness(folder_a, folder_b):
    """The least cosine of the two runs' outputs."""
    least = 1.0
    for name in sorted(os.listdir(folder_a)):
        a, b = (np.load(os.path.join(folder, name)).astype(np.float64).ravel()
                for folder in (folder_a, folder_b))
        norm = np.linalg.norm(a) * np.linalg.norm(b)
        if norm == 0:
            least = min(least, 1.0 if np.allclose(a, b, atol=1e-3) else 0.0)
        else:
            least = min(least, float(a @ b / norm))
    return least


def start(model, core, folder):
    """The config of init, or None; the arguments of its run, or the verdict where none is due."""
    config = os.path.join(folder, "net.yaml")
    code, said = npuc("init", model.path, "-c", core, "-o", config, *model.shapes)
    if not os.path.exists(config):
        return None, failed("init", code, said)
    with open(config, encoding="utf-8") as f:
        if "FILL_IN" in f.read():
            return None, Verdict("refused", "the model does not state the shapes of its inputs")
    if f"core {core} refuses the model" not in said:
        return config, add_samples(config, model, folder)
    said = re.sub(r"^ +\d+ nodes?  (\S+): ", r"init: (\1) ", said, flags=re.M)
    said = re.sub(r"^ {6}(?=\S.*\[NPUC)", "init: ", said, flags=re.M)
    verdict = failed("init", 1, said)
    code, said = npuc(config, "-o", os.path.join(folder, "out"))
    return None, failed("compile", code, said) if code != 1 else verdict


def run_core(model, core):
    with harness.scratch() as folder:
        config, found = start(model, core, folder)
        if config is None:
            return found
        out = os.path.join(folder, "out")
        code, said = npuc(config, "-o", out)
        if code != 0:
            verdict = failed("compile", code, said)
            # Without samples of ours init has said that it compiles.
            return verdict if has_samples(config) else verdict._replace(word="WRONG")
        artifact = next(os.path.join(out, n) for n in os.listdir(out) if n.endswith(".npuc"))
        results = []
        for verb, argument in (("reference", config), ("run", artifact)):
            results.append(os.path.join(folder, verb))
            code, said = npuc(verb, argument, *found, "--output-dir", results[-1])
            if code != 0:
                return Verdict("WRONG", f"{verb}: {failed(verb, code, said).text}")
        cosine, least = likeness(*results), LEAST_COSINE[core]
        if os.path.isfile(model.path) and wild_judges.has_integers(model.path,
                                                                   model.format.upper()):
            least = min(least, LEAST_COSINE_UNROUNDED)
        return Verdict("compiles" if cosine >= least else "differs", f"{cosine:.4f}")


def is_figure(verdict):
    return verdict.word in ("compiles", "differs")


def cell_of(verdict):
    """The verdict with its figure or its first reason in a few words."""
    if is_figure(verdict):
        return f"{verdict.word} {verdict.text}"
    first, *others = verdict.text.split(" / ")
    if len(first) > REASON_LENGTH:
        first = first[:REASON_LENGTH].rsplit(" ", 1)[0] + " ..."
    more = f" (and {len(others)} more)" if others else ""
    return f"{verdict.word}: {escaped(first)}{more}"


def escaped(text):
    return text.replace("|", "\\|")


def reasons_of(results):
    """[(reason, {model name: cores})], those of most models first."""
    found = collections.defaultdict(dict)
    for model, verdicts in results:
        for core in CORES:
            if not is_figure(verdicts[core]):
                for reason in verdicts[core].text.split(" / "):
                    found[reason].setdefault(model.name, []).append(core)
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


INTRO = """\
# Further published models, and what npuc does with them

Generated by `tests/e2e/run_e2e.py published FOLDER --update`; do not edit. The models were found in
public repositories and are taken as they lie; none was made or chosen for npuc. They are not part
of this project. To get one: check out its repository on GitHub at the commit that `published.csv`
names, and copy the file at the path to any folder, with the files of the column `beside` (weights,
prototxt, variables), where it has some; the suite finds them there by their SHA-256.
A licence is that of the repository; "none stated" means that its root has no licence file.

The verdicts are those of the config that `npuc init` writes, completed by seeded samples where it
asks for some. The figure is the least cosine between a run on the simulator and `npuc reference` on
one random input; quantized on random samples, nets are worse than on real ones.
"""


def read_verdicts():
    """{model name: Stored} of the runs that were stored."""
    found = {}
    with open(VERDICTS, encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            stored = found.setdefault(row["name"], Stored(row["day"], {}))
            stored.verdicts[row["core"]] = Verdict(row["word"], row["text"])
    return found


def write_verdicts(stored):
    with open(VERDICTS, "w", encoding="utf-8", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["name", "core", "word", "text", "day"])
        for name in sorted(stored):
            for core in CORES:
                out.writerow([name, core, *stored[name].verdicts[core], stored[name].day])


def update(results):
    """Stores what a run found, and writes the page of all models of the list with verdicts."""
    stored = read_verdicts()
    day = datetime.date.today().isoformat()
    stored.update({model.name: Stored(day, verdicts) for model, verdicts in results})
    with open(LIST, encoding="utf-8") as f:
        listed = [Model(row) for row in csv.DictReader(f) if row["name"] in stored]
    stored = {model.name: stored[model.name] for model in listed}
    write_verdicts(stored)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page([(model, stored[model.name].verdicts) for model in listed],
                     collections.Counter(s.day for s in stored.values())))


def page(results, days):
    counts = {core: collections.Counter(v[core].word for _, v in results) for core in CORES}
    some = sum(any(is_figure(v) for v in verdicts.values()) for _, verdicts in results)
    repositories = len({m.row["repository"] for m, _ in results})
    runs = ", ".join(f"{days[day]} of {day}" for day in sorted(days))
    out = [INTRO, f"{len(results)} models of {repositories} repositories; {some} compile on some "
           f"core. The verdicts come from several runs: {runs}.", "",
           "| | " + " | ".join(CORES) + " |", "|---|" + "---|" * len(CORES)]
    out += [f"| {word} | " + " | ".join(str(counts[c][word]) for c in CORES) + " |"
            for word in WORDS]
    out += ["", "`differs`: it compiles, and the cosine is below what rounding usually explains.",
            "", "## Differences", "", "| model | cores | why |", "|---|---|---|"]
    for model, verdicts in results:
        cores = [f"{c} {verdicts[c].text}" for c in CORES if verdicts[c].word == "differs"]
        if cores:
            why = model.row["differs"] or "not looked at yet"
            out.append(f"| {model.name} | {', '.join(cores)} | {escaped(why)} |")
    out += ["",
            "## Refusals", "", "| reason | models | cores |", "|---|---|---|"]
    for reason, cases in reasons_of(results):
        cores = [c for c in CORES if any(c in of for of in cases.values())]
        out.append(f"| {escaped(reason)} | {len(cases)}: {', '.join(sorted(cases))} | "
                   f"{', '.join(cores)} |")
    out += ["", "## Models", "",
            "| model | repository, path | SHA-256 | licence | format | " + " | ".join(CORES) + " |",
            "|---|---|---|---|---|" + "---|" * len(CORES)]
    for model, verdicts in results:
        row = model.row
        out.append(f"| {model.name} | {row['repository']}, {row['path']} | {row['sha256'][:12]} | "
                   f"{row['licence'] or 'none stated'} | {model.format} | "
                   + " | ".join(cell_of(verdicts[core]) for core in CORES) + " |")
    return "\n".join(out) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py published")
    parser.add_argument("folder", help="where the models are")
    parser.add_argument("--list", default=LIST)
    parser.add_argument("-v", action="store_true", help="every verdict, not only what is wrong")
    parser.add_argument("--update", action="store_true", help="write PUBLISHED.md")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args(arguments)
    with harness.scratch() as staged:
        judge(models(options.folder, options.list, options.names, staged), options)


def judge(chosen, options):
    harness.check(chosen, "none of the models of the list is in that folder")
    jobs = [(model, core) for model in chosen for core in CORES]
    results, wrong = {}, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (model, core), verdict in zip(jobs, pool.map(lambda job: run_core(*job), jobs)):
            results.setdefault(model, {})[core] = verdict
            wrong += verdict.word == "WRONG"
            if options.v or verdict.word in ("WRONG", "differs"):
                print(f"{verdict.word}: {model.name} on {core}: {verdict.text}", flush=True)
    some = sum(any(is_figure(v) for v in verdicts.values()) for verdicts in results.values())
    harness.figure(f"published: {len(chosen)} models, {some} compile on some core, {wrong} wrong")
    if options.update:
        update(list(results.items()))
    harness.check(wrong == 0, "a run is wrong")
