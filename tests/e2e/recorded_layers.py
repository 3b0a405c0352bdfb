"""What suites of recorded layers and nets share: a case runs by `npuc reference` and, compiled, on
the simulator of GRUS and of X2_1204; a page has the verdicts.

A run is passed, refused (exit 1, each error with its id) or WRONG: other values, a crash, a hang,
an internal error. `--update` writes the page; without it a page that differs is a failure, so that
a capability that is lost shows and one that is won is recorded.

Tolerances. Reference: 1e-4 of the largest value. GRUS: 2^-11 for each of 64 roundings, of the
largest value or 1; a net of many layers rounds more often, and its cosine must be 0.999. X2_1204,
calibrated on the recorded input: a cosine of 0.99, which is what eight bits are asked for.
"""

import collections
import concurrent.futures
import os
import re

import numpy as np

import harness

RUNS = ("reference", "GRUS", "X2_1204")
REFERENCE_PART = 1e-4
CORE_ROUNDINGS = 64
NET_COSINE = 0.999
INTEGER_COSINE = 0.99
TIMEOUT_SECONDS = 300
# A scale a channel for weights, and ranges that no sample leaves, as the suite `wild` has them.
QUANT = ["  quantize_method_for_weight: per_channel_symmetric_restricted_range",
         "  quantize_method_for_activation: per_tensor_asymmetric",
         "  calibration_strategy_for_activation: extrema"]

# name; framework: FRAMEWORK; files: key of the config -> path; inputs and expected: name -> array;
# is_net: many layers; outputs: OUTPUT_OPS or None; decode: what was recorded, of an output.
Case = collections.namedtuple("Case", "name framework files inputs expected is_net outputs decode",
                              defaults=(False, None, None))
Run = collections.namedtuple("Run", "verdict text")


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norm) if norm > 0 else float(np.array_equal(a, b))


def largest(array):
    return max(1.0, float(np.abs(array).max(initial=0)))


def wrong_by(run, case, got):
    """None, or how a run's answers are wrong."""
    for name, want in case.expected.items():
        value = got[name]
        if value.size != want.size or (run == "reference" and value.shape != want.shape):
            return f"{name}: shape {list(value.shape)}, expected {list(want.shape)}"
        value = value.reshape(want.shape)
        off = float(np.abs(value.astype(np.float64) - want).max(initial=0))
        top = float(np.abs(want).max(initial=0))
        if not np.isfinite(value).all():
            return f"{name}: not finite"
        if run == "reference":
            if off > REFERENCE_PART * max(top, 1e-30):
                return f"{name}: off by {off / max(top, 1e-30):.2g} of the largest value"
        elif run == "GRUS" and not case.is_net:
            if off > harness.FP16_UNIT * CORE_ROUNDINGS * largest(want):
                return f"{name}: off by {off:.3g}"
        else:
            bound = NET_COSINE if run == "GRUS" else INTEGER_COSINE
            if cosine(value, want) < bound:
                return f"{name}: cosine {cosine(value, want):.4f}, demanded {bound}"
    return None


