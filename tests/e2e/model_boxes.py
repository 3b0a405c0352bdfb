"""Boxes by the layers of models themselves, which a compile leaves out and keeps as settings.

    run_e2e.py model_boxes [caffe|tflite|darknet]

A net with DetectionOutput behind PriorBox layers, one with TFLite_Detection_PostProcess, one with
[yolo] heads: each is compiled without any setting, and `npuc run --postprocess NAME_boxes.yaml`
must give the boxes that the net's own framework computes. TensorFlow Lite's kernel and Darknet's
formula are here in NumPy; DetectionOutput is OpenCV's, where python3-opencv is installed, and
NumPy's. The C code that the compile writes must give the same boxes to the bit.
"""

import json
import os
import shutil
import subprocess

import numpy as np

import boxes
import caffemodel
import harness
import tflitemodel



def check_c_code(folder, out, arrays, found):
    """The emitted C, built by gcc and clang, against what npuc run gave."""
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler) is not None:
            theirs = boxes.compiled_boxes(folder, out, compiler, arrays)
            harness.check(theirs == found, f"{compiler}'s program gives other boxes")


def run_boxes(out, inputs, folder, outputs):
    """(boxes of the one item, outputs by name) by npuc run and the settings of the compile."""
    ran = os.path.join(folder, "ran")
    arguments = []
    for name, array in inputs.items():
        path = os.path.join(folder, f"{name}.npy")
        np.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    harness.npuc("run", os.path.join(out, "net.npuc"), *arguments, "--output-dir", ran,
                 "--postprocess", os.path.join(out, "net_boxes.yaml"))
    with open(os.path.join(ran, "boxes.json"), encoding="ascii") as f:
        found = [(b["class"], b["score"], tuple(b["box"])) for b in json.load(f)[0]]
    return found, [np.load(harness.output_file(ran, name)) for name in outputs]


