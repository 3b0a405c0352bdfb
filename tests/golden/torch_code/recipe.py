"""Code that cannot be parsed, names what is not there, decides by data, raises, keeps state, is
quantized, returns no tensor, is in training or never ends."""

import torch_recipes as t

BODIES = {
    "syntax": "return torch.add(x, = 1)",
    "unknown_name": "return self.nothing",
    "data_dependent": "if bool(torch.gt(torch.sum(x), 0)):\n  y = x\nelse:\n"
                      "  y = torch.neg(x)\nreturn y",
    "raises": "if torch.ne(torch.dim(x), 4):\n"
              "  _0 = torch.format(\"expected 4D input (got {}D input)\", torch.dim(x))\n"
              "  ops.prim.RaiseException(_0, \"builtins.ValueError\")\nelse:\n  pass\nreturn x",
    "writes_state": "self.w = torch.cat([self.w, torch.reshape(x, [4])], 0)\nreturn x",
    "quantized": "return ops.quantized.conv3d(x, self.w, 1., 0)",
    "no_tensor": "_0, y = torch.max(x, 1)\nreturn (3, y)",
    "unsupported": "y = torch.fft_rfft(x)\nz = torch.where(x)\n"
                   "dead = torch.atan2(x, x)\nreturn (y, z, torch.view(x, [7]))",
    "in_training": "return torch.dropout(x, 0.5, True)",
    "endless": "y = x\nwhile True:\n  y = torch.relu(x)\nreturn y",
}


def code(body):
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return ("class Net(Module):\n  w : Tensor\n  def forward(self: __torch__.Net,\n"
            f"    x: Tensor) -> Tensor:\n{lines}").encode()


def files():
    return t.cases({name: t.archive(code=code(body)) for name, body in BODIES.items()})
