"""Every net that tests/oracle recorded in PyTorch: compiled, simulated, compared with PyTorch.

    run_e2e.py torch [-v] [NAME...]     NAME: a group, a net, or the beginning of a net's name

Each net comes scripted and traced, each with every config recorded beside it. A net that lies just
outside of a restriction must be refused with a diagnostic that names the rule, or be compiled with
a note of the rewrite (NPUC1203) and then agree; one that must be refused must not compile.

Tolerance. Weights and inputs are exact in float16, sums are float32 on the NPU: only the rounding
of results differs. The oracle measured, in PyTorch, the error e of each output where every
operator's result is rounded to float16. The NPU may round in other places: a bias, a normalisation
or a step of a softmax more, a fused operator less; each such rounding is of the size of those that
e is made of. So an output may be off by

    4 * e + 4 * u * max(1, largest |expected value|),   u = 2^-11

of which the second part is four roundings of the result itself, for outputs whose e is 0 by chance.
A wrong kernel, layout or gate is off by the size of the values, hundreds of times more.
"""

import collections
import concurrent.futures
import io
import json
import lzma
import os
import re
import shutil
import tarfile

import numpy as np
import yaml

import harness
import headers

RECORDED = os.path.join(harness.ROOT, "tests", "oracle", "recorded")
REWRITTEN = "NPUC1203"
# A net of this size and more is reported on a line of its own; of the others, the worst.
OWN_LINE = ("guide_", "net_", "published_")


class Net:
    """One recorded net: its files, unpacked from the group's archive."""

    def __init__(self, name, group, files):
        self.name, self.group, self.files = name, group, files
        facts = json.loads(files["case.json"])
        self.expect, self.rule = facts["expect"], facts["rule"]
        self.rows = facts["row"].split()
        self.items, self.variants = facts["items"], facts["variants"]
        self.configs, self.top1 = facts["configs"], facts["top1"]
        self.states = {o: i for o, i in facts["states"]}
        self.input_shapes = facts["inputs"]
        self.errors = facts.get("float16_errors", [])
        self.published = facts["published"]

    def array(self, kind, k):
        return np.load(io.BytesIO(self.files[f"{kind}_{k}.npy"]))

    def expected(self):
        return [self.array("output", k) for k in range(len(self.errors))]

    def turns_data(self, suffix):
        """Whether INPUT_NCX_TO_NXC of a config names an input of more than one channel."""
        return any(self.input_shapes[i][1] > 1
                   for i in self.configs[suffix].get("INPUT_NCX_TO_NXC", []))

    def unpack(self, folder):
        for name, data in self.files.items():
            if name.endswith((".pt", ".yaml")):
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
        if self.published:
            shutil.copy(self.shared_model(), os.path.join(folder, "published.pt"))

    def shared_model(self):
        return os.path.join(harness.SHARED, "models", "torchscript", self.published)


def read_nets(path):
    group = os.path.basename(path)[:-len(".tar.xz")]
    nets = collections.defaultdict(dict)
    with lzma.open(path) as f, tarfile.open(fileobj=io.BytesIO(f.read())) as tar:
        for member in tar.getmembers():
            net, name = member.name.split("/", 1)
            nets[net][name] = tar.extractfile(member).read()
    return [Net(name, group, files) for name, files in sorted(nets.items())]


def to_channels_last(array):
    """[items, n, c, ...] as [items, n, ..., c]."""
    return np.moveaxis(array, 2, -1)


