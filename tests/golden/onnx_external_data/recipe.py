"""A weight whose data lies in another file."""

import recipes  # noqa: F401  (finds the models folder)
from onnxmodel import field, model, node

LOCATION = field(13, field(1, "location") + field(2, "weights.bin"))
WEIGHT = field(1, 4) + field(2, 1) + field(8, "w") + LOCATION + field(14, 1)


def files():
    small = model([node("Add", ["x", "w"], ["y"])], [("x", [1, 4])], [("y", [1, 4])])
    return {"model.onnx": small + field(7, field(5, WEIGHT))}
