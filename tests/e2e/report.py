"""report.json, report.html and the simulator's profile tell the same: the sums of the layers, the
report's totals, and what `npuc run --profile` counts on the decoded artifact, the page's JSON and
report.json. Where chromium is installed the pages are opened without a network, and must draw every
section without a message on the console.
"""

import json
import os
import re
import shutil
import subprocess

import numpy as np

import harness
import models

COUNTS = ("macs", "elements", "read_bytes", "written_bytes", "cycles")
PAGE_LIMIT = 1 << 20
NETS = ("DS_CNN_S", "GRU_S", "ae0", "CNN_S")


def page_json(page):
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page,
                      re.DOTALL)
    return json.loads(found.group(1))


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
    for key in COUNTS:
        simulated = profile["per_frame"][key]
        summed = sum(c[key] for c in profile["commands"])
        layers = sum(n[key] for n in report["nodes"])
        harness.check(simulated == summed == layers == total[key],
                      f"{name}: {key}: simulator {simulated}, report {total[key]}, layers {layers}")
    harness.check(total["commands"] == len(profile["commands"]) == sum(report["commands"].values()),
                  f"{name}: {total['commands']} commands")
    model = report["cycle_model"]
    for command in profile["commands"]:
        work = (-(-command["macs"] // model["macs_per_cycle"]) if command["macs"] else
                -(-command["elements"] // model["elements_per_cycle"]))
        moved = -(-(command["read_bytes"] + command["written_bytes"]) // model["bytes_per_cycle"])
        harness.check(command["cycles"] == model["command_cycles"] + max(work, moved),
                      f"{name}: cycles of {command}")
    buffers = report["memory_map"]["buffers"]
    times = sorted({b["first"] for b in buffers})
    alive = max(sum(b["bytes"] for b in buffers if b["first"] <= t <= b["last"]) for t in times)
    harness.check(alive <= report["memory_plan"]["liveness_bound_bytes"] <=
                  report["memory_plan"]["arena_bytes"], f"{name}: {alive} bytes alive")
    harness.check(max(b["offset"] + b["bytes"] for b in buffers) <=
                  report["memory_plan"]["arena_bytes"], f"{name}: a buffer outside the arena")
    harness.figure(f"report {name}: {total['cycles']} cycles (estimate), {total['macs']} macs, "
                   f"page {len(page) // 1024} KiB")
    return page_path, report


def check_in_browser(browser, name, path, report):
    """Opens the page with networking off; what it drew, and what it said on the console."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               "--proxy-server=127.0.0.1:1", "--enable-logging=stderr", "--v=0",
               "--virtual-time-budget=5000", "--dump-dom", f"file://{path}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = [line for line in found.stderr.splitlines() if ":CONSOLE" in line]
    harness.check(not told, f"{name}: the page says {told[:3]}")
    for section in ("overview", "nodes", "graph", "memory_map", "roofline", "weights", "notes",
                    "config"):
        harness.check(f'<section id="{section}"' in found.stdout, f"{name}: no section {section}")
    rows = found.stdout.split('<section id="nodes"')[1].split("</section>")[0].count("<tr>") - 1
    harness.check(rows == len(report["nodes"]), f"{name}: {rows} rows of {len(report['nodes'])}")
    total = f"{report['per_frame']['cycles']:,}"
    harness.check(f"<b>{total}</b>" in found.stdout, f"{name}: {total} cycles are not shown")


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
        for name, config in compiled.items():
            out = os.path.join(folder, name)
            harness.npuc(config, "-o", out)
            path, report = check_report(name, out)
            if browser:
                check_in_browser(browser, name, path, report)
        page = os.path.join(folder, "artifact.html")
        harness.npuc("report", os.path.join(folder, "sample", "kws_fc.h"), "-o", page)
        with open(page, encoding="utf-8") as f:
            artifact = page_json(f.read())
        with open(os.path.join(folder, "sample", "report.json"), encoding="utf-8") as f:
            wanted = json.load(f)["per_frame"]
        harness.check(all(artifact["per_frame"][key] == wanted[key] for key in COUNTS),
                      f"npuc report counts {artifact['per_frame']}, not {wanted}")
        if not browser:
            harness.figure("report: chromium is not installed; the pages were not opened")
