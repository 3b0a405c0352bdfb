"""What npuc and npuc-remote answer, as types. Each is made of one JSON object of theirs; `fields`
has all of it, also what a newer program says."""

import dataclasses
from typing import Any, Dict, List, Mapping, Optional


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One problem, warning or note: where it is, why, what is allowed, what to do."""
    id: str
    severity: str  # ERROR, WARNING, NOTE
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    node: str = ""
    op: str = ""
    limit_source: str = ""
    fix: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Diagnostic":
        names = {field.name for field in dataclasses.fields(cls)}
        known = {name: value for name, value in fields.items() if name in names}
        return cls(**{**known, "severity": fields["severity"].upper()})

    def __str__(self) -> str:
        place = self.file + (f":{self.line}:{self.column}" if self.line else "")
        node = f" node '{self.node}'" + (f" ({self.op})" if self.op else "") if self.node else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{place}:{node} {self.message}{fix} [{self.id}]"


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A file that a compile made. `path` is where it lies here; None: it was not fetched."""
    name: str
    size: int
    sha256: str
    path: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as the server has it."""
    id: str
    state: str  # QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, EXPIRED
    cache_hit: bool
    artifacts: List[Artifact]
    diagnostics: List[Diagnostic]
    reason: str  # why it failed, was cancelled or expired
    fields: Dict[str, Any] = dataclasses.field(repr=False, default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, Any], folder: Optional[str] = None) -> "Job":
        def artifact(one: Mapping[str, Any]) -> Artifact:
            path = f"{folder}/{one['name']}" if folder is not None else None
            return Artifact(one["name"], one["size"], one["sha256"], path)
        return cls(fields["job"], fields["state"], fields["cache_hit"],
                   [artifact(one) for one in fields["artifacts"]],
                   [Diagnostic.of(one) for one in fields["diagnostics"]], fields["reason"],
                   dict(fields))

    @property
    def ended(self) -> bool:
        return self.state not in ("QUEUED", "RUNNING")

    def artifact(self, ending: str) -> Artifact:
        """The artifact whose name ends so: ".h", ".npuc". KeyError: there is none."""
        for one in self.artifacts:
            if one.name.endswith(ending):
                return one
        raise KeyError(f"job {self.id} has no artifact that ends with {ending}")


class Error(Exception):
    """A call that failed. `exit_code` is the program's; `diagnostics` has every problem."""

    def __init__(self, message: str, exit_code: int, reason: str = "",
                 diagnostics: Optional[List[Diagnostic]] = None):
        self.message, self.exit_code, self.reason = message, exit_code, reason
        self.diagnostics = diagnostics or []
        lines = [str(one) for one in self.diagnostics if one.severity == "ERROR"]
        super().__init__("\n".join([message, *lines]))


class JobFailed(Error):
    """The job ended, and not with SUCCEEDED; `job` has its diagnostics."""

    def __init__(self, job: Job, exit_code: int):
        self.job = job
        reason = f": {job.reason}" if job.reason else ""
        super().__init__(f"job {job.id} is {job.state}{reason}", exit_code, job.state,
                         job.diagnostics)


class Refused(Error):
    """The server or the compiler refused: a bad config, a quota, no right."""


class Unreachable(Error):
    """No server answered for as long as `patience`."""


# Exit codes of npuc-remote.
FAILED, WRONG_USAGE, REFUSED, UNREACHABLE, CANCELLED = 1, 2, 3, 4, 5
