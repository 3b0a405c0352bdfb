"""A zip archive where an ONNX model should be."""


def files():
    return {"model.onnx": b"PK\x03\x04 a zip archive"}
