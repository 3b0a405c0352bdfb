"""Writes and reads TensorFlow GraphDefs as protobuf wire bytes, with no TensorFlow and no protobuf.

For tests and for the sample model. The writer is deterministic: the same calls give the same bytes.
Field numbers are those of TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto
and tensor_shape.proto.

    graph = Graph()
    graph.placeholder("x", [1, 490])
    graph.const("w/weights", weights)                # float32 NumPy array
    graph.node("MatMul", "y", ["x", "w/weights"], {"T": DType(np.float32)})
    open("model.pb", "wb").write(graph.serialize())

    for node in read_graph(open("model.pb", "rb").read()): print(node.op, node.name)
"""

import struct
from dataclasses import dataclass, field

import numpy as np

# DataType of types.proto, by NumPy type.
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6,
    "int64": 9, "bool": 10, "uint16": 17, "float16": 19, "uint32": 22, "uint64": 23,
}
_NUMPY_OF_DTYPE = {number: np.dtype(name) for name, number in _DTYPES.items()}
DT_STRING = 7

# TensorProto's typed value list of each type: field number and how one value is encoded.
_VALUE_FIELDS = {
    1: (5, "float"), 2: (6, "double"), 3: (7, "varint"), 4: (7, "varint"), 5: (7, "varint"),
    6: (7, "varint"), 9: (10, "varint"), 10: (11, "varint"), 17: (7, "varint"), 19: (13, "varint"),
    22: (16, "varint"), 23: (17, "varint"),
}


class DType:
    """An attribute of type `type`: wraps a NumPy type, or a DataType number."""

    def __init__(self, dtype):
        self.number = dtype if isinstance(dtype, int) else _DTYPES[np.dtype(dtype).name]


class Shape:
    """An attribute of type `shape`: a list of sizes (-1 unknown), or None for unknown rank."""

    def __init__(self, dims):
        self.dims = dims


class Tensor:
    """An attribute of type `tensor`, in one of TensorProto's encodings.

    encoding: "content" (raw little-endian bytes), "list" (the typed value list, every value),
    "packed" (the same list, packed), "splat" (one value that stands for all; the array must hold
    equal values), "tail" (the list up to the last value that differs from its successor, which is
    then repeated, as TensorFlow compresses).
    """

    def __init__(self, array, encoding="content"):
        # Not ascontiguousarray, which makes a scalar a vector.
        self.array = np.asarray(array, order="C")
        self.encoding = encoding


