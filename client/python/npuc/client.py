"""Jobs on an npucd, by npuc-remote: it retries, goes on after a restart of the server, and knows
which files a config names."""

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from npuc import programs, progress as shown, results

Path = Union[str, "os.PathLike[str]"]


def _options(names: Mapping[str, Any]) -> List[str]:
    """{"no_cache": True, "priority": 3} as --no-cache --priority=3; without those that are None."""
    arguments = []
    for name, value in names.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            arguments.append(f"{option}={value}")
    return arguments


class Client:
    """A server and how to reach it. What is not given comes from npuc-remote's profile and
    environment (NPUC_SERVER, NPUC_TOKEN_FILE, NPUC_CA, NPUC_CERT, NPUC_KEY).

    server: HOST:PORT, or several of one cluster, separated by commas. token_file, ca, cert, key:
    paths. tls: trust the system's authorities. patience: how long to wait for a server that went
    away, "60s". Calls raise results.Unreachable, Refused, JobFailed or Error.
    """

    def __init__(self, server: Optional[str] = None, *, token_file: Optional[Path] = None,
                 ca: Optional[Path] = None, cert: Optional[Path] = None,
                 key: Optional[Path] = None, tls: bool = False, patience: Optional[str] = None):
        self._command = [programs.find("npuc-remote"), *_options({
            "server": server, "token_file": token_file, "ca": ca, "cert": cert, "key": key,
            "tls": tls, "patience": patience})]

    def _run(self, *arguments: str) -> List[Dict[str, Any]]:
        return programs.run([*self._command, *arguments])

    def _one(self, *arguments: str) -> Dict[str, Any]:
        return self._run(*arguments)[-1]

    def compile(self, config: Path, output: Path, *, priority: Optional[int] = None,
                timeout: Optional[str] = None, no_cache: bool = False,
                labels: Optional[Mapping[str, str]] = None,
                progress: shown.Choice = "auto") -> results.Job:
        """Uploads, compiles, follows, and fetches the artifacts into the folder `output`. JobFailed
        where the job did not succeed."""
        arguments = ["compile", os.fspath(config), "--output", os.fspath(output),
                     *self._of_job(priority, timeout, no_cache, labels)]
        with shown.Shown(progress) as show:
            job = programs.run([*self._command, *arguments], show)[-1]
        return results.Job.of(job, os.fspath(output))

    def submit(self, config: Path, *, priority: Optional[int] = None,
               timeout: Optional[str] = None, no_cache: bool = False,
               labels: Optional[Mapping[str, str]] = None) -> results.Job:
        """Uploads and submits, and does not wait."""
        return results.Job.of(self._one("submit", os.fspath(config),
                                        *self._of_job(priority, timeout, no_cache, labels)))

    @staticmethod
    def _of_job(priority: Optional[int], timeout: Optional[str], no_cache: bool,
                labels: Optional[Mapping[str, str]]) -> List[str]:
        named = [f"--label={name}={value}" for name, value in (labels or {}).items()]
        return _options({"priority": priority, "timeout": timeout, "no_cache": no_cache}) + named

    def watch(self, job: str) -> Iterator[Dict[str, Any]]:
        """The job's events from the first to its end, as they happen; each is npuc-remote's object.
        JobFailed behind the last one where the job did not succeed."""
        return programs.stream([*self._command, "watch", job])

    def status(self, job: str) -> results.Job:
        """The job as it is now."""
        return results.Job.of(self._one("status", job))

    def fetch(self, job: str, output: Path) -> results.Job:
        """Downloads the artifacts of a job that succeeded, checked, into the folder `output`."""
        return results.Job.of(self._one("fetch", job, "--output", os.fspath(output)),
                              os.fspath(output))

    def log(self, job: str) -> List[str]:
        """The lines of the job's log; of one that has not ended, to its end."""
        return [event["text"] for event in self._run("logs", job) if "text" in event]

    def cancel(self, job: str, reason: Optional[str] = None) -> results.Job:
        """Cancels a job; where it has ended, nothing changes."""
        return results.Job.of(self._one("cancel", job, *_options({"reason": reason})))

    def retry(self, job: str) -> results.Job:
        """Submits a job's config and files again: a new job."""
        return results.Job.of(self._one("retry", job))

    def jobs(self, *filters: str) -> Iterator[results.Job]:
        """The jobs, the newest first. filters: options of `npuc-remote list`, "--state=failed"."""
        return map(results.Job.of, programs.stream([*self._command, "list", *filters]))

    def server(self) -> Dict[str, Any]:
        """Version, cores, limits, load and readiness."""
        return self._one("server")

    def caller(self) -> Dict[str, Any]:
        """Identity, tenant and rights that this client has there."""
        return self._one("whoami")

    def usage(self, filters: Sequence[str] = ()) -> List[Dict[str, Any]]:
        """What tenants used, by day."""
        return self._run("usage", *filters)
