"""TorchScript archives that others published, in the shared folder: their inputs and outputs are
recorded, the archives themselves are not."""

import os

from oracle import Case

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("NPUC_SHARED", os.path.join(ROOT, "..", "shared"))


def path_of(case):
    return os.path.join(SHARED, "models", "torchscript", case.published)


def _case(name, path, *inputs, **options):
    return Case(f"published_{name}", None, list(inputs), published=path, items=4,
                variants=("published",), **options)


def cases():
    pair = ((1, 6), (1, 6))
    return [
        _case("foo1", "tch_rs/foo1.pt", *pair),
        _case("foo2", "tch_rs/foo2.pt", *pair),
        _case("foo3", "tch_rs/foo3.pt", (4, 3)),
        _case("func", "torchsharp/func.script.pt", *pair),
        _case("l1000_100_10", "torchsharp/l1000_100_10.script.pt", (1, 1000)),
        _case("linrelu", "torchsharp/linrelu.script.pt", (1, 10)),
        _case("list_out", "torchsharp/list_out.pt", *pair),
        _case("scripted", "torchsharp/scripted.script.pt", (6,)),
        _case("tuple_out", "torchsharp/tuple_out.pt", *pair),
        # A sampling rate as int argument, a state kept in attributes, reflected padding.
        _case("silero_vad", "silero_vad.jit", (1, 512), expect="refused", rule="sr"),
    ]
