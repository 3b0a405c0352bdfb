"""Addresses of buffers: written, edited, taken back, simulated.

    run_e2e.py addresses

The file of --dump_addr_cfg, unchanged, gives the same bytes. With all buffers moved, the simulator
gives the same results. Two buffers in use at one time that share a byte are refused with both
names, and so is a file of another model. The key ADDRESSES does the same, and through npucd.
aipudumper writes the file, and takes it back edited, of an IR; its other options are known.
"""

import os
import re

import numpy as np

import harness
import onnxmodel
import service

RNG = np.random.default_rng(5)
NODES = [onnxmodel.node("MatMul", ["x", "w1"], ["a"]), onnxmodel.node("Relu", ["a"], ["b"]),
         onnxmodel.node("MatMul", ["b", "w2"], ["c"]), onnxmodel.node("Tanh", ["a"], ["d"]),
         onnxmodel.node("MatMul", ["d", "w2"], ["e"]), onnxmodel.node("Add", ["c", "e"], ["y"])]
WEIGHTS = {"w1": RNG.uniform(-0.3, 0.3, (24, 40)).astype(np.float32),
           "w2": RNG.uniform(-0.3, 0.3, (40, 16)).astype(np.float32)}
X = RNG.uniform(-1, 1, (1, 24)).astype(np.float32)
SHIFT = 4096


