#!/usr/bin/python3
"""Random nets, scripted and traced, compiled by npuc and compared with PyTorch, live.

    random_nets.py [--nets N] [--seed S] [--ops N] [--only NAME] [--onnx] [--show] [-v]

Writes a seeded TorchScript module out of the operators of nets_random.py, runs it in PyTorch,
compiles and simulates what torch.jit.script and torch.jit.trace saved, and compares every output
by the tolerance of the suite `torch` (tests/e2e/torch_nets.py). A net must agree, or be refused
with a diagnostic; both variants alike. A net that fails is cut down to the shortest beginning that
still fails, and its source is printed. Counts by verdict end the run, with the reasons of refusals.

--onnx: npuc compiles what torch.onnx exports of each net, in place of the archives; the answers are
PyTorch's as well. The opset is one of 11 to 17: Resize of earlier ones is not PyTorch's, nor is
align_corners with a scale, where ONNX divides by a length that is no whole number.

--only NAME: one net, as a failure named it; --show prints its source. The same seed gives the same
nets. Needs python3-torch and npuc (NPUC_BIN_DIR, default build/bin). Exit 0, 1 where one failed.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import io
import os
import re
import sys
import tempfile
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]
from nets_random import case_of, write_net  # noqa: E402
import oracle  # noqa: E402
import record  # noqa: E402
import torch_nets  # noqa: E402


def export_onnx(case, files):
    """Adds the net as ONNX, and its config."""
    opset = 11 + oracle.seed_of(case.name + " opset") % 7
    arrays = oracle.make_inputs(case)
    example = tuple(torch.from_numpy(array[0]) for array in arrays)
    made = io.BytesIO()
    torch.onnx.export(oracle.make_module(case), example, made, opset_version=opset,
                      input_names=[f"x{i}" for i in range(len(arrays))])
    files["onnx.onnx.pt"] = made.getvalue()  # Net.unpack writes .pt
    inputs = ", ".join(f"x{i}: {list(shape)}" for i, shape in enumerate(case.inputs))
    files["onnx.yaml"] = (f"CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: onnx.onnx.pt\n"
                          f"OUTPUT_FILE: model.h\nINPUT_OPS: {{{inputs}}}\n").encode()


def try_net(net, as_onnx):
    """[Result] of the variants; the problem's text where PyTorch itself does not take the net."""
    with tempfile.TemporaryDirectory(prefix="npuc-random-") as folder:
        try:
            case = case_of(net, folder)
            if as_onnx:
                if any("scale" in step.text and "align_corners=True" in step.text
                       for step in net.steps):
                    return "ONNX computes align_corners of a scale otherwise"
                if not all(any(re.search(rf"\bx{i}\b", step.text) for step in net.steps)
                           for i in range(len(net.shapes))):
                    return "an input that nothing reads is not exported"
                case = dataclasses.replace(case, variants=(), configs={"": {}})
            files = record.record_case(case, folder)
            if as_onnx:
                export_onnx(case, files)
        except (AssertionError, RuntimeError, ValueError,
                torch.jit.frontend.FrontendError) as error:
            return str(error).strip().split("\n")[0][:100]
        recorded = torch_nets.Net(net.name, "random", files)
        variants = ("onnx",) if as_onnx else case.variants
        return [torch_nets.run_one(recorded, variant, "") for variant in variants]


def problems_of(results):
    """What is wrong with a net's results, or ''."""
    if isinstance(results, str):
        return ""
    failed = [f"{r.label}: {r.detail}" for r in results if r.verdict == "failed"]
    if failed:
        return "\n".join(failed)
    refused = [r for r in results if r.verdict == "refused"]
    if len(refused) == 1 < len(results):
        return f"{refused[0].label} alone is refused: {refused[0].detail}"
    return ""


def shortest_failure(net, as_onnx):
    for steps in range(1, len(net.steps)):
        part = net.beginning(steps)
        found = problems_of(try_net(part, as_onnx))
        if found:
            return part, found
    return net, problems_of(try_net(net, as_onnx))


def run_one_net(name, steps, as_onnx):
    """(verdict, what there is to print) of a net."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    net = write_net(name, steps)
    if not net.steps:
        return "not PyTorch's", "no step applied", 0.0
    results = try_net(net, as_onnx)
    if isinstance(results, str):
        return "not PyTorch's", results, 0.0
    if problems_of(results):
        part, found = shortest_failure(net, as_onnx)
        return "failed", f"{name}, {len(part.steps)} of {len(net.steps)} steps:\n{found}\n" + \
            part.source(), 0.0
    if any(r.verdict == "refused" for r in results):
        return "refused", results[0].detail, 0.0
    return "agrees", "", max(r.worst for r in results)


def without_names(text):
    """A reason that nets share: without the place, the node and the sizes that were found."""
    return re.sub(r"\d+", "N", re.sub(r"^\S*?: |node '[^']*' ", "", text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nets", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", type=int, default=12, help="at most so many steps in a net")
    parser.add_argument("--only", help="one net by its name")
    parser.add_argument("--onnx", action="store_true", help="compile what torch.onnx exports")
    parser.add_argument("--show", action="store_true", help="print the nets' sources")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each net")
    options = parser.parse_args()
    names = [options.only] if options.only else [f"random_{options.seed}_{i}"
                                                 for i in range(options.nets)]
    counts, reasons, worst = collections.Counter(), collections.Counter(), 0.0
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(run_one_net, names, [options.ops] * len(names),
                        [options.onnx] * len(names))
        for name, (verdict, text, share) in zip(names, runs):
            counts[verdict] += 1
            worst = max(worst, share)
            if options.show:
                print(write_net(name, options.ops).source())
            if verdict == "failed":
                print(f"FAILED (--ops {options.ops} --only {name}) {text}", flush=True)
            elif options.verbose:
                print(f"{verdict}: {name} {text}", flush=True)
            if verdict in ("refused", "not PyTorch's"):
                reasons[f"{verdict}: {without_names(text)}"] += 1
    for reason, count in reasons.most_common():
        print(f"{count:5} {reason}")
    print(f"{len(names)} nets: " + ", ".join(f"{n} {v}" for v, n in sorted(counts.items())) +
          f"; largest error {worst:.2f} of what is allowed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
