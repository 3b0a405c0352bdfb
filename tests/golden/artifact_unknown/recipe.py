"""Files that are no artifact: a binary one, a config, an empty one."""


def files():
    return {"other.bin": bytes(range(64)), "empty.h": b"",
            "config.yaml": b"CORENAME: GRUS\nMODEL_FILE: model.pb\n"}
