"""Every case of shared/suites/tf_graphs: compile, simulate, compare with TensorFlow's own outputs.

A case is passed, refused (exit 1 with diagnostics, of an operator or mode not supported) or failed.
None made of GRUS's TensorFlow operators alone may be refused, and an operator that a refusal names
as not supported must not be in that list. `--update` writes TF_GRAPHS.md of the front end, the
refused cases by reason; without it, a page that differs is a failure. `--leo` compiles for LEO.

Tolerance. The NPU rounds the inputs, the weights and every result to float16, each time by at most
u = 2^-11 of the value; a sum of K products adds K such errors of random sign, about sqrt(K) of them
in size. So an output may be off by

    u * (2 * arithmetic nodes + 2 * sqrt(largest K)) * max(1, largest |expected value|)

where K is the largest number of rows of a constant matrix in the graph. A wrong kernel, layout or
bias is off by the size of the values, hundreds of times more.

Round jumps. Where its operand is nearer to a half than float16 can tell, the NPU may round it to
the other side, and an output that is off by more is judged by `apart_at_jumps`.
"""

import collections
import concurrent.futures
import functools
import json
import os
import re

import numpy as np

import graphdef
import harness
import headers

# The operators that issue 2 asks for: with --issue2 every case made of these alone must pass.
ISSUE2_OPS = set("Placeholder Const Identity MatMul BiasAdd Add AddV2 Sub Mul Relu Relu6 Sigmoid "
                 "Tanh Reshape Squeeze Softmax".split())
FREE_OPS = {"Placeholder", "Const", "Identity", "Reshape", "Squeeze", "NoOp"}
LARGEST_FP16 = 65504.0
PAGE = os.path.join(harness.ROOT, "compiler_core", "frontends", "tensorflow", "TF_GRAPHS.md")
# In no list, since every graph has them.
STRUCTURE = {"Placeholder", "PlaceholderWithDefault", "Const", "NoOp"}
# The ids that call an operator not supported, by whatever list.
NOT_SUPPORTED = {"NPUC1110", "NPUC1200"}
_DIAGNOSTIC = re.compile(r"^(?:[^:]*: )?(?:node '(.*?)' \((\w+)\): )?(.*) \[(NPUC\d{4})\]$")
Refusal = collections.namedtuple("Refusal", "op text id")


class Case:
    """One folder of the suite."""

    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as f:
            ops = json.load(f)["ops"]
        self.ops = {part.split(":")[0] for part in ops.split(";") if part}
        self.arithmetic = sum(int(p.split(":")[1]) for p in ops.split(";")
                              if p and p.split(":")[0] not in FREE_OPS)

    def model(self):
        return os.path.join(self.folder, "frozen_model.pb")

    def _arrays(self, kind):
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in sorted(names):
                if name.endswith(f".{kind}.csv"):
                    path = os.path.join(folder, name[:-len(".csv")])
                    key = os.path.relpath(path[:-len(f".{kind}")], self.folder)
                    found[key] = _read_csv(path)
        return found

    def inputs(self, nodes):
        """Placeholders, or constants named in_N, by name. Only floats: an int32 in_N is an axis, a
        shape or an index, which the NPU takes as a constant."""
        arrays = self._arrays("placeholder")
        for node in nodes:
            if node.op == "Const" and re.fullmatch(r"in_\d+", node.name):
                value = node.tensor()
                if value is not None and value.dtype.kind == "f":
                    arrays[node.name] = value.astype(np.float32)
        return arrays

    def expected(self, nodes):
        """Expected outputs by gxnpuc's name: NODE, or NODE:K for output K of a node."""
        names = {node.name for node in nodes}
        found = {}
        for key, value in self._arrays("prediction").items():
            match = re.fullmatch(r"(.*)\.(\d+)", key)
            if key not in names and match and match.group(1) in names:
                key = match.group(1) + (f":{match.group(2)}" if match.group(2) != "0" else "")
            found[key] = value
        return found


def _read_csv(path):
    """An array of NAME.csv and NAME.shape; the shape file of a scalar holds a 0."""
    with open(path + ".shape", encoding="utf-8") as f:
        dims = [int(line) for line in f.read().split()]
    with open(path + ".csv", encoding="utf-8") as f:
        words = f.read().replace(",", "\n").split()
    values = np.array([{"true": 1.0, "false": 0.0}.get(w.lower(), w) for w in words], np.float64)
    if dims == [0] and len(values) == 1:
        dims = []
    return values.reshape(dims).astype(np.float32)


