#!/usr/bin/python3
"""Records what PyTorch answers for the quantized nets of nets.py.

    record.py            writes recorded/nets.tar.xz
    record.py --check    runs what is recorded again, live

See README.md.
"""

import argparse
import io
import json
import os
import sys
import tarfile
import tempfile
import warnings
import zipfile

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))
import nets  # noqa: E402
import recorded_nets  # noqa: E402

FORMS = ("scripted", "traced", "frozen")
RECORDED = os.path.join(HERE, "recorded", "nets.tar.xz")


def archive(module, freeze):
    """What torch.jit.save writes, without its debug entries, uncompressed."""
    if freeze:
        module = torch.jit.freeze(module)
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        module.save(file.name)
        source = zipfile.ZipFile(file.name)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as target:
        for name in sorted(source.namelist()):
            if name.endswith(".debug_pkl"):
                continue
            inner = name.split("/", 1)[1]
            target.writestr(zipfile.ZipInfo("net/" + inner), source.read(name))
    return out.getvalue()


def run(net, samples):
    """Outputs as lists of arrays, [items, ...] each."""
    with torch.no_grad():
        answers = [net(sample) for sample in samples]
    flat = [list(a) if isinstance(a, (list, tuple)) else [a] for a in answers]
    return [np.stack([item[k].numpy() for item in flat]) for k in range(len(flat[0]))]


def scales_of(net, sample):
    """The scales of the quantized tensors that become outputs."""
    found = []
    original = torch.Tensor.dequantize

    def watch(self):
        found.append(self.q_scale())
        return original(self)

    torch.Tensor.dequantize = watch
    try:
        with torch.no_grad():
            net(sample)
    finally:
        torch.Tensor.dequantize = original
    return found


def make_case(case):
    quantized = case.quantized()
    samples = case.samples(nets.ITEMS, 11)
    outputs = run(quantized, samples)
    scales = [] if case.dynamic else scales_of(quantized, samples[0])
    facts = {"steps": case.steps, "shape": list(case.shape), "scales": scales,
             "dynamic": case.dynamic,
             "needs_float": case.needs_float}
    files = {"case.json": json.dumps(facts, indent=1).encode()}
    scripted = torch.jit.script(quantized)
    traced = torch.jit.trace(quantized, samples[0], check_trace=False)
    for form, data in (("scripted", archive(scripted, False)), ("traced", archive(traced, False)),
                       ("frozen", archive(scripted, True))):
        try:
            found = run(torch.jit.load(io.BytesIO(data)), samples)
        except RuntimeError:  # what PyTorch writes and cannot run itself
            print(f"{case.name}, {form}: PyTorch does not run its own archive")
            continue
        if all(np.array_equal(x, y) for x, y in zip(found, outputs)):
            files[f"{form}.pt"] = data
    files["input_0.npy"] = npy(np.stack([sample.numpy() for sample in samples]))
    files.update({f"output_{k}.npy": npy(array) for k, array in enumerate(outputs)})
    return files


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write(cases):
    with tarfile.open(RECORDED, "w:xz") as tar:
        for name, files in cases.items():
            for file, data in sorted(files.items()):
                member = tarfile.TarInfo(f"{name}/{file}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def check():
    """The recorded archives, run again."""
    wrong = 0
    recorded = recorded_nets.read(RECORDED)
    for case in nets.all_cases():
        files = recorded[case.name]
        torch.backends.quantized.engine = case.engine
        inputs = [torch.from_numpy(a) for a in recorded_nets.arrays(files, "input")[0]]
        for form in (f for f in FORMS if f"{f}.pt" in files):
            found = run(torch.jit.load(io.BytesIO(files[f"{form}.pt"])), inputs)
            wanted = recorded_nets.arrays(files, "output")
            same = all(np.array_equal(a, b) for a, b in zip(found, wanted))
            if not same:
                print(f"{case.name}, {form}: differs from what is recorded")
                wrong += 1
    print(f"{len(recorded)} nets, {wrong} archives differ")
    return 1 if wrong else 0


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return check()
    cases = {}
    for case in nets.all_cases():
        cases[case.name] = make_case(case)
    write(cases)
    print(f"{len(cases)} nets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
