"""A reversed dimension: no command walks backwards, so it takes a copy an element: too many."""

import numpy as np

import recipes


def files():
    graph = recipes.Graph()
    graph.placeholder("x", [65537, 2])
    for name, value in (("begin", 65537), ("end", -65538), ("strides", -1)):
        graph.const(name, np.array([value], np.int32))
    graph.node("StridedSlice", "y", ["x", "begin", "end", "strides"],
               {**recipes.FLOAT, "Index": recipes.DType(np.int32), "begin_mask": 0, "end_mask": 0,
                "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0})
    return {"model.pb": graph.serialize()}
