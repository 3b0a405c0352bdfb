"""Small nets: every operator of the TFLite front end, float and quantized."""

import numpy as np

import tflitemodel


class Maker:
    """A net with a seeded source of weights."""

    def __init__(self, name, quantized=("int8", "uint8")):
        self.net = tflitemodel.Net(name)
        self.rng = np.random.default_rng(abs(hash_name(name)))
        self.quantized = quantized

    def weights(self, name, *shape, scale=0.5):
        return self.net.const(name, self.rng.uniform(-scale, scale, shape).astype(np.float32))


def hash_name(name):
    value = 7
    for byte in name.encode():
        value = (value * 131 + byte) % (1 << 31)
    return value


def same(size, stride):
    return -(-size // stride)


def conv_nets():
    cases = {"conv_valid": ((3, 3), (1, 1), (1, 1), "VALID", "NONE", 4),
             "conv_same_stride": ((3, 2), (2, 2), (1, 1), "SAME", "RELU", 4),
             "conv_dilated": ((2, 2), (1, 1), (2, 3), "VALID", "RELU6", 3),
             "conv_pointwise": ((1, 1), (1, 1), (1, 1), "SAME", "RELU_N1_TO_1", 5)}
    for name, (k, s, d, padding, act, out) in cases.items():
        m = Maker(name)
        x = m.net.input("x", (1, 8, 9, 3))
        hw = [same(n, s[i]) if padding == "SAME" else (n - (k[i] - 1) * d[i] - 1) // s[i] + 1
              for i, n in enumerate((8, 9))]
        y = m.net.op("CONV_2D", [x, m.weights("w", out, k[0], k[1], 3), m.weights("b", out)],
                     [(1, *hw, out)], "Conv2DOptions",
                     {"padding": padding, "stride_h": s[0], "stride_w": s[1], "dilation_h": d[0],
                      "dilation_w": d[1], "activation": act})
        m.net.output(y)
        yield m
    for name, channels, mult, s in (("depthwise", 3, 1, 1), ("depthwise_stride", 4, 1, 2),
                                    ("depthwise_first", 1, 6, 2),
                                 ("depthwise_multiplier", 3, 2, 1)):
        m = Maker(name)
        x = m.net.input("x", (1, 7, 6, channels))
        out = channels * mult
        y = m.net.op("DEPTHWISE_CONV_2D",
                     [x, m.weights("w", 1, 3, 3, out), m.weights("b", out)],
                     [(1, same(7, s), same(6, s), out)], "DepthwiseConv2DOptions",
                     {"padding": "SAME", "stride_h": s, "stride_w": s, "depth_multiplier": mult,
                      "activation": "RELU"})
        m.net.output(y)
        yield m
    for name, code, options, weight in (
            ("dilation_group", "CONV_2D", "Conv2DOptions", (4, 3, 3, 3)),
            ("dilation_group_depthwise", "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions",
             (1, 3, 3, 3))):
        m = Maker(name, ("int8",))
        x = m.net.input("x", (1, 7, 6, 3))
        out = weight[0] if code == "CONV_2D" else weight[3]
        block = m.net.const("block", np.array([2, 2], np.int32))
        paddings = m.net.const("paddings", np.array([[2, 3], [2, 2]], np.int32))
        batched = m.net.op("SPACE_TO_BATCH_ND", [x, block, paddings], [(4, 6, 5, 3)])
        convolved = m.net.op(code, [batched, m.weights("w", *weight), m.weights("b", out)],
                             [(4, 4, 3, out)], options,
                             {"padding": "VALID", "stride_h": 1, "stride_w": 1,
                              "activation": "RELU"}
                             | ({} if code == "CONV_2D" else {"depth_multiplier": 1}))
        m.net.output(m.net.op("BATCH_TO_SPACE_ND",
                              [convolved, block,
                               m.net.const("crops", np.array([[0, 1], [0, 0]], np.int32))],
                              [(1, 7, 6, out)]))
        yield m
    for name, padding, shape in (("transpose_conv_same", "SAME", (1, 8, 6, 2)),
                                 ("transpose_conv_valid", "VALID", (1, 9, 7, 2))):
        m = Maker(name, ("int8",))
        x = m.net.input("x", (1, 4, 3, 3))
        y = m.net.op("TRANSPOSE_CONV", [m.net.const("shape", np.array(shape, np.int32)),
                                        m.weights("w", 2, 3, 3, 3), x], [shape],
                     "TransposeConvOptions", {"padding": padding, "stride_h": 2, "stride_w": 2})
        m.net.output(y)
        yield m
    for code, options in (("AVERAGE_POOL_2D", "avg"), ("MAX_POOL_2D", "max")):
        for padding in ("SAME", "VALID"):
            m = Maker(f"{options}_pool_{padding.lower()}")
            x = m.net.input("x", (1, 7, 6, 3))
            hw = (4, 3) if padding == "SAME" else (3, 2)
            y = m.net.op(code, [x], [(1, *hw, 3)], "Pool2DOptions",
                         {"padding": padding, "stride_h": 2, "stride_w": 2, "filter_h": 3,
                          "filter_w": 3})
            m.net.output(y)
            yield m


def unary_nets():
    for code, low, high in (("RELU", -3, 3), ("RELU6", -9, 9), ("RELU_N1_TO_1", -3, 3),
                            ("LOGISTIC", -6, 6), ("TANH", -3, 3), ("ABS", -3, 3), ("NEG", -3, 3),
                            ("EXP", -3, 3), ("LOG", 0.1, 5), ("SQRT", 0, 5), ("RSQRT", 0.2, 5),
                            ("SQUARE", -3, 3), ("HARD_SWISH", -5, 5), ("ELU", -4, 4),
                            ("ROUND", -5, 5)):
        quantized = {"LOGISTIC", "TANH", "RELU", "RELU6", "HARD_SWISH"}
        m = Maker(f"unary_{code.lower()}", ("int8", "uint8") if code in quantized else ())
        x = m.net.input("x", (2, 3, 4, 5))
        m.net.output(m.net.op(code, [x], [(2, 3, 4, 5)]))
        m.low, m.high = low, high
        yield m
    m = Maker("leaky_relu", ("int8",))
    x = m.net.input("x", (2, 30))
    m.net.output(m.net.op("LEAKY_RELU", [x], [(2, 30)], "LeakyReluOptions", {"alpha": 0.25}))
    yield m
    for name, approximate in (("gelu", False), ("gelu_tanh", True)):
        m = Maker(name, ())
        x = m.net.input("x", (2, 30))
        m.net.output(m.net.op("GELU", [x], [(2, 30)], "GeluOptions", {"approximate": approximate}))
        yield m
    for code, shape in (("SELECT", (3,)), ("SELECT", (3, 4)), ("SELECT_V2", (1, 4))):
        m = Maker(f"{code.lower()}_{len(shape)}", ())
        x, y = m.net.input("x", (3, 4)), m.net.input("y", (3, 4))
        condition = m.net.const("condition", m.rng.uniform(-1, 1, shape) > 0)
        m.net.output(m.net.op(code, [condition, x, y], [(3, 4)]))
        yield m
    m = Maker("zeros_like", ())
    x = m.net.input("x", (3, 4))
    m.net.output(m.net.op("MAXIMUM", [x, m.net.op("ZEROS_LIKE", [x], [(3, 4)])], [(3, 4)]))
    yield m
    m = Maker("prelu", ("int8",))
    x = m.net.input("x", (1, 3, 4, 5))
    m.net.output(m.net.op("PRELU", [x, m.weights("slopes", 1, 1, 5)], [(1, 3, 4, 5)]))
    yield m


def binary_nets():
    for code, options in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"),
                          ("DIV", "DivOptions"), ("MAXIMUM", None), ("MINIMUM", None),
                          ("SQUARED_DIFFERENCE", None), ("POW", None)):
        for kind, other in (("same", (1, 3, 4, 5)), ("row", (5,))):
            quantized = {"ADD": ("int8", "uint8"), "SUB": ("int8", "uint8"),
                         "MUL": ("int8", "uint8"), "SQUARED_DIFFERENCE": ("int8",)}
            m = Maker(f"{code.lower()}_{kind}", quantized.get(code, ()))
            x = m.net.input("x", (1, 3, 4, 5))
            b = m.net.input("b", other) if kind == "same" else m.weights("b", *other, scale=2.0)
            if code in ("DIV", "POW"):
                m.low, m.high = 0.5, 3
                if kind == "row":
                    m.net.tensors["b"]["value"] = np.abs(m.net.tensors["b"]["value"]) + 0.5
            m.net.output(m.net.op(code, [x, b], [(1, 3, 4, 5)], options,
                                  {"activation": "RELU"} if options else None))
            yield m


