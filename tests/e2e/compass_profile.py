"""Profiles as Compass's guide has them (chapter 6): graph.json of a build with profile=true, the
counters of its run, and what aipu_profiler and get_profiler_data make of the two.

1. aipubuild with mode=run of three nets on three cores. The Python client's dictionary is
   aipu_profiler's JSON; its sums and its layers are those of report.json; milliseconds are cycles
   by the clock, the user's or graph.json's; layers of one level do not read one another.
2. CSV and XLSX hold the same figures. LibreOffice opens the workbook, where it is installed;
   chromium draws the page and sorts it, where that is.
   The pictures that svg and png name have the layers, with Graphviz and without.
3. aipurun -p of an IR writes the same two files. Files of two builds and damaged ones are refused.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "client", "python"))
from AIPUBuilder.Profiler import get_profiler_data  # noqa: E402

SEED = 11
MHZ = 250
# Each sheet as comma-separated values with numbers in full: LibreOffice's filter options.
SHEETS_AS_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
NETS = (("resnet8_float", (1, 32, 32, 3), "X2_1204"),
        ("kws_ref_model_float32", (1, 49, 10, 1), "Z2_0901"),
        ("ad01_fp32", (1, 640), "X1_1204"))


def build_and_run(folder, net, shape, core):
    """aipubuild with profile=true; the folder with its files."""
    place = os.path.join(folder, net)
    os.makedirs(place)
    samples = np.random.default_rng(SEED).normal(size=(4, *shape[1:])).astype(np.float32)
    np.save(os.path.join(place, "samples.npy"), samples)
    np.save(os.path.join(place, "one.npy"), samples[:1])
    model = harness.shared("models", "tflite", "mlperf_tiny", net + ".tflite")
    with open(os.path.join(place, "net.cfg"), "w", encoding="utf-8") as f:
        f.write(f"[Common]\nmode=run\n[Parser]\nmodel_type=TFLite\nmodel_name={net}\n"
                f"input_model={model}\n[Optimizer]\ncalibration_data=samples.npy\n"
                f"[GBuilder]\ntarget={core}\ninputs=one.npy\noutputs=out.bin\nprofile=True\n"
                "svg=graph.svg\n" + ("png=graph.png\n" if shutil.which("dot") else ""))
    harness.run(harness.program("aipubuild"), os.path.join(place, "net.cfg"))
    return place


def profiler(place, method, *options, expect=0, graph="graph.json", data="profile_data.bin"):
    path = os.path.join(place, "profile." + method)
    result = harness.run(harness.program("aipu_profiler"), os.path.join(place, graph),
                         os.path.join(place, data), "-o", path, "--method", method, *options,
                         expect=expect)
    return path if expect == 0 else result.stderr


def check_figures(net, place):
    """The dictionary, which agrees with report.json."""
    files = [os.path.join(place, name) for name in ("graph.json", "profile_data.bin")]
    data = get_profiler_data(*files)
    with open(profiler(place, "json"), encoding="utf-8") as f:
        harness.check(json.load(f) == data, f"{net}: Python and aipu_profiler differ")
    with open(os.path.join(place, "report.json"), encoding="utf-8") as f:
        report = json.load(f)
    total, summary = report["per_frame"], data["summary"]
    harness.check((summary["Cycles"], summary["AIPU Read Bytes"], summary["AIPU Write Bytes"],
                   summary["Algorithm Ops"]) ==
                  (total["cycles"], total["read_bytes"], total["written_bytes"],
                   2 * total["macs"]), f"{net}: {summary} of {total}")
    layers = {node["node"]: node for node in report["nodes"] if node["commands"]}
    harness.check(len(layers) == len(data["profile_data"]), f"{net}: {len(layers)} layers")
    for entry in data["profile_data"]:
        figures, layer = entry["runtime_information"], layers[entry["name"]]
        harness.check((figures["Cycles"], figures["AIPU Read Bytes"], figures["Algorithm Ops"]) ==
                      (layer["cycles"], layer["read_bytes"], 2 * layer["macs"]), f"{net}: {entry}")
        for unit in ("AIFF", "TPC", "DMA"):
            harness.check(0 <= figures[f"{unit} Utilization"] <= 1, f"{net}: {entry}")
        harness.check(figures["Core ID"] == 0, f"{net}: {entry}")
    makers = {name: node["level"] for node in data["graph"]["nodes"] for name in node["output"]}
    for node in data["graph"]["nodes"]:
        harness.check(all(makers[name] < node["level"] for name in node["input"]),
                      f"{net}: level of {node}")
    harness.check(data["frequency"] == 1000, f"{net}: {data['frequency']} MHz")
    slower = get_profiler_data(*files, frequency=MHZ)["summary"]["Cost Time (ms)"]
    harness.check(abs(slower - total["cycles"] / (1000 * MHZ)) < 1e-12, f"{net}: {slower} ms")
    with open(profiler(place, "json", "--frequency", str(MHZ)), encoding="utf-8") as f:
        harness.check(json.load(f)["summary"]["Cost Time (ms)"] == slower, f"{net}: {MHZ} MHz")
    return data


def number(text):
    """A cell's; LibreOffice writes shares as "28.7%"."""
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def check_rows(what, text, data):
    """A table with a line for each layer holds the dictionary's figures."""
    rows = list(csv.DictReader(io.StringIO(text)))
    harness.check(len(rows) == len(data["profile_data"]), f"{what}: {len(rows)} rows")
    for row, entry in zip(rows, data["profile_data"]):
        harness.check(row.pop("Layer Name") == entry["name"], f"{what}: {entry['name']}")
        figures = entry["runtime_information"]
        harness.check(list(row) == list(figures), f"{what}: columns {list(row)}")
        for name, value in figures.items():
            same = (row[name] == value if isinstance(value, str) else
                    abs(number(row[name]) - value) <= 1e-9 * max(1, abs(value)))
            harness.check(same, f"{what}: {entry['name']}: {name} is {row[name]}, not {value}")