def simulate(net, header, members, extra, folder):
    """The outputs in the recorded order. Names are the header's, in its order."""
    inputs, outputs = members
    harness.check(len(inputs) == len(net.input_shapes), f"{len(inputs)} inputs in the header")
    harness.check(len(outputs) == len(net.errors), f"{len(outputs)} outputs in the header")
    arrays = {}
    for k, (_, name, dims) in enumerate(inputs):
        array = net.array("input", k).astype(np.float32)
        if k in extra.get("INPUT_NCX_TO_NXC", []):
            array = to_channels_last(array)
        harness.check(dims == "".join(f"[{n}]" for n in array.shape[1:]),
                      f"input {name} is {dims}, PyTorch's is {list(array.shape[1:])}")
        if k not in net.states.values():
            arrays[name] = array
    for k, (kind, name, _) in enumerate(outputs):
        wanted = "npu_data_t" if k in extra.get("FP16_OUT_OPS", []) else "float"
        harness.check(kind == wanted, f"output {name} is {kind}, not {wanted}")
    names = [name for _, name, _ in outputs]
    found = harness.simulate(header, arrays, os.path.join(folder, "sim"), names)
    return [found[name] for name in names]


def compare(net, got):
    """(largest error as a part of what is allowed, largest error, top-1 agreements, rows)."""
    worst = largest = 0.0
    for k, (array, want) in enumerate(zip(got, net.expected())):
        harness.check(array.size == want.size,
                      f"output {k}: shape {list(array.shape)}, PyTorch's {list(want.shape)}")
        array = array.reshape(want.shape).astype(np.float64)
        harness.check(np.isfinite(array).all(), f"output {k} is not finite")
        allowed = 4 * net.errors[k] + 4 * harness.FP16_UNIT * max(1.0, float(np.abs(want).max()))
        error = float(np.abs(array - want).max())
        largest = max(largest, error)
        worst = max(worst, error / allowed)
        harness.check(error <= allowed, f"output {k}: off by {error:.4g}, allowed {allowed:.4g}")
    if not net.top1:
        return worst, largest, 0, 0
    got, want = got[-1].reshape(net.expected()[-1].shape), net.expected()[-1]
    rows = int(np.prod(want.shape[:-1]))
    return worst, largest, int((got.argmax(-1) == want.argmax(-1)).sum()), rows


def count_transposes(listing):
    return sum(line.split()[1:2] == ["Transpose"] for line in listing.splitlines())


class Result:
    def __init__(self, net, label):
        self.net, self.label = net, label
        self.verdict, self.detail = "passed", ""
        self.worst = self.largest = 0.0
        self.agree = self.rows = self.transposes = 0


def check_refusal(net, text):
    harness.check(re.search(r"\[NPUC\d{4}\]", text), f"refused without a diagnostic: {text[-500:]}")
    harness.check("NPUC19" not in text, f"an internal error: {text[-500:]}")
    harness.check(re.search(net.rule, text, re.IGNORECASE),
                  f"the refusal does not name the rule /{net.rule}/: {text[-500:]}")


def first_error(text):
    return next((l for l in text.splitlines() if re.search(r"\[NPUC\d{4}\]", l)
                 and ": note: " not in l and ": warning: " not in l), "")


def run_one(net, variant, suffix):
    """Compiles and compares one variant with one config."""
    result = Result(net, f"{net.name} {variant}{' ' + suffix if suffix else ''}")
    try:
        with harness.scratch() as folder:
            net.unpack(folder)
            name = f"{variant}.{suffix}.yaml" if suffix else f"{variant}.yaml"
            done = harness.npuc(os.path.join(folder, name), "-o", os.path.join(folder, "out"), "-v",
                                expect=None)
            text = done.stdout + done.stderr
            if done.returncode == 1 and net.expect != "passes":
                check_refusal(net, text)
                result.verdict, result.detail = "refused", first_error(text)
                return result
            harness.check(done.returncode == 0, f"exit {done.returncode}: {text[-1500:]}")
            harness.check(net.expect != "refused", "compiled, but must be refused")
            if net.expect == "outside":
                notes = "\n".join(l for l in text.splitlines() if f"[{REWRITTEN}]" in l)
                harness.check(re.search(net.rule, notes, re.IGNORECASE),
                              f"compiled without a note that names /{net.rule}/: {notes[-500:]}")
                result.verdict = "rewritten"
            result.transposes = count_transposes(done.stdout)
            header = os.path.join(folder, "out", "model.h")
            got = simulate(net, header, headers.check_header(header), net.configs[suffix], folder)
            result.worst, result.largest, result.agree, result.rows = compare(net, got)
    except (harness.Failure, OSError, KeyError, ValueError) as error:
        result.verdict, result.detail = "failed", str(error)
    return result