def config_text(model, inputs, outputs, core="GRUS"):
    quoted = json.dumps  # YAML takes JSON's strings
    lines = [f"CORENAME: {core}", "NPU_UNIT: NPU32", "FRAMEWORK: TF", "OUTPUT_TYPE: c_code",
             f"MODEL_FILE: {quoted(model)}", "OUTPUT_FILE: model.h"]
    if inputs:
        lines.append("INPUT_OPS:")
        lines += [f"  {quoted(n)}: {list(a.shape)}" for n, a in inputs.items()]
    else:
        lines.append("INPUT_OPS: {}")
    lines.append(f"OUTPUT_OPS: [{', '.join(quoted(n) for n in outputs)}]")
    return "\n".join(lines) + "\n"


def tolerance(case, nodes, expected):
    rows = [n.tensor().shape[0] for n in nodes
            if n.op == "Const" and n.tensor() is not None and n.tensor().ndim >= 2]
    largest = max([1.0] + [float(np.abs(a).max()) for a in expected.values() if a.size])
    terms = 2 * case.arithmetic + 2 * np.sqrt(max(rows, default=1))
    return harness.FP16_UNIT * terms * largest


def compare(expected, outputs, allowed):
    """None, or what is wrong."""
    for name, want in expected.items():
        got = outputs[name]
        if got.shape != want.shape:
            return f"{name}: shape {list(got.shape)}, expected {list(want.shape)}"
        if want.size == 0:
            continue
        if not np.isfinite(got).all() and np.isfinite(want).all():
            if np.abs(want).max() < LARGEST_FP16:
                return f"{name}: not finite"
        error = float(np.abs(got.astype(np.float64) - want).max())
        if not error <= allowed:
            return f"{name}: off by {error:.3g}, allowed {allowed:.3g}"
    return None


def apart_at_jumps(config, nodes, inputs, expected, outputs, folder):
    """None, or what is wrong with outputs behind a Round, element by element where operands of a
    Round have the output's shape. An element may be 1 off where such an operand is within two steps
    of float16 of a half. Operands are `npuc reference`'s, whose outputs must be TensorFlow's."""
    operands = [node.inputs[0] for node in nodes if node.op == "Round"]
    with open(config, encoding="utf-8") as f:
        text = f.read()
    with open(config, "w", encoding="utf-8") as f:
        f.write(re.sub(r"(?m)^OUTPUT_OPS: .*$",
                       f"OUTPUT_OPS: {json.dumps([*expected, *operands])}", text))
    floats = harness.simulate(config, inputs, folder, [*expected, *operands], verb="reference")
    wrong = compare(expected, floats, 1e-4)
    if wrong:
        return f"npuc reference: {wrong}"
    for name, want in expected.items():
        may_jump = np.zeros(want.shape, bool)
        for value in (floats[o] for o in operands if floats[o].shape == want.shape):
            step = np.spacing(np.abs(value).astype(np.float16)).astype(np.float32)
            may_jump |= np.abs(value - np.floor(value) - 0.5) <= 2 * step
        error = np.abs(outputs[name].astype(np.float64) - want)
        if not (error <= may_jump).all():
            return f"{name}: off by {error.max():.3g} where no Round is near a half"
    return None


def refusals(stderr):
    """The errors among npuc's diagnostics."""
    found = []
    for line in stderr.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and not re.match(r"[^:]*: (warning|note): ", line):
            found.append(Refusal(match.group(2) or "", match.group(3), match.group(4)))
    return found


def supported_operators(of_vendor=False, core="GRUS"):
    """What `npuc --list` has for a core and TensorFlow: all, or the vendor's own list."""
    lists = json.loads(harness.npuc("--list", "-c", core, "-f", "TF", "--json").stdout)
    return {op["op"] for entry in lists for op in entry["operators"]
            if not of_vendor or "overview document" in op["source"]}


def check_refusal(case, found, supported):
    """None, or what is wrong with how the case was refused."""
    if case.ops <= supported | STRUCTURE:
        return f"refused although it has supported operators alone: {found[0].text}"
    named = {r.op for r in found if r.id in NOT_SUPPORTED}
    if named & supported:
        return f"calls {', '.join(sorted(named & supported))} not supported"
    return None


def reason(refusal):
    """A refusal's cause without the names of its case."""
    if refusal.id in NOT_SUPPORTED:
        return "the operator is not supported", refusal.op
    text = re.sub(r" \(operand \d+(, from '[^']*')?\)", "", refusal.text.split(";")[0])
    text = re.sub(r"'[^']*'", "...", re.sub(r"\b[a-z]\w*\[[\d,]*\]", "...", text))
    return text, refusal.op