def check_tables(net, place, data):
    """CSV, and the workbook as LibreOffice reads it; False where that is missing."""
    with open(profiler(place, "csv"), encoding="utf-8", newline="") as f:
        check_rows(f"{net}.csv", f.read(), data)
    workbook = profiler(place, "xlsx")
    office = shutil.which("soffice")
    if office is None:
        return False
    sheets = os.path.join(place, "sheets")
    harness.run(office, f"-env:UserInstallation=file://{place}/office", "--headless",
                "--convert-to", SHEETS_AS_CSV, "--outdir", sheets, workbook)
    with open(os.path.join(sheets, "profile-DETAILED DATA.csv"), encoding="utf-8",
              newline="") as f:
        check_rows(f"{net}.xlsx", f.read(), data)
    with open(os.path.join(sheets, "profile-SUMMARY.csv"), encoding="utf-8", newline="") as f:
        summary = {row["Item"]: row["Value"] for row in csv.DictReader(f)}
    harness.check(summary["Graph Name"] == data["graph_name"], f"{net}: {summary}")
    for name, value in data["summary"].items():
        harness.check(abs(number(summary[name]) - value) <= 1e-9 * max(1, abs(value)),
                      f"{net}: {name} is {summary[name]}, not {value}")
    return True


def check_page(net, place, data):
    """The page as chromium draws it, sorted by cycles; False where that is missing."""
    page = profiler(place, "html")
    browser = shutil.which("chromium")
    if browser is None:
        return False
    found = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu",
                            "--disable-dev-shm-usage", "--proxy-server=127.0.0.1:1",
                            "--enable-logging=stderr", "--v=0", "--virtual-time-budget=5000",
                            "--dump-dom", f"file://{page}"], capture_output=True, text=True,
                           timeout=120, check=False)
    told = [line for line in found.stderr.splitlines() if ":CONSOLE" in line]
    harness.check(not told, f"{net}: the page says {told[:3]}")
    table = found.stdout.split('<section id="detailed"')[1].split("</section>")[0]
    harness.check('aria-sort="descending"' in table, f"{net}: the page sorts by nothing")
    most = max(data["profile_data"], key=lambda entry: entry["runtime_information"]["Cycles"])
    first = table.split("<tbody>")[1].split("</td>")[0].split(">")[-1]
    harness.check(first == most["name"], f"{net}: {first} stands first, not {most['name']}")
    harness.check('<section id="summary"' in found.stdout, f"{net}: no summary")
    return True


