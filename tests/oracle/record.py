#!/usr/bin/python3
"""Builds the oracle's nets in PyTorch, saves their archives, records inputs and outputs.

    record.py [GROUP|NET...]           writes recorded/GROUP.tar.xz, all where none is named
    record.py --check [GROUP|NET...]   runs the recorded archives in PyTorch on the recorded inputs
                                       and compares outputs; rebuilds each net and compares its
                                       code and weights with the archive's
    record.py --list

Needs python3-torch (1.13 of Debian 12). The same nets give the same files, byte for byte, on one
version of PyTorch and of xz. Exit 0 passed, 1 failed.
"""

import io
import json
import lzma
import os
import sys
import tarfile
import tempfile
import traceback
import warnings
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "recorded")
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import nets_architectures  # noqa: E402
import nets_guide  # noqa: E402
import nets_language  # noqa: E402
import nets_ops  # noqa: E402
import nets_published  # noqa: E402
import nets_random  # noqa: E402
import oracle  # noqa: E402

# Recorded against live: another version of PyTorch may sum in another order.
LIVE_ERROR = 2e-5
XZ = {"format": lzma.FORMAT_XZ, "preset": 9 | lzma.PRESET_EXTREME}


def all_groups():
    """Cases by the file that holds them: operators share one, each larger net has its own."""
    groups = {"operators": nets_ops.cases(), "language": nets_language.cases(),
              "guide": nets_guide.cases(), "random": nets_random.cases()}
    for case in nets_architectures.cases():
        groups[case.name] = [case]
    if os.path.isdir(nets_published.SHARED):
        groups["published"] = nets_published.cases()
    else:
        print(f"record.py: {nets_published.SHARED} is missing: group published is left out")
    return groups


def config_text(case, variant, shapes, extra):
    lines = ["CORENAME: GRUS", "NPU_UNIT: NPU32", "FRAMEWORK: PT", f"MODEL_FILE: {variant}.pt",
             "OUTPUT_TYPE: c_code", "OUTPUT_FILE: model.h", "INPUT_OPS:"]
    for i, shape in enumerate(shapes):
        if i in extra.get("INPUT_NCX_TO_NXC", []):
            shape = [shape[0], *shape[2:], shape[1]]
        lines.append(f"  {i}: {list(shape)}")
    lines += [f"{key}: {value}" for key, value in extra.items()]
    return "\n".join(lines) + "\n"


def repack(path):
    """The archive without its debug entries, which hold paths of this machine, and with nothing
    compressed: xz does that better outside."""
    with zipfile.ZipFile(path) as source:
        entries = [(n, source.read(n)) for n in source.namelist() if not n.endswith(".debug_pkl")]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for name, data in entries:
            target.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def archive_bytes(module, folder, variant):
    path = os.path.join(folder, f"{variant}.pt")
    torch.jit.save(module, path)
    repack(path)
    with open(path, "rb") as f:
        return f.read()


def live_module(case):
    if case.published:
        return torch.jit.load(nets_published.path_of(case)).eval()
    return oracle.make_module(case)


def record_case(case, folder):
    """All files of one case as {name: bytes}."""
    arrays = oracle.make_inputs(case)
    module = live_module(case)
    files = {}
    for variant in case.variants:
        if not case.published:
            # A net that tracing changes must not change what scripting sees.
            made = oracle.make_variant(case, oracle.make_module(case), arrays, variant)
            files[f"{variant}.pt"] = archive_bytes(made, folder, variant)
        for suffix, extra in case.configs.items():
            name = f"{variant}.{suffix}.yaml" if suffix else f"{variant}.yaml"
            files[name] = config_text(case, variant, case.inputs, extra).encode()
    facts = {"name": case.name, "row": case.row, "expect": case.expect, "rule": case.rule,
             "items": case.items, "variants": list(case.variants), "top1": bool(case.head),
             "configs": case.configs, "states": [[o, i] for o, i in case.states.items()],
             "inputs": [list(s) for s in case.inputs], "published": case.published}
    if case.expect != "refused":
        outputs = oracle.run(case, module, arrays)
        facts["float16_errors"] = oracle.float16_errors(case, module, arrays, outputs)
        facts["outputs"] = [list(o.shape[1:]) for o in outputs]
        for i, array in enumerate(arrays):
            files[f"input_{i}.npy"] = npy(array.astype(np.float16))
            assert (array == array.astype(np.float16)).all(), case.name
        for k, array in enumerate(outputs):
            assert np.isfinite(array).all(), f"{case.name}: output {k} is not finite"
            assert np.abs(array).max() < 1000, f"{case.name}: output {k} {np.abs(array).max()}"
            files[f"output_{k}.npy"] = npy(array)
    files["case.json"] = (json.dumps(facts, indent=1) + "\n").encode()
    return files