def page(cases, refused):
    """The page of refused cases. refused: [(case, [Refusal])]."""
    def made_of(operators):
        names = {c.name for c in cases if c.ops <= operators | STRUCTURE}
        return len(names), sum(c.name in names for c, _ in refused)

    vendors, vendors_refused = made_of(supported_operators(of_vendor=True))
    known, known_refused = made_of(supported_operators())
    by_reason = collections.defaultdict(lambda: collections.defaultdict(list))
    for case, found in refused:
        for refusal in dict.fromkeys((r.id, *reason(r)) for r in found):
            by_reason[refusal[:2]][refusal[2]].append(case.name)
    out = ["# The TensorFlow graphs that npuc refuses", "",
           "Generated by `tests/e2e/run_e2e.py tf_graphs --update`; do not edit. The suite has",
           f"{len(cases)} graphs with TensorFlow's own outputs. {len(cases) - len(refused)} match "
           f"on the simulator, {len(refused)} are", "refused, none is wrong.", "",
           f"Of the {vendors} made of the vendor's list of GRUS's TensorFlow operators alone, "
           f"{vendors_refused} are refused; of the", f"{known} made of these and of the operators "
           f"that npuc rewrites into them, {known_refused}. The others hold an",
           "operator or a mode that the core has no commands for; those that match nevertheless "
           "do so because it", "folded into a constant. A case with several reasons is counted "
           "under each.", ""]
    for (number, text), ops in sorted(by_reason.items()):
        cases_of = {name for names in ops.values() for name in names}
        out += [f"## {number}: {text} ({len(cases_of)} cases)", "",
                "| operator | cases | |", "|---|---|---|"]
        for op, names in sorted(ops.items()):
            out.append(f"| {op or 'none'} | {len(set(names))} | "
                       f"{', '.join(sorted(set(names)))} |")
        out.append("")
    return "\n".join(out)


def check_page(cases, refused, update):
    text = page(cases, refused)
    if update:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    with open(PAGE, encoding="utf-8") as f:
        harness.check(f.read() == text, f"{os.path.relpath(PAGE, harness.ROOT)} is stale: run "
                      "tests/e2e/run_e2e.py tf_graphs --update")


def run_case(case, core="GRUS"):
    """(verdict, detail): verdict is passed, refused or failed; of a refusal the detail is a list of
    Refusal."""
    with open(case.model(), "rb") as f:
        nodes = graphdef.read_graph(f.read())
    inputs, expected = case.inputs(nodes), case.expected(nodes)
    with harness.scratch() as folder:
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(config_text(case.model(), inputs, expected, core))
        result = harness.npuc(config, "-o", folder, expect=None)
        if result.returncode == 1 and re.search(r"\[NPUC\d{4}\]", result.stderr):
            return "refused", refusals(result.stderr)
        if result.returncode != 0:
            return "failed", f"npuc: exit {result.returncode}: {result.stderr[-500:]}"
        try:
            headers.check_header(os.path.join(folder, "model.h"))
            outputs = harness.simulate(os.path.join(folder, "model.h"), inputs,
                                       os.path.join(folder, "out"), expected)
        except (harness.Failure, OSError) as error:
            return "failed", str(error)
        wrong = compare(expected, outputs, tolerance(case, nodes, expected))
        if wrong and "Round" in case.ops:
            wrong = apart_at_jumps(config, nodes, inputs, expected, outputs, folder)
        return ("failed", wrong) if wrong else ("passed", "")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, c, h, w, b, bias=0.0, clip=0.0, peepholes=(0, 0, 0), order=(0, 1, 2, 3)):
    """The seven results of LSTMBlockCell, by the formulas of TensorFlow's rnn_ops.cc. order: where
    the gates i, ci, f and o lie in w."""
    sums = np.split(np.concatenate([x, h], 1) @ w + b, 4, 1)
    i, ci, f, o = (sums[k] for k in order)
    i, ci = sigmoid(i + c * peepholes[0]), np.tanh(ci)
    f = sigmoid(f + bias + c * peepholes[1])
    c = ci * i + c * f
    c = np.clip(c, -clip, clip) if clip > 0 else c
    o = sigmoid(o + c * peepholes[2])
    co = np.tanh(c)
    return i, c, f, o, ci, co, co * o


