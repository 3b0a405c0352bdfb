"""Darknet nets with a word about them: a layer that decodes boxes, a key that nothing reads, more
weights than layers, a layer that two programs store differently."""

import struct

CONFIG = "CORENAME: GRUS\nFRAMEWORK: DARKNET\nMODEL_FILE: {}\nOUTPUT_FILE: model.h\n"
NET = "[net]\nheight=4\nwidth=4\nchannels=1\n"


def files():
    head = struct.pack("<3iq", 0, 2, 0, 0)
    nets = {
        "yolo": (NET + "[convolutional]\nfilters=12\nactivation=linear\nstrid=2\n[yolo]\nmask=0,1\n"
                 "anchors=10,14, 23,27, 37,58\nclasses=1\nnum=3\n", 25),
        "gru": ("[net]\ninputs=1\n[gru]\noutput=1\n", 12),
    }
    found = {}
    for name, (text, weights) in nets.items():
        found[f"{name}.cfg"] = text.encode()
        found[f"{name}.weights"] = head + struct.pack(f"<{weights}f", *[0.5] * weights)
        found[f"{name}.yaml"] = CONFIG.format(f"{name}.cfg").encode()
    return found
