"""npuc on this machine, without a server: compile, and run and judge with NumPy's arrays."""

import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from npuc import programs, results
from npuc.client import Path

Arrays = Union[np.ndarray, Mapping[str, np.ndarray]]


# pylint: disable-next=redefined-builtin
def compile(config: Path, output: Path) -> List[results.Diagnostic]:
    """Compiles a config into the folder `output`; its warnings and notes. results.Error: it is
    refused."""
    answer = _report([programs.find("npuc"), os.fspath(config), "-o", os.fspath(output)])
    return [results.Diagnostic.of(one) for one in answer["diagnostics"]]


def inspect(model: Path) -> Dict[str, Any]:
    """Format, inputs, outputs, operators, and which cores take the model."""
    return _report([programs.find("npuc"), "inspect", os.fspath(model)])


def run(artifact: Path, inputs: Arrays, *, raw: bool = False) -> Dict[str, np.ndarray]:
    """Runs a header or .npuc file on the simulator. inputs: by name, or one array where the model
    has one input; a leading dimension more than the input's is a number of items. Outputs by name,
    as float32; raw: integers as they are stored, in and out."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [*_input_options(inputs, folder), *(["--raw"] if raw else [])]
        answer = _report([programs.find("npuc"), "run", os.fspath(artifact), *arguments,
                          "--output-dir", os.path.join(folder, "out")])
        return {one["name"]: np.load(one["path"]) for one in answer["outputs"]}


def evaluate(config: Path, artifact: Path, inputs: Arrays, *,
             labels: Optional[np.ndarray] = None, metrics: Sequence[str] = ()) -> Dict[str, Any]:
    """Compares an artifact with its config's model in float on `inputs`: npuc evaluate's report.
    metrics: "cosine", "sqnr", "topk:1" and others; labels: one for each item."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = _input_options(inputs, folder)
        if labels is not None:
            path = os.path.join(folder, "labels.npy")
            np.save(path, labels)
            arguments += ["--label", path]
        for metric in metrics:
            arguments += ["--metric", metric]
        return _report([programs.find("npuc"), "evaluate", os.fspath(config), os.fspath(artifact),
                        *arguments])


def _input_options(inputs: Arrays, folder: str) -> List[str]:
    named = inputs if isinstance(inputs, Mapping) else {"": inputs}
    options = []
    for number, (name, array) in enumerate(named.items()):
        path = os.path.join(folder, f"input{number}.npy")
        np.save(path, array)
        options += ["--input", f"{name}={path}" if name else path]
    return options


def _report(command: Sequence[str]) -> Dict[str, Any]:
    """The one object that npuc says."""
    return programs.run(command)[-1]
