"""Random quantized nets on the integer cores: every stored output as integer_rules.py has it.

    random_quantized [--count N] [--first SEED] [--threads N] [--keep FOLDER] [SEED...]

A seed makes one net (tests/models/quantized_nets.py): ONNX QDQ and QLinear, TFLite int8, uint8 and
int16 in turn, one of the integer cores by the seed. npuc compiles it and runs it on the net's
random integers; outputs must be equal to the bit, or, where npuc takes an operator apart (`loose`
there), within one step. A refusal must be one of KNOWN_REFUSALS; anything else is a finding, shown
with its seed. Every IR_EVERY-th net that compiles is also written as a Compass IR (`npuc ir
write`), which must compile to the same commands and weights, or, where the IR has more layers, to
a program with the same outputs. `--keep FOLDER SEED` leaves the model,
its config and its inputs there.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import sys

import numpy as np

import compass_compile
import harness
import quantized_nets
import quantized_writers


def integer_cores():
    """The names of all cores of the integer command set: X2_1204, then in the order of lists."""
    places = {}
    for path in glob.glob(os.path.join(harness.ROOT, "compiler_core/target/cores/*.yaml")):
        with open(path, encoding="utf-8") as f:
            facts = dict(re.findall(r"^(name|place|family): (\w+)$", f.read(), re.M))
        if facts["family"] == "integer":
            places[facts["name"]] = int(facts["place"])
    return sorted(places, key=lambda name: (name != "X2_1204", places[name]))


CORES = integer_cores()
NETS_PER_BATCH = 50
TIMEOUT_SECONDS = 60
IR_EVERY = 8
# Seeds by which longer runs found a defect.
FOUND = [3292, 3757, 4727, 5297, 5707, 9944, 11487, 12762, 19294, 703374, 706416, 802260,
         951792, 952840, 983840, 1003538, 2000469, 5009403, 41424]
# Refusals that are right: patterns of an id, an operator and a text.
KNOWN_REFUSALS = [
    r"LSTM.*: the operator becomes several here, and the model has no scales"]


def stores_twice(builder):
    """Whether two operators compute the same and store it with different scales."""
    found = {}
    for op in builder.ops:
        key = (op.kind, tuple(map(id, op.inputs)), repr(op.attrs))
        if found.setdefault(key, op.outputs[0].scale) != op.outputs[0].scale:
            return True
    return False


def reads_one(operands):
    """Whether a sum or product has one activation for both operands, or one number beside it."""
    return operands[0] is operands[1] or any(t.constant and t.data.size == 1 for t in operands)


# Traits of a net that defects have asked for.
TRAITS = {
    "constant-concat": lambda b: any(op.kind == "CONCAT" and any(t.constant for t in op.inputs)
                                     for op in b.ops),
    "constant-alone": lambda b: any(all(t.constant for t in op.inputs) for op in b.ops),
    "wide-weight": lambda b: any(t.axis is not None and (any(t.zeros) or t.dtype == "uint8")
                                 for op in b.ops for t in op.inputs),
    "two-scales": stores_twice,
    "one-activation": lambda b: any(op.kind in quantized_nets.BINARY and reads_one(op.inputs)
                                    for op in b.ops),
    "split-depthwise": lambda b: not b.is_tflite and any(
        op.kind in ("CONV", "DEPTHWISE") and len(op.inputs[1].scales) > 1
        and op.attrs["groups"] < op.inputs[1].shape[0] and op.attrs["groups"] > 1
        for op in b.ops)}

Outcome = collections.namedtuple("Outcome", "seed verdict text")  # passed, refused, finding


def form_of(seed):
    forms = list(quantized_nets.FORMS)
    return forms[seed % len(forms)]


def build(seed):
    return quantized_nets.Builder(seed, form_of(seed))


def needed_tensors(builder):
    """What the outputs are computed from."""
    needed = list(builder.outputs)
    for op in reversed(builder.ops):
        if any(t in needed for t in op.outputs):
            needed += op.inputs
    return needed


def write_inputs(builder, model, folder):
    """The config and the arguments of the run."""
    config = os.path.join(folder, "net.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core_of(builder)}\n"
                f"FRAMEWORK: {'TFLITE' if builder.is_tflite else 'ONNX'}\n"
                f"MODEL_FILE: {model}\nOUTPUT_FILE: net.h\n")
    arguments, needed = [], needed_tensors(builder)
    for tensor in builder.inputs:
        path = os.path.join(folder, tensor.name + ".npy")
        # The type of an input that no output needs is npuc's to choose, where a node stores it.
        chosen = not builder.is_tflite and tensor not in needed
        np.save(path, tensor.data.astype("int8" if chosen else tensor.dtype))
        arguments += ["--input", f"{tensor.name}={path}"]
    return config, arguments


def npuc(*arguments):
    """(exit code or "hang", what was said)."""
    return harness.attempt(*arguments, timeout=TIMEOUT_SECONDS)


def refusal_of(said):
    """The distinct reasons, without the names of this net."""
    reasons = set()
    for line in said.splitlines():
        if ": note: " in line or ": warning: " in line:
            continue
        found = re.match(r"^[^:]*: (?:node '.*?' \((\w+)\): )?(.*) \[(NPUC\d{4})\]$", line)
        if found:
            text = re.sub(r"'[^']*'", "...", found[2])
            reasons.add(f"{found[3]} {found[1] or ''}: {re.sub(r'[0-9]+', 'N', text)}")
    return sorted(reasons)


def compare(builder, names, folder):
    """What differs, as text; empty where nothing does."""
    wrong = []
    for tensor in builder.outputs:
        got = np.load(harness.output_file(folder, names[tensor.name])).astype(np.int64)
        if got.size != tensor.data.size:
            wrong.append(f"{tensor.name}: shape {got.shape}, not {tensor.data.shape}")
            continue
        off = np.abs(got.reshape(tensor.data.shape) - tensor.data)
        allowed = tensor.allowed
        if (off > allowed).any():
            wrong.append(f"{tensor.name}: {int((off > allowed).sum())} of {off.size} differ, by "
                         f"{off.max()} at most")
    return "; ".join(wrong)


def core_of(builder):
    return CORES[builder.seed // len(quantized_nets.FORMS) % len(CORES)]


def count_layers(folder):
    """Of those that compute something."""
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        return sum(node["commands"] > 0 for node in json.load(f)["nodes"])


def round_trip(builder, config, names, arguments, folder):
    """What is wrong with the net written as an IR and compiled from it; empty where nothing is.

    Both are compiled with their dead channels: an IR has a clamp as a layer of its own, and more
    channels are found constant behind such a layer than inside of another one."""
    code, said = npuc("ir", "write", config, "-o", folder)
    if code == 1 and all("Compass's IR files" in r for r in refusal_of(said) or [""]):
        return ""  # a layer that those files have no type for
    if code != 0:
        return f"ir write: exit {code}: {said[-600:]}"
    text = next(f for f in os.listdir(folder) if f.endswith(".txt"))
    again = os.path.join(folder, "again.yaml")
    with open(again, "w", encoding="utf-8") as f:
        f.write(f"CORENAME: {core_of(builder)}\nFRAMEWORK: COMPASS\nMODEL_FILE: {text}\n"
                "OUTPUT_FILE: net.h\nKEEP_DEAD: true\n")
    whole = os.path.join(folder, "whole.yaml")
    with open(config, encoding="utf-8") as source, open(whole, "w", encoding="utf-8") as f:
        f.write(source.read() + "KEEP_DEAD: true\n")
    for path, out in ((whole, "whole"), (again, "again")):
        code, said = npuc(path, "-o", os.path.join(folder, out))
        if code != 0:
            return f"compile of {out}: exit {code}: {said[-600:]}"
    ours, theirs = (compass_compile.arrays_of(os.path.join(folder, out, "net.h"))
                    for out in ("whole", "again"))
    if ours == theirs:
        return ""
    # An IR has a clamp, or the copy to an output, as a layer of its own. Two layers may share an
    # operand that one layer has for itself, and be apart in an order that is better. What is
    # computed twice because the model says it twice is one layer where an IR is read.
    if count_layers(os.path.join(folder, "whole")) == count_layers(os.path.join(folder, "again")):
        return "its IR compiles to other bytes"
    out = os.path.join(folder, "again", "out")
    code, said = npuc("run", os.path.join(folder, "again", "net.npuc"), *arguments, "--raw",
                      "--output-dir", out)
    return compare(builder, names, out) if code == 0 else f"run of its IR: exit {code}: {said}"


def run_net(builder, model, names, folder):
    os.makedirs(folder, exist_ok=True)
    config, arguments = write_inputs(builder, model, folder)
    code, said = npuc(config, "-o", folder)
    reasons = refusal_of(said)
    if code == 1 and reasons and "NPUC19" not in said:
        unknown = [r for r in reasons if not any(re.search(k, r) for k in KNOWN_REFUSALS)]
        if unknown:
            return Outcome(builder.seed, "finding", f"refused: {'; '.join(unknown)}")
        return Outcome(builder.seed, "refused", "; ".join(reasons))
    if code != 0:
        return Outcome(builder.seed, "finding", f"compile: exit {code}: {said[-600:]}")
    out = os.path.join(folder, "out")
    code, said = npuc("run", os.path.join(folder, "net.npuc"), *arguments, "--raw", "--output-dir",
                      out)
    if code != 0:
        return Outcome(builder.seed, "finding", f"run: exit {code}: {said[-600:]}")
    wrong = compare(builder, names, out)
    if wrong:
        return Outcome(builder.seed, "finding", f"WRONG: {wrong}")
    if builder.seed % IR_EVERY == 0:
        wrong = round_trip(builder, config, names, arguments, folder)
    return Outcome(builder.seed, "finding" if wrong else "passed", wrong)


def describe(builder):
    kinds = collections.Counter(op.kind for op in builder.ops)
    traits = [name for name, has in TRAITS.items() if has(builder)]
    listed = [f"{k}x{n}" if n > 1 else k for k, n in kinds.items()] + traits
    return f"{builder.form}: {' '.join(listed)}"


def run_batch(seeds, keep=None):
    """Outcomes of these seeds' nets, one by one; a finding with what the net is made of."""
    outcomes = []
    with harness.scratch() as scratch:
        folder = keep or scratch
        builders = []
        for seed in seeds:
            try:
                builders.append(build(seed))
            except quantized_nets.WrongRule as error:
                outcomes.append(Outcome(seed, "finding", f"the rules: {error}"))
        for builder, (model, names) in zip(builders, quantized_writers.write(builders, folder)):
            where = os.path.join(folder, "work")
            outcome = run_net(builder, model, names, where)
            if outcome.verdict == "finding":
                outcome = outcome._replace(text=f"{outcome.text} [{describe(builder)}]")
            outcomes.append(outcome)
            if not keep:
                shutil.rmtree(where, ignore_errors=True)
    return outcomes