def varint(value):
    """A base-128 varint; negative numbers as 64-bit two's complement, as protobuf has them."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number, wire_type):
    return varint(number << 3 | wire_type)


def field_varint(number, value):
    return tag(number, 0) + varint(int(value))


def field_bytes(number, data):
    if isinstance(data, str):
        data = data.encode("utf-8")
    return tag(number, 2) + varint(len(data)) + data


def _shape_bytes(dims):
    if dims is None:
        return field_varint(3, 1)
    return b"".join(field_bytes(2, field_varint(1, d) if d != 0 else b"") for d in dims)


def _scalar_bytes(kind, value):
    if kind == "float":
        return struct.pack("<f", value)
    if kind == "double":
        return struct.pack("<d", value)
    return varint(int(value))


def _values_bytes(dtype, values, packed):
    number, kind = _VALUE_FIELDS[dtype]
    if dtype == _DTYPES["float16"]:
        values = values.view(np.uint16)  # half_val carries the bit patterns
    encoded = [_scalar_bytes(kind, v) for v in values]
    if packed:
        return field_bytes(number, b"".join(encoded))
    wire_type = {"float": 5, "double": 1, "varint": 0}[kind]
    return b"".join(tag(number, wire_type) + e for e in encoded)


def tensor_bytes(tensor):
    """TensorProto of a Tensor."""
    array = tensor.array
    dtype = _DTYPES[array.dtype.name]
    out = field_varint(1, dtype) + field_bytes(2, _shape_bytes(array.shape))
    flat = array.reshape(-1)
    if tensor.encoding == "content":
        return out + field_bytes(4, flat.astype(flat.dtype.newbyteorder("<")).tobytes())
    if tensor.encoding == "splat":
        if not (flat == flat[0]).all():
            raise ValueError("splat encoding of unequal values")
        flat = flat[:1]
    elif tensor.encoding == "tail":
        keep = len(flat)
        while keep > 1 and flat[keep - 1] == flat[keep - 2]:
            keep -= 1
        flat = flat[:keep]
    elif tensor.encoding not in ("list", "packed"):
        raise ValueError(f"unknown encoding {tensor.encoding!r}")
    return out + _values_bytes(dtype, flat, packed=tensor.encoding == "packed")


def attr_bytes(value):
    """AttrValue of a Python value: str/bytes, bool, int, float, DType, Shape, Tensor, or a list."""
    if isinstance(value, bool):
        return field_varint(5, value)
    if isinstance(value, int):
        return field_varint(3, value)
    if isinstance(value, float):
        return tag(4, 5) + struct.pack("<f", value)
    if isinstance(value, (str, bytes)):
        return field_bytes(2, value)
    if isinstance(value, DType):
        return field_varint(6, value.number)
    if isinstance(value, Shape):
        return field_bytes(7, _shape_bytes(value.dims))
    if isinstance(value, Tensor):
        return field_bytes(8, tensor_bytes(value))
    if isinstance(value, (list, tuple)):
        # ListValue numbers its fields as AttrValue does (s 2, i 3, f 4, b 5, type 6, shape 7).
        return field_bytes(1, b"".join(attr_bytes(v) for v in value))
    raise TypeError(f"no AttrValue for {type(value).__name__}")


class Graph:
    """Builds a GraphDef node by node, in the order of the calls."""

    def __init__(self, producer=27):
        self._nodes = []
        self._producer = producer

    def node(self, op, name, inputs=(), attrs=None):
        """Appends a node and returns its name."""
        out = field_bytes(1, name) + field_bytes(2, op)
        out += b"".join(field_bytes(3, i) for i in inputs)
        for key in sorted(attrs or {}):
            out += field_bytes(5, field_bytes(1, key) + field_bytes(2, attr_bytes(attrs[key])))
        self._nodes.append(out)
        return name

    def placeholder(self, name, dims, dtype=np.float32):
        return self.node("Placeholder", name, [], {"dtype": DType(dtype), "shape": Shape(dims)})

    def const(self, name, array, encoding="content"):
        array = np.asarray(array)
        return self.node("Const", name, [],
                         {"dtype": DType(array.dtype), "value": Tensor(array, encoding)})

    def variable(self, name, array, encoding="content"):
        """A frozen variable: a Const and the Identity NAME/read that TensorFlow leaves on it."""
        self.const(name, array, encoding)
        return self.node("Identity", name + "/read", [name],
                         {"T": DType(np.asarray(array).dtype), "_class": ["loc:@" + name]})

    def serialize(self):
        nodes = b"".join(field_bytes(1, node) for node in self._nodes)
        return nodes + field_bytes(4, field_varint(1, self._producer))


@dataclass
class Node:
    """A node as read back. `attrs` holds the undecoded AttrValue bytes by name."""

    name: str = ""
    op: str = ""
    inputs: list = field(default_factory=list)
    attrs: dict = field(default_factory=dict)

    def dtype(self, attr="dtype"):
        """DataType number of a `type` attribute, or None."""
        return next((v for n, v in fields(self.attrs.get(attr, b"")) if n == 6), None)

    def tensor(self, attr="value"):
        """The NumPy array of a `tensor` attribute; None where it is absent or holds strings."""
        data = next((v for n, v in fields(self.attrs.get(attr, b"")) if n == 8), None)
        return None if data is None else read_tensor(data)


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (field number, value) of a message: int for varints, bytes for everything else."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = _read_varint(data, at)
        else:
            if wire_type == 2:
                size, at = _read_varint(data, at)
            else:
                size = {1: 8, 5: 4}[wire_type]
            value = data[at:at + size]
            if len(value) != size:
                raise ValueError("truncated message")
            at += size
        yield number, value


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _read_values(dtype, data):
    number, kind = _VALUE_FIELDS[dtype]
    values = []
    for n, value in fields(data):
        if n != number:
            continue
        if isinstance(value, int):
            values.append(_signed(value))
        elif kind == "varint":
            at = 0
            while at < len(value):
                one, at = _read_varint(value, at)
                values.append(_signed(one))
        else:
            values.extend(np.frombuffer(value, "<f4" if kind == "float" else "<f8").tolist())
    if dtype == _DTYPES["float16"]:
        return np.array(values, np.uint16).view(np.float16)
    if kind == "varint":
        return np.array(values, np.int64).astype(_NUMPY_OF_DTYPE[dtype])  # wraps to unsigned
    return np.array(values, _NUMPY_OF_DTYPE[dtype])


def read_tensor(data):
    """The array of a TensorProto's bytes, whichever way it is encoded; None for strings."""
    message = list(fields(data))
    dtype = next((v for n, v in message if n == 1), 0)
    if dtype not in _NUMPY_OF_DTYPE:
        return None
    shape_data = next((v for n, v in message if n == 2), b"")
    shape = []
    for n, dim in fields(shape_data):
        if n == 2:
            shape.append(_signed(next((v for m, v in fields(dim) if m == 1), 0)))
    count = int(np.prod(shape, dtype=np.int64))
    content = next((v for n, v in message if n == 4), b"")
    if content:
        array = np.frombuffer(content, _NUMPY_OF_DTYPE[dtype].newbyteorder("<"))
        return array.astype(_NUMPY_OF_DTYPE[dtype]).reshape(shape)
    values = _read_values(dtype, data)
    if len(values) < count:  # the last value stands for the rest; none at all means zero
        last = values[-1] if len(values) else _NUMPY_OF_DTYPE[dtype].type(0)
        values = np.concatenate([values, np.full(count - len(values), last, values.dtype)])
    return values[:count].reshape(shape)


def read_graph(data):
    """The nodes of a GraphDef, in file order."""
    nodes = []
    for number, value in fields(data):
        if number != 1:
            continue
        node = Node()
        for n, v in fields(value):
            if n == 1:
                node.name = v.decode("utf-8")
            elif n == 2:
                node.op = v.decode("utf-8")
            elif n == 3:
                node.inputs.append(v.decode("utf-8"))
            elif n == 5:
                entry = dict(fields(v))
                node.attrs[entry.get(1, b"").decode("utf-8")] = entry.get(2, b"")
        nodes.append(node)
    return nodes