def linear_nets():
    for name, rank, keep in (("fully_connected", 2, False), ("fully_connected_keep", 3, True),
                             ("fully_connected_flat", 3, False)):
        m = Maker(name)
        shape = (3, 16) if rank == 2 else (1, 4, 16)
        x = m.net.input("x", shape)
        rows = int(np.prod(shape)) // 16
        y = m.net.op("FULLY_CONNECTED", [x, m.weights("w", 7, 16), m.weights("b", 7)],
                     [(*shape[:-1], 7) if keep else (rows, 7)], "FullyConnectedOptions",
                     {"activation": "RELU", "keep_num_dims": keep})
        m.net.output(y)
        yield m
    m = Maker("batch_matmul", ())
    x, y = m.net.input("x", (2, 3, 4)), m.net.input("y", (2, 5, 4))
    m.net.output(m.net.op("BATCH_MATMUL", [x, y], [(2, 3, 5)], "BatchMatMulOptions",
                          {"adj_y": True}))
    yield m


def reduce_nets():
    for code, quantized in (("MEAN", ("int8", "uint8")), ("SUM", ()), ("REDUCE_MAX", ("int8",)),
                            ("REDUCE_MIN", ())):
        for keep in (False, True):
            m = Maker(f"{code.lower()}_{'keep' if keep else 'drop'}", quantized)
            x = m.net.input("x", (1, 4, 5, 6))
            shape = (1, 1, 1, 6) if keep else (1, 6)
            m.net.output(m.net.op(code, [x, m.net.const("axes", np.array([1, 2], np.int32))],
                                  [shape], "ReducerOptions", {"keep_dims": keep}))
            yield m
    for beta in (1.0, 0.5):
        m = Maker(f"softmax_{beta}")
        x = m.net.input("x", (3, 10))
        m.net.output(m.net.op("SOFTMAX", [x], [(3, 10)], "SoftmaxOptions", {"beta": beta}))
        yield m
    m = Maker("log_softmax", ("int8",))
    x = m.net.input("x", (3, 10))
    m.net.output(m.net.op("LOG_SOFTMAX", [x], [(3, 10)]))
    yield m
    m = Maker("l2_normalization", ())
    x = m.net.input("x", (3, 10))
    m.net.output(m.net.op("L2_NORMALIZATION", [x], [(3, 10)], "L2NormOptions", {}))
    yield m


