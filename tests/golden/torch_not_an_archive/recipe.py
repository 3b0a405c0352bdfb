"""Files that are no TorchScript archive."""

import torch_recipes as t


def files():
    return t.cases({"state_dict": t.other_zip("net/data.pkl", "net/version", "net/data/0"),
                    "old_torch": t.other_zip("net/model.json", "net/tensors/0", "net/code/net.py"),
                    "pickle": b"\x80\x02}q\x00.", "onnx": b"\x08\x07\x12\x07pytorch",
                    "no_module": t.archive(b"\x80\x02}.")})
