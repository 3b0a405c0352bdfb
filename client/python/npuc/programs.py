"""Runs npuc and npuc-remote, which do the work: this package adds types, NumPy and progress."""

import json
import os
import shutil
import subprocess
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from npuc import results

Progress = Optional[Callable[[str], None]]


def find(name: str) -> str:
    """The program's path: in NPUC_BIN_DIR where that is set, else in PATH. FileNotFoundError."""
    folder = os.environ.get("NPUC_BIN_DIR")
    path = os.path.join(folder, name) if folder else shutil.which(name)
    if path is None or not os.path.exists(path):
        raise FileNotFoundError(
            f"there is no {name} in {folder or 'PATH'}; install its package, or set NPUC_BIN_DIR "
            "to its folder")
    return path


def stream(command: Sequence[str], progress: Progress = None) -> Iterator[Dict[str, Any]]:
    """Runs a program with --json and gives its objects as they come. Lines of standard error go to
    `progress`. Ends the program where the caller stops reading. Raises what `error_of` says."""
    with subprocess.Popen([*command, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, encoding="utf-8",
                          errors="replace") as process:
        said: List[str] = []

        def listen() -> None:
            for line in process.stderr:
                said.append(line.rstrip("\n"))
                if progress is not None:
                    progress(said[-1])

        listener = threading.Thread(target=listen)
        listener.start()
        last: Mapping[str, Any] = {}
        try:
            for line in process.stdout:
                last = json.loads(line)
                if "error" not in last:
                    yield dict(last)
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
            listener.join()
    if process.returncode != 0:
        raise error_of(process.returncode, last, said)


def run(command: Sequence[str], progress: Progress = None) -> List[Dict[str, Any]]:
    """All objects of a program."""
    return list(stream(command, progress))


def error_of(exit_code: int, last: Mapping[str, Any], said: List[str]) -> results.Error:
    """The exception for a program that failed; `last` is its last object."""
    if "job" in last and "state" in last:
        return results.JobFailed(results.Job.of(last), exit_code)
    error = last.get("error", {})
    message = error.get("message") or (said[-1] if said else f"the program ended with {exit_code}")
    diagnostics = [results.Diagnostic.of(one) for one in last.get("diagnostics", [])]
    kind = {results.REFUSED: results.Refused,
            results.UNREACHABLE: results.Unreachable}.get(exit_code, results.Error)
    return kind(message, exit_code, error.get("reason", ""), diagnostics)
