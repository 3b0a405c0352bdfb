"""A weight whose data lies in another file; MODEL_BIN names it, or another one."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import field, model, node

LOCATION = field(13, field(1, "location") + field(2, "weights.bin"))
WEIGHT = field(1, 4) + field(2, 1) + field(8, "w") + LOCATION + field(14, 1)
CONFIG = "CORENAME: GRUS\nFRAMEWORK: ONNX\nMODEL_FILE: model.onnx\nOUTPUT_FILE: model.h\n"


def files():
    small = model([node("Add", ["x", "w"], ["y"])], [("x", [1, 4])], [("y", [1, 4])])
    return {"model.onnx": small + field(7, field(5, WEIGHT)), "weights.bin": bytes(16),
            "other.bin": bytes(16), "good.yaml": (CONFIG + "MODEL_BIN: weights.bin\n").encode(),
            "wrong.yaml": (CONFIG + "MODEL_BIN: other.bin\n").encode()}
