#!/usr/bin/python3
"""graphdef.py against bytes worked out by hand, and against itself: what it writes it reads."""

import os
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import graphdef  # noqa: E402


def const_read_back(array, encoding):
    graph = graphdef.Graph()
    graph.const("c", array, encoding)
    return graphdef.read_graph(graph.serialize())[0].tensor()


class GraphDefTest(unittest.TestCase):
    def test_known_bytes(self):
        """Bytes worked out by hand from the protobuf encoding."""
        graph = graphdef.Graph(producer=27)
        graph.node("Relu", "y", ["x"], {"T": graphdef.DType(np.float32), "n": -1, "b": True})
        self.assertEqual(graph.serialize().hex(), "".join([
            "0a30", "0a0179", "120452656c75", "1a0178",  # node: name, op, input
            "2a07", "0a0154", "12023001",  # T: type 1
            "2a07", "0a0162", "12022801",  # b: true
            "2a10", "0a016e", "120b18ffffffffffffffffff01",  # n: -1 takes ten bytes
            "2202081b"]))  # versions: producer 27

    def test_splat_bytes(self):
        tensor = graphdef.tensor_bytes(graphdef.Tensor(np.full([2, 3], 1.0, np.float32), "splat"))
        self.assertEqual(tensor.hex(), "0801" "1208" "12020802" "12020803" "2d0000803f")

    def test_tensors_read_back(self):
        rng = np.random.RandomState(1)
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.int8,
                      np.int16, np.uint16, np.bool_, np.uint32, np.uint64):
            for shape in ([], [1], [3], [2, 3], [0, 4], [1, 1, 5]):
                array = np.asarray(rng.randint(-90, 90, shape)).astype(dtype)
                for encoding in ("content", "list", "packed", "tail"):
                    got = const_read_back(array, encoding)
                    self.assertEqual(got.dtype, array.dtype)
                    np.testing.assert_array_equal(got, array, f"{dtype} {shape} {encoding}")
                if array.size:
                    same = np.full(shape, array.reshape(-1)[0], dtype)
                    np.testing.assert_array_equal(const_read_back(same, "splat"), same)

    def test_tail_is_shorter(self):
        array = np.array([1, 2] + [3] * 50, np.float32)
        graph = graphdef.Graph()
        graph.const("c", array, "tail")
        self.assertLess(len(graph.serialize()), 4 * len(array))
        np.testing.assert_array_equal(graphdef.read_graph(graph.serialize())[0].tensor(), array)

    def test_wrong_calls_are_refused(self):
        with self.assertRaises(ValueError):
            const_read_back(np.array([1, 2], np.float32), "splat")
        with self.assertRaises(ValueError):
            const_read_back(np.array([1, 2], np.float32), "zip")
        with self.assertRaises(TypeError):
            graphdef.attr_bytes(object())
        graph = graphdef.Graph()
        graph.const("c", np.arange(9, dtype=np.float32))
        with self.assertRaises((ValueError, IndexError)):
            graphdef.read_graph(graph.serialize()[:-9])

    def test_nodes_read_back(self):
        graph = graphdef.Graph()
        graph.placeholder("x", [-1, 4])
        read = graph.variable("w", np.ones([4, 2], np.float32))
        graph.node("MatMul", "y", ["x", read, "^x"], {"T": graphdef.DType(np.float32)})
        nodes = graphdef.read_graph(graph.serialize())
        self.assertEqual([(n.op, n.name, n.inputs) for n in nodes],
                         [("Placeholder", "x", []), ("Const", "w", []),
                          ("Identity", "w/read", ["w"]), ("MatMul", "y", ["x", "w/read", "^x"])])
        self.assertEqual([n.dtype() for n in nodes], [1, 1, None, None])
        self.assertEqual(nodes[3].dtype("T"), 1)


if __name__ == "__main__":
    unittest.main()
