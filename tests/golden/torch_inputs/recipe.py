"""Inputs that are no tensors or not declared, outputs that do not exist, transposed inputs of the
wrong rank."""

import torch_recipes as t

CODE = b"""class Net(Module):
  w : Tensor
  def forward(self: __torch__.Net,
    x: Tensor,
    pair: Tuple[Tensor, Tensor],
    rate: int,
    y: Tensor) -> Tensor:
    return torch.add(x, self.w)
"""
HEAD = "CORENAME: GRUS\nFRAMEWORK: PT\nOUTPUT_FILE: model.h\n"


def files():
    config = HEAD + "MODEL_FILE: one.pt\n"
    return {"four.pt": t.archive(code=CODE), "one.pt": t.archive(),
            "four.yaml": (HEAD + "MODEL_FILE: four.pt\nINPUT_OPS: {0: [1, 4]}\n").encode(),
            "index.yaml": (config + "INPUT_OPS: {0: [1, 4], 5: [1, 4]}\n").encode(),
            "turned.yaml": (config + "INPUT_OPS: {0: [1, 4]}\nINPUT_NCX_TO_NXC: [0]\n").encode(),
            "output.yaml": (config + "INPUT_OPS: {0: [1, 4]}\nFP16_OUT_OPS: [3]\n").encode()}
