"""ONNX files without the onnx package: reads what the suites need, writes small models.

Only protobuf's wire format is handled; field numbers are those of onnx.proto.
"""

import struct

import numpy as np

TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32,
         7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
         16: "bfloat16"}
NUMBERS = {np.dtype(t): n for n, t in TYPES.items() if t != "bfloat16"}


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field; a value is bytes, or an int for varints."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            if kind == 2:
                size, at = _varint(data, at)
            else:
                size = {1: 8, 5: 4}[kind]
            value = data[at:at + size]
            at += size
        yield tag >> 3, value


def _numbers(values, layout):
    """A repeated field that may be packed."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
        elif layout:
            found += struct.unpack(f"<{len(value) // struct.calcsize(layout)}{layout}", value)
        else:
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                found.append(number)
    return found


def tensor(data):
    """A TensorProto as (name, array); the array is None where its type has none in NumPy."""
    by_number = {}
    for number, value in fields(data):
        by_number.setdefault(number, []).append(value)
    name = by_number.get(8, [b""])[0].decode()
    dtype = TYPES.get(by_number.get(2, [0])[0])
    dims = _numbers(by_number.get(1, []), "")
    if dtype is None:
        return name, None
    raw = by_number.get(9, [b""])[0]
    if dtype == "bfloat16":
        bits = (np.frombuffer(raw, np.uint16) if raw
                else np.array(_numbers(by_number.get(5, []), ""), np.uint16))
        values = (bits.astype(np.uint32) << 16).view(np.float32)
    elif raw:
        values = np.frombuffer(raw, dtype)
    else:
        number, layout = {np.float32: (4, "f"), np.float64: (10, "d"), np.int64: (7, ""),
                          np.uint32: (11, ""), np.uint64: (11, "")}.get(dtype, (5, ""))
        items = _numbers(by_number.get(number, []), layout)
        if dtype == np.float16:
            values = np.array(items, np.uint16).view(np.float16)
        else:
            values = np.array([i - 2**64 if i >= 2**63 and np.issubdtype(dtype, np.signedinteger)
                               else i for i in items]).astype(dtype)
    return name, values.reshape(dims)


class Model:
    """What a suite asks of a model file."""

    def __init__(self, data):
        self.data = data
        self.graph = next(value for number, value in fields(data) if number == 7)
        parts = list(fields(self.graph))
        initializers = {tensor_name(v) for n, v in parts if n == 5}
        self.inputs = [name(v, 1) for n, v in parts if n == 11 and name(v, 1) not in initializers]
        self.outputs = [name(v, 1) for n, v in parts if n == 12]
        self.types = {name(v, 1): _element_type(v) for n, v in parts if n in (11, 12)}


def _element_type(value):
    """The wire number of a ValueInfoProto's elements, 0 where it is no tensor."""
    for wanted in (2, 1, 1):
        value = next((v for n, v in fields(value) if n == wanted), None)
        if not isinstance(value, bytes):
            return value or 0
    return 0


def name(data, wanted):
    return next((v.decode() for n, v in fields(data) if n == wanted), "")


def tensor_name(data):
    return name(data, 8)


def _encode(value):
    out = bytearray()
    value &= 2**64 - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: bytes and text length-delimited, integers as varints, floats as four bytes."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return _encode(number << 3 | 2) + _encode(len(value)) + value
    if isinstance(value, float):
        return _encode(number << 3 | 5) + struct.pack("<f", value)
    return _encode(number << 3) + _encode(int(value))


def tensor_proto(tensor_name_, array):
    array = np.asarray(array)
    out = b"".join(field(1, dim) for dim in array.shape)
    out += field(2, NUMBERS[array.dtype]) + field(8, tensor_name_)
    return out + field(9, np.ascontiguousarray(array).tobytes())


def with_initializers(data, arrays):
    """The model with constants for some of its inputs: messages merge when they are joined."""
    added = b"".join(field(5, tensor_proto(n, a)) for n, a in arrays.items())
    return data + field(7, added) if arrays else data


def value_info(value_name, dims, data_type=1):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, value_name) + field(2, field(1, field(1, data_type) + field(2, shape)))


def attribute(attribute_name, value):
    out = field(1, attribute_name)
    if isinstance(value, bool) or isinstance(value, int):
        return out + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return out + field(2, value) + field(20, 1)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value, np.ndarray):
        return out + field(5, tensor_proto("", value)) + field(20, 4)
    if isinstance(value, bytes):
        return out + field(6, value) + field(20, 5)
    if value and isinstance(value[0], float):
        return out + b"".join(field(7, v) for v in value) + field(20, 6)
    if value and isinstance(value[0], str):
        return out + b"".join(field(9, v) for v in value) + field(20, 8)
    return out + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
    out += field(3, outputs[0]) + field(4, op)
    out += b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
    return out + (field(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, initializers=None):
    """A graph, which an attribute may hold. inputs and outputs: (name, dims[, data type])."""
    out = b"".join(field(1, n) for n in nodes) + field(2, "g")
    out += b"".join(field(5, tensor_proto(n, a)) for n, a in (initializers or {}).items())
    out += b"".join(field(11, value_info(*i)) for i in inputs)
    return out + b"".join(field(12, value_info(*o)) for o in outputs)


def model(nodes, inputs, outputs, initializers=None, opset=18, domains=None):
    """A whole model of such a graph; `domains`: the versions of further operator sets by name."""
    whole = graph(nodes, inputs, outputs, initializers)
    out = field(1, 8) + field(7, whole) + field(8, field(1, "") + field(2, opset))
    return out + b"".join(field(8, field(1, d) + field(2, v)) for d, v in (domains or {}).items())