def shape_nets():
    ints = lambda *v: np.array(v, np.int32)  # noqa: E731

    def one(name, code, shape, results, constants=(), options=None, fields=None, first=True):
        m = Maker(name, ("int8",))
        x = m.net.input("x", shape)
        operands = [m.net.const(f"c{i}", c) for i, c in enumerate(constants)]
        y = m.net.op(code, [x] + operands if first else operands + [x], results, options, fields)
        m.net.output(*([y] if isinstance(y, str) else y))
        return m

    yield one("reshape", "RESHAPE", (2, 3, 4), [(6, 4)], [ints(-1, 4)])
    yield one("squeeze", "SQUEEZE", (1, 3, 1, 4), [(3, 1, 4)], (), "SqueezeOptions",
              {"squeeze_dims": [0]})
    yield one("expand_dims", "EXPAND_DIMS", (3, 4), [(3, 1, 4)], [ints(1).reshape(())])
    yield one("transpose", "TRANSPOSE", (2, 3, 4), [(4, 2, 3)], [ints(2, 0, 1)])
    yield one("pad", "PAD", (1, 3, 4, 2), [(1, 6, 4, 3)],
              [ints(0, 0, 1, 2, 0, 0, 0, 1).reshape(4, 2)])
    yield one("mirror_pad_reflect", "MIRROR_PAD", (3, 4), [(6, 7)],
              [ints(1, 2, 3, 0).reshape(2, 2)], "MirrorPadOptions", {"mode": 0})
    yield one("mirror_pad_symmetric", "MIRROR_PAD", (3, 4), [(6, 7)],
              [ints(1, 2, 3, 0).reshape(2, 2)], "MirrorPadOptions", {"mode": 1})
    yield one("slice", "SLICE", (3, 4, 5), [(2, 3, 5)], [ints(1, 0, 0), ints(2, 3, -1)])
    yield one("strided_slice", "STRIDED_SLICE", (4, 5, 6), [(2, 6)],
              [ints(0, 1, 9), ints(4, 2, -9), ints(2, 1, -1)], "StridedSliceOptions",
              {"shrink_axis_mask": 2, "end_mask": 4})
    yield one("split", "SPLIT", (2, 6), [(2, 2)] * 3, [ints(1).reshape(())], "SplitOptions",
              {"num_splits": 3}, first=False)
    yield one("split_v", "SPLIT_V", (2, 6), [(2, 1), (2, 5)], [ints(1, 5), ints(1).reshape(())],
              "SplitVOptions", {"num_splits": 2})
    yield one("gather", "GATHER", (4, 5), [(4, 3)], [ints(4, 0, 2)], "GatherOptions", {"axis": 1})
    yield one("unpack", "UNPACK", (2, 3), [(2,)] * 3, (), "UnpackOptions", {"num": 3, "axis": 1})
    yield one("tile", "TILE", (2, 3), [(4, 3)], [ints(2, 1)])
    yield one("space_to_batch", "SPACE_TO_BATCH_ND", (1, 3, 5, 2), [(6, 2, 2, 2)],
              [ints(2, 3), ints(1, 0, 0, 1).reshape(2, 2)])
    yield one("batch_to_space", "BATCH_TO_SPACE_ND", (6, 2, 2, 2), [(1, 3, 5, 2)],
              [ints(2, 3), ints(0, 1, 1, 0).reshape(2, 2)])
    yield one("space_to_depth", "SPACE_TO_DEPTH", (1, 4, 6, 2), [(1, 2, 3, 8)], (),
              "SpaceToDepthOptions", {"block_size": 2})
    yield one("depth_to_space", "DEPTH_TO_SPACE", (1, 2, 3, 8), [(1, 4, 6, 2)], (),
              "DepthToSpaceOptions", {"block_size": 2})
    for name, code, options, fields in (
            ("bilinear", "RESIZE_BILINEAR", "ResizeBilinearOptions", {}),
            ("bilinear_corners", "RESIZE_BILINEAR", "ResizeBilinearOptions",
             {"align_corners": True}),
            ("bilinear_centers", "RESIZE_BILINEAR", "ResizeBilinearOptions",
             {"half_pixel_centers": True}),
            ("nearest", "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestOptions", {}),
            ("nearest_corners", "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestOptions",
             {"align_corners": True}),
            ("nearest_centers", "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestOptions",
             {"half_pixel_centers": True})):
        yield one(f"resize_{name}", code, (1, 3, 4, 2), [(1, 7, 6, 2)], [ints(7, 6)], options,
                  fields)
    m = Maker("concatenation", ("int8",))
    x = m.net.input("x", (2, 3))
    y = m.net.op("CONCATENATION", [x, m.weights("c", 2, 2), x], [(2, 8)], "ConcatenationOptions",
                 {"axis": 1})
    m.net.output(y)
    yield m
    m = Maker("pack", ("int8",))
    x = m.net.input("x", (2, 3))
    m.net.output(m.net.op("PACK", [x, x], [(2, 2, 3)], "PackOptions",
                          {"axis": 1, "values_count": 2}))
    yield m


