"""Nets that an oracle recorded: archives with a folder a net."""

import io
import tarfile

import numpy as np


def read(path):
    """Files by name, by net, of the archive at `path`."""
    cases = {}
    with tarfile.open(path) as tar:
        for member in tar.getmembers():
            case, file = member.name.split("/")
            cases.setdefault(case, {})[file] = tar.extractfile(member).read()
    return cases


def arrays(files, kind):
    """A net's arrays KIND_0.npy, KIND_1.npy and so on."""
    found = []
    while f"{kind}_{len(found)}.npy" in files:
        found.append(np.load(io.BytesIO(files[f"{kind}_{len(found)}.npy"])))
    return found
