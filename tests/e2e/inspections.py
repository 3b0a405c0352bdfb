"""InspectModel against npuc: `npuc-remote inspect` and HTTP say what `npuc inspect` says, the
proposed config compiles, and what is no model harms nothing."""

import json
import os

import first_minute
import harness
import http_api
import service
import service_e2e

IGNORED = {"diagnostics"}  # npuc tells files by their paths


def same(ours, told, what):
    for key in sorted((set(ours) | set(told)) - IGNORED):
        harness.check(ours.get(key) == told.get(key),
                      f"{what}: {key}: {ours.get(key)!r}, npuc says {told.get(key)!r}")


def by_http(web, model, **stated):
    with open(model, "rb") as f:
        digest = http_api.upload(web, f.read())
    return web.json("POST", "/v1/models:inspect",
                    {"model": digest, "modelName": os.path.basename(model), **stated})


def check_model(server, web, model, folder):
    told = first_minute.inspect(model)
    remote = server.json("inspect", model)[0]
    same(remote, told, f"npuc-remote inspect {model}")
    answer = by_http(web, model)
    same({**answer["inspection"], "ok": True}, told, f"HTTP on {model}")
    text = harness.npuc("inspect", model).stdout
    harness.check(text.replace(model, os.path.basename(model)).split("next:")[0] == answer["text"],
                  f"another text: {answer['text']}")
    takers = [v for v in told["verdicts"] if v["verdict"] == "compiles"]
    for verdict in takers[:1]:
        core = verdict["cores"][0]
        config = os.path.join(folder, f"{core}.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(server.remote("inspect", model, "-c", core).stdout)
        job = server.json("compile", config, "-o", os.path.join(folder, "out"))[-1]
        harness.check(job["state"] == "SUCCEEDED", f"{config}: {job}")
    return len(takers)


def check_stated(server, web, folder):
    model = first_minute.conv_onnx(os.path.join(folder, "open.onnx"), ["N", 2, "H", 8])
    told = first_minute.inspect(model, "--input-shape", "1,2,8,8")
    same(server.json("inspect", model, "--input-shape", "1,2,8,8")[0], told, "a stated shape")
    same(server.json("inspect", model, "--dim", "H=8")[0],
         first_minute.inspect(model, "--dim", "H=8"), "a stated dimension")
    with open(model, "rb") as f:
        digest = http_api.upload(web, f.read())
    refused = web.json("POST", "/v1/models:inspect",
                       {"model": digest, "modelName": "open.onnx", "inputShapes": ["nonsense"]},
                       expect=400)
    harness.check("nonsense" in json.dumps(refused), refused)


def check_hostile(server, folder):
    """Each is refused with a diagnostic or inspected; the daemon and its workers go on."""
    for what, data in service_e2e.bad_models().items():
        path = os.path.join(folder, what.replace(" ", "_") + ".pb")
        with open(path, "wb") as f:
            f.write(data)
        local = harness.npuc("inspect", path, "--json", expect=None)
        result = server.remote("inspect", path, "--json", expect=None)
        harness.check(result.returncode == local.returncode,
                      f"{what}: exit {result.returncode}, npuc {local.returncode}")
        report = json.loads(result.stdout)
        same(report, json.loads(local.stdout), what)
        ids = [[d["id"] for d in json.loads(one)["diagnostics"]]
               for one in (result.stdout, local.stdout)]
        harness.check(ids[0] == ids[1], f"{what}: {ids}")


def check_missing(web):
    web.json("POST", "/v1/models:inspect",
             {"model": {"sha256": "0" * 64, "sizeBytes": "5"}, "modelName": "x.onnx"}, expect=400)
    web.json("POST", "/v1/models:inspect", {"modelName": "x.onnx"}, expect=400)


def main(_arguments):
    with harness.scratch() as folder:
        models = [first_minute.dense_graph(os.path.join(folder, "dense.pb")),
                  first_minute.conv_onnx(os.path.join(folder, "conv.onnx"), [1, 2, 8, 8]),
                  os.path.join(harness.SAMPLE, "kws_cnn.pb")]
        with service.daemon(folder, ("--insecure", "--web", "127.0.0.1:0")) as server:
            try:
                web = http_api.Web(folder)
                taken = 0
                for model in models:
                    copy = os.path.join(folder, os.path.basename(model))
                    if copy != model:
                        harness.run("cp", model, copy)
                    taken += check_model(server, web, copy, folder)
                harness.check(taken >= 2, f"only {taken} cores take a model")
                check_stated(server, web, folder)
                check_hostile(server, folder)
                check_missing(web)
            except harness.Failure as error:
                raise harness.Failure(f"{error}\nnpucd's log ends:\n{server.log()}") from error
    harness.figure(f"inspections: {len(models)} models as npuc inspects them, by npuc-remote and "
                   "HTTP; hostile ones refused as npuc refuses them")
