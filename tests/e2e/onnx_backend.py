"""Every case of shared/suites/onnx_backend: `npuc reference` against ONNX's own expected outputs,
and where the case compiles for GRUS the simulator against them too.

What is an input. A case feeds every operand at run time; npuc needs shapes, axes, indices and
labels at compile time. So a case is tried in three forms, and the first that is accepted counts:
  run time   every input flows
  fixed      integer and bool inputs are initializers, and those of which npuc says that they must
             be known at compile time; the others flow
  folded     all inputs are initializers: the compiler computes the case
A case is passed, refused (exit 1, each error with its id) or failed: wrong values, a crash,
a hang, or an exit that is neither 0 nor 1. `--update` writes ONNX_BACKEND.md of the front end, the
refused cases by reason; without it, a page that differs is a failure. So a capability that is lost
shows, and one that is won is recorded.

Tolerance. Float: that of ONNX's own runner, rtol 1e-3 and atol 1e-7 (float16 outputs: two units of
float16). Simulator: 2^-11 for each of about 64 roundings, of the largest value or 1; an output that
is not within it is compared with the float result for the inputs as float16 has them.
"""

import collections
import concurrent.futures
import json
import os
import re
import subprocess

import numpy as np

import harness
import onnxmodel

RTOL, ATOL = 1e-3, 1e-7
BFLOAT16_UNIT = 2.0**-7  # 8 significant bits, cut off; npuc computes bfloat16 as float32
CORE_ROUNDINGS = 64
LARGEST_FP16 = 65504.0
FORMS = ("run time", "fixed", "folded")
PAGE = os.path.join(harness.ROOT, "compiler_core", "frontends", "onnx", "ONNX_BACKEND.md")
# Cases whose formula itself leaves float16's range: e^20 on the way to a small result.
OVERFLOWING = {"node/test_reduce_log_sum_exp_keepdims_example_expanded",
               "node/test_reduce_log_sum_exp_negative_axes_keepdims_example_expanded"}


class Case:
    """One folder of the suite."""

    def __init__(self, folder):
        self.name = "/".join(folder.split(os.sep)[-2:])
        self.data = _read(os.path.join(folder, "model.onnx"))
        self.model = onnxmodel.Model(self.data)
        self.inputs = self._tensors(folder, "input", self.model.inputs)
        self.expected = self._tensors(folder, "output", self.model.outputs)

    def _typed(self, name, array):
        """Some files hold the bits of bfloat16 as integers."""
        if self.model.types.get(name) == 16 and array is not None and array.dtype == np.uint16:
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array

    def _tensors(self, folder, kind, names):
        found = {}
        for i, name in enumerate(names):
            path = os.path.join(folder, "test_data_set_0", f"{kind}_{i}.pb")
            if not os.path.exists(path):
                found[name] = None
                continue
            try:
                found[name] = self._typed(name, onnxmodel.tensor(_read(path))[1])
            except (ValueError, IndexError, KeyError, UnicodeDecodeError):
                found[name] = None  # a sequence or an optional value
        return found


def _read(path):
    with open(path, "rb") as f:
        return f.read()


def split_inputs(case, form, demanded):
    """(run-time inputs, initializers)."""
    flowing, fixed = {}, {}
    for name, array in case.inputs.items():
        is_float = array is None or array.dtype.kind == "f"
        if form == "folded" or (form == "fixed" and (not is_float or name in demanded)):
            fixed[name] = array
        else:
            flowing[name] = array
    return flowing, {n: a for n, a in fixed.items() if a is not None}


def config_of(outputs):
    return "\n".join(["CORENAME: GRUS", "NPU_UNIT: NPU32", "FRAMEWORK: ONNX", "OUTPUT_TYPE: c_code",
                      "MODEL_FILE: model.onnx", "OUTPUT_FILE: model.h",
                      f"OUTPUT_OPS: {json.dumps(outputs)}"]) + "\n"


def compare(expected, outputs, core, types=()):
    """None, or what is wrong."""
    for name, want in expected.items():
        got = outputs[name]
        if got.shape != want.shape:
            return f"{name}: shape {list(got.shape)}, expected {list(want.shape)}"
        want64, got64 = want.astype(np.float64), got.astype(np.float64)
        if core:
            largest = max([1.0] + list(np.abs(want64[np.isfinite(want64)]).ravel()))
            close = np.abs(got64 - want64) <= harness.FP16_UNIT * CORE_ROUNDINGS * largest
            close |= np.abs(want64) >= LARGEST_FP16
            close |= np.isnan(want64)
        else:
            atol = 2 * harness.FP16_UNIT if want.dtype == np.float16 else ATOL
            rtol = BFLOAT16_UNIT if name in types and types[name] == 16 else RTOL
            close = np.isclose(got64, want64, rtol=rtol, atol=atol, equal_nan=True)
        if not close.all():
            at = np.unravel_index(int(np.argmin(close)), close.shape) if close.ndim else ()
            return f"{name}: {got64[at]:.7g} at {list(map(int, at))}, expected {want64[at]:.7g}"
    return None


