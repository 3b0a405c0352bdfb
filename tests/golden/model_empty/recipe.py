"""A model file of no bytes."""


def files():
    return {"model.pb": b""}