def whole_nets():
    """Keyword-spotting shapes: convolutions, a residual sum, pooling, dense, softmax."""
    m = Maker("net_small")
    n = m.net
    x = n.input("x", (1, 12, 10, 1))
    conv = {"padding": "SAME", "stride_h": 2, "stride_w": 2, "activation": "RELU"}
    a = n.op("CONV_2D", [x, m.weights("w1", 8, 3, 3, 1), m.weights("b1", 8)], [(1, 6, 5, 8)],
             "Conv2DOptions", conv)
    step = dict(conv, stride_h=1, stride_w=1)
    b = n.op("DEPTHWISE_CONV_2D", [a, m.weights("w2", 1, 3, 3, 8), m.weights("b2", 8)],
             [(1, 6, 5, 8)], "DepthwiseConv2DOptions", dict(step, depth_multiplier=1))
    c = n.op("CONV_2D", [b, m.weights("w3", 8, 1, 1, 8), m.weights("b3", 8)], [(1, 6, 5, 8)],
             "Conv2DOptions", dict(step, activation="NONE"))
    d = n.op("ADD", [a, c], [(1, 6, 5, 8)], "AddOptions", {"activation": "RELU"})
    e = n.op("AVERAGE_POOL_2D", [d], [(1, 1, 1, 8)], "Pool2DOptions",
             {"padding": "VALID", "stride_h": 1, "stride_w": 1, "filter_h": 6, "filter_w": 5})
    f = n.op("RESHAPE", [e, n.const("flat", np.array([1, 8], np.int32))], [(1, 8)])
    g = n.op("FULLY_CONNECTED", [f, m.weights("w4", 4, 8), m.weights("b4", 4)], [(1, 4)],
             "FullyConnectedOptions", {})
    n.output(n.op("SOFTMAX", [g], [(1, 4)], "SoftmaxOptions", {"beta": 1.0}))
    yield m
    for name, time_major in (("lstm", False), ("lstm_time_major", True)):
        m = Maker(name, ())
        m.items = 1  # the interpreter keeps the state from one run to the next
        shape = (5, 1, 4) if time_major else (1, 5, 4)
        x = m.net.input("x", shape)
        operands = lstm_operands(m, x)
        m.net.output(m.net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [(*shape[:2], 3)],
                              "UnidirectionalSequenceLstmOptions",
                              {"activation": "TANH", "time_major": time_major}))
        yield m


