"""report.json, report.html and the simulator's profile tell the same: the sums of the layers, the
report's totals, and what `npuc run --profile` counts on the decoded artifact, the page's JSON and
report.json; the cycles of each command, by the rule of target/README.md; the layers' errors, and
`npuc run` against `npuc reference` on the same noise. Where chromium is installed the pages are
opened without a network, and must draw every section without a message on the console.
"""

import json
import os
import re
import shutil
import subprocess

import numpy as np

import harness  # puts tests/models on the path, so first
import guide_nets
import models

COUNTS = ("macs", "elements", "read_bytes", "written_bytes", "cycles")
PAGE_LIMIT = 1 << 20
ERROR_FRAMES = 3
NETS = ("DS_CNN_S", "GRU_S", "ae0", "CNN_S")


def page_json(page):
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page,
                      re.DOTALL)
    return json.loads(found.group(1))


def clock_of(model, commands):
    """The cycles of each command, and when the last one ends, after target/README.md."""
    fetched = [model["command_cycles"]] * model.get("cores", 1)  # each core's next command
    ended = [0] * len(fetched)
    cycles, phase, phase_begin = [], 0, 0
    for command in commands:
        core = command.get("core", 0)
        if command.get("phase", 0) != phase:
            phase, phase_begin = command["phase"], max(ended)
        work = (command["array_cycles"] if "array_cycles" in command else
                -(-command["macs"] // model["macs_per_cycle"]) if command["macs"] else
                -(-command["elements"] // model["elements_per_cycle"]))
        moved = -(-(command["read_bytes"] + command["written_bytes"]) // model["bytes_per_cycle"])
        free = max(phase_begin, ended[core])
        if model["register_sets"] == 2:
            begin = max(free, fetched[core])
        else:
            begin = free + model["command_cycles"]
        fetched[core] = begin + model["command_cycles"]
        ended[core] = begin + max(work, moved)
        cycles.append(ended[core] - free)
    return cycles, max(ended)


def check_report(name, folder):
    """The figures of one compiled net, which agree; its page's path."""
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    page_path = os.path.join(folder, "report.html")
    with open(page_path, encoding="utf-8") as f:
        page = f.read()
    harness.check(len(page.encode()) < PAGE_LIMIT, f"{name}: a page of {len(page)} characters")
    harness.check(page_json(page) == report, f"{name}: the page holds another report")
    header = next(os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".h"))
    inputs = []
    for entry in report["inputs"]:
        path = os.path.join(folder, f"in_{len(inputs)}.npy")
        shape = json.loads(entry["type"][entry["type"].index("["):])
        np.save(path, np.zeros(shape, np.float32))
        inputs += ["--input", f"{entry['name']}={path}"]
    profile_path = os.path.join(folder, "profile.json")
    harness.npuc("run", header, *inputs, "--output-dir", os.path.join(folder, "run"), "--profile",
                 profile_path)
    with open(profile_path, encoding="utf-8") as f:
        profile = json.load(f)
    total = report["per_frame"]
    harness.check("omitted" not in report, f"{name}: layers are left out")
    cycles, end = clock_of(report["cycle_model"], profile["commands"])
    found = [c["cycles"] for c in profile["commands"]]
    harness.check(found == cycles, f"{name}: cycles of commands are {found}, not {cycles}")
    for key in COUNTS:
        simulated = profile["per_frame"][key]
        summed = end if key == "cycles" else sum(c[key] for c in profile["commands"])
        layers = sum(n[key] for n in report["nodes"])
        harness.check(simulated == summed == layers == total[key],
                      f"{name}: {key}: simulator {simulated}, report {total[key]}, layers {layers}")
    harness.check(total["commands"] == len(profile["commands"]) == sum(report["commands"].values()),
                  f"{name}: {total['commands']} commands")
    buffers = report["memory_map"]["buffers"]
    times = sorted({b["first"] for b in buffers})
    alive = max(sum(b["bytes"] for b in buffers if b["first"] <= t <= b["last"]) for t in times)
    plan = report["memory_plan"]
    if not plan["method"].startswith("rows"):  # by rows less is alive than whole buffers
        harness.check(alive <= plan["liveness_bound_bytes"], f"{name}: {alive} bytes alive")
    harness.check(plan["liveness_bound_bytes"] <= plan["arena_bytes"], f"{name}: {plan}")
    harness.check(max(b["offset"] + b["bytes"] for b in buffers) <=
                  report["memory_plan"]["arena_bytes"], f"{name}: a buffer outside the arena")
    harness.figure(f"report {name}: {total['cycles']} cycles (estimate), {total['macs']} macs, "
                   f"page {len(page) // 1024} KiB")
    return page_path, report


def noise(count):
    """LAYER_ERROR_FRAMES' noise: SplitMix64 with seed 1, the upper 24 bits scaled to [-1, 1)."""
    with np.errstate(over="ignore"):
        z = np.uint64(1) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return ((z >> np.uint64(40)).astype(np.float64) / 2**23 - 1).astype(np.float32)


def check_layer_errors(name, config, folder):
    """The report's errors of the model's outputs are those between `npuc run` and `npuc reference`
    on the same noise. Returns how many outputs were compared."""
    with open(config, encoding="utf-8") as f:
        text = f.read()
    own = os.path.join(folder, f"{name}_errors.yaml")
    model = re.search(r"^MODEL_FILE: *(.*)$", text, re.MULTILINE).group(1)
    model = os.path.join(os.path.dirname(config), model)
    with open(own, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^MODEL_FILE:.*$", f"MODEL_FILE: {model}", text, flags=re.MULTILINE) +
                f"\nLAYER_ERROR_FRAMES: {ERROR_FRAMES}\n")
    out = os.path.join(folder, f"{name}_errors")
    harness.npuc(own, "-o", out)
    plain = os.path.join(folder, name)
    for file in sorted(n for n in os.listdir(out) if n.endswith((".h", ".npuc"))):
        with open(os.path.join(out, file), "rb") as a, open(os.path.join(plain, file), "rb") as b:
            harness.check(a.read() == b.read(), f"{name}: the comparison changes {file}")
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    states = {p["state_of"] for p in report["outputs"] if "state_of" in p}
    fed = [p for p in report["inputs"] if p["name"] not in states]
    shapes = [json.loads(p["type"][p["type"].index("["):]) for p in fed]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    values = noise(ERROR_FRAMES * int(ends[-1])).reshape(ERROR_FRAMES, -1)
    inputs = {port["name"]: part.reshape(ERROR_FRAMES, *shape) for port, shape, part in
              zip(fed, shapes, np.split(values, ends[:-1], axis=1))}
    names = [p["name"] for p in report["outputs"]]
    header = next(n for n in sorted(os.listdir(out)) if n.endswith(".h"))
    on_core = harness.simulate(os.path.join(out, header), inputs, os.path.join(out, "core"), names)
    in_float = harness.simulate(own, inputs, os.path.join(out, "float"), names, verb="reference")
    compared, layers = 0, {n["node"]: n for n in report["nodes"]}
    for port in report["outputs"]:
        layer = layers.get(port["name"])
        if layer is None:
            continue
        core, wanted = (side[port["name"]].astype(np.float64).ravel()
                        for side in (on_core, in_float))
        error = np.abs(core - wanted)
        figures = {"max_abs_error": error.max(), "rms_error": np.sqrt(np.mean(error**2)),
                   "max_abs_float": np.abs(wanted).max(),
                   "similarity": core @ wanted / (np.linalg.norm(core) * np.linalg.norm(wanted))}
        # The two float runs sum in different orders.
        room = 1e-5 * figures["max_abs_float"]
        for key, value in figures.items():
            harness.check(abs(layer[key] - value) <= room,
                          f"{name}: {key} of {port['name']} is {layer[key]}, should be {value}")
        compared += 1
    harness.check(all("max_abs_error" in n for n in report["nodes"] if "operator" in n),
                  f"{name}: layers without an error")
    return compared


def check_in_browser(browser, name, path, report, more=()):
    """Opens the page with networking off; what it drew, and what it said on the console."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--proxy-server=127.0.0.1:1", "--enable-logging=stderr", "--v=0",
               "--virtual-time-budget=5000", "--dump-dom", f"file://{path}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = [line for line in found.stderr.splitlines() if ":CONSOLE" in line]
    harness.check(not told, f"{name}: the page says {told[:3]}")
    for section in ("overview", "nodes", "graph", "memory_map", "roofline", "weights", "notes",
                    "config", *more):
        harness.check(f'<section id="{section}"' in found.stdout, f"{name}: no section {section}")
    table = found.stdout.split('<section id="nodes"')[1].split("</section>")[0]
    rows = table.split("<tbody>")[1].split("</tbody>")[0].count("<tr ")
    harness.check(rows == len(report["nodes"]), f"{name}: {rows} rows of {len(report['nodes'])}")
    total = f"{report['per_frame']['cycles']:,}"
    harness.check(f"<b>{total}</b>" in found.stdout, f"{name}: {total} cycles are not shown")


def check_integer_nets(browser, folder):
    """The same report of cores that compute in integers: a model quantized here, one that brings
    its scales."""
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))[:8]
    np.save(os.path.join(folder, "samples.npy"),
            (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None])
    for name, core, model, quant in (
            ("kws_apus", "APUS", "kws_ref_model_float32", "QUANT: {calibration_data: samples.npy}"),
            ("kws_x2", "X2_1204", "kws_ref_model_float32",
             "QUANT: {calibration_data: samples.npy, weight_bits: 4}"),
            ("kws_int8", "X2_1204", "kws_ref_model_int8", ""),
            ("kws_three", "X2_1204MP3", "kws_ref_model_int8", "")):
        path = harness.shared("models", "tflite", "mlperf_tiny", model + ".tflite")
        config = os.path.join(folder, name + ".yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"CORENAME: {core}\nFRAMEWORK: TFLITE\nMODEL_FILE: {path}\n"
                    f"OUTPUT_FILE: model.h\n{quant}\n")
        out = os.path.join(folder, name)
        harness.npuc(config, "-o", out)
        page, report = check_report(name, out)
        harness.check(report["core"] == core and report["nodes"][1]["layer_type"] == "Convolution",
                      f"{name}: core {report['core']}, layer {report['nodes'][1]}")
        if quant:
            figures = {f["metric"]: f["quantized"] for f in report["metrics"]["figures"]}
            last = report["nodes"][-1]
            harness.check(abs(last["similarity"] - figures["cosine"]) < 1e-12 and
                          abs(last["rms_error"]**2 - figures["mse"]) < 1e-12,
                          f"{name}: the last layer has {last}, the output {figures}")
            harness.check(0.8 < figures["cosine"] < 1, f"{name}: {figures}")
        bits = {w["bits"] for w in report["weights"]}
        harness.check(bits == {16 if core == "APUS" else 4 if "weight_bits" in quant else 8},
                      f"{name}: weights of {bits} bits")
        # A weight rounded to its step is off by half of it, but where it is clamped.
        for weight in report["weights"] if core == "APUS" else []:
            harness.check(0 < weight["max_abs_error"] <= 0.5001 * weight["step"],
                          f"{name}: {weight['name']}: error {weight['max_abs_error']}")
        if browser:
            check_in_browser(browser, name, page, report, ("metrics",) if quant else ())


def main(arguments):
    browser = shutil.which("chromium")
    with harness.scratch() as folder:
        compiled = {"sample": os.path.join(harness.SAMPLE, "config.yaml")}
        if os.path.isdir(harness.SHARED):
            for model in models.models():
                if model.name not in NETS:
                    continue
                compiled[model.name] = os.path.join(folder, f"{model.name}.yaml")
                with open(compiled[model.name], "w", encoding="utf-8") as f:
                    path = harness.shared("models", "tf", model.path)
                    f.write(models.config_of(model, path, True))
        pages = list(compiled)
        for net in guide_nets.guide_nets():  # their states are fed back on either side
            compiled[net.name] = os.path.join(folder, f"{net.name}.yaml")
            model = os.path.join(folder, f"{net.name}.pb")
            with open(model, "wb") as f:
                f.write(net.graph.serialize())
            with open(compiled[net.name], "w", encoding="utf-8") as f:
                f.write(net.config(model, True))
        errors = {}
        for name, config in compiled.items():
            out = os.path.join(folder, name)
            harness.npuc(config, "-o", out)
            path, report = check_report(name, out)
            errors[name] = check_layer_errors(name, config, folder)
            if browser and name in pages:
                check_in_browser(browser, name, path, report)
        if os.path.isdir(harness.SHARED):
            check_integer_nets(browser, folder)
        told = sum(errors.values())
        harness.check(told >= len(errors), f"errors of few outputs are told: {errors}")
        harness.figure(f"report: errors of {told} outputs of {len(errors)} nets are those of npuc "
                       "run against npuc reference")
        pages = os.path.join(folder, "pages")
        harness.npuc("report", os.path.join(folder, "sample", "kws_cnn.h"), "-o", pages)
        with open(os.path.join(pages, "kws_cnn.html"), encoding="utf-8") as f:
            artifact = page_json(f.read())
        with open(os.path.join(folder, "sample", "report.json"), encoding="utf-8") as f:
            wanted = json.load(f)["per_frame"]
        harness.check(all(artifact["per_frame"][key] == wanted[key] for key in COUNTS),
                      f"npuc report counts {artifact['per_frame']}, not {wanted}")
        if not browser:
            harness.figure("report: chromium is not installed; the pages were not opened")