def attempt(verb, case, folder, flowing, demanded=None):
    """('ok', outputs), ('refused', first diagnostic) or ('failed', why)."""
    out = os.path.join(folder, verb)
    arguments = []
    for i, (name, array) in enumerate(flowing.items()):
        path = os.path.join(folder, f"input_{i}.npy")
        np.save(path, array.astype(np.float32))
        arguments += ["--input", f"{name}={path}"]
    what = "config.yaml" if verb == "reference" else "model.npuc"
    try:
        result = harness.npuc(verb, os.path.join(folder, what), *arguments, "--output-dir", out,
                              expect=None)
    except subprocess.TimeoutExpired:
        return "failed", "hangs"
    if result.returncode == 1 and re.search(r"\[NPUC\d{4}\]", result.stderr):
        errors = [l for l in result.stderr.splitlines() if re.search(r"\[NPUC1(?!122)\d{3}\]", l)]
        if any("[NPUC1900]" in e for e in errors):
            return "failed", result.stderr[-500:]
        if demanded is not None:
            demanded.update(re.findall(r"from '([^']+)'\) depends on a model input", result.stderr))
        return "refused", errors[0] if errors else result.stderr[-300:]
    if result.returncode != 0:
        return "failed", f"exit {result.returncode}: {result.stderr[-500:]}"
    return "ok", {n: np.load(harness.output_file(out, n)) for n in case.expected}


def real_values(case):
    """What the core gives for outputs that the model quantizes (NPUC1205): the numbers that their
    integers stand for."""
    scale, zero = case.inputs["y_scale"], case.inputs["y_zero_point"]
    return {"y": (case.expected["y"].astype(np.float32) - zero) * scale}


def run_on_core(case, folder, flowing, in_float):
    """(verdict, detail) of a compiled case in the simulator."""
    verdict, result = attempt("run", case, folder, flowing)
    if verdict != "ok":
        return "failed", f"simulator: {result}"
    wrong = compare(real_values(case) if in_float else case.expected, result, core=True)
    if wrong and case.name in OVERFLOWING:
        return "beyond fp16", ""
    if wrong:
        rounded = {n: a.astype(np.float16).astype(np.float32) for n, a in flowing.items()}
        verdict, float_result = attempt("reference", case, folder, rounded)
        if verdict == "ok":
            wrong = compare(float_result, result, core=True)
    return ("failed", f"simulator: {wrong}") if wrong else ("passed", "")


def run_form(case, folder, flowing, fixed, demanded):
    """(verdict, detail, core verdict, core detail)."""
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(onnxmodel.with_initializers(case.data, fixed))
    config = os.path.join(folder, "config.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(config_of(list(case.expected)))
    verdict, result = attempt("reference", case, folder, flowing, demanded)
    if verdict != "ok":
        return verdict, result, "", ""
    wrong = compare(case.expected, result, core=False, types=case.model.types)
    if wrong:
        return "failed", wrong, "", ""
    if not flowing:
        return "passed", "", "", ""  # nothing is left for a core
    compiled = harness.npuc(config, "-o", folder, expect=None)
    if compiled.returncode == 1 and re.search(r"\[NPUC\d{4}\]", compiled.stderr):
        errors = re.findall(r"[^\n]*\[NPUC1(?!203)[2-9]\d\d\]", compiled.stderr)
        return "passed", "", "refused", errors[0] if errors else ""
    if compiled.returncode != 0:
        return "failed", f"compile: exit {compiled.returncode} {compiled.stderr[-300:]}", "", ""
    in_float = "NPUC1205" in compiled.stderr and "y_scale" in case.inputs
    verdict, detail = run_on_core(case, folder, flowing, in_float)
    if verdict == "failed":
        return "failed", detail, "", ""
    return "passed", "", verdict, detail


def run_case(case):
    """(verdict, form or reason, core verdict, core reason)."""
    if any(a is None for a in {**case.inputs, **case.expected}.values()):
        with harness.scratch() as folder:
            return (*run_odd(case, folder), "", "")
    reason, demanded = "", set()
    for form in FORMS:
        tried = None
        while True:
            flowing, fixed = split_inputs(case, form, demanded)
            if list(fixed) == tried or (form != "run time" and not fixed):
                break
            if form == "fixed" and not flowing:
                break  # that is the next form
            tried = list(fixed)
            with harness.scratch() as folder:
                verdict, detail, *on_core = run_form(case, folder, flowing, fixed, demanded)
            if verdict == "passed":
                return "passed", form, *on_core
            if verdict == "failed":
                return "failed", f"{form}: {detail}", "", ""
            reason = reason or detail
    return "refused", reason, "", ""


def run_odd(case, folder):
    """A case whose data NumPy cannot hold: strings, sequences, 8-bit floats."""
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.data)
    with open(os.path.join(folder, "config.yaml"), "w", encoding="utf-8") as f:
        f.write(config_of(list(case.expected)))
    try:
        result = harness.npuc("reference", os.path.join(folder, "config.yaml"), "--output-dir",
                              folder, expect=None)
    except subprocess.TimeoutExpired:
        return "failed", "hangs"
    errors = re.findall(r"[^\n]*\[NPUC1(?!122)\d{3}\]", result.stderr)
    if result.returncode == 1 and errors and "[NPUC1900]" not in result.stderr:
        return "refused", errors[0]
    return "failed", f"exit {result.returncode}, of data that it cannot hold"


