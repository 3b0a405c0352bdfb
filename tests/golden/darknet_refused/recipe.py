"""Darknet nets that are refused: another kind of .cfg, lines that are no options, layers that
cannot be, weights that are not there or too few; and a net given where a config belongs."""

import struct

CONFIG = "CORENAME: GRUS\nFRAMEWORK: DARKNET\nMODEL_FILE: {}\nOUTPUT_FILE: model.h\n"
NET = "[net]\nheight=4\nwidth=4\nchannels=1\n"
DENSE = NET + "[connected]\noutput=2\nactivation=linear\n"


def files():
    head = struct.pack("<3iq", 0, 2, 0, 0)
    nets = {
        "other.cfg": "[Common]\nmode = build\n",
        "lines.cfg": NET + "[connected\noutput\n[dropout]\n",
        "layers.cfg": NET + "[conv_lstm]\noutput=2\n[convolutional]\nsize=three\nxnor=1\n"
                            "activation=lekay\n[route]\nlayers=5\n[softmax]\ntree=coco.tree\n",
        "short.cfg": DENSE,
        "alone.cfg": DENSE,
        "zip.cfg": DENSE,
    }
    found = {name: text.encode() for name, text in nets.items()}
    found["short.weights"] = head + struct.pack("<3f", 1, 2, 3)
    for name in ("other", "lines", "layers"):
        found[f"{name}.weights"] = head
    found["zip.weights"] = b"PK\x03\x04 and entries of an archive"
    for name in nets:
        stem = name.split(".")[0]
        found[f"{stem}.yaml"] = CONFIG.format(name).encode()
    return found
