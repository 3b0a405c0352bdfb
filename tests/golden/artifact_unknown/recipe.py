"""A binary file that is no artifact."""


def files():
    return {"other.bin": bytes(range(64))}