def reason_of(detail):
    """A refusal as operator and id."""
    op = re.search(r"\(([^)\s]+)\): ", detail)
    number = re.search(r"\[(NPUC\d{4})\]", detail)
    return f"{op.group(1) if op else 'the file'} {number.group(1) if number else '?'}"


def page(total, refused, core_refused):
    """The page of refused cases; both dicts hold the names of cases by reason."""
    out = ["# The cases of ONNX's own backend tests that npuc refuses", "",
           "Generated by `tests/e2e/run_e2e.py onnx_backend --update`; do not edit. The suite has",
           f"{total} cases with ONNX's own outputs, of which none is wrong.", ""]
    for title, reasons in (("Refused", refused),
                           ("Computed by `npuc reference`, refused for GRUS", core_refused)):
        count = sum(len(names) for names in reasons.values())
        out += [f"## {title} ({count} cases)", "", "| operator, id | cases | |", "|---|---|---|"]
        out += [f"| {reason} | {len(names)} | {', '.join(sorted(names))} |"
                for reason, names in sorted(reasons.items())]
        out.append("")
    return "\n".join(out)


def check_page(text, update):
    if update:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(text)
    with open(PAGE, encoding="utf-8") as f:
        harness.check(f.read() == text, f"{os.path.relpath(PAGE, harness.ROOT)} is stale: run "
                      "tests/e2e/run_e2e.py onnx_backend --update")


def main(arguments):
    suite = harness.shared("suites", "onnx_backend")
    verbose = "-v" in arguments
    only = [a for a in arguments if not a.startswith("-")]
    folders = [os.path.join(suite, group, name) for group in sorted(os.listdir(suite))
               for name in sorted(os.listdir(os.path.join(suite, group)))]
    folders = [f for f in folders if not only or any(o in f for o in only)]
    harness.check(folders, "no cases selected")
    counts, forms, core = collections.Counter(), collections.Counter(), collections.Counter()
    reasons, core_reasons = collections.defaultdict(list), collections.defaultdict(list)

    def one(folder):
        case = Case(folder)
        return case, run_case(case)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (verdict, detail, on_core, core_detail) in pool.map(one, folders):
            counts[verdict] += 1
            if verdict == "passed":
                forms[detail] += 1
                core[on_core] += 1
                if on_core == "refused":
                    core_reasons[reason_of(core_detail)].append(case.name)
            if verdict == "refused":
                reasons[reason_of(detail)].append(case.name)
            if verdict == "failed" or verbose:
                print(f"{verdict}: {case.name} {detail} {on_core} {core_detail}", flush=True)
    harness.figure(f"onnx_backend: {len(folders)} cases: {counts['passed']} passed "
                   f"({', '.join(f'{forms[f]} {f}' for f in FORMS)}), {counts['refused']} refused, "
                   f"{counts['failed']} failed; on GRUS {core['passed']} passed, "
                   f"{core['refused']} refused, {core['beyond fp16']} beyond fp16")
    harness.check(counts["failed"] == 0, "a case failed")
    if not only:
        check_page(page(len(folders), reasons, core_reasons), "--update" in arguments)