def in_child(function, *arguments):
    """Runs function in a process of its own, where PyTorch has mangled no name yet; its bytes."""
    with tempfile.TemporaryDirectory(prefix="npuc-oracle-") as folder:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                files = function(*arguments, folder)
                with open(os.path.join(folder, "result.tar"), "wb") as f:
                    f.write(tar_bytes(files))
                code = 0
            except BaseException:  # noqa: BLE001 the parent has nothing else to show
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit(f"record.py: {arguments[0].name} failed")
        with open(os.path.join(folder, "result.tar"), "rb") as f:
            return tar_files(f.read())


def tar_bytes(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            info = tarfile.TarInfo(name)
            info.size = len(files[name])
            tar.addfile(info, io.BytesIO(files[name]))
    return buffer.getvalue()


def tar_files(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def group_path(group):
    return os.path.join(RECORDED, f"{group}.tar.xz")


def read_group(group):
    with lzma.open(group_path(group)) as f:
        return tar_files(f.read())


def record(groups):
    os.makedirs(RECORDED, exist_ok=True)
    for group, cases in groups.items():
        files = {}
        for case in cases:
            made = in_child(record_case, case)
            files.update({f"{case.name}/{name}": data for name, data in made.items()})
        data = lzma.compress(tar_bytes(files), **XZ)
        with open(group_path(group), "wb") as f:
            f.write(data)
        print(f"{group}: {len(cases)} nets, {len(data)} bytes", flush=True)


def contents(archive):
    """Names and bytes of an archive's entries, without debug entries and its top folder."""
    with zipfile.ZipFile(io.BytesIO(archive)) as z:
        return {n.split("/", 1)[1]: z.read(n) for n in z.namelist()
                if not n.endswith(".debug_pkl")}


def check_case(case, files, folder):
    """Problems of one recorded case, as {"problems": text}."""
    problems = []
    facts = json.loads(files["case.json"])
    rebuilt = record_case(case, folder)  # first: PyTorch mangles the names of what it loaded
    arrays = [np.load(io.BytesIO(files[f"input_{i}.npy"])).astype(np.float32)
              for i in range(len(case.inputs))] if case.expect != "refused" else []
    for variant in case.variants:
        if case.expect != "refused":
            loaded = (live_module(case) if case.published else
                      torch.jit.load(io.BytesIO(files[f"{variant}.pt"])))
            for k, got in enumerate(oracle.run(case, loaded, arrays)):
                want = np.load(io.BytesIO(files[f"output_{k}.npy"]))
                error = float(np.abs(got - want).max()) if want.size else 0.0
                if got.shape != want.shape or error > LIVE_ERROR * max(1, np.abs(want).max()):
                    problems.append(f"{variant}, output {k}: off by {error}")
    if json.loads(rebuilt["case.json"])["inputs"] != facts["inputs"]:
        problems.append("the inputs are others")
    for name, data in rebuilt.items():
        if name.endswith(".pt"):
            if contents(data) != contents(files[name]):
                problems.append(f"{name}: code or weights are others than the net's; record again")
        elif name.startswith("input") or name.endswith(".yaml"):
            if data != files.get(name):
                problems.append(f"{name} is another than the net's; record again")
    return {"problems": "\n".join(problems).encode()}


def check(groups):
    bad = 0
    for group, cases in groups.items():
        files = read_group(group)
        for case in cases:
            mine = {n.split("/", 1)[1]: d for n, d in files.items()
                    if n.startswith(case.name + "/")}
            if not mine:
                problems = "not recorded"
            else:
                problems = in_child(lambda c, folder: check_case(c, mine, folder),
                                    case)["problems"].decode()
            for line in problems.splitlines():
                print(f"{case.name}: {line}")
            bad += bool(problems)
        known = {case.name for case in cases}
        for name in sorted({n.split("/", 1)[0] for n in files} - known):
            if len(cases) == len(all_groups()[group]):
                print(f"{name}: recorded, but no net of {group}")
                bad += 1
        print(f"{group}: {len(cases)} nets checked", flush=True)
    return bad


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    options = {a for a in sys.argv[1:] if a.startswith("-")}
    groups = all_groups()
    if options - {"--check", "--list"}:
        print(__doc__, file=sys.stderr)
        return 2
    if arguments:
        if "--check" in options:
            groups = {g: [c for c in cases if g in arguments or c.name in arguments]
                      for g, cases in groups.items()}
            groups = {g: cases for g, cases in groups.items() if cases}
        else:
            groups = {g: cases for g, cases in groups.items()
                      if g in arguments or any(c.name in arguments for c in cases)}
        if not groups:
            print("record.py: no net or group is named so", file=sys.stderr)
            return 2
    if "--list" in options:
        for group, cases in groups.items():
            print(f"{group}: {' '.join(c.name for c in cases)}")
        return 0
    if "--check" in options:
        bad = check(groups)
        print(f"{bad} of {sum(map(len, groups.values()))} nets differ" if bad else "all agree")
        return 1 if bad else 0
    record(groups)
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets is in what scripting writes.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.exit(main())
