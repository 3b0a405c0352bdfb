"""The real nets of shared/suites on X2_1204, quantized on drawn pictures, beside their float form.

    run_e2e.py detectors [NAME...]

Caffe's MTCNN, ULFD, RetinaFace and WeChat's sr, Darknet's Yolo-Fastest, PaddlePaddle's PP-OCR and
MNIST, MXNet's MTCNN: each compiled with calibration pictures and run on others. Every output must
have a cosine of 0.99 with that of `npuc reference`, over all pictures, and each box that the float
net is sure of must have one within 2 pixels, and the other way round. Boxes of Yolo-Fastest (as the
compile's own settings say), ULFD and RetinaFace come from `npuc run --postprocess`; those of the
float net from NumPy.
"""

import collections
import json
import os
import re

import numpy as np

import boxes
import drawn_pictures
import harness
import paddle

LEAST_COSINE = 0.99
MOST_PIXELS = 2
SURE, MAYBE = 0.5, 0.3  # a box of the one above SURE needs one of the other above MAYBE
CALIBRATION, TEST = range(100, 116), range(8)

# name; framework; files: the config's key -> path; input; prepare: seed -> [1, c, h, w]; quant:
# lines of QUANT; settings: of boxes, None for the compile's own; find: (outputs, settings) ->
# [(class, score, pixels x0, y0, x1, y1)], None where it finds none; outputs: OUTPUT_OPS
Net = collections.namedtuple("Net", "name framework files input prepare quant settings find "
                             "outputs", defaults=(None, None, None))
WIDE = ["activation_bits: 16"]


def channels_first(pixels, mean=0.0, scale=1.0):
    values = (pixels.astype(np.float32) - np.float32(mean)) * np.float32(scale)
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None])


def faces(height, width, count=2, mean=0.0, scale=1.0):
    """Pictures of `count` faces."""
    def prepare(seed):
        rng = np.random.default_rng(seed)
        sizes = rng.uniform(0.34, 0.5, count) * height
        return channels_first(drawn_pictures.faces(seed, height, width, sizes)[0], mean, scale)
    return prepare


def crops(side, shift):
    """A face that fills the picture, off its middle by up to `shift` of its side."""
    def prepare(seed):
        rng = np.random.default_rng(seed)
        canvas = drawn_pictures.Canvas(side * 4, side * 4, rng)
        x, y = side * (2 + 4 * rng.uniform(-shift, shift, 2))
        drawn_pictures.paint_face(canvas, x, y, side * rng.uniform(3.0, 3.6))
        pixels = canvas.bytes().reshape(side, 4, side, 4, 3).mean((1, 3))
        return channels_first(pixels, 127.5, 1 / 128)
    return prepare


def points(seed):
    """Five patches of a face, one above the other in channels, as LNet of MTCNN takes them."""
    picture = crops(96, 0.03)(seed)[0]
    places = ((32, 42), (64, 42), (48, 54), (38, 66), (58, 66))
    return np.concatenate([picture[:, y - 12:y + 12, x - 12:x + 12] for x, y in places])[None]


def yolo_boxes(outputs, settings):
    boxes_of, scores = boxes.anchor_heads(with_pairs(settings), outputs)
    return to_pixels(boxes.kept(settings, boxes_of, scores), settings["image_size"])


def with_pairs(settings):
    heads = [{**h, "anchors": np.reshape(h["anchors"], (-1, 2))} for h in settings["heads"]]
    return {**settings, "heads": heads}


def to_pixels(found, size):
    scale = np.array([size[1], size[0], size[1], size[0]], np.float64)
    return [(which, float(score), np.asarray(box) * scale) for which, score, box in found]


