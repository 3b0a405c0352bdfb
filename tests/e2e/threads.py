"""A compile gives the same with any number of threads: every artifact, all that is printed, the
diagnostics and their order, and the exit code, of nets on all kinds of cores and of such that are
refused.

    threads [NAME...]   NAME: nets whose names begin so
"""

import io
import os
import re
import shutil
import zipfile

import harness  # puts tests/models on the path, so first
import guide_nets
import quantizing
import torch_nets

THREADS = (1, 2, 5)
RECORDED_NETS = ("net_ds_cnn", "net_mobilenet_v2_035", "net_lstm_wake_word", "net_unet")
REFUSED_NET = "net_ds_cnn"
QUANTIZED = {"weight_bits": 8, **quantizing.PER_CHANNEL}
ITEMS = 24


def write(path, content):
    with open(path, "wb") as f:
        f.write(content)
    return path


def guide_configs(folder):
    for net in guide_nets.guide_nets():
        model, config = (os.path.join(folder, f"{net.name}.{e}") for e in ("pb", "yaml"))
        write(model, net.graph.serialize())
        yield write(config, (net.config(model, True) + "\nLAYER_ERROR_FRAMES: 3\n").encode())


def spoiled(archive):
    """The archive with wrong checksums of two storages, and one whose modules do not parse."""
    with zipfile.ZipFile(io.BytesIO(archive)) as source:
        entries = [(i, source.read(i)) for i in source.infolist()]
    damaged = bytearray(archive)
    storages = [i for i, _ in entries if "/data/" in i.filename and i.file_size >= 64]
    for info, byte in ((storages[-1], 17), (storages[1], 5)):
        name_bytes, extra_bytes = (int.from_bytes(archive[info.header_offset + k:][:2], "little")
                                   for k in (26, 28))
        damaged[info.header_offset + 30 + name_bytes + extra_bytes + byte] ^= 1
    yield "checksums", bytes(damaged)
    unparsed = io.BytesIO()
    with zipfile.ZipFile(unparsed, "w") as target:
        for info, content in entries:
            if "/nn/modules/" in info.filename and info.filename.endswith(".py"):
                content = re.sub(rb"def forward\(", b"def forward(((", content)
            target.writestr(info.filename, content)
    yield "sources", unparsed.getvalue()


def torch_configs(folder):
    for name in RECORDED_NETS:
        net, = torch_nets.read_nets(
            os.path.join(torch_nets.RECORDED, f"{name}.tar.xz"))
        inside = os.path.join(folder, name)
        os.makedirs(inside)
        net.unpack(inside)
        yield os.path.join(inside, "scripted.yaml")
        yield os.path.join(inside, "traced.yaml")
        if name != REFUSED_NET:
            continue
        with open(os.path.join(inside, "scripted.pt"), "rb") as f:
            archive = f.read()
        for kind, content in spoiled(archive):
            damaged = os.path.join(folder, f"damaged_{kind}")
            shutil.copytree(inside, damaged)
            write(os.path.join(damaged, "scripted.pt"), content)
            yield os.path.join(damaged, "scripted.yaml")


def compiled(config, out, threads):
    """What a compile printed, how it ended, and its artifacts."""
    result = harness.npuc(config, "-o", out, "-v", "-m", "-w", "--threads", threads, expect=None)
    files = {}
    for name in os.listdir(out) if os.path.isdir(out) else ():
        with open(os.path.join(out, name), "rb") as f:
            files[name] = f.read()
    shutil.rmtree(out, ignore_errors=True)
    return {"exit code": result.returncode, "standard output": result.stdout,
            "diagnostics": result.stderr, **files}


def main(arguments):
    counts = {0: 0, 1: 0}
    things = 0
    with harness.scratch() as folder:
        configs = [os.path.join(harness.SAMPLE, "config.yaml"), *guide_configs(folder),
                   *torch_configs(folder)]
        if os.path.isdir(harness.SHARED):
            configs.append(quantizing.Net("kws", folder, ITEMS).config("threads", QUANTIZED))
        if arguments:
            configs = [c for c in configs if any(a in c for a in arguments)]
        for config in configs:
            first, *others = (compiled(config, os.path.join(folder, "out"), n) for n in THREADS)
            for n, other in zip(THREADS[1:], others):
                harness.check(set(first) == set(other),
                              f"{config}, {n} threads: {sorted(other)}, not {sorted(first)}")
                for what, content in first.items():
                    harness.check(content == other[what],
                                  f"{config}: {what} differs with {n} threads")
            harness.check(first["exit code"] in counts, f"{config}: exit {first['exit code']}")
            counts[first["exit code"]] += 1
            things += len(first)
    harness.check(arguments or (counts[0] > 8 and counts[1] == 2), f"compiled, refused: {counts}")
    harness.figure(f"threads: {counts[0]} nets compile and {counts[1]} are refused with the same "
                   f"{things} artifacts and texts by {', '.join(map(str, THREADS))} threads")
