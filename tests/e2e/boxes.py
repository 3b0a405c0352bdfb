"""Boxes of detectors: DETECTION_POSTPROCESS on nets whose outputs are random.

    run_e2e.py boxes [TYPE...]

`npuc run --postprocess` must give the boxes of the C code that the compile writes, built by gcc and
by clang without a warning, to the bit; and those of the public formulas, here in NumPy in double
precision, within 1e-4 (an exponential of a float32 sum). Where python3-opencv is installed, its
Region and DetectionOutput layers must agree as well. Outputs are fp16, so two scores may be equal
or closer than float32 tells apart: boxes are compared as sets. With `arithmetic: fixed` the code
reads outputs as GRUS (floats, fp16) and X2_1204 (8 and 16 bits) store them, and must agree within
2^-12 of the picture: numbers are 65536ths, and a box is a size times an exponential. It is also
built for a processor without registers for floats, which refuses each float of C.
"""

import json
import os
import shutil
import struct

import numpy as np

import harness
import onnxmodel

TOLERANCE = 1e-4
FIXED_TOLERANCE = 2 ** -12
# The forms in which outputs come to the C code.
FLOATS, SINGLES, HALVES = "floats", "fixed, float32", "fixed, fp16"
BYTES, WORDS = "fixed, 8 bits", "fixed, 16 bits"
HARNESS_C = """
#include <stdio.h>
#include "net_boxes.h"
static union { double aligned; unsigned char bytes[%(bytes)d]; } values;
static struct %(box)s boxes[NET_BOXES_ROOM];
int main(int argc, char **argv) {
  const %(element)s *outputs[%(outputs)d];
  size_t at = 0;
  int i, count;
  FILE *f = fopen(argv[argc - 1], "rb");
  if (f == NULL || fread(values.bytes, 1, %(bytes)d, f) != %(bytes)d) return 1;
  fclose(f);
%(pointers)s  count = net_boxes(outputs, boxes);
  for (i = 0; i < count; ++i) fwrite(&boxes[i], sizeof(boxes[i]), 1, stdout);
  return (int)(at * 0);
}
"""


def logistic(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def anchor_heads(settings, outputs):
    """(boxes [n, 4], scores [n, classes]) of YOLO2, YOLO3 and YOLO5 by their papers' formulas."""
    boxes, scores = [], []
    for head in settings["heads"]:
        v = outputs[head["output"]].astype(np.float64)
        anchors = np.array(head["anchors"], np.float64)
        if v.shape[1] != len(anchors) * (5 + settings["classes"]):
            v = v.transpose(0, 3, 1, 2)
        rows, columns = v.shape[2:]
        v = v.reshape(len(anchors), 5 + settings["classes"], rows, columns)
        reach = settings.get("xy_scale", 2 if settings["type"] == "YOLO5" else 1)
        place = logistic(v[:, :2]) * reach - (reach - 1) / 2
        x = (place[:, 0] + np.arange(columns)) / columns
        y = (place[:, 1] + np.arange(rows)[:, None]) / rows
        size = (2 * logistic(v[:, 2:4])) ** 2 if settings["type"] == "YOLO5" else np.exp(v[:, 2:4])
        if settings["type"] == "YOLO2":
            whole = (columns, rows)
        else:
            whole = settings["image_size"][::-1]
        w = size[:, 0] * anchors[:, 0, None, None] / whole[0]
        h = size[:, 1] * anchors[:, 1, None, None] / whole[1]
        classes = softmax(v[:, 5:], 1) if settings["type"] == "YOLO2" else logistic(v[:, 5:])
        boxes.append(np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1).reshape(-1, 4))
        scores.append((logistic(v[:, 4:5]) * classes).transpose(0, 2, 3, 1)
                      .reshape(-1, settings["classes"]))
    return np.concatenate(boxes), np.concatenate(scores)


def free_heads(settings, outputs):
    """YOLO8: sides as means over 16 bins."""
    boxes, scores = [], []
    for head in settings["heads"]:
        v = outputs[head["output"]].astype(np.float64)[0]
        rows, columns = v.shape[1:]
        sides = (softmax(v[:64].reshape(4, 16, rows, columns), 1) *
                 np.arange(16)[:, None, None]).sum(1)
        x = np.arange(columns) + 0.5
        y = np.arange(rows)[:, None] + 0.5
        boxes.append(np.stack([(x - sides[0]) / columns, (y - sides[1]) / rows,
                               (x + sides[2]) / columns, (y + sides[3]) / rows], -1).reshape(-1, 4))
        scores.append(logistic(v[64:]).transpose(1, 2, 0).reshape(-1, settings["classes"]))
    return np.concatenate(boxes), np.concatenate(scores)