def check_pictures(net, place, data):
    """The SVG names each layer; the PNG is one, where Graphviz drew it."""
    text = "".join(ElementTree.parse(os.path.join(place, "graph.svg")).getroot().itertext())
    for node in data["graph"]["nodes"]:
        harness.check(node["op_type"] in text and node["name"][:15] in text,
                      f"{net}: {node['name']} is not in the SVG")
    path = os.path.join(place, "graph.png")
    if not shutil.which("dot"):
        with open(os.path.join(place, "net.cfg"), "a", encoding="utf-8") as f:
            f.write("png=graph.png\n")
        told = harness.run(harness.program("aipubuild"), os.path.join(place, "net.cfg"),
                           expect=1).stderr
        harness.check("install graphviz" in told, f"{net}: {told}")
        return
    with open(path, "rb") as f:
        harness.check(f.read(8) == b"\x89PNG\r\n\x1a\n", f"{net}: {path} is no PNG")
    plain = os.path.join(place, "plain")
    harness.run(harness.program("aipubuild"), os.path.join(place, "net.cfg"), expect=1,
                env={"PATH": plain})  # no dot there: the SVG is npuc's own, the PNG is refused
    ElementTree.parse(os.path.join(place, "graph.svg"))


def check_aipurun(folder):
    """aipurun -p writes graph.json and the counters beside its output."""
    place = os.path.join(folder, "ir")
    os.makedirs(place)
    built = os.path.join(folder, "ad01_fp32")
    with open(os.path.join(built, "net.cfg"), encoding="utf-8") as f:
        text = f.read().replace("mode=run", "mode=build")
    text = "\n".join(line for line in text.split("\n") if not line.startswith(("inputs", "outp")))
    with open(os.path.join(built, "ir.cfg"), "w", encoding="utf-8") as f:
        f.write(text)
    harness.npuc("ir", "write", os.path.join(built, "ir.cfg"), "-o", place)
    name = next(n for n in os.listdir(place) if n.endswith(".txt"))
    harness.run(harness.program("aipurun"), os.path.join(place, name), "-i",
                os.path.join(built, "one.npy"), "-o", os.path.join(place, "out.bin"), "--target",
                "X1_1204", "-p")
    data = get_profiler_data(os.path.join(place, "graph.json"),
                             os.path.join(place, "profile_data.bin"))
    plain = get_profiler_data(os.path.join(built, "graph.json"),
                              os.path.join(built, "profile_data.bin"))
    harness.check(data["summary"] == plain["summary"], f"{data['summary']}, {plain['summary']}")


def check_refusals(folder):
    """Files of two builds, a damaged one, a clock of nothing; in Python, too."""
    one, other = (os.path.join(folder, net) for net, _, _ in NETS[:2])
    told = profiler(one, "html", expect=1, data=os.path.join(other, "profile_data.bin"))
    harness.check("another build" in told and "NPUC1550" in told, told)
    cut = os.path.join(folder, "cut.bin")
    with open(os.path.join(one, "profile_data.bin"), "rb") as f, open(cut, "wb") as out:
        out.write(f.read()[:-1])
    told = profiler(one, "html", expect=1, data=cut)
    harness.check("records of 64 bytes" in told, told)
    told = profiler(one, "html", expect=1, graph=cut)
    harness.check("cut.bin" in told, told)
    profiler(one, "html", "--frequency", "0", expect=2)
    for data in (os.path.join(other, "profile_data.bin"), cut):
        try:
            get_profiler_data(os.path.join(one, "graph.json"), data)
        except ValueError:
            continue
        raise harness.Failure(f"get_profiler_data takes {data}")


def main(arguments):
    harness.check(not arguments, "compass_profile takes no arguments")
    with harness.scratch() as folder:
        seen = {"LibreOffice": True, "chromium": True}
        layers = 0
        for net, shape, core in NETS:
            place = build_and_run(folder, net, shape, core)
            data = check_figures(net, place)
            layers += len(data["profile_data"])
            check_pictures(net, place, data)
            seen["LibreOffice"] = check_tables(net, place, data)
            seen["chromium"] = check_page(net, place, data)
        check_aipurun(folder)
        check_refusals(folder)
    for program, found in seen.items():
        if not found:
            harness.figure(f"compass_profile: skipped: {program} is not installed; its files were "
                           "not opened")
    harness.figure(f"compass_profile: {layers} layers of {len(NETS)} nets: report.json, Python, "
                   "CSV and XLSX agree")
