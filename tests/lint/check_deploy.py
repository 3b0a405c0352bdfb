#!/usr/bin/python3
"""Checks what no machine here can start: deploy/k8s, deploy/container/cluster.yaml, the unit of
systemd, and the alert rules and the Grafana dashboard against the metrics of npucd.

Each overlay is rendered by `kubectl kustomize`; without kubectl that part is skipped, and said so.
Prints each problem; exit 1 if there is one.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OVERLAYS = ("external-pg", "cnpg")
# npucd's --stop-seconds, and some more.
MIN_GRACE_SECONDS = 30


def flags_of_npucd():
    with open(os.path.join(ROOT, "server", "flags.cc"), encoding="utf-8") as f:
        text = f.read()
    tables = text[text.index("kValueOptions"):text.index("kOfACall")]
    return set(re.findall(r'"(--[a-z-]+)"', tables))


def check_args(where, args, flags):
    for arg in args:
        name = arg.split("=", 1)[0]
        if name.startswith("--") and name not in flags:
            yield f"{where}: npucd has no flag {name}"


def check_pod(where, template, flags, is_service):
    spec = template["spec"]
    if not spec.get("securityContext", {}).get("runAsNonRoot"):
        yield f"{where}: runs as root"
    if is_service and spec.get("terminationGracePeriodSeconds", 30) < MIN_GRACE_SECONDS:
        yield f"{where}: terminationGracePeriodSeconds is less than npucd needs to drain"
    for container in spec["containers"]:
        image = container["image"]
        tag = image.rsplit("/", 1)[-1].partition(":")[2]
        if tag in ("", "latest"):
            yield f"{where}: the image {image} has no version"
        if not container.get("resources", {}).get("requests"):
            yield f"{where}: no resources are requested"
        wanted = ("readinessProbe", "livenessProbe", "startupProbe") if is_service else ()
        for probe in wanted:
            if probe not in container:
                yield f"{where}: no {probe}"
        yield from check_args(where, container.get("args", []), flags)
        mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
        known = {volume["name"] for volume in spec.get("volumes", [])}
        for name in sorted(mounted - known - {"data"}):
            yield f"{where}: the volume {name} is not declared"


def selected(selector, labels):
    if "matchExpressions" in selector:
        return all(labels.get(one["key"]) in one["values"] for one in selector["matchExpressions"])
    wanted = selector.get("matchLabels", selector)
    return bool(wanted) and wanted.items() <= labels.items()


def check_manifests(documents, flags):
    """Problems of a rendered overlay."""
    by_kind = {}
    for one in documents:
        by_kind.setdefault(one["kind"], []).append(one)
    for kind in ("StatefulSet", "Job", "Service", "PodDisruptionBudget", "NetworkPolicy",
                 "ConfigMap"):
        if kind not in by_kind:
            yield f"no {kind}"
    labels = {}
    for kind in ("StatefulSet", "Job"):
        for one in by_kind.get(kind, []):
            where = f"{kind} {one['metadata']['name']}"
            template = one["spec"]["template"]
            labels[kind] = template.get("metadata", {}).get("labels", {})
            yield from check_pod(where, template, flags, is_service=kind == "StatefulSet")
    selectors = [("Service", one["spec"]["selector"]) for one in by_kind.get("Service", [])]
    selectors += [("PodDisruptionBudget", one["spec"]["selector"])
                  for one in by_kind.get("PodDisruptionBudget", [])]
    for kind, selector in selectors:
        if not selected(selector, labels.get("StatefulSet", {})):
            yield f"{kind}: does not select npucd"
        if selected(selector, labels.get("Job", {})):
            yield f"{kind}: selects the migration, too"
    for one in by_kind.get("NetworkPolicy", []):
        for kind in ("StatefulSet", "Job"):
            if not selected(one["spec"]["podSelector"], labels.get(kind, {})):
                yield f"NetworkPolicy: does not select the {kind}"


def check_compose(document, flags):
    for name, service in document["services"].items():
        command = service.get("command", [])
        if "npuc" in service["image"]:
            yield from check_args(f"service {name}", command, flags)
        for secret in service.get("secrets", []):
            if secret not in document["secrets"]:
                yield f"service {name}: the secret {secret} is not declared"
        if "--data-dir=/var/lib/npuc/data" not in command:
            continue
        grace = int(service.get("stop_grace_period", "10s").rstrip("s"))
        if grace < MIN_GRACE_SECONDS:
            yield f"service {name}: stop_grace_period is less than npucd needs to drain"
        if "healthcheck" not in service:
            yield f"service {name}: no healthcheck"


# A start that fails, on a full disk say, is tried again for ever; a daemon that hangs is ended;
# files are its user's alone.
UNIT = {"StartLimitIntervalSec": r"0", "Restart": r"on-failure|always", "RestartSec": r"[1-9]\d*",
        "Type": r"notify", "WatchdogSec": r"[1-9]\d*", "UMask": r"0077"}


def check_unit(text, flags):
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    for name, wanted in UNIT.items():
        if not re.fullmatch(wanted, settings.get(name, "")):
            yield f"{name}={settings.get(name, '')}, not {wanted}"
    yield from check_args("ExecStart", settings.get("ExecStart", "").split()[1:], flags)


def metrics_of_npucd():
    """Each name that /metrics has, with its labels."""
    with open(os.path.join(ROOT, "server", "observe", "metric_list.inc"), encoding="utf-8") as f:
        listed = re.findall(r'^NPUC_METRIC\(\w+, (\w+), "(\w+)", "([\w,]*)"', f.read(), re.M)
    found = {}
    for kind, name, labels in listed:
        of = set(filter(None, labels.split(",")))
        if kind == "Histogram":
            found.update({f"{name}_sum": of, f"{name}_count": of, f"{name}_bucket": of | {"le"}})
        else:
            found[name] = of
    return found


# Prometheus adds these to each series.
LABELS_OF_A_SCRAPE = {"instance", "job"}


def check_expression(where, expression, metrics):
    """PromQL: each metric is there, and has the labels that are asked of it; brackets close."""
    names = set(re.findall(r"\b(?:npuc|process)_\w+", expression))
    if not names:
        yield f"{where}: no metric of npucd in {expression}"
    for name in sorted(names - set(metrics)):
        yield f"{where}: npucd has no metric {name}"
    known = LABELS_OF_A_SCRAPE.union(*(metrics.get(name, set()) for name in names))
    asked = set()
    for inside in re.findall(r"\{([^}]*)\}", expression):
        asked |= set(re.findall(r"(\w+)\s*(?:=|!)", inside))
    for inside in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression):
        asked |= set(re.findall(r"\w+", inside))
    for label in sorted(asked - known):
        yield f"{where}: no label {label} in {expression}"
    for opening, closing in ("()", "[]", "{}"):
        if expression.count(opening) != expression.count(closing):
            yield f"{where}: {opening}{closing} do not match in {expression}"


def check_alerts(document, metrics):
    names = set()
    for group in document["groups"]:
        for rule in group["rules"]:
            where = f"alert {rule['alert']}"
            if rule["alert"] in names:
                yield f"{where}: twice"
            names.add(rule["alert"])
            if not rule.get("annotations", {}).get("summary"):
                yield f"{where}: no summary"
            yield from check_expression(where, rule["expr"], metrics)


def check_dashboard(document, metrics):
    ids, places = set(), set()
    for panel in document["panels"]:
        where = f"panel '{panel['title']}'"
        place = (panel["gridPos"]["x"], panel["gridPos"]["y"])
        if panel["id"] in ids or place in places:
            yield f"{where}: its id or place is another's"
        ids.add(panel["id"])
        places.add(place)
        targets = panel.get("targets", [])
        if (panel["type"] == "row") != (not targets):
            yield f"{where}: {len(targets)} queries"
        for target in targets:
            yield from check_expression(where, target["expr"], metrics)


def main():
    flags = flags_of_npucd()
    metrics = metrics_of_npucd()
    problems = []
    with open(os.path.join(ROOT, "deploy", "systemd", "npucd.service"), encoding="utf-8") as f:
        problems += [f"npucd.service: {p}" for p in check_unit(f.read(), flags)]
    with open(os.path.join(ROOT, "deploy", "container", "cluster.yaml"), encoding="utf-8") as f:
        problems += [f"cluster.yaml: {p}" for p in check_compose(yaml.safe_load(f), flags)]
    with open(os.path.join(ROOT, "deploy", "alerts", "npucd.yaml"), encoding="utf-8") as f:
        problems += [f"alerts: {p}" for p in check_alerts(yaml.safe_load(f), metrics)]
    with open(os.path.join(ROOT, "deploy", "grafana", "npucd.json"), encoding="utf-8") as f:
        problems += [f"grafana: {p}" for p in check_dashboard(json.load(f), metrics)]
    if shutil.which("kubectl") is None:
        print("deploy: skipped the manifests: no kubectl")
    else:
        for overlay in OVERLAYS:
            done = subprocess.run(
                ["kubectl", "kustomize", os.path.join(ROOT, "deploy", "k8s", overlay)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                universal_newlines=True)
            if done.returncode != 0:
                problems.append(f"{overlay}: {done.stderr.strip()}")
                continue
            documents = list(yaml.safe_load_all(done.stdout))
            problems += [f"{overlay}: {p}" for p in check_manifests(documents, flags)]
    for problem in problems:
        print(problem)
    print(f"deploy: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