def block_cells():
    """TensorFlow 1's fused cells, of which the suite has no graph, against NumPy on GRUS."""
    steps, inputs, size = 5, 6, 4
    random = np.random.default_rng(7)

    def draw(*shape):
        return random.normal(0, 0.4, shape).astype(np.float32)

    w, b, c, h = draw(inputs + size, 4 * size), draw(4 * size), draw(1, size), draw(1, size)
    peepholes, x, xs = draw(3, size), draw(1, inputs), draw(steps, 1, inputs)
    consts = {"c": c, "h": h, "w": w, "b": b, "n": np.int64(steps),
              **{f"p{k}": p for k, p in enumerate(peepholes)}}
    after = ["c", "h", "w", "p0", "p1", "p2", "b"]

    def layer(bias, order):
        state, found = (c, h), []
        for step in xs:
            found.append(lstm_step(step, *state, w, b, bias, order=order))
            state = found[-1][1], found[-1][6]
        return [np.stack(part) for part in zip(*found)]

    w_ru, w_c, b_ru, b_c = (draw(inputs + size, 2 * size), draw(inputs + size, size),
                            draw(2 * size), draw(size))
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    g = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    cells = {
        "LSTMBlockCell": (x, ["x", *after], {"forget_bias": 0.5, "cell_clip": 0.3,
                                             "use_peephole": True},
                          lstm_step(x, c, h, w, b, 0.5, 0.3, peepholes)),
        "BlockLSTM": (xs, ["n", "x", *after], {"forget_bias": 1.0, "cell_clip": -1.0},
                      layer(1.0, (0, 1, 2, 3))),
        "BlockLSTMV2": (xs, ["n", "x", *after], {}, layer(0.0, (0, 2, 1, 3))),
        "GRUBlockCell": (x, ["x", "h", "w_ru", "w_c", "b_ru", "b_c"], {},
                         (r, u, g, (1 - u) * g + u * h)),
    }
    consts.update({"w_ru": w_ru, "w_c": w_c, "b_ru": b_ru, "b_c": b_c})
    worst = 0.0
    for op, (operand, names, attrs, wanted) in cells.items():
        graph = graphdef.Graph()
        graph.placeholder("x", list(operand.shape))
        for name in names:
            if name != "x":
                graph.const(name, consts[name])
        graph.node(op, "y", names, {**attrs, "T": graphdef.DType(np.float32)})
        outputs = {f"y:{k}" if k else "y": value for k, value in enumerate(wanted)}
        with harness.scratch() as folder:
            with open(os.path.join(folder, "net.pb"), "wb") as f:
                f.write(graph.serialize())
            config = os.path.join(folder, "net.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write(config_text("net.pb", {"x": operand}, outputs))
            harness.npuc(config, "-o", folder)
            found = harness.simulate(os.path.join(folder, "model.h"), {"x": operand},
                                     os.path.join(folder, "out"), outputs)
        # A few roundings a step, of values of about 1.
        wrong = compare(outputs, found, 4 * steps * harness.FP16_UNIT)
        harness.check(wrong is None, f"{op}: {wrong}")
        worst = max(worst, *(float(np.abs(found[k] - v).max()) for k, v in outputs.items()))
    harness.figure(f"tf_graphs: {len(cells)} fused cells are NumPy's on GRUS, off by {worst:.2g}")


def main(arguments):
    suite = harness.shared("suites", "tf_graphs")
    issue2 = "--issue2" in arguments
    verbose = "-v" in arguments
    only = [a for a in arguments if not a.startswith("-")]
    cases = [Case(os.path.join(suite, name)) for name in sorted(os.listdir(suite))
             if os.path.isfile(os.path.join(suite, name, "case.json"))]
    if issue2:
        cases = [c for c in cases if c.ops <= ISSUE2_OPS]
    if only:
        cases = [c for c in cases if c.name in only]
    harness.check(cases, "no cases selected")
    counts = collections.Counter()
    refused = []
    core = "LEO" if "--leo" in arguments else "GRUS"
    supported = supported_operators(core=core)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (verdict, detail) in zip(cases, pool.map(functools.partial(run_case, core=core),
                                                              cases)):
            if verdict == "refused":
                wrong = check_refusal(case, detail, supported) if detail else "no error is said"
                if wrong:
                    verdict, detail = "failed", wrong
                else:
                    refused.append((case, detail))
            counts[verdict] += 1
            if verdict == "failed" or issue2 or verbose:
                print(f"{verdict}: {case.name} {detail}", flush=True)
    kind = "tf_graphs, operators of issue 2" if issue2 else "tf_graphs"
    kind += " on LEO" if core == "LEO" else ""
    harness.figure(f"{kind}: {len(cases)} cases: {counts['passed']} passed, "
                   f"{counts['refused']} refused, {counts['failed']} failed")
    harness.check(counts["failed"] == 0, "a case failed")
    if issue2:
        harness.check(counts["refused"] == 0, "a case made only of supported operators was refused")
    harness.check(counts["passed"] > 0, "no case passed")
    if not issue2 and not only and core == "GRUS":
        block_cells()
        check_page(cases, refused, "--update" in arguments)