def write_config(case, core, folder):
    lines = [f"CORENAME: {core}", f"FRAMEWORK: {case.framework}", "OUTPUT_FILE: model.h"]
    for key, path in case.files.items():
        lines.append(f"{key}: {path}")
    lines.append("INPUT_OPS:")
    for name, array in case.inputs.items():
        lines.append(f"  {name}: {list(array.shape)}")
    if case.outputs is not None:
        lines.append(f"OUTPUT_OPS: {list(case.outputs)}")
    if core == "X2_1204":
        lines += ["QUANT:", *QUANT, "  calibration_data:"]
        for i, (name, array) in enumerate(case.inputs.items()):
            path = os.path.join(folder, f"samples_{i}.npy")
            np.save(path, np.concatenate([array, array * np.float32(0.7)]))
            lines.append(f"    {name}: {path}")
    config = os.path.join(folder, f"{core}.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return config


def refusal(code, said):
    """The run of a command that did not end well."""
    errors = [line for line in said.splitlines()
              if re.search(r"\[NPUC\d{4}\]$", line) and not re.search(r": (note|warning): ", line)]
    ids = sorted(set(re.findall(r"\[(NPUC\d{4})\]$", "\n".join(errors), re.M)))
    if code == 1 and errors and "NPUC1900" not in ids:
        text = re.sub(r"^[^ ]+: ", "", errors[0])
        return Run("refused", f"{', '.join(ids)}: {text[:160]}")
    return Run("WRONG", f"exit {code}: {said[-300:]}")


def run_one(run, case, folder):
    config = write_config(case, "GRUS" if run == "reference" else run, folder)
    arguments = []
    for i, (name, array) in enumerate(case.inputs.items()):
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    out = os.path.join(folder, "out_" + run)
    if run != "reference":
        code, said = harness.attempt(config, "-o", out, timeout=TIMEOUT_SECONDS)
        if code != 0:
            return refusal(code, said)
        artifact = os.path.join(out, "model.npuc")
        code, said = harness.attempt("run", artifact, *arguments, "--output-dir", out,
                                     timeout=TIMEOUT_SECONDS)
    else:
        code, said = harness.attempt("reference", config, *arguments, "--output-dir", out,
                                     timeout=TIMEOUT_SECONDS)
    if code != 0:
        return refusal(code, said)
    got = {name: np.load(harness.output_file(out, name)) for name in case.expected}
    if case.decode:
        got = {name: case.decode(array) for name, array in got.items()}
    wrong = wrong_by(run, case, got)
    return Run("WRONG", wrong) if wrong else Run("passed", "")


def run_case(case):
    try:
        with harness.scratch() as folder:
            return {run: run_one(run, case, folder) for run in RUNS}
    except OSError as error:
        return {run: Run("WRONG", str(error)) for run in RUNS}


def page_of(title, suite, results):
    lines = [f"# {title}", "",
             f"Generated by `tests/e2e/run_e2e.py {suite} --update`; do not edit.",
             "`recorded_layers.py` has the tolerances.", "",
             "| case | reference | GRUS | X2_1204 |", "|---|---|---|---|"]
    reasons = collections.defaultdict(list)
    for name, runs in sorted(results.items()):
        cells = []
        for run in RUNS:
            cells.append(runs[run].verdict)
            if runs[run].verdict == "refused":
                reasons[runs[run].text].append(f"{name} ({run})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if reasons:
        lines += ["", "## Refusals", "", "| reason | cases |", "|---|---|"]
        for reason, where in sorted(reasons.items()):
            text = reason.replace("|", "\\|")
            lines.append(f"| {text} | {', '.join(where)} |")
    return "\n".join(lines) + "\n"


def run_suite(suite, title, page, cases, arguments):
    """Runs the cases that `arguments` name, or all, and compares the page. A Failure where one is
    wrong."""
    update = "--update" in arguments
    verbose = "-v" in arguments
    names = [a for a in arguments if not a.startswith("-")]
    chosen = [c for c in cases if not names or c.name in names]
    harness.check(chosen, f"no case of {names}")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = dict(zip([c.name for c in chosen], pool.map(run_case, chosen)))
    wrong = []
    for name, runs in results.items():
        for run in RUNS:
            if runs[run].verdict == "WRONG":
                wrong.append(f"{name} on {run}: {runs[run].text}")
            if verbose:
                print(f"{name:32} {run:10} {runs[run].verdict} {runs[run].text}")
    counts = {run: collections.Counter(r[run].verdict for r in results.values()) for run in RUNS}
    for run in RUNS:
        harness.figure(f"{suite}, {run}: {counts[run]['passed']} passed, "
                       f"{counts[run]['refused']} refused, {counts[run]['WRONG']} wrong")
    harness.check(not wrong, "\n".join(wrong))
    if names:
        return
    text = page_of(title, suite, results)
    if update:
        with open(page, "w", encoding="utf-8") as f:
            f.write(text)
        return
    with open(page, encoding="utf-8") as f:
        old = f.read()
    harness.check(old == text, f"{page} differs from what was found; see --update")