def priors_of(settings):
    """Corners of each prior, by Caffe's PriorBox."""
    height, width = settings["image_size"]
    corners = []
    for layer in settings["priors"]:
        rows, columns = layer["feature"]
        down, across = layer.get("step", (height / rows, width / columns))
        sizes = []
        for i, small in enumerate(layer["min_sizes"]):
            sizes.append((small, small))
            if layer.get("max_sizes"):
                sizes.append((np.sqrt(small * layer["max_sizes"][i]),) * 2)
            for ratio in layer.get("aspect_ratios", ()):
                for r in (ratio, 1 / ratio) if layer.get("flip", True) else (ratio,):
                    sizes.append((small * np.sqrt(r), small / np.sqrt(r)))
        for row in range(rows):
            for column in range(columns):
                x = (column + layer.get("offset", 0.5)) * across
                y = (row + layer.get("offset", 0.5)) * down
                around = [((x - w / 2) / width, (y - h / 2) / height,
                           (x + w / 2) / width, (y + h / 2) / height) for w, h in sizes]
                corners += list(np.clip(around, 0, 1)) if layer.get("clip") else around
    return np.array(corners)


def ssd(settings, outputs):
    corners = priors_of(settings)
    size = corners[:, 2:] - corners[:, :2]
    centre = (corners[:, 2:] + corners[:, :2]) / 2
    variance = np.array(settings.get("variances", (0.1, 0.1, 0.2, 0.2)))
    offset = outputs[settings["location"]].astype(np.float64).reshape(-1, 4) * variance
    middle = centre + offset[:, :2] * size
    half = size * np.exp(offset[:, 2:]) / 2
    scores = outputs[settings["confidence"]].astype(np.float64).reshape(-1, settings["classes"])
    scores = scores.copy()
    scores[:, 0] = 0  # the background
    return np.concatenate([middle - half, middle + half], 1), scores


def regions(settings, outputs):
    """RPN: Faster R-CNN's offsets from anchors, cut off at the picture's edges."""
    height, width = settings["image_size"]
    boxes, scores = [], []
    for head in settings["heads"]:
        prob = outputs[head["scores"]].astype(np.float64)[0]
        delta = outputs[head["deltas"]].astype(np.float64)[0]
        rows, columns = prob.shape[1:]
        for a, (w, h) in enumerate(head["anchors"]):
            x = np.arange(columns) * head["stride"] + head["offset"] + delta[4 * a] * w
            y = np.arange(rows)[:, None] * head["stride"] + head["offset"] + delta[4 * a + 1] * h
            w, h = w * np.exp(delta[4 * a + 2]), h * np.exp(delta[4 * a + 3])
            corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1).reshape(-1, 4)
            boxes.append(np.clip(corners / (width, height, width, height), 0, 1))
            scores.append(prob[len(head["anchors"]) + a].reshape(-1, 1))
    return np.concatenate(boxes), np.concatenate(scores)


def in_regions(settings, outputs):
    """RCNN: each class's own offset from each region."""
    classes = settings["classes"]
    region = np.asarray(settings["region_corners"], np.float64)
    scores = outputs[settings["confidence"]].astype(np.float64).reshape(-1, classes)
    delta = outputs[settings["location"]].astype(np.float64).reshape(-1, classes, 4)
    delta = delta * settings["variances"]
    size = (region[:, 2:] - region[:, :2])[:, None]
    middle = region[:, None, :2] + size / 2 + delta[..., :2] * size
    half = size * np.exp(delta[..., 2:]) / 2
    boxes = np.clip(np.concatenate([middle - half, middle + half], 2), 0, 1)
    rows, columns = np.nonzero(scores > -np.inf)
    alone = np.full((rows.size, classes), -np.inf)
    alone[np.arange(rows.size), columns] = scores[rows, columns]
    alone[:, 0] = -np.inf
    return boxes[rows, columns], alone


