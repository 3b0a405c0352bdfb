"""MXNet's files: JSON that is no symbol, parameters cut short, a net that ends with boxes."""

import json
import struct

NODES = [
    {"op": "null", "name": "data", "inputs": []},
    {"op": "null", "name": "fc_weight", "inputs": []},
    {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "4", "no_bias": "True"},
     "inputs": [[0, 0, 0], [1, 0, 0]]},
    {"op": "null", "name": "anchors", "inputs": []},
    {"op": "_contrib_MultiBoxDetection", "name": "boxes", "inputs": [[2, 0, 0], [3, 0, 0]]},
]


def params():
    """Weight [4, 2] and anchors [1, 4], NDArrays of version 2."""
    arrays = {"arg:fc_weight": (4, 2), "arg:anchors": (1, 4)}
    out = struct.pack("<QQQ", 0x112, 0, len(arrays))
    for shape in arrays.values():
        count = shape[0] * shape[1]
        out += struct.pack("<IiI2qiii", 0xF993FAC9, 0, 2, *shape, 1, 0, 0)
        out += struct.pack(f"<{count}f", *[1.0] * count)
    out += struct.pack("<Q", len(arrays))
    for name in arrays:
        out += struct.pack("<Q", len(name)) + name.encode()
    return out


def config(model, weights):
    return (f"CORENAME: GRUS\nFRAMEWORK: MXNET\nMODEL_FILE: {model}\nWEIGHTS_FILE: {weights}\n"
            "INPUT_OPS: {data: [1, 2]}\nOUTPUT_FILE: model.h\n").encode()


def files():
    return {
        "net-symbol.json": json.dumps({"nodes": NODES, "heads": [[4, 0, 0]]}).encode(),
        "list-symbol.json": b"[1, 2]",
        "net-0000.params": params(),
        "cut-0000.params": params()[:60],
        "boxes.yaml": config("net-symbol.json", "net-0000.params"),
        "list.yaml": config("list-symbol.json", "net-0000.params"),
        "cut.yaml": config("net-symbol.json", "cut-0000.params"),
    }
