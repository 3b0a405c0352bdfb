"""Random nets of ONNX operators that ONNX's own cases cover thinly or not at all, on both sides of
what the front end reads. Numbers are multiples of 1/8 or 1/64, so that thresholds are met exactly
and float16 holds them.
"""

import collections

import numpy as np

from onnxmodel import model, node

ML = "ai.onnx.ml"
FLOAT, INT64 = 1, 7
ROWS = 6

# build(rows): the model. inputs: shapes with "rows" where there are as many as one likes. outputs:
# those that are compared. refused: what npuc says in place of computing it. asked(rows): another
# model for the oracle, of operators that it has. apart: an output whose values must keep away from
# 0 by that share of the largest one, since a label turns there. keys: of QUANT.
# float_only: why it is not compared on a core. tolerance: of the oracle's own answer.
Case = collections.namedtuple(
    "Case", "name build inputs outputs refused asked apart keys float_only tolerance",
    defaults=("", None, None, None, "", 1e-4))


def eighths(random, *shape, size=4):
    return random.randint(-8 * size, 8 * size + 1, shape) / 8.0


def floats(array):
    return [float(v) for v in np.asarray(array).ravel()]


def ml_node(op, outputs, **attributes):
    return node(op, ["x"], outputs, ML, **attributes)


def ml_model(rows, columns, nodes, outputs):
    return model(nodes, [("x", [rows, columns])], outputs, opset=18, domains={ML: 3})


def forest(random, columns, modes, targets, prefix, trees=None):
    """Attributes of random trees, deep and shallow, leaves alone among them."""
    lists = collections.defaultdict(list)
    for tree in range(trees or random.randint(1, 6)):
        open_nodes, count = [(0, 0)], 1
        while open_nodes:
            at, depth = open_nodes.pop()
            lists["nodes_treeids"].append(tree)
            lists["nodes_nodeids"].append(at)
            if depth == 5 or (depth > 0 and random.rand() < 0.3) or random.rand() < 0.05:
                lists["nodes_modes"].append("LEAF")
                for key in ("featureids", "truenodeids", "falsenodeids"):
                    lists[f"nodes_{key}"].append(0)
                lists["nodes_values"].append(0.0)
                for target in targets:
                    lists[f"{prefix}_treeids"].append(tree)
                    lists[f"{prefix}_nodeids"].append(at)
                    lists[f"{prefix}_ids"].append(target)
                    lists[f"{prefix}_weights"].append(random.randint(-63, 64) / 64.0)
                continue
            lists["nodes_modes"].append(modes[random.randint(len(modes))])
            lists["nodes_featureids"].append(random.randint(columns))
            lists["nodes_values"].append(float(eighths(random, 1)[0]))
            lists["nodes_truenodeids"].append(count)
            lists["nodes_falsenodeids"].append(count + 1)
            open_nodes += [(count, depth + 1), (count + 1, depth + 1)]
            count += 2
    return dict(lists)


def tree_regressor(name, random, modes, refused="", **attributes):
    columns, targets = random.randint(1, 9), random.randint(1, 4)
    trees = forest(random, columns, modes, range(targets), "target")
    if random.rand() < 0.5:
        attributes["base_values"] = floats(eighths(random, targets))
    attributes = {"n_targets": targets, **trees, **attributes}

    def build(rows):
        return ml_model(rows, columns, [ml_node("TreeEnsembleRegressor", ["y"], **attributes)],
                        [("y", [rows, targets])])
    return Case(name, build, {"x": ["rows", columns]}, ["y"], refused)


def tree_classifier(name, random, modes, classes=None, only=None, shares=False, refused="",
                    **attributes):
    """only: the class that alone has scores. shares: no score is negative."""
    columns, classes = random.randint(2, 9), classes or random.randint(3, 6)
    trees = forest(random, columns, modes, range(classes) if only is None else [only], "class")
    if shares:
        trees["class_weights"] = [abs(w) / 8 for w in trees["class_weights"]]
    if "classlabels_strings" not in attributes:
        attributes["classlabels_int64s"] = [int(v) for v in random.permutation(classes)]
    attributes = {**trees, **attributes}
    is_text = "classlabels_strings" in attributes

    def build(rows):
        outputs = [("scores", [rows, classes])]
        if not is_text or refused:
            outputs = [("label", [rows], 8 if is_text else INT64)] + outputs
        return ml_model(rows, columns,
                        [ml_node("TreeEnsembleClassifier", ["label", "scores"], **attributes)],
                        outputs)
    outputs = ["scores"] if is_text and not refused else ["label", "scores"]
    return Case(name, build, {"x": ["rows", columns]}, outputs, refused)