def kept(settings, boxes, scores):
    """(class, score, box) of those that no better one of the class overlaps."""
    place, classes = np.nonzero(scores > settings["obj_threshold"])
    order = np.argsort(-scores[place, classes], kind="stable")
    found = []
    for at in order:
        box, score, which = boxes[place[at]], scores[place[at], classes[at]], int(classes[at])
        for other, _, better in found:
            if other != which:
                continue
            shared = np.prod(np.maximum(np.minimum(box[2:], better[2:]) -
                                        np.maximum(box[:2], better[:2]), 0))
            both = np.prod(box[2:] - box[:2]) + np.prod(better[2:] - better[:2]) - shared
            if both > 0 and shared / both > settings["iou_threshold"]:
                break
        else:
            found.append((which, score, box))
    return found[:settings["max_box_num"]]


def check_same(what, got, want, tolerance=TOLERANCE):
    harness.check(len(got) == len(want), f"{what}: {len(got)} boxes, not {len(want)}")
    worst = 0.0
    for c, s, b in want:
        near = [max(abs(s - s2), float(np.abs(np.asarray(b) - b2).max()))
                for c2, s2, b2 in got if c2 == c]
        worst = max(worst, min(near, default=np.inf))
    harness.check(worst <= tolerance, f"{what}: a box is off by {worst:.2g}")
    return worst


def compiled_boxes(folder, out, compiler, arrays, is_fixed=False):
    """What the C code gives: boxes, one after the other."""
    flat, pointers = b"", ""
    for i, array in enumerate(arrays):
        pointers += f"  outputs[{i}] = (const void *)(values.bytes + {len(flat)});\n"
        flat += array.tobytes()
        flat += bytes(-len(flat) % 8)
    source = os.path.join(folder, "main.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(HARNESS_C % {"bytes": len(flat), "outputs": len(arrays), "pointers": pointers,
                             "element": "void" if is_fixed else "float",
                             "box": "npuc_fixed_box" if is_fixed else "npuc_box"})
    data = os.path.join(folder, "values.bin")
    with open(data, "wb") as f:
        f.write(flat)
    program = os.path.join(folder, "boxes_" + compiler)
    flags = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off",
             "-I", out)
    code = os.path.join(out, "net_boxes.c")
    harness.run(compiler, *flags, source, code, "-o", program)
    if is_fixed and os.uname().machine == "x86_64":
        harness.run(compiler, *flags, "-mgeneral-regs-only", "-c", code, "-o", os.devnull)
    with open(program + ".out", "wb") as f:
        harness.check(os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", f"{program} {data} > {f.name}"])
                      == 0, f"{compiler}'s program failed")
    with open(program + ".out", "rb") as f:
        raw = f.read()
    if is_fixed:
        return [(c, s / 65536, tuple(v / 65536 for v in corners))
                for *corners, s, c in struct.iter_unpack("<6i", raw)]
    return [(c, s, (x0, y0, x1, y1)) for x0, y0, x1, y1, s, c in struct.iter_unpack("<5fi", raw)]


def opencv_region(cv2, settings, outputs, folder):
    """The raw predictions of OpenCV's Region layer on one head."""
    head = settings["heads"][0]
    v = outputs[head["output"]]
    rows, columns = v.shape[2:]
    anchors = np.array(head["anchors"], np.float64)
    is_yolo2 = settings["type"] == "YOLO2"
    if not is_yolo2:  # its net is the input of the layer, so that its pixels are cells
        anchors = anchors * (columns, rows) / settings["image_size"][::-1]
    cfg = (f"[net]\nwidth={columns}\nheight={rows}\nchannels={v.shape[1]}\n"
           f"[{'region' if is_yolo2 else 'yolo'}]\nclasses={settings['classes']}\n"
           f"num={len(anchors)}\ncoords=4\nsoftmax=1\nthresh=0.001\n"
           f"mask={','.join(str(i) for i in range(len(anchors)))}\n"
           f"scale_x_y={settings.get('xy_scale', 1)}\n"
           f"anchors={','.join(repr(float(a)) for a in anchors.ravel())}\n")
    path = os.path.join(folder, "head.cfg")
    with open(path, "w", encoding="ascii") as f:
        f.write(cfg)
    net = cv2.dnn.readNetFromDarknet(path)
    net.setInput(v.astype(np.float32))
    rows_out = net.forward().reshape(-1, 5 + settings["classes"]).astype(np.float64)
    half = rows_out[:, 2:4] / 2
    return np.concatenate([rows_out[:, :2] - half, rows_out[:, :2] + half], 1), rows_out[:, 5:]


