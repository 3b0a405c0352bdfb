"""A model file cut short."""


def files():
    return {"damaged.npuc": b"NPUCMDL1" + bytes(40)}