def tree_cases(random):
    modes = {"leq": ["BRANCH_LEQ"], "lt": ["BRANCH_LT"], "gte": ["BRANCH_GTE"],
             "gt": ["BRANCH_GT"],
             "mixed": ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]}
    for name, kinds in modes.items():
        for i in range(3):
            yield tree_regressor(f"trees_{name}_{i}", random, kinds)
            yield tree_classifier(f"tree_classes_{name}_{i}", random, kinds)
    leq = modes["leq"]
    for aggregate in ("SUM", "AVERAGE"):
        yield tree_regressor(f"trees_{aggregate.lower()}", random, leq,
                             aggregate_function=aggregate)
    for aggregate in ("MIN", "MAX"):
        yield tree_regressor(f"trees_{aggregate.lower()}_out", random, leq,
                             f"aggregate_function {aggregate}", aggregate_function=aggregate)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        yield tree_classifier(f"tree_classes_{transform.lower()}", random, leq,
                              post_transform=transform)
    yield tree_classifier("tree_classes_softmax_zero_out", random, leq,
                          refused="post_transform SOFTMAX_ZERO", post_transform="SOFTMAX_ZERO")
    yield tree_regressor("trees_probit_out", random, leq, "post_transform PROBIT",
                         post_transform="PROBIT")
    for only in (0, 1):
        for shares in (False, True):
            for transform in ("NONE", "LOGISTIC"):
                for base in ([], [0.125]):
                    name = f"two_classes_{only}_{int(shares)}_{transform.lower()}_{len(base)}"
                    more = {"base_values": base} if base else {}
                    yield tree_classifier(name, random, leq, 2, only, shares,
                                          post_transform=transform, **more)
        yield tree_classifier(f"two_classes_{only}_base_out", random, leq, 2, only,
                              refused="2 base_values for one score", base_values=[0.125, 0.5])
    yield tree_classifier("two_classes_1_softmax", random, leq, 2, 1, post_transform="SOFTMAX")
    yield tree_classifier("two_classes_0_softmax_out", random, leq, 2, 0,
                          refused="post_transform SOFTMAX of one score", post_transform="SOFTMAX")
    texts = ["a", "b", "c"]
    yield tree_classifier("tree_texts", random, leq, 3, classlabels_strings=texts)
    yield tree_classifier("tree_texts_out", random, leq, 3, refused="labels that are texts",
                          classlabels_strings=texts)
    for mode in ("EQ", "NEQ"):
        yield tree_regressor(f"trees_{mode.lower()}_out", random, [f"BRANCH_{mode}"],
                             f"branches of mode BRANCH_{mode}")


KERNELS = {"LINEAR": [0.0, 0.0, 0.0], "POLY": [0.125, 0.5, 2.0], "RBF": [0.25, 0.0, 0.0],
           "SIGMOID": [0.125, 0.25, 0.0]}


def svm_regressor(name, random, kernel, refused="", **attributes):
    columns, vectors = random.randint(2, 6), random.randint(2, 9)
    attributes = {"kernel_type": kernel, "kernel_params": KERNELS[kernel],
                  "support_vectors": floats(eighths(random, vectors, columns, size=1)),
                  "coefficients": floats(eighths(random, vectors, size=1)),
                  "rho": floats(eighths(random, 1)), "n_supports": vectors, **attributes}

    def build(rows):
        return ml_model(rows, columns, [ml_node("SVMRegressor", ["y"], **attributes)],
                        [("y", [rows, 1])])
    # A sum that is nearly 0 may lie on either side of it in float16.
    return Case(name, build, {"x": ["rows", columns]}, ["y"], refused)


def svm_classifier(name, random, kernel, classes, probabilities=False, refused=""):
    columns = random.randint(2, 6)
    per_class = random.randint(1, 5, classes)
    vectors, pairs = int(per_class.sum()), classes * (classes - 1) // 2
    attributes = {"kernel_type": kernel, "kernel_params": KERNELS[kernel],
                  "support_vectors": floats(eighths(random, vectors, columns, size=1)),
                  "coefficients": floats(eighths(random, (classes - 1), vectors, size=1)),
                  "rho": floats(eighths(random, pairs, size=1)),
                  "vectors_per_class": [int(v) for v in per_class],
                  "classlabels_ints": [int(v) + 3 for v in random.permutation(classes)]}
    if probabilities:
        attributes["prob_a"] = floats(-np.abs(eighths(random, pairs, size=1)) - 0.125)
        attributes["prob_b"] = floats(eighths(random, pairs, size=1))
    width = classes if probabilities or classes == 2 else pairs

    def build(rows):
        return ml_model(rows, columns,
                        [ml_node("SVMClassifier", ["label", "scores"], **attributes)],
                        [("label", [rows], INT64), ("scores", [rows, width])])
    # onnxruntime ends its search for two probabilities within 0.005 / 2.
    return Case(name, build, {"x": ["rows", columns]}, ["label", "scores"], refused,
                apart=None if probabilities else ("scores", 0.02),
                tolerance=0.005 if probabilities else 1e-4)


