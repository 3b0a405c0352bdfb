"""A TFLite model whose root lies outside of the file."""


def files():
    return {"model.tflite": b"\xff\xff\xff\x7fTFL3" + bytes(64)}