def ulfd_priors():
    """Centre and size of each prior, as the publishers' vision/utils/box_utils.py makes them."""
    priors = []
    for step, sizes in zip((8, 16, 32, 64), ([10, 16, 24], [32, 48], [64, 96], [128, 192, 256])):
        for row in range(-(-240 // step)):
            for column in range(-(-320 // step)):
                priors += [((column + 0.5) * step / 320, (row + 0.5) * step / 240, size / 320,
                            size / 240) for size in sizes]
    return np.clip(priors, 0, 1)


ULFD = {"type": "SSD", "classes": 2, "image_size": [240, 320], "obj_threshold": MAYBE,
        "iou_threshold": 0.3, "max_box_num": 50, "location": "boxes", "confidence": "scores",
        "prior_boxes": " ".join(f"{v:.9g}" for v in ulfd_priors().ravel())}
STRIDES = (32, 16, 8)
RETINA_SIZE = (160, 192)
RETINA = {"type": "RPN", "image_size": list(RETINA_SIZE), "obj_threshold": MAYBE,
          "iou_threshold": 0.4, "max_box_num": 50,
          "heads": [{"scores": f"face_rpn_cls_prob_reshape_stride{s}",
                     "deltas": f"face_rpn_bbox_pred_stride{s}", "stride": s, "offset": 8,
                     "anchors": [[16 * k, 16 * k] for k in (s, s // 2)]} for s in STRIDES]}


def ulfd_boxes(outputs, settings):
    priors = ulfd_priors()
    offset = outputs["boxes"].astype(np.float64).reshape(-1, 4) * (0.1, 0.1, 0.2, 0.2)
    middle = priors[:, :2] + offset[:, :2] * priors[:, 2:]
    half = priors[:, 2:] * np.exp(offset[:, 2:]) / 2
    scores = outputs["scores"].astype(np.float64).reshape(-1, 2) * (0, 1)
    found = np.concatenate([middle - half, middle + half], 1)
    return to_pixels(boxes.kept(settings, found, scores), settings["image_size"])


def retina_boxes(outputs, settings):
    """Source: RetinaFace's rcnn/processing, the boxes from anchor_targets and bbox_transform."""
    height, width = settings["image_size"]
    found, scores = [], []
    for head in settings["heads"]:
        prob = outputs[head["scores"]].astype(np.float64)[0]
        delta = outputs[head["deltas"]].astype(np.float64)[0]
        for a, (w, h) in enumerate(head["anchors"]):
            rows, columns = prob.shape[1:]
            x = np.arange(columns) * head["stride"] + head["offset"] + delta[4 * a] * w
            y = (np.arange(rows)[:, None] * head["stride"] + head["offset"] + delta[4 * a + 1] * h)
            w, h = w * np.exp(delta[4 * a + 2]), h * np.exp(delta[4 * a + 3])
            corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1).reshape(-1, 4)
            found.append(np.clip(corners / (width, height, width, height), 0, 1))
            scores.append(prob[len(head["anchors"]) + a].ravel())
    kept = boxes.kept(settings, np.concatenate(found), np.concatenate(scores)[:, None])
    return to_pixels(kept, (height, width))


def grid_boxes(outputs, settings):
    """PNet: a window of 12 pixels every 2, moved by the parts of its size that the net gives."""
    prob, move = outputs["prob"][0, 1].astype(np.float64), outputs["move"][0].astype(np.float64)
    found = []
    for row, column in np.argwhere(prob > MAYBE):
        window = np.array([2 * column, 2 * row, 2 * column + 12, 2 * row + 12], np.float64)
        found.append((f"{row} {column}", float(prob[row, column]),
                      window + 12 * move[:, row, column]))
    return found


def crop_boxes(outputs, settings):
    """RNet: the crop of 24 pixels, moved likewise."""
    score = float(outputs["prob"].ravel()[1])
    box = np.array([0, 0, 24, 24]) + 24 * outputs["move"].ravel().astype(np.float64)
    return [(0, score, box)] if score > MAYBE else []


def point_boxes(outputs, settings):
    """LNet: a place in each patch of 24 pixels, as a box without size."""
    found = []
    for name in sorted(outputs):
        x, y = 24 * outputs[name].ravel().astype(np.float64)
        found.append((name, 1.0, np.array([x, y, x, y])))
    return found


def text_boxes(outputs, settings):
    """PP-OCR: the box around each region of pixels above the threshold of its publishers."""
    (logits,) = outputs.values()
    hot = logits[0, 0] > np.log(SURE / (1 - SURE))
    label = np.arange(hot.size, dtype=np.int64).reshape(hot.shape) + 1
    label[~hot] = 0
    while True:  # each pixel takes the greatest number beside it
        grown = label.copy()
        for axis in (0, 1):
            for step in (-1, 1):
                moved = np.roll(label, step, axis)
                edge = [slice(None)] * 2
                edge[axis] = 0 if step == 1 else -1
                moved[tuple(edge)] = 0
                grown = np.maximum(grown, moved)
        grown[~hot] = 0
        if np.array_equal(grown, label):
            break
        label = grown
    found = []
    for number in np.unique(label[label > 0]):
        rows, columns = np.nonzero(label == number)
        if rows.size >= 9:  # as its publishers leave out the smallest
            found.append((0, 1.0, np.array([columns.min(), rows.min(), columns.max() + 1,
                                            rows.max() + 1], np.float64)))
    return found


def renamed(find, names):
    return lambda outputs, settings: find({to: outputs[name] for to, name in names.items()},
                                          settings)


def caffe_nets(root):
    def files(name):
        return {"MODEL_FILE": os.path.join(root, name + ".caffemodel"),
                "PROTOTXT": os.path.join(root, name + ".prototxt")}
    yield Net("caffe det1", "CAFFE", files("mtcnn/det1"), "data", faces(48, 64, 2, 127.5, 1 / 128),
              WIDE, None, renamed(grid_boxes, {"prob": "prob1", "move": "conv4-2"}))
    yield Net("caffe det2", "CAFFE", files("mtcnn/det2"), "data", crops(24, 0.06), WIDE, None,
              renamed(crop_boxes, {"prob": "prob1", "move": "conv5-2"}))
    yield Net("caffe det4", "CAFFE", files("mtcnn/det4"), "data", points, WIDE, None, point_boxes)
    yield Net("ulfd", "CAFFE", files("ulfd/slim-320"), "input", faces(240, 320, 2, 127, 1 / 128),
              [*WIDE, "input_bytes: '1/128, 127'"], ULFD, ulfd_boxes)
    yield Net("retinaface", "CAFFE", files("retinaface/retinaface_mnet25"), "data",
              faces(*RETINA_SIZE), WIDE, RETINA, retina_boxes)
    yield Net("wechat sr", "CAFFE", files("wechat_qrcode/sr"), "data",
              lambda seed: drawn_pictures.words(seed, 48, 56)[None, None, :, :, 1]
              .astype(np.float32) / np.float32(255), WIDE)


def other_nets(suites, scratch):
    darknet = os.path.join(suites, "darknet", "yolo_fastest")
    for name in ("yolo-fastest", "yolo-fastest-1.1"):
        yield Net(name, "DARKNET", {"MODEL_FILE": os.path.join(darknet, name + ".cfg")}, "input",
                  lambda seed: channels_first(drawn_pictures.street(seed), 0, 1 / 255),
                  [*WIDE, "weight_bits: 12", "input_bytes: '1/255, 0'"], None, yolo_boxes)
    ocr = os.path.join(suites, "paddle", "ppocr_det", "inference.pdmodel")
    yield Net("ppocr", "PADDLE", {"MODEL_FILE": ocr}, "x",
              lambda seed: channels_first(drawn_pictures.words(seed, 96, 128),
                                          (123.675, 116.28, 103.53), (0.01712, 0.01751, 0.01743)),
              WIDE, None, text_boxes, ["elementwise_add_11.tmp_0"])
    mnist = os.path.join(suites, "paddle", "mnist_mlp")
    yield Net("mnist", "PADDLE",
              {"MODEL_FILE": os.path.join(mnist, "__model__"),
               "WEIGHTS_FILE": paddle.zip_of(mnist, os.path.join(scratch, "mnist.zip"))}, "img",
              lambda seed: drawn_pictures.digits(seed, 1)[:, None], [])
    mxnet = os.path.join(suites, "mxnet", "mtcnn")

    def files(name):
        return {"MODEL_FILE": os.path.join(mxnet, name + "-symbol.json"),
                "WEIGHTS_FILE": os.path.join(mxnet, name + "-0001.params")}
    yield Net("mxnet det1", "MXNET", files("det1"), "data", faces(48, 64, 2, 127.5, 1 / 128), WIDE,
              None, renamed(grid_boxes, {"prob": "prob1", "move": "conv4_2"}),
              ["conv4_2", "prob1"])
    yield Net("mxnet det2", "MXNET", files("det2"), "data", crops(24, 0.06), WIDE, None,
              renamed(crop_boxes, {"prob": "prob1", "move": "conv5_2"}), ["conv5_2", "prob1"])
    yield Net("mxnet det4", "MXNET", files("det4"), "data", points, WIDE, None, point_boxes,
              [f"fc5_{i}" for i in range(1, 6)])


def write_config(net, folder):
    calibration = np.concatenate([net.prepare(seed) for seed in CALIBRATION])
    np.save(os.path.join(folder, "calibration.npy"), calibration)
    lines = ["CORENAME: X2_1204", f"FRAMEWORK: {net.framework}", "OUTPUT_FILE: net.h",
             f"INPUT_OPS: {{{net.input}: {[1, *calibration.shape[1:]]}}}"]
    lines += [f"{key}: {path}" for key, path in net.files.items()]
    if net.outputs:
        lines.append(f"OUTPUT_OPS: [{', '.join(net.outputs)}]")
    lines += ["QUANT:", "  preset: fast", *[f"  {line}" for line in net.quant],
              "  calibration_data: calibration.npy"]
    path = os.path.join(folder, "net.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def read_yaml(path):
    """The settings that a compile wrote; their lines are JSON but for unquoted keys and words."""
    settings, heads = {}, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("  - {"):
                output, anchors = re.match(
                    r'  - {output: ("[^"]*"), xy_scale: 1, anchors: (\[.*\])}', line).groups()
                heads.append({"output": json.loads(output), "anchors": json.loads(anchors)})
            elif line.strip() != "heads:":
                key, value = line.strip().split(": ", 1)
                settings[key] = value if key == "type" else json.loads(value)
    return {**settings, "heads": heads}


def run_all(verb, artifact, net, folder, inputs, *extra):
    """The outputs of each input, by name."""
    os.makedirs(folder, exist_ok=True)
    harness.npuc(verb, artifact, "--input", f"{net.input}={inputs}", "--output-dir", folder, *extra)
    outputs = {}
    for file in os.listdir(folder):
        if file.endswith(".npy"):
            outputs[file[:-4]] = np.load(os.path.join(folder, file))
    return outputs


def of_item(outputs, item, count):
    """The outputs of one item. Several are stacked in the first dimension."""
    for name, array in outputs.items():
        harness.check(array.shape[0] == count, f"{name} has the shape {array.shape}")
    return {name: array[item:item + 1] for name, array in outputs.items()}


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def farthest(sure, all_of_other):
    """How far the other's nearest box of its class is from each that one is sure of."""
    far = 0.0
    for which, score, box in sure:
        if score < SURE:
            continue
        far = max(far, min((float(np.abs(box - other).max())
                            for c, _, other in all_of_other if c == which), default=np.inf))
    return far


def check_net(net):
    with harness.scratch() as folder:
        config = write_config(net, folder)
        out = os.path.join(folder, "out")
        harness.npuc(config, "-o", out, timeout=600)
        inputs = os.path.join(folder, "x.npy")
        np.save(inputs, np.stack([net.prepare(seed) for seed in TEST]))
        wanted = run_all("reference", config, net, os.path.join(folder, "float"), inputs)
        extra, settings = (), net.settings
        if settings is not None:
            path = os.path.join(folder, "boxes.yaml")
            with open(path, "w", encoding="ascii") as f:
                json.dump(settings, f)
            extra = ("--postprocess", path)
        elif net.framework == "DARKNET":
            path = os.path.join(out, "net_boxes.yaml")
            settings = {**read_yaml(path), "obj_threshold": MAYBE}
            extra = ("--postprocess", path)
        ran = os.path.join(folder, "ran")
        got = run_all("run", os.path.join(out, "net.npuc"), net, ran, inputs, *extra)
        if any(line.startswith("input_bytes") for line in net.quant):
            check_bytes(net, os.path.join(out, "net.npuc"), inputs, got, folder)
        likeness = min(cosine(got[name], wanted[name]) for name in wanted)
        harness.check(likeness >= LEAST_COSINE, f"{net.name}: a cosine of {likeness:.4f}")
        far, count = 0.0, 0
        if net.find is not None:
            far, count = boxes_of(net, settings, wanted, got, ran)
            harness.check(count >= len(TEST) // 2, f"{net.name}: {count} boxes")
            harness.check(far <= MOST_PIXELS, f"{net.name}: a box is {far:.2f} pixels off")
        harness.figure(f"{net.name} on X2_1204: least cosine of an output {likeness:.4f}" +
                       (f"; {count} boxes, off by at most {far:.2f} pixels" if net.find else ""))


def check_bytes(net, artifact, inputs, got, folder):
    """With input_bytes a camera's bytes are the stored input: they give the outputs that the real
    values (b - zero_point) * scale give, which are a scale and an offset off what is stored."""
    line = next(line for line in net.quant if line.startswith("input_bytes"))
    above, below, zero_point = (int(w) for w in re.findall(r"\d+", line))
    stored = np.rint(np.load(inputs) * below / above + zero_point).astype(np.uint8)
    path = os.path.join(folder, "bytes.npy")
    np.save(path, stored)
    raw = run_all("run", artifact, net, os.path.join(folder, "raw"), path, "--raw")
    for name, values in got.items():
        x, y = raw[name].astype(np.float64).ravel(), values.astype(np.float64).ravel()
        slope, offset = np.polyfit(x, y, 1)
        off = float(np.abs(slope * x + offset - y).max()) / float(np.abs(y).max())
        harness.check(off < 1e-5, f"{net.name}: bytes give other outputs, {off:.2g} off")


def check_c_code(settings, got, decoded, folder):
    """The compile's C code, built by gcc, gives the boxes of the first picture to the bit."""
    arrays = [of_item(got, 0, len(TEST))[head["output"]] for head in settings["heads"]]
    theirs = boxes.compiled_boxes(folder, os.path.join(folder, "out"), "gcc", arrays)
    ours = [(b["class"], b["score"], tuple(b["box"])) for b in decoded]
    harness.check(theirs == ours and ours, f"gcc's program gives {theirs}, not {ours}")


def boxes_of(net, settings, wanted, got, ran):
    """(farthest box in pixels, boxes that the float net is sure of)."""
    far, count = 0.0, 0
    decoded = None
    if settings is not None:
        with open(os.path.join(ran, "boxes.json"), encoding="ascii") as f:
            decoded = json.load(f)
    if net.framework == "DARKNET":
        check_c_code(settings, got, decoded[0], os.path.dirname(ran))
    for item in range(len(TEST)):
        float_boxes = net.find(of_item(wanted, item, len(TEST)), settings)
        if decoded is None:
            our_boxes = net.find(of_item(got, item, len(TEST)), settings)
        else:
            our_boxes = to_pixels([(b["class"], b["score"], b["box"]) for b in decoded[item]],
                                  settings["image_size"])
        far = max(far, farthest(float_boxes, our_boxes), farthest(our_boxes, float_boxes))
        count += sum(score >= SURE for _, score, _ in float_boxes)
    return far, count


def main(names):
    suites = harness.shared("suites")
    with harness.scratch() as scratch:
        nets = [*caffe_nets(os.path.join(suites, "caffe")), *other_nets(suites, scratch)]
        chosen = [net for net in nets if not names or net.name in names]
        harness.check(chosen, f"no net of {names}; there are {[net.name for net in nets]}")
        for net in chosen:
            check_net(net)