def svm_cases(random):
    for kernel in KERNELS:
        for i in range(3):
            yield svm_regressor(f"svr_{kernel.lower()}_{i}", random, kernel)
            yield svm_classifier(f"svc_{kernel.lower()}_{i}", random, kernel, 3 + i)
            yield svm_classifier(f"svc_two_{kernel.lower()}_{i}", random, kernel, 2, True)
    yield svm_classifier("svc_two_out", random, "RBF", 2,
                         refused="2 classes without probabilities")
    yield svm_classifier("svc_probabilities_out", random, "RBF", 3, True,
                         refused="fitted to pairs of more than two classes")
    yield svm_regressor("svr_probit_out", random, "RBF", "post_transform PROBIT",
                        post_transform="PROBIT")


def linear_regressor(name, random, transform, refused=""):
    columns, targets = random.randint(1, 9), random.randint(2, 5)
    attributes = {"coefficients": floats(eighths(random, targets, columns, size=1)),
                  "intercepts": floats(eighths(random, targets)), "targets": targets,
                  "post_transform": transform}

    def build(rows):
        return ml_model(rows, columns, [ml_node("LinearRegressor", ["y"], **attributes)],
                        [("y", [rows, targets])])
    return Case(name, build, {"x": ["rows", columns]}, ["y"], refused)


def linear_classifier(name, random, classes, rows_of_weights, transform="NONE", refused=""):
    columns = random.randint(2, 9)
    attributes = {"coefficients": floats(eighths(random, rows_of_weights, columns, size=1)),
                  "intercepts": floats(eighths(random, rows_of_weights)),
                  "classlabels_ints": [int(v) for v in random.permutation(classes)],
                  "post_transform": transform}

    def build(rows):
        return ml_model(rows, columns,
                        [ml_node("LinearClassifier", ["label", "scores"], **attributes)],
                        [("label", [rows], INT64), ("scores", [rows, classes])])
    return Case(name, build, {"x": ["rows", columns]}, ["label", "scores"], refused)


def scaler(name, random, shape):
    columns = shape[-1]
    offset = floats(eighths(random, columns if random.rand() < 0.5 else 1))
    scale = floats(eighths(random, len(offset)))

    def build(rows):
        dims = [rows if d == "rows" else d for d in shape]
        return model([ml_node("Scaler", ["y"], offset=offset, scale=scale)], [("x", dims)],
                     [("y", dims)], opset=18, domains={ML: 3})
    return Case(name, build, {"x": shape}, ["y"])


def normalizer(name, random, norm):
    columns = random.randint(1, 12)

    def build(rows):
        return ml_model(rows, columns, [ml_node("Normalizer", ["y"], norm=norm)],
                        [("y", [rows, columns])])
    return Case(name, build, {"x": ["rows", columns]}, ["y"])


def linear_cases(random):
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        for i in range(2):
            yield linear_regressor(f"linear_{transform.lower()}_{i}", random, transform)
            yield linear_classifier(f"linear_classes_{transform.lower()}_{i}", random, 3 + i, 3 + i,
                                    transform)
    yield linear_classifier("linear_two_classes", random, 2, 2)
    yield linear_regressor("linear_softmax_zero_out", random, "SOFTMAX_ZERO",
                           "post_transform SOFTMAX_ZERO")
    for i in range(4):
        yield scaler(f"scaler_{i}", random, ["rows", int(random.randint(1, 9))])
    for norm in ("MAX", "L1", "L2"):
        for i in range(3):
            yield normalizer(f"normalizer_{norm.lower()}_{i}", random, norm)


def dft(name, random, opset, complex_input=False, refused="", **attributes):
    length = int(random.randint(4, 20))
    size = int(random.choice([length, length + 3, max(length - 2, 1)]))
    axis = int(random.randint(1, 3))
    dims = {1: [length, 2], 2: [2, length]}[axis]
    bins = size // 2 + 1 if attributes.get("onesided") else size
    width = 2 if complex_input else 1
    constants = {"length": np.array(size, np.int64)}
    inputs = ["x", "length"]
    if opset < 20:
        attributes["axis"] = axis
    else:
        constants["axis"] = np.array(axis, np.int64)
        inputs.append("axis")
    out = list(dims)
    out[axis - 1] = bins

    def build(rows):
        return model([node("DFT", inputs, ["y"], **attributes)],
                     [("x", [rows, *dims, width])], [("y", [rows, *out, 2])], constants, opset)
    return Case(name, build, {"x": ["rows", *dims, width]}, ["y"], refused)