def compile_net(folder, lines):
    config = os.path.join(folder, "net.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("\n".join(["CORENAME: GRUS", "OUTPUT_FILE: net.h", *lines]) + "\n")
    out = os.path.join(folder, "out")
    harness.npuc(config, "-o", out)
    return out


# --- Caffe ----------------------------------------------------------------------------------------

CAFFE = """input: "data" input_dim: 1 input_dim: 3 input_dim: 40 input_dim: 48
layer { name: "f" type: "Convolution" bottom: "data" top: "f"
  convolution_param { num_output: 8 kernel_size: 4 stride: 4 } }
layer { name: "g" type: "Pooling" bottom: "f" top: "g"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "fl" type: "Convolution" bottom: "f" top: "fl"
  convolution_param { num_output: 16 kernel_size: 1 } }
layer { name: "fc" type: "Convolution" bottom: "f" top: "fc"
  convolution_param { num_output: 12 kernel_size: 1 } }
layer { name: "gl" type: "Convolution" bottom: "g" top: "gl"
  convolution_param { num_output: 24 kernel_size: 1 } }
layer { name: "gc" type: "Convolution" bottom: "g" top: "gc"
  convolution_param { num_output: 18 kernel_size: 1 } }
%(permuted)s
layer { name: "loc" type: "Concat" bottom: "fl_flat" bottom: "gl_flat" top: "loc" }
layer { name: "conf" type: "Concat" bottom: "fc_flat" bottom: "gc_flat" top: "conf" }
layer { name: "fp" type: "PriorBox" bottom: "f" bottom: "data" top: "fp" prior_box_param {
  min_size: 9 max_size: 16 aspect_ratio: 2 flip: true clip: false
  variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 4 } }
layer { name: "gp" type: "PriorBox" bottom: "g" bottom: "data" top: "gp" prior_box_param {
  min_size: 16 max_size: 30 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: true
  variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }
layer { name: "prior" type: "Concat" bottom: "fp" bottom: "gp" top: "prior"
  concat_param { axis: 2 } }
layer { name: "rows" type: "Reshape" bottom: "conf" top: "rows"
  reshape_param { shape { dim: 0 dim: -1 dim: 3 } } }
layer { name: "soft" type: "Softmax" bottom: "rows" top: "soft" softmax_param { axis: 2 } }
layer { name: "flat" type: "Flatten" bottom: "soft" top: "flat" }
layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "flat" bottom: "prior" top: "out"
  detection_output_param { num_classes: 3 share_location: true background_label_id: 0
    nms_param { nms_threshold: 0.45 top_k: 1500 } code_type: CENTER_SIZE keep_top_k: 60
    confidence_threshold: 0.5 } }
"""
PERMUTED = """layer { name: "%(n)s_perm" type: "Permute" bottom: "%(n)s" top: "%(n)s_perm"
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "%(n)s_flat" type: "Flatten" bottom: "%(n)s_perm" top: "%(n)s_flat" }
"""


def caffe_settings():
    """What the layers say, for the formulas of the suite `boxes`."""
    return {"type": "SSD", "classes": 3, "image_size": [40, 48], "obj_threshold": 0.5,
            "iou_threshold": 0.45, "max_box_num": 60, "location": "loc", "confidence": "flat",
            "priors": [{"feature": [10, 12], "min_sizes": [9], "max_sizes": [16],
                        "aspect_ratios": [2], "step": (4, 4)},
                       {"feature": [5, 6], "min_sizes": [16], "max_sizes": [30],
                        "aspect_ratios": [2, 3], "clip": True}]}


def opencv_boxes(text, model, x):
    """What OpenCV answers to the whole net; None where it is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    net = cv2.dnn.readNetFromCaffe(text, model)
    net.setInput(x)
    return [(int(r[1]), float(r[2]), r[3:].astype(np.float64))
            for r in net.forward("out").reshape(-1, 7) if r[2] > 0]


def check_caffe():
    rng = np.random.default_rng(5)
    names = ("fl", "fc", "gl", "gc")
    text = CAFFE % {"permuted": "".join(PERMUTED % {"n": n} for n in names)}
    outputs = {"f": (8, 3, 4), "fl": (16, 8, 1), "fc": (12, 8, 1), "gl": (24, 8, 1),
               "gc": (18, 8, 1)}
    # Small offsets and scores far from 1, so that fp16 neither moves a box nor makes two equal.
    spread = {"f": 0.25, "l": 0.2, "c": 0.35}
    blobs = {n: [rng.normal(0, spread[n[-1]], (o, i, k, k)).astype(np.float32),
                 rng.normal(0, 0.4, o).astype(np.float32)] for n, (o, i, k) in outputs.items()}
    x = (rng.normal(0, 1, (1, 3, 40, 48)) * 0.5).astype(np.float32)
    with harness.scratch() as folder:
        files = [os.path.join(folder, "net.prototxt"), os.path.join(folder, "net.caffemodel")]
        with open(files[0], "w", encoding="ascii") as f:
            f.write(text)
        with open(files[1], "wb") as f:
            f.write(caffemodel.weights(blobs))
        out = compile_net(folder, ["FRAMEWORK: CAFFE", "MODEL_FILE: net.caffemodel",
                                   "PROTOTXT: net.prototxt"])
        found, arrays = run_boxes(out, {"data": x}, folder, ("loc", "flat"))
        check_c_code(folder, out, arrays, found)
        settings = caffe_settings()
        want = boxes.kept(settings, *boxes.ssd(settings, dict(zip(("loc", "flat"), arrays))))
        harness.check(len(want) >= 5, f"{len(want)} boxes show nothing")
        worst = boxes.check_same("DetectionOutput", found, want)
        theirs = opencv_boxes(*files, x)
        off = 0.0
        if theirs is not None:  # the net on GRUS rounds to fp16
            sure = [b for b in theirs if b[1] > 0.6]
            harness.check(len(sure) >= 3, f"{len(sure)} boxes of OpenCV show nothing")
            for which, _, box in sure:
                off = max(off, min((float(np.abs(np.array(b) - box).max())
                                    for c, _, b in found if c == which), default=np.inf))
            harness.check(off <= 0.02, f"a box of OpenCV's is {off:.3f} off")
        harness.figure(f"DetectionOutput: {len(found)} boxes, off by at most {worst:.2g}; OpenCV's "
                       f"whole net {'off by %.2g' % off if theirs is not None else 'not asked'}")


# --- TensorFlow Lite ------------------------------------------------------------------------------

ANCHORS = 60


def flexbuffer(folder, values):
    """The options of a custom operator, by flatc."""
    source = os.path.join(folder, "options.json")
    with open(source, "w", encoding="ascii") as f:
        json.dump(values, f)
    subprocess.run(["flatc", "--flexbuffers", "--binary", "-o", folder, source], check=True,
                   capture_output=True)
    with open(os.path.join(folder, "options.bin"), "rb") as f:
        return f.read()


def tflite_boxes(options, boxes_in, scores, anchors):
    """Source: tensorflow/lite/kernels/detection_postprocess.cc, both kinds of suppression."""
    moved = boxes_in.astype(np.float64)
    y = moved[:, 0] / options["y_scale"] * anchors[:, 2] + anchors[:, 0]
    x = moved[:, 1] / options["x_scale"] * anchors[:, 3] + anchors[:, 1]
    h = np.exp(moved[:, 2] / options["h_scale"]) * anchors[:, 2]
    w = np.exp(moved[:, 3] / options["w_scale"]) * anchors[:, 3]
    corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    scores = scores.astype(np.float64)[:, scores.shape[1] - options["num_classes"]:]
    settings = {"obj_threshold": options["nms_score_threshold"],
                "iou_threshold": options["nms_iou_threshold"],
                "max_box_num": options["max_detections"]}
    if options["use_regular_nms"]:
        return boxes.kept(settings, corners, scores)
    best = scores.argmax(1)
    found = boxes.kept({**settings, "max_box_num": len(anchors)}, corners, scores.max(1)[:, None])
    place = {tuple(c): i for i, c in enumerate(corners)}
    found = [(int(best[place[tuple(box)]]), score, box) for _, score, box in found]
    return found[:settings["max_box_num"]]


def check_tflite(by_class, background):
    rng = np.random.default_rng(11 + by_class)
    classes = 4
    options = {"y_scale": 10.0, "x_scale": 9.0, "h_scale": 5.0, "w_scale": 4.5,
               "num_classes": classes, "max_detections": 12, "max_classes_per_detection": 1,
               "nms_score_threshold": 0.3, "nms_iou_threshold": 0.5, "use_regular_nms": by_class,
               "detections_per_class": 20}
    anchors = rng.uniform(0.1, 0.9, (ANCHORS, 4)).astype(np.float32)
    anchors[:, 2:] = rng.uniform(0.1, 0.4, (ANCHORS, 2))
    count = classes + background
    with harness.scratch() as folder:
        net = tflitemodel.Net("boxes")
        half = net.const("half", np.array([0.5], np.float32))
        raw = []
        for name, shape in (("b", [1, ANCHORS, 4]), ("s", [1, ANCHORS, count])):
            raw.append(net.op("ADD", [net.input(name, shape), half], [shape], "AddOptions",
                              names=["out_" + name]))
        most = options["max_detections"]
        net.output(*net.op("TFLite_Detection_PostProcess", [*raw, net.const("anchors", anchors)],
                           [[1, most, 4], [1, most], [1, most], [1]],
                           custom=flexbuffer(folder, options)))
        with open(os.path.join(folder, "net.tflite"), "wb") as f:
            f.write(net.to_bytes())
        out = compile_net(folder, ["FRAMEWORK: TFLITE", "MODEL_FILE: net.tflite"])
        inputs = {"b": rng.normal(0, 1.5, (1, ANCHORS, 4)).astype(np.float32),
                  "s": rng.uniform(-0.5, 0.5, (1, ANCHORS, count)).astype(np.float32)}
        found, arrays = run_boxes(out, inputs, folder, ("out_b", "out_s"))
        check_c_code(folder, out, arrays, found)
        want = tflite_boxes(options, arrays[0].reshape(-1, 4), arrays[1].reshape(-1, count),
                            anchors.astype(np.float64))
        harness.check(len(want) >= 5, f"{len(want)} boxes show nothing")
        worst = boxes.check_same("TFLite_Detection_PostProcess", found, want)
        harness.figure(f"TFLite_Detection_PostProcess {'by class' if by_class else 'fast'}: "
                       f"{len(found)} boxes, off by at most {worst:.2g}")


# --- Darknet --------------------------------------------------------------------------------------

DARKNET = """[net]
height=32
width=64
channels=3
[convolutional]
filters=16
size=4
stride=4
activation=linear
[convolutional]
filters=21
size=1
activation=linear
[%(head)s]
%(anchors)s
classes=2
num=%(num)d
%(more)s
"""


def check_darknet(kind):
    rng = np.random.default_rng(3)
    anchors = [[9, 12], [20, 16], [31, 28]] if kind == "yolo" else [[1.5, 2], [3, 3], [5, 4]]
    text = DARKNET % {
        "head": kind, "num": 6 if kind == "yolo" else 3,
        "anchors": "anchors=" + ", ".join(f"{a},{b}" for a, b in
                                          ([[3, 3]] * 3 if kind == "yolo" else []) + anchors),
        "more": "mask=3,4,5\nscale_x_y=1.1" if kind == "yolo" else "coords=4\nsoftmax=1"}
    with harness.scratch() as folder:
        with open(os.path.join(folder, "net.cfg"), "w", encoding="ascii") as f:
            f.write(text)
        with open(os.path.join(folder, "net.weights"), "wb") as f:
            f.write(np.array([0, 2, 0, 0, 0], np.int32).tobytes())
            f.write(rng.normal(0, 0.35, 16 + 16 * 48 + 21 + 21 * 16).astype(np.float32).tobytes())
        out = compile_net(folder, ["FRAMEWORK: DARKNET", "MODEL_FILE: net.cfg",
                                   "BOXES: '{obj_threshold: 0.5, max_box_num: 60}'"])
        found, arrays = run_boxes(out, {"input": rng.random((1, 3, 32, 64), np.float32)}, folder,
                                  ("convolutional_1",))
        check_c_code(folder, out, arrays, found)
        settings = {"type": "YOLO3" if kind == "yolo" else "YOLO2", "classes": 2,
                    "image_size": [32, 64], "obj_threshold": 0.5, "iou_threshold": 0.45,
                    "max_box_num": 60, "xy_scale": 1.1 if kind == "yolo" else 1,
                    "heads": [{"output": "a", "anchors": anchors}]}
        want = boxes.kept(settings, *boxes.anchor_heads(settings, {"a": arrays[0]}))
        harness.check(len(want) >= 5, f"{len(want)} boxes show nothing")
        worst = boxes.check_same(f"[{kind}]", found, want)
        harness.figure(f"[{kind}]: {len(found)} boxes, off by at most {worst:.2g}")


def main(names):
    chosen = names or ["caffe", "tflite", "darknet"]
    if "caffe" in chosen:
        check_caffe()
    if "tflite" in chosen:
        for by_class in (False, True):
            check_tflite(by_class, background=int(by_class))
    if "darknet" in chosen:
        for kind in ("yolo", "region"):
            check_darknet(kind)
