"""The real nets of shared/suites as mutate.py damages them: Caffe, Darknet, PaddlePaddle, MXNet.

A net of these frameworks is two files; a mutant has one of them damaged. Inputs are small where the
net takes any size, so that a mutant costs a second.
"""

import collections
import glob
import os
import zipfile

# framework; files: the config's key -> bytes, MODEL_FILE first; inputs: name -> shape; outputs:
# OUTPUT_OPS, or None for the net's own.
Net = collections.namedtuple("Net", "name framework files inputs outputs", defaults=(None,))
CAFFE = {"mtcnn/det1": ("data", [1, 3, 24, 24]), "mtcnn/det2": ("data", [1, 3, 24, 24]),
         "ulfd/slim-320": ("input", [1, 3, 96, 128]),
         "retinaface/retinaface_mnet25": ("data", [1, 3, 64, 64]),
         "wechat_qrcode/sr": ("data", [1, 1, 24, 24])}
DARKNET = ("yolo-fastest", "yolo-fastest-1.1")


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def caffe(root):
    for name, (blob, shape) in CAFFE.items():
        yield Net(name, "CAFFE", {"MODEL_FILE": read(root, name + ".caffemodel"),
                                  "PROTOTXT": read(root, name + ".prototxt")}, {blob: shape})


def darknet(root):
    for name in DARKNET:
        stem = os.path.join(root, "yolo_fastest", name)
        yield Net(name, "DARKNET", {"MODEL_FILE": read(stem + ".cfg"),
                                    "WEIGHTS_FILE": read(stem + ".weights")},
                  {"input": [1, 3, 64, 64]})


def paddle(root, scratch):
    folder = os.path.join(root, "mnist_mlp")
    path = os.path.join(scratch, "weights.zip")
    with zipfile.ZipFile(path, "w") as archive:  # stored, so that damage reaches what is in it
        for weight in sorted(glob.glob(os.path.join(folder, "fc_*"))):
            archive.write(weight, os.path.basename(weight))
    yield Net("mnist_mlp", "PADDLE", {"MODEL_FILE": read(folder, "__model__"),
                                      "WEIGHTS_FILE": read(path)}, {"img": [1, 1, 28, 28]})
    folder = os.path.join(root, "ppocr_det")
    yield Net("ppocr_det", "PADDLE", {"MODEL_FILE": read(folder, "inference.pdmodel"),
                                      "WEIGHTS_FILE": read(folder, "inference.pdiparams")},
              {"x": [1, 3, 64, 64]})


def mxnet(root):
    for name in ("det1", "det2"):
        stem = os.path.join(root, "mtcnn", name)
        yield Net(name, "MXNET", {"MODEL_FILE": read(stem + "-symbol.json"),
                                  "WEIGHTS_FILE": read(stem + "-0001.params")},
                  {"data": [1, 3, 24, 24]})


def nets(suites, scratch):
    return [*caffe(os.path.join(suites, "caffe")), *darknet(os.path.join(suites, "darknet")),
            *paddle(os.path.join(suites, "paddle"), scratch),
            *mxnet(os.path.join(suites, "mxnet"))]