def stft(name, random, has_window, onesided, refused="", width=None):
    frame, step = int(random.randint(4, 17)), int(random.randint(1, 6))
    signal = frame + step * int(random.randint(1, 5)) + int(random.randint(0, step))
    shape = [signal] if width is None else [signal, width]
    bins = frame // 2 + 1 if onesided else frame
    frames = (signal - frame) // step + 1
    constants = {"step": np.array(step, np.int64), "length": np.array(frame, np.int64)}
    if has_window:
        constants["window"] = np.hanning(frame + 2)[1:-1].astype(np.float32)

    def build(rows):
        return model([node("STFT", ["x", "step", "window" if has_window else "", "length"], ["y"],
                           onesided=int(onesided))],
                     [("x", [rows, *shape])], [("y", [rows, frames, bins, 2])], constants, 17)
    return Case(name, build, {"x": ["rows", *shape]}, ["y"], refused)


def signal_cases(random):
    for opset in (17, 20):
        for onesided in (0, 1):
            for i in range(3):
                yield dft(f"dft_{opset}_{onesided}_{i}", random, opset, onesided=onesided)
        yield dft(f"dft_{opset}_inverse_out", random, opset, True, "inverse transform", inverse=1)
        yield dft(f"dft_{opset}_complex_out", random, opset, True, "transform of complex numbers")
    for has_window in (False, True):
        for onesided in (True, False):
            for i in range(3):
                yield stft(f"stft_{int(has_window)}_{int(onesided)}_{i}", random, has_window,
                           onesided, width=1)
    yield stft("stft_complex_out", random, True, False, "transform of complex numbers", width=2)


def sequence_case(name, random):
    """A sequence that is built, changed at positions from either end, and joined."""
    nodes, constants = [], {}

    def position(value):
        key = f"at_{len(constants)}"
        constants[key] = np.array(value, np.int64)
        return key
    size = int(random.randint(2, 5))
    if random.rand() < 0.5:
        nodes.append(node("SplitToSequence", ["x"], ["s0"], axis=1, keepdims=1))
        size, width = 4, 1
    else:
        nodes.append(node("SequenceConstruct", ["x"] * size, ["s0"]))
        width = 4
    item = "x"
    if width == 1:
        constants["one"] = np.array([0], np.int64)
        nodes.append(node("Gather", ["x", "one"], ["column"], axis=1))
        item = "column"
    nodes.append(node("Neg", [item], ["other"]))
    last = "s0"
    for step in range(int(random.randint(1, 6))):
        result, at = f"s{step + 1}", int(random.randint(-size, size))
        if random.rand() < 0.6 or size == 1:
            nodes.append(node("SequenceInsert", [last, "other", position(at)], [result]))
            size += 1
        else:
            nodes.append(node("SequenceErase", [last, position(at)], [result]))
            size -= 1
        last = result
    at = int(random.randint(-size, size))
    nodes.append(node("SequenceAt", [last, position(at)], ["one_of_them"]))
    new_axis = int(random.randint(0, 2))
    nodes.append(node("ConcatFromSequence", [last], ["joined"], axis=1, new_axis=new_axis))
    nodes.append(node("SequenceLength", [last], ["length"]))
    nodes.append(node("Cast", ["length"], ["count"], to=FLOAT))
    nodes.append(node("Mul", ["joined", "count"], ["y"]))

    def build(rows):
        dims = [rows, size, width] if new_axis else [rows, size * width]
        return model(nodes, [("x", [rows, 4])], [("y", dims), ("one_of_them", [rows, width])],
                     constants, 13)
    return Case(name, build, {"x": ["rows", 4]}, ["y", "one_of_them"])


def sequence_at_run_time():
    """A position that the input decides."""
    nodes = [node("ReduceMax", ["x"], ["largest"], keepdims=0),
             node("Greater", ["largest", "zero"], ["is_above"]),
             node("Cast", ["is_above"], ["at"], to=INT64),
             node("SequenceConstruct", ["x", "x"], ["s"]),
             node("SequenceAt", ["s", "at"], ["y"])]

    def build(rows):
        return model(nodes, [("x", [rows, 4])], [("y", [rows, 4])],
                     {"zero": np.array(0, np.float32)}, 13)
    return Case("sequence_run_time_out", build, {"x": ["rows", 4]}, ["y"],
                "must be known at compile time")


