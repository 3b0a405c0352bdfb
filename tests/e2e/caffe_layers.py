"""Layers of Caffe and of its forks, computed in NumPy by the formulas of the sources that they
name: what the recorded cases of the shared folder leave out, and OpenCV gets wrong."""

import numpy as np

RNG = np.random.default_rng(7)


def data(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


class Case:
    """One net: layers as text behind its inputs, blobs by layer, inputs and outputs by name."""

    def __init__(self, text, inputs, outputs, blobs=None):
        shapes = "".join(
            f'layer {{ name: "{n}" type: "Input" top: "{n}" input_param {{ shape {{ '
            + " ".join(f"dim: {d}" for d in a.shape) + " } } }\n" for n, a in inputs.items())
        self.text = 'name: "net"\n' + shapes + text
        self.inputs, self.outputs, self.blobs = inputs, outputs, blobs or {}


def one(type_, params, x, y, blobs=(), more=()):
    """A net of one layer."""
    inputs = {"x": x, **{f"x{i + 1}": m for i, m in enumerate(more)}}
    bottoms = "".join(f' bottom: "{n}"' for n in inputs)
    return Case(f'layer {{ name: "l" type: "{type_}"{bottoms} top: "y" {params} }}', inputs,
                {"y": y}, {"l": list(blobs)} if blobs else {})


def windows(x, kernel, stride, pad, mode, rounds_up=True):
    """pooling_layer.cpp: Forward_cpu, one image."""
    _, channels, *sizes = x.shape
    counts = []
    for size in sizes:
        room = size + 2 * pad - kernel
        count = (-(-room // stride) if rounds_up else room // stride) + 1
        if pad and (count - 1) * stride >= size + pad:
            count -= 1
        counts.append(count)
    out = np.zeros((1, channels, *counts), np.float32)
    for h in range(counts[0]):
        for w in range(counts[1]):
            h0, w0 = h * stride - pad, w * stride - pad
            h1, w1 = min(h0 + kernel, sizes[0] + pad), min(w0 + kernel, sizes[1] + pad)
            area = (h1 - h0) * (w1 - w0)
            part = x[0, :, max(h0, 0):min(h1, sizes[0]), max(w0, 0):min(w1, sizes[1])]
            out[0, :, h, w] = (part.max((1, 2)) if mode == "MAX" else part.sum((1, 2)) / area)
    return out


def pooling(mode, size, kernel, stride, pad, floor=False):
    x = data(1, 2, *size)
    params = (f"pooling_param {{ pool: {mode} kernel_size: {kernel} stride: {stride} pad: {pad} "
              f"{'round_mode: FLOOR ' if floor else ''}}}")
    return one("Pooling", params, x, windows(x, kernel, stride, pad, mode, not floor))


def lrn_across(x, size, alpha, beta, k):
    squares = np.pad(x.astype(np.float64)**2, ((0, 0), (size // 2,) * 2, (0, 0), (0, 0)))
    total = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return x / (k + alpha / size * total)**beta


def lrn_within(x, size, alpha, beta):
    """lrn_layer.cpp: the average of squares by pooling with its padding, then 1 + alpha * it."""
    p = size // 2
    squares = np.pad(x.astype(np.float64)**2, ((0, 0), (0, 0), (p, p), (p, p)))
    total = sum(squares[:, :, i:i + x.shape[2], j:j + x.shape[3]]
                for i in range(size) for j in range(size))
    return x / (1 + alpha * total / size**2)**beta


def interp(x, height, width):
    """interp.cpp of DeepLab: bilinear, corners on corners."""
    def axis(a, which, out):
        size = a.shape[which]
        at = np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
        low = np.minimum(np.floor(at).astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        shape = [1, 1, 1, 1]
        shape[which] = out
        part = (at - low).reshape(shape)
        return np.take(a, low, which) * (1 - part) + np.take(a, high, which) * part
    return axis(axis(x.astype(np.float64), 2, height), 3, width)


def batch_norm(x, mean, variance, factor, eps):
    scale = 0 if factor == 0 else 1 / factor
    shape = (1, -1, 1, 1)
    return (x - (mean * scale).reshape(shape)) / np.sqrt((variance * scale).reshape(shape) + eps)


def normalize(x, across, scale):
    axes = (1, 2, 3) if across else 1
    return x / np.sqrt((x.astype(np.float64)**2).sum(axes, keepdims=True) + 1e-10) * scale


def mvn(x, axes, with_variance=True):
    centred = x - x.mean(axes, keepdims=True, dtype=np.float64)
    if not with_variance:
        return centred
    return centred / (np.sqrt((centred**2).mean(axes, keepdims=True)) + 1e-9)


def prior_boxes(feature, image, min_size, max_size, ratios, clip):
    """prior_box_layer.cpp of SSD; sizes are integers there."""
    out = []
    step = [i / f for i, f in zip(image, feature)]
    for h in range(feature[0]):
        for w in range(feature[1]):
            x, y = (w + 0.5) * step[1], (h + 0.5) * step[0]
            side = np.sqrt(int(min_size) * int(max_size))
            sizes = [(int(min_size), int(min_size)), (side, side)]
            for r in ratios:
                sizes += [(int(min_size) * np.sqrt(q), int(min_size) / np.sqrt(q))
                          for q in (r, 1 / r)]
            for bw, bh in sizes:
                out += [(x - bw / 2) / image[1], (y - bh / 2) / image[0],
                        (x + bw / 2) / image[1], (y + bh / 2) / image[0]]
    boxes = np.clip(out, 0, 1) if clip else np.array(out)
    return np.stack([boxes, np.full(boxes.shape, 0.1)])[None].astype(np.float32)


def convolution(x, weight, bias, groups=1, stride=1):
    """[1,C,H,W] without padding."""
    outputs, inner, kh, kw = weight.shape
    height, width = (x.shape[2] - kh) // stride + 1, (x.shape[3] - kw) // stride + 1
    y = np.zeros((1, outputs, height, width))
    for o in range(outputs):
        first = o // (outputs // groups) * inner
        for h in range(height):
            for w in range(width):
                part = x[0, first:first + inner, h * stride:h * stride + kh,
                         w * stride:w * stride + kw]
                y[0, o, h, w] = (part * weight[o]).sum()
    return y + (0 if bias is None else bias.reshape(1, -1, 1, 1))


def deconvolution(x, weight, bias, groups, stride, pad):
    """Each input pixel adds its weights to the result. weight [C,O/groups,k,k]."""
    channels, inner, k, _ = weight.shape
    full = [stride * (n - 1) + k for n in x.shape[2:]]
    y = np.zeros((1, inner * groups, *full))
    for c in range(channels):
        first = c // (channels // groups) * inner
        for h in range(x.shape[2]):
            for w in range(x.shape[3]):
                y[0, first:first + inner, h * stride:h * stride + k, w * stride:w * stride + k] += (
                    x[0, c, h, w] * weight[c])
    end = [n - pad for n in full]
    return y[:, :, pad:end[0], pad:end[1]] + bias.reshape(1, -1, 1, 1)


def pooling_cases():
    cases = {}
    for mode in ("MAX", "AVE"):
        for window in ((3, 2, 0), (3, 2, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2), (2, 1, 1)):
            name = f"pool_{mode}_{'_'.join(map(str, window))}"
            cases[name] = pooling(mode, (7, 10), *window)
        cases[f"pool_{mode}_floor"] = pooling(mode, (8, 10), 3, 2, 1, floor=True)
    return cases


def norm_cases():
    x = data(1, 6, 5, 4)
    channels = data(6)
    variance = np.abs(data(6)) + 0.1
    return {
        "lrn_across": one("LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 k: 2 }", x,
                          lrn_across(x, 3, 0.5, 0.6, 2)),
        "lrn_within": one(
            "LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 norm_region: WITHIN_CHANNEL }",
            x, lrn_within(x, 3, 0.5, 0.75)),
        "batch_norm_factor": one("BatchNorm", "", x, batch_norm(x, channels, variance, 4, 1e-5),
                                 [channels, variance, np.float32([4])]),
        "batch_norm_factor_0": one("BatchNorm", "batch_norm_param { eps: 0.01 }", x,
                                   batch_norm(x, channels, variance, 0, 0.01),
                                   [channels, variance, np.float32([0])]),
        "normalize_across": one("Normalize", "norm_param { channel_shared: true }", x,
                                normalize(x, True, 3), [np.float32([3])]),
        "normalize_channels": one(
            "Normalize", "norm_param { across_spatial: false channel_shared: false }", x,
            normalize(x, False, channels.reshape(1, -1, 1, 1)), [channels]),
        "mvn": one("MVN", "", x, mvn(x, (2, 3))),
        "mvn_across": one("MVN", "mvn_param { across_channels: true }", x, mvn(x, (1, 2, 3))),
        "mvn_mean": one("MVN", "mvn_param { normalize_variance: false }", x, mvn(x, (2, 3), False)),
    }


def function_cases():
    x = data(1, 3, 4, 5)
    positive = np.abs(x) + 0.5
    slopes = data(3)
    return {
        "relu_slope": one("ReLU", "relu_param { negative_slope: 0.25 }", x,
                          np.where(x > 0, x, 0.25 * x)),
        "relu6": one("ReLU6", "", 8 * x, np.clip(8 * x, 0, 6)),
        "prelu_shared": one("PReLU", "prelu_param { channel_shared: true }", x,
                            np.where(x > 0, x, 0.3 * x), [np.float32([0.3])]),
        "prelu": one("PReLU", "", x, np.where(x > 0, x, slopes.reshape(1, 3, 1, 1) * x), [slopes]),
        "elu": one("ELU", "elu_param { alpha: 0.5 }", x, np.where(x > 0, x, 0.5 * np.expm1(x))),
        "swish": one("Swish", "swish_param { beta: 2 }", x, x / (1 + np.exp(-2 * x))),
        "clip": one("Clip", "clip_param { min: -0.5 max: 0.25 }", x, np.clip(x, -0.5, 0.25)),
        "power": one("Power", "power_param { power: 2 scale: 0.5 shift: 1 }", x,
                     (1 + 0.5 * x)**2),
        "power_root": one("Power", "power_param { power: 0.5 scale: 2 }", positive,
                          np.sqrt(2 * positive)),
        "power_scale": one("Power", "power_param { scale: 0.0078125 shift: -1 }", x,
                           x / 128 - 1),
        "exp_base": one("Exp", "exp_param { base: 2 scale: 3 shift: 1 }", x, 2.0**(1 + 3 * x)),
        "log": one("Log", "log_param { scale: 2 shift: 1 }", positive, np.log(1 + 2 * positive)),
        "log_base": one("Log", "log_param { base: 10 }", positive, np.log10(positive)),
        "bnll": one("BNLL", "", 5 * x, np.log1p(np.exp(5 * x))),
    }


def arithmetic_cases():
    x, other = data(1, 3, 4, 5), data(1, 3, 4, 5)
    third = data(1, 3, 4, 5)
    weight, bias = data(6, 60), data(6)
    scale, shift = data(3, 4), data(3, 4)
    per_item = data(1, 3)
    return {
        "eltwise_max": one("Eltwise", "eltwise_param { operation: MAX }", x,
                           np.maximum(np.maximum(x, other), third), more=[other, third]),
        "eltwise_coeff": one("Eltwise", "eltwise_param { operation: SUM coeff: [1, -1, 0.5] }", x,
                             x - other + 0.5 * third, more=[other, third]),
        "inner_product_transpose": one(
            "InnerProduct", "inner_product_param { num_output: 6 transpose: true }", x,
            x.reshape(1, 60) @ weight.reshape(60, 6) + bias, [weight.reshape(60, 6), bias]),
        "inner_product_axis": one(
            "InnerProduct", "inner_product_param { num_output: 3 axis: -1 bias_term: false }", x,
            x @ weight[:3, :5].T, [np.ascontiguousarray(weight[:3, :5])]),
        "scale_axes": one("Scale", "scale_param { axis: 1 num_axes: 2 bias_term: true }", x,
                          x * scale[None, :, :, None] + shift[None, :, :, None], [scale, shift]),
        "scale_all": one("Scale", "scale_param { axis: 0 num_axes: -1 }", x, x * other, [other]),
        "scale_scalar": one("Scale", "scale_param { num_axes: 0 }", x, x * np.float32(0.5),
                            [np.float32(0.5)]),
        "scale_by_bottom": one("Scale", "scale_param { axis: 0 }", x,
                               x * per_item[:, :, None, None], more=[per_item]),
        "bias": one("Bias", "", x, x + bias[:3].reshape(1, 3, 1, 1), [bias[:3]]),
        "bias_by_bottom": one("Bias", "bias_param { axis: 0 }", x, x + other, more=[other]),
        "axpy": Case('layer { name: "l" type: "Axpy" bottom: "s" bottom: "a" bottom: "b" '
                     'top: "y" }',
                     {"s": per_item.reshape(1, 3, 1, 1), "a": x, "b": other},
                     {"y": per_item[:, :, None, None] * x + other}),
        "reduction_sum": one("Reduction", "reduction_param { axis: 1 coeff: 2 }", x,
                             2 * x.sum((1, 2, 3))),
        "reduction_asum": one("Reduction", "reduction_param { operation: ASUM axis: -1 }", x,
                              np.abs(x).sum(3)),
        "reduction_sumsq": one("Reduction", "reduction_param { operation: SUMSQ axis: 2 }", x,
                               (x**2).sum((2, 3))),
        "reduction_mean": one("Reduction", "reduction_param { operation: 4 axis: 2 }", x,
                              x.mean((2, 3))),
    }


def shape_cases():
    x = data(2, 6, 4, 5)
    image = data(1, 3, 5, 7)
    shuffled = x.reshape(2, 3, 2, 4, 5).transpose(0, 2, 1, 3, 4).reshape(x.shape)
    return {
        "reshape_axis": one(
            "Reshape", "reshape_param { shape { dim: 3 dim: -1 } axis: 1 num_axes: 1 }", x,
            x.reshape(2, 3, 2, 4, 5)),
        "reshape_end": one("Reshape", "reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }", x,
                           x.reshape(2, 6, 4, 5, 1)),
        "reshape_copy": one("Reshape", "reshape_param { shape { dim: 0 dim: 0 dim: -1 } }", x,
                            x.reshape(2, 6, 20)),
        "flatten_axes": one("Flatten", "flatten_param { axis: 1 end_axis: 2 }", x,
                            x.reshape(2, 24, 5)),
        "permute_some": one("Permute", "permute_param { order: 0 order: 3 }", x,
                            x.transpose(0, 3, 1, 2)),
        "slice_old": Case('layer { name: "l" type: "Slice" bottom: "x" top: "a" top: "b" '
                          "slice_param { slice_dim: 1 slice_point: 4 } }", {"x": x},
                          {"a": x[:, :4], "b": x[:, 4:]}),
        "slice_equal": Case('layer { name: "l" type: "Slice" bottom: "x" top: "a" top: "b" '
                            "slice_param { axis: 2 } }", {"x": x},
                            {"a": x[:, :, :2], "b": x[:, :, 2:]}),
        "concat_old": one("Concat", "concat_param { concat_dim: 0 }", x,
                          np.concatenate([x, x[::-1]], 0), more=[x[::-1].copy()]),
        "tile": one("Tile", "tile_param { axis: 2 tiles: 3 }", x, np.tile(x, (1, 1, 3, 1))),
        "crop_one_offset": one("Crop", "crop_param { axis: 2 offset: 1 }", image,
                               image[:, :, 1:4, 1:5], more=[data(1, 2, 3, 4)]),
        "shuffle_channel": one("ShuffleChannel", "shuffle_channel_param { group: 3 }", x, shuffled),
        "interp_size": one("Interp", "interp_param { height: 9 width: 4 }", image,
                           interp(image, 9, 4)),
        "interp_zoom": one("Interp", "interp_param { zoom_factor: 2 }", image,
                           interp(image, 9, 13)),
        "interp_shrink": one("Interp", "interp_param { shrink_factor: 2 }", image,
                             interp(image, 3, 4)),
        "interp_pads": one("Interp", "interp_param { height: 8 width: 8 pad_beg: -1 pad_end: -1 }",
                           image, interp(image[:, :, 1:-1, 1:-1], 8, 8)),
        "interp_bottom": one("Interp", "", image, interp(image, 6, 6), more=[data(1, 1, 6, 6)]),
        "upsample": one("Upsample", "upsample_param { scale: 2 }", image,
                        image.repeat(2, 2).repeat(2, 3)),
    }


def window_cases():
    x = data(1, 4, 5, 6)
    weight, bias = data(4, 1, 3, 3), data(4)
    grouped = data(4, 2, 3, 3)
    line = data(1, 4, 9)
    tall = data(3, 4, 3)
    cases = {
        "conv_groups": one("Convolution", "convolution_param { num_output: 6 kernel_h: 3 "
                           "kernel_w: 2 group: 2 stride: 2 }", x, None,
                           [data(6, 2, 3, 2), data(6)]),
        "conv_1d": one("Convolution", "convolution_param { num_output: 3 kernel_size: 3 "
                       "bias_term: false }", line,
                       convolution(line[:, :, None], tall[:, :, None], None)[:, :, 0], [tall]),
        "deconv_groups": one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 3 "
                             "group: 2 stride: 2 pad: 1 }", x,
                             deconvolution(x, grouped, bias, 2, 2, 1), [grouped, bias]),
        "deconv_depthwise": one("Deconvolution", "convolution_param { num_output: 4 kernel_size: 3 "
                                "group: 4 stride: 3 }", x,
                                deconvolution(x, weight, bias, 4, 3, 0), [weight, bias]),
    }
    for type_, group in (("DepthwiseConvolution", "group: 4"), ("ConvolutionDepthwise", "")):
        params = f"convolution_param {{ num_output: 4 kernel_size: 3 {group} }}"
        cases[type_] = one(type_, params, x, convolution(x, weight, bias, 4), [weight, bias])
    groups = cases["conv_groups"]
    groups.outputs["y"] = convolution(x, *groups.blobs["l"], 2, 2)
    return cases


def net_cases():
    x = data(1, 2, 4, 4)
    boxes = data(1, 3, 20, 30)
    weight, bias = data(3, 2, 1, 1), data(3)
    y = convolution(x, weight, bias)
    conv = ('layer { name: "c" type: "Convolution" bottom: "x" top: "c" '
            "convolution_param { num_output: 3 kernel_size: 1 } }\n")
    logits = y.reshape(1, -1)
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return {
        "in_place_chain": Case(
            conv + 'layer { name: "r" type: "ReLU" bottom: "c" top: "c" }\n'
            'layer { name: "p" type: "Power" bottom: "c" top: "c" power_param { shift: 1 } }\n',
            {"x": x}, {"c": np.maximum(y, 0) + 1}, {"c": [weight, bias]}),
        "branch_before_in_place": Case(
            conv + 'layer { name: "a" type: "AbsVal" bottom: "c" top: "a" }\n'
            'layer { name: "r" type: "ReLU" bottom: "c" top: "c" }\n',
            {"x": x}, {"a": np.abs(y), "c": np.maximum(y, 0)}, {"c": [weight, bias]}),
        "phases": Case(
            conv + 'layer { name: "t" type: "Power" bottom: "c" top: "c" include { phase: TRAIN } '
            "power_param { shift: 5 } }\n"
            'layer { name: "s" type: "Power" bottom: "c" top: "c" include { stage: "deploy" } '
            "power_param { shift: 7 } }\n"
            'layer { name: "e" type: "Power" bottom: "c" top: "c" exclude { phase: TRAIN } '
            "power_param { shift: 2 } }\n", {"x": x}, {"c": y + 2}, {"c": [weight, bias]}),
        "loss_is_softmax": Case(
            conv + 'layer { name: "f" type: "Flatten" bottom: "c" top: "f" }\n'
            'layer { name: "d" type: "Data" top: "label" }\n'
            'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" '
            'top: "prob" }\n'
            'layer { name: "acc" type: "Accuracy" bottom: "f" bottom: "label" top: "acc" }\n',
            {"x": x}, {"prob": shifted / shifted.sum(1, keepdims=True)}, {"c": [weight, bias]}),
        "detection": Case(
            conv + 'layer { name: "loc" type: "Flatten" bottom: "c" top: "loc" }\n'
            'layer { name: "prior" type: "PriorBox" bottom: "c" bottom: "x" top: "prior" '
            "prior_box_param { min_size: 2 } }\n"
            'layer { name: "conf" type: "AbsVal" bottom: "loc" top: "conf" }\n'
            'layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" '
            'bottom: "prior" top: "out" detection_output_param { num_classes: 2 } }\n',
            {"x": x}, {"loc": y.reshape(1, -1), "conf": np.abs(y.reshape(1, -1))},
            {"c": [weight, bias]}),
        "prior_box": Case(
            'layer { name: "p" type: "PriorBox" bottom: "f" bottom: "i" top: "y" prior_box_param { '
            "min_size: 8.9 max_size: 16.5 aspect_ratio: 2 aspect_ratio: 3 clip: true } }\n",
            {"f": data(1, 1, 2, 3), "i": boxes},
            {"y": prior_boxes((2, 3), (20, 30), 8.9, 16.5, (2, 3), True)}),
    }


def cases():
    return {**pooling_cases(), **norm_cases(), **function_cases(), **arithmetic_cases(),
            **shape_cases(), **window_cases(), **net_cases()}
