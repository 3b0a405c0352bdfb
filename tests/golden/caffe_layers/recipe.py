"""Layers of forks: one without its .prototxt, one with a parameter that no rule knows, one that
decodes boxes, one without a rule."""

import recipes  # noqa: F401  (finds the models folder)
import caffemodel

CONFIG = "CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: CAFFE\nOUTPUT_FILE: net.h\n"
INPUT = 'input: "x" input_dim: 1 input_dim: 4 input_dim: 4 input_dim: 4\n'
REFUSED = INPUT + """layer { name: "pool" type: "Pooling" bottom: "x" top: "a"
        pooling_param { kernel_size: 2 odd: 1 } }
layer { name: "best" type: "ArgMax" bottom: "x" top: "b" }
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
        convolution_param { num_output: 2 kernel_size: 1 } }
"""
DETECTOR = INPUT + """layer { name: "loc" type: "AbsVal" bottom: "x" top: "loc" }
layer { name: "conf" type: "ReLU" bottom: "x" top: "conf" }
layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" top: "boxes" }
"""


def config(text):
    return f"{CONFIG}MODEL_FILE: net.caffemodel\nPROTOTXT: {text}\n".encode()


def files():
    shuffle = caffemodel.layer("s", "ShuffleChannel", ["x"], ["y"],
                               params=caffemodel.field(164, caffemodel.field(1, 2)))
    alone = caffemodel.field(3, "x") + caffemodel.field(4, [1, 4, 1, 1]) + shuffle
    return {"alone.caffemodel": alone, "net.caffemodel": caffemodel.weights({}),
            "refused.prototxt": REFUSED.encode(), "detector.prototxt": DETECTOR.encode(),
            "alone.yaml": (CONFIG + "MODEL_FILE: alone.caffemodel\n").encode(),
            "refused.yaml": config("refused.prototxt"),
            "detector.yaml": config("detector.prototxt")}