def report(results):
    """A figure for each large net, the counts and the worst of the others."""
    by_group = collections.defaultdict(list)
    for result in results:
        by_group[result.net.group].append(result)
    for group, members in by_group.items():
        counts = collections.Counter(r.verdict for r in members)
        for r in members:
            if r.verdict in ("passed", "rewritten") and r.net.name.startswith(OWN_LINE):
                top1 = f", top-1 {r.agree}/{r.rows}" if r.rows else ""
                harness.figure(f"torch {r.label}: largest error {r.largest:.5f} "
                               f"({r.worst:.2f} of allowed){top1}, {r.transposes} transposes")
        if len(members) > 6 or counts["failed"]:
            worst = max(members, key=lambda r: r.worst)
            harness.figure(f"torch {group}: " + ", ".join(f"{n} {v}" for v, n in counts.items()) +
                           f"; worst {worst.label}: {worst.largest:.5f} ({worst.worst:.2f} of "
                           "allowed)")


def check_inputs_fed_transposed(results):
    """With INPUT_NCX_TO_NXC a net must need fewer transposes than without, where the input has more
    than one channel: else turning it moves nothing."""
    ran = {r.label: r for r in results if r.verdict == "passed"}
    problems = []
    for label, result in ran.items():
        plain = ran.get(label[:-len(" nxc")]) if label.endswith(" nxc") else None
        if plain is None or not result.net.turns_data(label.split()[-1]):
            continue
        if plain.transposes and result.transposes >= plain.transposes:
            problems.append(f"{label}: {result.transposes} transposes, without "
                            f"INPUT_NCX_TO_NXC {plain.transposes}")
    return problems


def check_rows(nets):
    """Each operator of the core's list of PyTorch operators has a net that passes."""
    with open(os.path.join(harness.ROOT, "compiler_core", "target", "cores", "grus.yaml"),
              encoding="utf-8") as f:
        lists = [part for part in yaml.safe_load(f)["operators"] if part["framework"] == "PT"]
    # The first list is the vendor's; of the others, GRU is required too.
    rows = set(lists[0]["ops"]) | {"GRU"}
    covered = {row for net in nets if net.expect == "passes" for row in net.rows}
    harness.check(covered == rows, f"rows without a net: {sorted(rows - covered)}; nets of no row: "
                  f"{sorted(covered - rows)}")


def chosen(net, only):
    return not only or any(net.group == o or net.name.startswith(o) for o in only)


def main(arguments):
    verbose = "-v" in arguments
    only = [a for a in arguments if not a.startswith("-")]
    files = sorted(n for n in os.listdir(RECORDED) if n.endswith(".tar.xz"))
    nets = [net for name in files for net in read_nets(os.path.join(RECORDED, name))]
    check_rows(nets)
    for net in nets:
        if net.published and not os.path.exists(net.shared_model()):
            print(f"skipped: {net.name}: {net.shared_model()} is missing")
    nets = [n for n in nets if not n.published or os.path.exists(n.shared_model())]
    jobs = [(net, variant, suffix) for net in nets if chosen(net, only)
            for variant in net.variants for suffix in net.configs]
    harness.check(jobs, "no net is named so")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: run_one(*job), jobs))
    for result in results:
        if verbose or result.verdict == "failed":
            print(f"{result.verdict}: {result.label}: {result.detail} "
                  f"{result.largest:.4g} ({result.worst:.2f})", flush=True)
    report(results)
    problems = check_inputs_fed_transposed(results)
    for problem in problems:
        print(f"failed: {problem}", flush=True)
    failed = sum(r.verdict == "failed" for r in results) + len(problems)
    harness.check(failed == 0, f"{failed} of {len(results)} compiles failed")
