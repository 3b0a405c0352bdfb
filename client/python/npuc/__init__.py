"""npuc: compile small neural networks for NPUs, on a server or on this machine.

    import npuc
    job = npuc.Client("farm:8470").compile("model.yaml", "out")
    y = npuc.run(job.artifact(".npuc").path, x)
"""

from AIPUBuilder.Profiler import get_profiler_data
from npuc.client import Client
from npuc.local import compile, evaluate, inspect, run  # pylint: disable=redefined-builtin
from npuc.results import Artifact, Diagnostic, Error, Job, JobFailed, Refused, Unreachable

__all__ = ["Artifact", "Client", "Diagnostic", "Error", "Job", "JobFailed", "Refused",
           "Unreachable", "compile", "evaluate", "get_profiler_data", "inspect", "run"]
