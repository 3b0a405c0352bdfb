"""The Python package, from its wheel: jobs on a real npucd, and npuc with NumPy's arrays."""

import contextlib
import hashlib
import importlib
import io
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np

import harness
import service

CONFIG = os.path.join(harness.SAMPLE, "config.yaml")
MODEL = os.path.join(harness.SAMPLE, "kws_cnn.pb")
SOURCE = os.path.join(harness.ROOT, "client", "python")


def package_of_wheel(folder):
    """The package as a wheel has it, built by setuptools as pip does."""
    source = os.path.join(folder, "source")
    shutil.copytree(SOURCE, source)
    subprocess.run([sys.executable, "-c", "import setuptools.build_meta as b; b.build_wheel('..')"],
                   cwd=source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wheel = os.path.join(folder, "npuc-0.1.0-py3-none-any.whl")
    installed = os.path.join(folder, "installed")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(installed)
    for name in ("npuc/py.typed", "AIPUBuilder/Profiler.py"):
        harness.check(name in names, f"the wheel has no {name}")
    sys.path.insert(0, installed)
    return importlib.import_module("npuc")


def raised(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{call.__name__} raised no {kind.__name__}")


def check_compile(npuc, client, folder):
    out, lines = os.path.join(folder, "out"), []
    job = client.compile(CONFIG, out, labels={"board": "v2"}, progress=lines.append)
    harness.check(job.state == "SUCCEEDED" and job.ended, f"the job is {job}")
    harness.check(any("stage" in line for line in lines), f"progress was {lines}")
    for artifact in job.artifacts:
        with open(artifact.path, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        harness.check(digest == artifact.sha256, f"{artifact.name} is damaged")
    with contextlib.redirect_stderr(io.StringIO()) as said:
        again = client.compile(CONFIG, out)
    harness.check(again.cache_hit and said.getvalue() == "", "no hit, or progress without terminal")
    harness.check([a.sha256 for a in again.artifacts] == [a.sha256 for a in job.artifacts],
                  "a hit has other artifacts")
    harness.check(client.status(job.id).artifacts[0].path is None, "status has fetched")
    fetched = client.fetch(job.id, os.path.join(folder, "fetched"))
    harness.check(os.path.exists(fetched.artifact(".h").path), "fetch left no header")
    harness.check(any("stage import" in line for line in client.log(job.id)), "the log is empty")
    listed = list(client.jobs("--label=board=v2"))
    harness.check([one.id for one in listed] == [job.id], f"the list has {listed}")
    return job


def check_life(npuc, client):
    """Submit, watch, retry, cancel."""
    job = client.submit(CONFIG, no_cache=True, priority=3)
    events = list(client.watch(job.id))
    harness.check([e["seq"] for e in events] == list(range(1, len(events) + 1)),
                  f"the events are {events}")
    harness.check(client.status(job.id).fields["priority"] == 3, "the priority is lost")
    first = next(iter(client.watch(job.id)))
    harness.check(first["seq"] == 1, "a watch that is left begins elsewhere")
    again = client.retry(job.id)
    harness.check(again.id != job.id, "a retry is the same job")
    harness.check(client.cancel(job.id).state == "SUCCEEDED", "a cancel changed an end")
    harness.check("GRUS" in client.server()["cores"], "no cores")
    harness.check("submit" in client.caller()["rights"], "no rights")
    harness.check(client.usage()[0]["jobs"] > 0, "no usage")
    raised(npuc.Refused, client.status, "nothing")


def check_errors(npuc, client, folder):
    bad = os.path.join(folder, "bad.yaml")
    with open(bad, "w", encoding="utf-8") as f:
        f.write("CORENAME: GRUS\nMODEL_FILE: model.pb\nNONSENSE: 1\n")
    for call in (lambda: client.compile(bad, folder), lambda: npuc.compile(bad, folder)):
        error = raised(npuc.Error, call)
        ids = {d.id for d in error.diagnostics if d.severity == "ERROR"}
        harness.check({"NPUC1003", "NPUC1005"} <= ids, f"the diagnostics are {ids}")
        harness.check("NONSENSE" in str(error), f"the text is {error}")
    harness.check(isinstance(raised(npuc.Error, client.compile, bad, folder), npuc.Refused),
                  "a bad config is no refusal")
    unknown = os.path.join(folder, "unknown.yaml")
    with open(CONFIG, encoding="utf-8") as f:
        text = f.read().replace("kws_cnn.pb", MODEL)
    with open(unknown, "w", encoding="utf-8") as f:
        f.write(text.replace("labels_softmax", "nothing"))
    failed = raised(npuc.JobFailed, client.compile, unknown, folder)
    harness.check(failed.job.state == "FAILED" and failed.diagnostics, f"it is {failed.job}")
    nobody = npuc.Client("127.0.0.1:1", patience="1s")
    raised(npuc.Unreachable, nobody.server)
    raised(ValueError, client.compile, CONFIG, folder, progress="always")


def check_arrays(npuc, job, folder):
    artifact = job.artifact(".npuc").path
    shape = npuc.inspect(MODEL)["inputs"][0]["shape"]
    items = np.random.RandomState(1).randn(3, *shape).astype(np.float32)
    outputs = npuc.run(artifact, items)
    (name, values), = outputs.items()
    path = os.path.join(folder, "x.npy")
    np.save(path, items)
    harness.npuc("run", artifact, "--input", path, "-o", os.path.join(folder, "plain"))
    plain = np.load(harness.output_file(os.path.join(folder, "plain"), name))
    harness.check(values.dtype == np.float32 and np.array_equal(values, plain), "run differs")
    named = npuc.run(artifact, {"Feats": items})
    harness.check(np.array_equal(named[name], values), "an input by name gives something else")
    labels = values.reshape(3, -1).argmax(axis=1)
    report = npuc.evaluate(CONFIG, artifact, items, labels=labels, metrics=["cosine", "topk:1"])
    found = {one["metric"]: one["artifact"] for one in report["metrics"]}
    harness.check(found["topk:1"] == 1 and found["cosine"] > 0.99, f"the metrics are {found}")
    raised(npuc.Error, npuc.run, artifact, {"other": items})


def main(_):
    with harness.scratch() as folder, service.daemon(folder) as server:
        npuc = package_of_wheel(folder)
        os.environ["NPUC_BIN_DIR"] = harness.BIN
        client = npuc.Client(server.address)
        job = check_compile(npuc, client, folder)
        check_life(npuc, client)
        check_errors(npuc, client, folder)
        check_arrays(npuc, job, folder)
        harness.check(callable(npuc.get_profiler_data), "no get_profiler_data")
        harness.figure("python client: a wheel, 14 calls, errors and arrays")
