"""Writes .caffemodel files (binary NetParameter of BVLC/caffe) without protobuf: layers with blobs,
and the layers of a net in the old form (V1)."""

import struct

import numpy as np


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    """Bytes, text, an int, a float, or a list of them (one field each)."""
    if isinstance(payload, list):
        return b"".join(field(number, p) for p in payload)
    if isinstance(payload, str):
        payload = payload.encode()
    if isinstance(payload, bytes):
        return varint(number << 3 | 2) + varint(len(payload)) + payload
    if isinstance(payload, float):
        return varint(number << 3 | 5) + struct.pack("<f", payload)
    return varint(number << 3) + varint(int(payload))


def blob(array, form="shape"):
    """A BlobProto. form: "shape", "legacy" (four dimensions), "unpacked" or "double"."""
    array = np.asarray(array)
    floats = array.astype("<f4").ravel()
    if form == "legacy":
        dims = [1] * (4 - array.ndim) + list(array.shape)
        out = b"".join(field(i + 1, d) for i, d in enumerate(dims))
    else:
        out = field(7, field(1, b"".join(varint(d) for d in array.shape)))
    if form == "unpacked":
        return out + b"".join(field(5, float(v)) for v in floats)
    if form == "double":
        return out + field(8, array.astype("<f8").tobytes())
    return out + field(5, floats.tobytes())


def layer(name, type_="", bottoms=(), tops=(), blobs=(), params=b"", form="shape"):
    """A layer of today's form; `params` are further fields."""
    return field(100, field(1, name) + (field(2, type_) if type_ else b"") +
                 field(3, list(bottoms)) + field(4, list(tops)) +
                 b"".join(field(7, blob(b, form)) for b in blobs) + params)


def v1_layer(name, type_, bottoms=(), tops=(), blobs=(), params=b"", form="legacy"):
    """A V1LayerParameter; type_ is its number."""
    return field(2, field(2, list(bottoms)) + field(3, list(tops)) + field(4, name) +
                 field(5, type_) + b"".join(field(6, blob(b, form)) for b in blobs) + params)


def weights(blobs_by_layer):
    """A .caffemodel that holds blobs alone."""
    return field(1, "net") + b"".join(layer(name, blobs=blobs)
                                      for name, blobs in blobs_by_layer.items())