def lstm_operands(m, x):
    """x and the weights of an LSTM of 4 inputs and 3 units, whose states are variables."""
    operands = [x] + [m.weights(f"w{i}", 3, 4) for i in range(4)]
    operands += [m.weights(f"r{i}", 3, 3) for i in range(4)] + [None] * 3
    operands += [m.weights(f"b{i}", 3) for i in range(4)] + [None] * 2
    for state in ("h", "c"):
        m.net._add(state, (1, 3))
        m.net.tensors[state]["variable"] = True
        operands.append(state)
    return operands + [None] * 4


def recurrent_step_nets():
    """Layers of one step a call, frames in a row: the state goes on, as it does in npuc."""
    m = Maker("lstm_step", ())
    m.items = 50
    operands = lstm_operands(m, m.net.input("x", (1, 1, 4)))
    m.net.output(m.net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [(1, 1, 3)],
                          "UnidirectionalSequenceLstmOptions",
                          {"activation": "TANH", "time_major": False, "cell_clip": 0.6}))
    yield m
    m = Maker("rnn_step", ())
    m.items = 50
    x = m.net.input("x", (1, 1, 4))
    m.net._add("h", (1, 3))
    m.net.tensors["h"]["variable"] = True
    operands = [x, m.weights("w", 3, 4), m.weights("r", 3, 3), m.weights("b", 3), "h"]
    m.net.output(m.net.op("UNIDIRECTIONAL_SEQUENCE_RNN", operands, [(1, 1, 3)],
                          "SequenceRnnOptions", {"activation": "TANH", "time_major": False}))
    yield m


def stored(net, name, value, dtype, scale):
    """A constant of integers that stand for `value` by this scale."""
    info = np.iinfo(dtype)
    q = np.clip(np.rint(value / np.float32(scale)), info.min, info.max).astype(dtype)
    return net._add(name, value.shape, dtype, q, {"scale": [float(np.float32(scale))],
                                                  "zero_point": [0]})


def svdf_nets():
    """Frames in a row: the interpreter keeps the state from one run to the next, as npuc does."""
    for name, rank, filters, memory in (("svdf", 1, 4, 3), ("svdf_rank2", 2, 6, 5)):
        m = Maker(name, ())
        x = m.net.input("x", (1, 7))
        operands = [x, m.weights("feature", filters, 7), m.weights("time", filters, memory),
                    m.weights("bias", filters // rank), "state"]
        m.net._add("state", (1, filters * memory))
        m.net.tensors["state"]["variable"] = True
        m.net.output(m.net.op("SVDF", operands, [(1, filters // rank)], "SvdfOptions",
                              {"rank": rank, "activation": "RELU"}))
        yield m
    for name, rank, filters, memory in (("svdf_int8", 1, 16, 8), ("svdf_rank2_int8", 2, 12, 5)):
        m = Maker(name, ())
        m.stored = True
        net, f32 = m.net, np.float32
        net.inputs.append(net._add("x", (1, 24), "int8", None,
                                   {"scale": [float(f32(0.0157))], "zero_point": [3]}))
        state = f32(0.0004)
        operands = ["x", stored(net, "feature", m.rng.uniform(-0.5, 0.5, (filters, 24)), "int8",
                                0.004),
                    stored(net, "time", m.rng.uniform(-1, 1, (filters, memory)), "int16", 3.1e-5),
                    stored(net, "bias", m.rng.uniform(-1, 1, (filters // rank,)), "int32",
                           state * f32(3.1e-5)), "state"]
        net._add("state", (1, filters * memory), "int16", None,
                 {"scale": [float(state)], "zero_point": [0]})
        net.tensors["state"]["variable"] = True
        y = net.op("SVDF", operands, [(1, filters // rank)], "SvdfOptions",
                   {"rank": rank, "activation": "RELU"})
        net.tensors[y].update(type="int8", quant={"scale": [float(f32(0.021))],
                                                  "zero_point": [-128]})
        net.output(y)
        yield m


def all_nets():
    for family in (conv_nets, unary_nets, binary_nets, linear_nets, reduce_nets, shape_nets,
                   whole_nets, svdf_nets, recurrent_step_nets):
        yield from family()
