"""Files that are no Caffe model, and text that is none; two files the wrong way round."""

import recipes  # noqa: F401  (finds the models folder)
import caffemodel

TEXT = (b'input: "x" input_dim: 1 input_dim: 2 input_dim: 4 input_dim: 4\n'
        b'layer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n')
CONFIG = "CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: CAFFE\nOUTPUT_FILE: net.h\n"


def config(model, text):
    return (CONFIG + f"MODEL_FILE: {model}\nPROTOTXT: {text}\n").encode()


def files():
    return {"net.caffemodel": caffemodel.weights({}), "net.prototxt": TEXT,
            "bad.prototxt": TEXT.replace(b'bottom: "x"', b"bottom 'x'"),
            "junk.caffemodel": b"\xff" * 9,
            "swapped.yaml": config("net.prototxt", "net.caffemodel"),
            "junk.yaml": config("junk.caffemodel", "net.prototxt"),
            "text.yaml": config("net.caffemodel", "bad.prototxt")}