def opencv_ssd(cv2, settings, outputs, folder):
    """The boxes of OpenCV's PriorBox and DetectionOutput layers."""
    height, width = settings["image_size"]
    text = f'input: "data" input_dim: 1 input_dim: 3 input_dim: {height} input_dim: {width}\n'
    for i, layer in enumerate(settings["priors"]):
        rows, columns = layer["feature"]
        text += f'input: "f{i}" input_dim: 1 input_dim: 8 input_dim: {rows} input_dim: {columns}\n'
    for name in ("loc", "conf"):
        text += (f'input: "{name}" input_dim: 1 input_dim: '
                 f'{outputs[settings[dict(loc="location", conf="confidence")[name]]].size}'
                 ' input_dim: 1 input_dim: 1\n')
    for i, layer in enumerate(settings["priors"]):
        sizes = "".join(f" min_size: {s}" for s in layer["min_sizes"])
        sizes += "".join(f" max_size: {s}" for s in layer.get("max_sizes", ()))
        sizes += "".join(f" aspect_ratio: {s}" for s in layer.get("aspect_ratios", ()))
        text += (f'layer {{ name: "p{i}" type: "PriorBox" bottom: "f{i}" bottom: "data" top: "p{i}"'
                 f" prior_box_param {{{sizes} flip: true clip: false"
                 " variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 offset: 0.5 } }\n")
    bottoms = "".join(f' bottom: "p{i}"' for i in range(len(settings["priors"])))
    text += f'layer {{ name: "p" type: "Concat"{bottoms} top: "p" concat_param {{ axis: 2 }} }}\n'
    for name in ("loc", "conf"):
        text += f'layer {{ name: "{name}f" type: "Flatten" bottom: "{name}" top: "{name}f" }}\n'
    text += ('layer { name: "out" type: "DetectionOutput" bottom: "locf" bottom: "conff"'
             ' bottom: "p" top: "out" detection_output_param {'
             f" num_classes: {settings['classes']} share_location: true background_label_id: 0"
             f" nms_param {{ nms_threshold: {settings['iou_threshold']} top_k: 1000 }}"
             f" code_type: CENTER_SIZE keep_top_k: {settings['max_box_num']}"
             f" confidence_threshold: {settings['obj_threshold']} }} }}\n")
    path = os.path.join(folder, "ssd.prototxt")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    net = cv2.dnn.readNetFromCaffe(path)
    net.setInput(np.zeros((1, 3, height, width), np.float32), "data")
    for i, layer in enumerate(settings["priors"]):
        net.setInput(np.zeros((1, 8, *layer["feature"]), np.float32), f"f{i}")
    for name, key in (("loc", "location"), ("conf", "confidence")):
        net.setInput(outputs[settings[key]].astype(np.float32).reshape(1, -1, 1, 1), name)
    return [(int(r[1]), float(r[2]), r[3:].astype(np.float64))
            for r in net.forward("out").reshape(-1, 7) if r[2] > 0]


def opencv_boxes(settings, outputs, folder):
    """None where OpenCV is not there, or has no such layer."""
    try:
        import cv2
    except ImportError:
        return None
    if settings["type"] == "SSD":
        return opencv_ssd(cv2, settings, outputs, folder)
    if settings["type"] in ("YOLO2", "YOLO3") and len(settings["heads"]) == 1:
        return kept(settings, *opencv_region(cv2, settings, outputs, folder))
    return None