def run_all(seeds, threads):
    batches = [seeds[i:i + NETS_PER_BATCH] for i in range(0, len(seeds), NETS_PER_BATCH)]
    with concurrent.futures.ProcessPoolExecutor(threads) as pool:
        for outcomes in pool.map(run_batch, batches):
            yield from outcomes


def main(arguments):
    parser = argparse.ArgumentParser(prog="run_e2e.py random_quantized")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    parser.add_argument("--refusals", action="store_true", help="count refusals by reason")
    parser.add_argument("seeds", nargs="*", type=int)
    options = parser.parse_args(arguments)
    seeds = options.seeds or list(range(options.first, options.first + options.count)) + FOUND
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        outcomes = run_batch(seeds[:1], options.keep)
    else:
        outcomes = run_all(seeds, options.threads)
    counts, refusals = collections.Counter(), collections.Counter()
    for outcome in outcomes:
        counts[outcome.verdict] += 1
        if outcome.verdict == "refused":
            refusals.update(outcome.text.split("; "))
        if outcome.verdict == "finding":
            print(f"seed {outcome.seed}: {outcome.text}", flush=True)
    for reason, count in refusals.most_common() if options.refusals else ():
        print(f"{count:6} {reason}")
    harness.figure(f"random quantized nets: {len(seeds)}: {counts['passed']} equal to the bit, "
                   f"{counts['refused']} refused, {counts['finding']} findings")
    harness.check(counts["finding"] == 0, f"{counts['finding']} nets are findings")
    harness.check(counts["passed"] > 0, "no net passed")


if __name__ == "__main__":
    main(sys.argv[1:])