def write(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def compiled(config, out, *arguments):
    harness.npuc(config, "-o", out, *arguments)
    with open(os.path.join(out, "net.npuc"), "rb") as f:
        return f.read()


def results(out):
    return harness.simulate(os.path.join(out, "net.npuc"), {"x": X}, os.path.join(out, "sim"),
                            ["y"])["y"]


def buffers(text):
    """{number: (address, size, name)} of a file."""
    values = dict(re.findall(r"^(\w+) = (.*)$", text, re.M))
    return {int(key[4:]): (int(values[key], 16), int(values["size" + key[4:]]),
                           values["name" + key[4:]])
            for key in values if key.startswith("addr")}


def moved(text, addresses):
    for number, address in addresses.items():
        text = re.sub(rf"^addr{number} = .*$", f"addr{number} = {address}", text, flags=re.M)
    return text


def check(folder, core, extra):
    write(folder, "net.onnx", onnxmodel.model(NODES, [("x", [1, 24])], [("y", [1, 16])], WEIGHTS))
    np.save(os.path.join(folder, "samples.npy"), RNG.uniform(-1, 1, (8, 1, 24)).astype(np.float32))
    config = write(folder, f"{core}.yaml", f"CORENAME: {core}\nFRAMEWORK: ONNX\n"
                   f"MODEL_FILE: net.onnx\nOUTPUT_FILE: net.h\n{extra}")
    out = os.path.join(folder, core)
    ini = os.path.join(folder, f"{core}.ini")
    first = compiled(config, out, "--dump_addr_cfg", ini)
    want = results(out)
    with open(ini, encoding="utf-8") as f:
        text = f.read()
    found = buffers(text)
    harness.check(len(found) >= 3, f"{core}: buffers: {found}")
    harness.check(compiled(config, out + "_same", "--load_addr_cfg", ini) == first,
                  f"{core}: the file unchanged gives other bytes")
    # Further up, in the other order, each with room around it.
    places, at = {}, SHIFT
    for number in sorted(found, reverse=True):
        places[number] = at
        at += (found[number][1] + 511) // 256 * 256
    path = write(folder, f"{core}_moved.ini", moved(text, places))
    harness.check(compiled(config, out + "_moved", "--load_addr_cfg", path) != first,
                  f"{core}: moved buffers give the same bytes")
    harness.check(np.array_equal(results(out + "_moved"), want),
                  f"{core}: moved buffers give other results")
    by_key = write(folder, f"{core}_key.yaml",
                   f"CORENAME: {core}\nFRAMEWORK: ONNX\nMODEL_FILE: net.onnx\nOUTPUT_FILE: net.h\n"
                   f"{extra}ADDRESSES: {core}_moved.ini\n")
    with open(os.path.join(out + "_moved", "net.npuc"), "rb") as f:
        harness.check(compiled(by_key, out + "_key") == f.read(), f"{core}: the key ADDRESSES")
    refused(folder, core, config, text, found)
    return by_key, out + "_key"


def refused(folder, core, config, text, found):
    def said(new):
        path = write(folder, "bad.ini", new)
        return harness.npuc(config, "-o", os.path.join(folder, "no"), "--load_addr_cfg", path,
                            expect=1).stderr

    one_place = said(moved(text, {number: 0 for number in found}))
    names = {found[number][2] for number in found}
    harness.check("are in use at one time and share bytes" in one_place
                  and sum(f"('{name}')" in one_place for name in names) >= 2, one_place)
    for new, words in ((moved(text, {0: 3}), "must be a multiple of"),
                       (text.replace("size0 = ", "size0 = 1"), "of another model"),
                       (re.sub(r"^addr0.*$", "", text, flags=re.M), "is missing"),
                       (text + "addr0 = 0\n", "is none of"),
                       (text + "addr99999 = 0\n", "is none of"),
                       (moved(text, {0: 1 << 40}), "is none of"),
                       ("", "the file has 0 buffers")):
        harness.check(words in said(new), f"{core}: {words}: {said(new)}")


def dumper(folder):
    """The guide's appendix A.1, with the IR in the place of aipu.bin."""
    def run(*arguments, expect=0):
        return harness.run(harness.program("aipudumper"), *arguments, expect=expect)

    config = os.path.join(folder, "X2_1204.yaml")
    harness.npuc("ir", "write", config, "-o", folder)
    np.save(os.path.join(folder, "x.npy"), X)
    ir, inputs = os.path.join(folder, "net.txt"), os.path.join(folder, "x.npy")
    outputs = [os.path.join(folder, name) for name in ("plain.bin", "moved.bin")]
    run(ir, "-i", inputs, "-o", outputs[0], "--dump_addr_cfg")
    with open(os.path.join(folder, "addr_cfg_default.ini"), encoding="utf-8") as f:
        text = f.read()
    without = os.path.join(folder, "without", "output.bin")
    os.mkdir(os.path.dirname(without))
    run(ir, "--dump_addr_cfg", "-o", without)
    with open(os.path.join(folder, "without", "addr_cfg_default.ini"), encoding="utf-8") as f:
        harness.check(f.read() == text, "aipudumper without -i: other addresses")
    harness.check(not os.path.exists(without), "aipudumper without -i ran")
    run(ir, "--dump_all_tensors", "--dump_addr_cfg", expect=2)
    run(ir, expect=2)
    found = buffers(text)
    harness.check(len(found) >= 3, f"aipudumper: buffers: {found}")
    path = write(folder, "edited.ini",
                 moved(text, {number: place + SHIFT for number, (place, _, _) in found.items()}))
    said = run(ir, "-w", os.path.join(folder, "net.bin"), "-i", inputs, "-o", outputs[1],
               "--load_addr_cfg", path, "--simulator", "none", "--multi_core", "2",
               "--disable_gm", "--multi_batch", "1", "--ocm_addr", "0", "--ocm_size", "0").stderr
    for option in ("--multi_core", "--disable_gm", "--multi_batch", "ocm_addr", "ocm_size"):
        harness.check(f"{option} changes nothing" in said, f"{option}: {said}")
    run(ir, "-i", inputs, "-o", outputs[1], "--load_addr_cfg",
        write(folder, "bad.ini", moved(text, {number: 0 for number in found})), expect=1)
    built = os.path.join(folder, "aipu.bin")
    harness.run(harness.program("aipugb"), ir, "-o", built)
    said = run(built, "-i", inputs, "--dump_addr_cfg", expect=2).stderr
    harness.check("name the IR that it was built from" in said, said)
    contents = []
    for output in outputs:
        with open(output, "rb") as f:
            contents.append(f.read())
    harness.check(contents[0] == contents[1] and contents[0],
                  "aipudumper: moved buffers give other results")


def main(_):
    with harness.scratch() as folder:
        by_key, local = check(folder, "GRUS", "NPU_UNIT: NPU32\n")
        quant = "QUANT: {calibration_data: samples.npy}\n"
        check(folder, "X2_1204", "MEMORY_PLAN: compatible\n" + quant)
        dumper(folder)
        config = write(folder, "rows.yaml", "CORENAME: X2_1204\nFRAMEWORK: ONNX\nMODEL_FILE: "
                       "net.onnx\nOUTPUT_FILE: net.h\nADDRESSES: X2_1204.ini\n" + quant)
        said = harness.npuc(config, "-o", os.path.join(folder, "no"), expect=1).stderr
        harness.check("add a line MEMORY_PLAN: compatible" in said, said)
        with service.daemon(folder) as server:
            remote = os.path.join(folder, "remote")
            server.remote("compile", by_key, "-o", remote)
            for name in ("net.h", "net.npuc"):
                with open(os.path.join(local, name), "rb") as a, \
                        open(os.path.join(remote, name), "rb") as b:
                    harness.check(a.read() == b.read(), f"npuc-remote gave another {name}")
