"""TorchScript archives for golden cases: pickles written instruction by instruction, zip files
whose headers can lie."""

import io
import struct
import zipfile

CODE = b"""class Net(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    return torch.add(x, self.w)
"""


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value):
    return b"K" + bytes([value])


def numbers(values):
    return b"(" + b"".join(number(v) for v in values) + b"t"


def tensor(elements=4, sizes=(4,), strides=(1,), key="0"):
    """torch._utils._rebuild_tensor_v2 of floats."""
    storage = (b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") +
               number(elements) + b"tQ")
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + numbers(sizes) +
            numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR")


def module(attribute):
    """data.pkl of a module with the attribute w."""
    return (b"\x80\x02c__torch__\nNet\n)\x81}(" + text("w") + attribute + text("training") +
            b"\x89ub.")


def archive(data=None, storage=b"\0\0\x80\x3f" * 4, code=CODE, drop=(), twice=()):
    """The bytes of net.pt: x + w, unless the arguments make it something else."""
    entries = {"data.pkl": module(tensor()) if data is None else data, "data/0": storage,
               "code/__torch__.py": code, "constants.pkl": b"\x80\x02).", "version": b"3\n"}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in entries.items():
            for _ in range(2 if name in twice else 1):
                if name not in drop:
                    z.writestr(zipfile.ZipInfo("net/" + name), content)
    return out.getvalue()


def other_zip(*names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name in names:
            z.writestr(zipfile.ZipInfo(name), b"x")
    return out.getvalue()


def configs(names):
    """A config for each model file, and the commands that compile them."""
    return {f"{name}.yaml": (f"CORENAME: GRUS\nFRAMEWORK: PT\nMODEL_FILE: {name}.pt\n"
                             "OUTPUT_FILE: model.h\nINPUT_OPS: {0: [1, 4]}\n").encode()
            for name in names}


def cases(archives):
    """files() of a recipe: archives by name, a config for each."""
    return {**{f"{name}.pt": data for name, data in archives.items()}, **configs(archives)}