def cases():
    """(name, settings, shapes of the outputs, of which all are random)."""
    common = {"obj_threshold": 0.6, "iou_threshold": 0.45, "max_box_num": 50}
    anchors = [[10, 14], [23, 27], [37, 58]]
    yield "YOLO2", {"type": "YOLO2", "classes": 4, **common, "obj_threshold": 0.4, "heads": [
        {"output": "a", "anchors": [[1.1, 1.2], [3.4, 4.4], [6.6, 11.4]]}]}, {"a": (1, 27, 9, 13)}
    yield "YOLO3", {"type": "YOLO3", "classes": 2, "image_size": [96, 128], **common, "heads": [
        {"output": "a", "anchors": anchors}]}, {"a": (1, 21, 6, 8)}
    yield "YOLO3 of two heads", {
        "type": "YOLO3", "classes": 3, "image_size": [96, 128], "xy_scale": 1.05, **common,
        "heads": [{"output": "a", "anchors": anchors},
                  {"output": "b", "anchors": [[81, 82], [135, 169]]}]}, {
                      "a": (1, 24, 6, 8), "b": (1, 16, 3, 4)}
    yield "YOLO5 channels last", {
        "type": "YOLO5", "classes": 2, "image_size": [64, 64], **common,
        "heads": [{"output": "a", "anchors": anchors}]}, {"a": (1, 8, 8, 21)}
    yield "YOLO8", {"type": "YOLO8", "classes": 3, **common, "obj_threshold": 0.9, "heads": [
        {"output": "a"}, {"output": "b"}]}, {"a": (1, 67, 8, 8), "b": (1, 67, 4, 4)}
    yield "RPN", {"type": "RPN", "image_size": [80, 96], **common, "obj_threshold": 1, "heads": [
        {"scores": "a", "deltas": "b", "stride": 16, "offset": 7.5,
         "anchors": [[16, 16], [24, 12]]}]}, {"a": (1, 4, 5, 6), "b": (1, 8, 5, 6)}
    corners = np.random.default_rng(2).uniform(0, 0.6, (20, 4)).astype(np.float32)
    corners[:, 2:] = corners[:, :2] + 0.1 + corners[:, 2:] / 2
    yield "RCNN", {"type": "RCNN", "classes": 3, **common, "obj_threshold": 0.9,
                   "variances": [0.1, 0.1, 0.2, 0.2], "location": "a", "confidence": "b",
                   "region_corners": corners}, {"a": (20, 12), "b": (20, 3)}
    priors = [{"feature": [5, 6], "min_sizes": [20], "max_sizes": [40], "aspect_ratios": [2]},
              {"feature": [3, 3], "min_sizes": [40, 50], "max_sizes": [60, 70],
               "aspect_ratios": [2, 3]}]
    count = 5 * 6 * 4 + 3 * 3 * 12
    yield "SSD", {"type": "SSD", "classes": 3, "image_size": [100, 120], **common,
                  "location": "a", "confidence": "b", "priors": priors}, {
                      "a": (1, 4 * count), "b": (1, 3 * count)}


def write_config(folder, model, settings, inputs, form):
    """The net's config on the core that stores outputs in the form; quantized on its own inputs."""
    settings = {k: v for k, v in settings.items() if k != "region_corners"}
    if form != FLOATS:
        settings["arithmetic"] = "fixed"
    with open(os.path.join(folder, "boxes.yaml"), "w", encoding="ascii") as f:
        json.dump(settings, f)
    text = (f"FRAMEWORK: ONNX\nMODEL_FILE: {model}\nOUTPUT_FILE: net.h\n"
            "DETECTION_POSTPROCESS: boxes.yaml\n")
    if form in (BYTES, WORDS):
        files = ", ".join(f"{key}: {key}.npy" for key in inputs)
        bits = 8 if form == BYTES else 16
        text += ("CORENAME: X2_1204\nQUANT:\n"
                 f"  activation_bits: {bits}\n  calibration_data: {{{files}}}\n")
    else:
        text += "CORENAME: GRUS\n"
        if form == HALVES:
            text += f"FP16_OUT_OPS: [{', '.join(key[3:] for key in inputs)}]\n"
    path = os.path.join(folder, "net.yaml")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def run_boxes(folder, header, settings, inputs):
    """The folder of the run's outputs."""
    ran = os.path.join(folder, "ran")
    os.makedirs(ran)
    arguments = []
    for key in inputs:
        arguments += ["--input", f"{key}={os.path.join(folder, key)}.npy"]
    if "region_corners" in settings:
        arguments += ["--regions", os.path.join(folder, "regions.npy")]
    harness.npuc("run", header, *arguments, "--output-dir", ran, "--postprocess",
                 os.path.join(folder, "boxes.yaml"))
    return ran


