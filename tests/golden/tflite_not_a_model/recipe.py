"""A zip archive where a TFLite model should be."""


def files():
    return {"model.tflite": b"PK\x03\x04 a zip archive"}