def sequence_cases(random):
    for i in range(16):
        yield sequence_case(f"sequence_{i}", random)
    yield sequence_at_run_time()


def qonnx_scale(random, columns):
    scale = np.abs(eighths(random, columns if random.rand() < 0.5 else 1)) + 0.125
    return scale.astype(np.float32).reshape(1, -1)


def quant_case(name, random, bits, signed, narrow):
    """Quant of QONNX, asked as its documentation defines it: of ONNX's Clip and Round."""
    columns = int(random.randint(2, 7))
    low = -2 ** (bits - 1) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1 - narrow
    constants = {"scale": qonnx_scale(random, columns), "zero": np.zeros(1, np.float32),
                 "bits": np.array(bits, np.float32)}
    limits = {"low": np.array(low, np.float32), "high": np.array(high, np.float32)}

    def ends(rows):
        return [("x", [rows, columns])], [("y", [rows, columns])]

    def build(rows):
        nodes = [node("Quant", ["x", "scale", "zero", "bits"], ["y"], "qonnx.custom_op.general",
                      signed=int(signed), narrow=int(narrow), rounding_mode="ROUND")]
        return model(nodes, *ends(rows), constants, 13, {"qonnx.custom_op.general": 1})

    def asked(rows):
        nodes = [node("Div", ["x", "scale"], ["steps"]),
                 node("Clip", ["steps", "low", "high"], ["kept"]),
                 node("Round", ["kept"], ["whole"]), node("Mul", ["whole", "scale"], ["y"])]
        return model(nodes, *ends(rows), {**constants, **limits}, 13)
    return Case(name, build, {"x": ["rows", columns]}, ["y"], asked=asked,
                float_only="a core of floats keeps the saturation alone")


def bipolar_case(name, random):
    """BipolarQuant of QONNX, asked as ONNX's Where."""
    columns = int(random.randint(2, 7))
    scale = qonnx_scale(random, columns)

    def ends(rows):
        return [("x", [rows, columns])], [("y", [rows, columns])]

    def build(rows):
        nodes = [node("BipolarQuant", ["x", "scale"], ["y"], "qonnx.custom_op.general")]
        return model(nodes, *ends(rows), {"scale": scale}, 13, {"qonnx.custom_op.general": 1})

    def asked(rows):
        nodes = [node("GreaterOrEqual", ["x", "zero"], ["is_above"]),
                 node("Where", ["is_above", "scale", "minus"], ["y"])]
        return model(nodes, *ends(rows),
                     {"scale": scale, "minus": -scale, "zero": np.zeros(1, np.float32)}, 13)
    return Case(name, build, {"x": ["rows", columns]}, ["y"], asked=asked)


def qonnx_cases(random):
    for bits in (2, 3, 4, 8):
        for signed in (True, False):
            for narrow in (True, False):
                yield quant_case(f"quant_{bits}_{int(signed)}_{int(narrow)}", random, bits, signed,
                                 narrow)
    for i in range(6):
        yield bipolar_case(f"bipolar_{i}", random)


def resize_case(name, random, mode, coordinates, refused=""):
    """An interpolation that resize_degrade_to_nearest turns into the nearest pixels: asked as
    ONNX's nearest mode at the same coordinates."""
    in_size = [int(v) for v in random.randint(1, 9, 2)]
    out_size = [int(v) for v in random.randint(1, 17, 2)]
    sizes = {"sizes": np.array([1, 3, *out_size], np.int64)}

    def built(of_mode):
        return model([node("Resize", ["x", "", "", "sizes"], ["y"], mode=of_mode,
                           coordinate_transformation_mode=coordinates,
                           nearest_mode="round_prefer_floor")],
                     [("x", [1, 3, *in_size])], [("y", [1, 3, *out_size])], sizes, 18)
    return Case(name, lambda rows: built(mode), {"x": [1, 3, *in_size]}, ["y"], refused,
                asked=lambda rows: built("nearest"), keys={"resize_degrade_to_nearest": True})


def resize_cases(random):
    for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        for i in range(6):
            yield resize_case(f"resize_{coordinates}_{i}", random, ["linear", "cubic"][i % 2],
                              coordinates)


FAMILIES = (tree_cases, svm_cases, linear_cases, signal_cases, sequence_cases, qonnx_cases,
            resize_cases)


def all_cases():
    for number, family in enumerate(FAMILIES):
        yield from family(np.random.RandomState(number + 1))