def stored_outputs(out, settings, outputs, form):
    """The arrays that the C code gets."""
    behind = [settings["region_corners"]] if "region_corners" in settings else []
    if form == FLOATS:
        return [a.astype(np.float32) for a in [*outputs.values(), *behind]]
    behind = [np.rint(a.astype(np.float64) * 65536).astype(np.int32) for a in behind]
    if form in (SINGLES, HALVES):
        element = np.float32 if form == SINGLES else np.float16
        return [a.astype(element) for a in outputs.values()] + behind
    with open(os.path.join(out, "report.json"), encoding="utf-8") as f:
        ports = {port["name"]: port for port in json.load(f)["outputs"]}
    stored = []
    for name, array in outputs.items():
        port = ports[name]
        element = {"i8": np.int8, "u8": np.uint8, "i16": np.int16,
                   "u16": np.uint16}[port["type"].split("[")[0]]
        harness.check(np.dtype(element).itemsize == (1 if form == BYTES else 2),
                      f"output {name} is {port['type']}")
        stored.append((np.rint(array.astype(np.float64) / port["scale"]) +
                       port["zero_point"]).astype(element))
    return stored + behind


def check_case(name, settings, shapes, form):
    rng = np.random.default_rng(len(name))
    is_fixed = form != FLOATS
    with harness.scratch() as folder:
        model = os.path.join(folder, "net.onnx")
        with open(model, "wb") as f:
            f.write(onnxmodel.model(
                [onnxmodel.node("Add", [f"in_{o}", "half"], [o]) for o in shapes],
                [(f"in_{o}", s) for o, s in shapes.items()], list(shapes.items()),
                {"half": np.array([0.5], np.float32)}))
        inputs = {}
        for output, shape in shapes.items():
            values = rng.normal(0, 1.5, shape) - 0.5
            if output == settings.get("confidence"):
                values = softmax(values.reshape(-1, settings["classes"]) * 3, 1) - 0.5
            inputs[f"in_{output}"] = values.reshape(shape).astype(np.float32)
        for key, array in inputs.items():
            np.save(os.path.join(folder, key + ".npy"), array)
        if "region_corners" in settings:
            np.save(os.path.join(folder, "regions.npy"), settings["region_corners"])
        out = os.path.join(folder, "out")
        config = write_config(folder, model, settings, inputs, form)
        if form in (BYTES, WORDS):  # compile_header reads GRUS's form of headers
            harness.npuc(config, "-o", out)
            header = os.path.join(out, "net.h")
        else:
            header = harness.compile_header(config, out, "net.h")
        ran = run_boxes(folder, header, settings, inputs)
        outputs = {o: np.load(harness.output_file(ran, o)).reshape(s) for o, s in shapes.items()}
        with open(os.path.join(ran, "boxes.json"), encoding="ascii") as f:
            boxes = [(b["class"], b["score"], tuple(b["box"])) for b in json.load(f)[0]]
        stored = stored_outputs(out, settings, outputs, form)
        for compiler in ("gcc", "clang"):
            if shutil.which(compiler) is None:
                continue
            theirs = compiled_boxes(folder, out, compiler, stored, is_fixed)
            harness.check(theirs == boxes, f"{name}: {compiler}'s program gives other boxes")
        formula = {"SSD": ssd, "YOLO8": free_heads, "RPN": regions,
                   "RCNN": in_regions}.get(settings["type"], anchor_heads)
        want = kept(settings, *formula(settings, outputs))
        harness.check(5 <= len(want), f"{name}: {len(want)} boxes show nothing")
        worst = check_same(name, boxes, want, FIXED_TOLERANCE if is_fixed else TOLERANCE)
        theirs = None if is_fixed else opencv_boxes(settings, outputs, folder)
        if theirs is not None:
            worst = max(worst, check_same(f"{name} of OpenCV", boxes, theirs))
        harness.figure(f"boxes {name}, {form}: {len(boxes)} boxes, off by at most {worst:.2g}; "
                       f"OpenCV {'agrees' if theirs is not None else 'not asked'}")


def main(names):
    for name, settings, shapes in cases():
        if names and settings["type"] not in names:
            continue
        for form in (FLOATS, SINGLES, HALVES, BYTES, WORDS):
            check_case(name, settings, shapes, form)
