"""What `wild` calls right, by kind of run.

`worst` is the largest difference from the recorded outputs, `size` their largest absolute value.

- `npuc reference` of a float model: worst <= 1e-4 size; a hundred layers of float32 add up to less.
- a model of integers, by reference and on X2_1204: one step of the output's scale for each operator
  at most. On X2_1204 the nets of EMULATED must also be equal to the bit to wild_emulation.py,
  TensorFlow Lite's reference arithmetic in NumPy: the recorded values are those of kernels for x86,
  which round once where the reference rounds twice.
- a float model with 8-bit weights (HYBRID): worst <= HYBRID_PART size; TensorFlow Lite rounds its
  operands to 8 bits as they come, npuc computes in float.
- a model of integers on GRUS and APUS, which compute it without its rounding: as below, or at most
  UNROUNDED_STEPS of the output's scale (one for each operator where there are fewer), since the
  recorded outputs of some are a few steps large.
- GRUS: worst <= FP16_PART size. float16 has 11 bits, and errors of hundreds of layers add up.
- quantized on samples (X2_1204, APUS): a cosine of at least COSINE.
"""

import numpy as np

import int8_emulation
import onnxmodel
import wild_emulation

DEQUANTIZE = 6
FLOAT_PART = 1e-4
FP16_PART = 0.02
# Models of which onnxruntime itself is further off where every result is rounded to fp16
# (tests/oracle/published/half.py): by so much. The quietest bands of this one's spectrum are
# differences of nearly equal numbers.
ROUNDED_PARTS = {"basic_pitch_nmp": 0.0392}
HYBRID_PART = 0.05
UNROUNDED_STEPS = 8
HYBRID = ("tfex_mnv2_035_embed", "dtln_model_quant_1")
COSINE = {"X2_1204": 0.9, "APUS": 0.999}
EMULATED = ("tflm_hello_int8", "tflm_micro_speech_int8", "mcunet_vww", "tfls_automl_labeler",
            "tfls_mnv1_025_u8")


def real(values, facts):
    """Stored integers as the values that they stand for; floats as they are."""
    if facts["scale"] == 0:
        return values
    return ((values.astype(np.float64) - facts["zero_point"]) *
            np.float64(np.float32(facts["scale"]))).astype(np.float32)


def has_integers(path, framework):
    """Whether a model's activations are integers with scales."""
    with open(path, "rb") as f:
        data = f.read()
    if framework == "TFLITE":
        return any(dtype in (3, 7, 9) for dtype in _result_types(data))
    if framework == "ONNX":
        graph = onnxmodel.Model(data).graph
        kinds = {onnxmodel.name(v, 4) for n, v in onnxmodel.fields(graph) if n == 1}
        return {"QuantizeLinear", "DequantizeLinear"} <= kinds
    return False


def _result_types(data):
    root = int8_emulation.Table(data, int.from_bytes(data[:4], "little"))
    graph = root.tables(2)[0]
    tensors = graph.tables(0)
    return [tensors[i].scalar(1, "b") for op in graph.tables(3)
            for i in op.vector(2, np.int32).tolist()]


def name_tflite(path, inputs, outputs):
    """Names tensors that have none as npuc does, by number."""
    with open(path, "rb") as f:
        data = f.read()
    graph = int8_emulation.Table(data, int.from_bytes(data[:4], "little")).tables(2)[0]
    for ports, field in ((inputs, 1), (outputs, 2)):
        for port, number in zip(ports, graph.vector(field, np.int32).tolist()):
            port["name"] = port["name"] or f"tensor_{number}"


def _tflite_ports(path, field):
    with open(path, "rb") as f:
        data = f.read()
    root = int8_emulation.Table(data, int.from_bytes(data[:4], "little"))
    graph = root.tables(2)[0]
    tensors = graph.tables(0)
    found = []
    for index in graph.vector(field, np.int32).tolist():
        tensor, quant = tensors[index], tensors[index].table(4)
        scales = quant.vector(2, np.float32) if quant else []
        found.append({"name": tensor.text(3), "shape": tensor.vector(0, np.int32).tolist(),
                      "dtype": np.dtype(int8_emulation.TYPES[tensor.scalar(1, "b")]).name,
                      "scale": float(scales[0]) if len(scales) else 0,
                      "zero_point": int(quant.vector(3, np.int64)[0]) if len(scales) else 0})
    return found


def tflite_inputs(path):
    """A TFLite model's inputs as the recordings state them."""
    return _tflite_ports(path, 1)


def tflite_outputs(path):
    """A TFLite model's outputs as the recordings state them."""
    return _tflite_ports(path, 2)


def has_open_dimensions(path):
    """Whether an ONNX model leaves a dimension of an input open."""
    if not path.endswith(".onnx"):
        return False
    with open(path, "rb") as f:
        model = onnxmodel.Model(f.read())
    for number, value in onnxmodel.fields(model.graph):
        if number != 11 or onnxmodel.name(value, 1) not in model.inputs:
            continue
        for wanted in (2, 1, 2):  # type, its tensor's, the shape of that
            value = next((v for n, v in onnxmodel.fields(value) if n == wanted), b"")
        for _, dimension in onnxmodel.fields(value):
            if not any(n == 1 and 0 < size < 2**31 for n, size in onnxmodel.fields(dimension)):
                return True
    return False


def operators(model):
    with open(model.path, "rb") as f:
        data = f.read()
    if model.framework == "TFLITE":
        return len(_result_types(data))
    return sum(n == 1 for n, _ in onnxmodel.fields(onnxmodel.Model(data).graph))


def judge(model, run, results):
    """(what is wrong or None, what was measured)."""
    for got, _ in results:
        if not np.isfinite(got).all():
            return "a value is not finite", ""
    if model.integers and run in ("reference", "X2_1204"):
        return judge_integers(model, run, results)
    if model.integers:
        allowed = min(UNROUNDED_STEPS, operators(model))
        worst = steps_off(model, run, results)
        if worst <= allowed:
            return None, f"{worst} steps off without rounding, {allowed} allowed"
    got = np.concatenate([np.ravel(g).astype(np.float64) for g, _ in results])
    want = np.concatenate([np.ravel(w).astype(np.float64) for _, w in results])
    if run in COSINE:
        length = np.linalg.norm(got) * np.linalg.norm(want)
        cosine = float(got @ want / length) if length else float((got == want).all())
        text = f"cosine {cosine:.5f}"
        return (text if cosine < COSINE[run] else None), text
    part = FLOAT_PART if run == "reference" else ROUNDED_PARTS.get(model.name, FP16_PART)
    if model.name in HYBRID:
        part = HYBRID_PART
    worst = max(float(np.abs(g - w).max()) / max(float(np.abs(w).max()), 1e-6) for g, w in results)
    text = f"{worst:.2g} of the largest value, {part:g} allowed"
    return (text if worst > part else None), text


def steps_off(model, run, results):
    """The largest difference in steps of the outputs' scales."""
    worst = 0
    for output, (got, want) in zip(model.outputs, results):
        step = output["scale"] or _border_scale(model)
        if run == "X2_1204" and model.stored:
            step = 1
        off = np.abs(got.astype(np.float64) - want.astype(np.float64)) / step
        worst = max(worst, int(np.rint(off.max(initial=0))))
    return worst


def judge_integers(model, run, results):
    allowed, worst = operators(model), steps_off(model, run, results)
    text = f"{worst} steps off after {allowed} operators"
    if worst > allowed:
        return text, ""
    if run == "X2_1204" and model.name in EMULATED:
        wrong = compare_emulated(model, results)
        if wrong:
            return f"{text}; {wrong}", ""
        text += ", equal to the emulation"
    return None, text


def _border_scale(model):
    """The scale of the integers that become a model's float outputs."""
    with open(model.path, "rb") as f:
        data = f.read()
    if model.framework == "ONNX":
        graph = list(onnxmodel.fields(onnxmodel.Model(data).graph))
        last = [v for n, v in graph if n == 1 and onnxmodel.name(v, 4) == "DequantizeLinear"][-1]
        scale = [v.decode() for n, v in onnxmodel.fields(last) if n == 1][1]
        constants = dict(onnxmodel.tensor(v) for n, v in graph if n == 5)
        return float(np.ravel(constants[scale])[0])
    root = int8_emulation.Table(data, int.from_bytes(data[:4], "little"))
    codes = [max(c.scalar(0, "b"), c.scalar(3, "i")) for c in root.tables(1)]
    graph = root.tables(2)[0]
    last = [o for o in graph.tables(3) if codes[o.scalar(0, "I")] == DEQUANTIZE][-1]
    integers = graph.tables(0)[last.vector(1, np.int32)[0]]
    return float(integers.table(4).vector(2, np.float32)[0])


def compare_emulated(model, results):
    net = wild_emulation.Model(model.path)
    frames = model.frames[0]
    x = frames.reshape([-1] + list(frames.shape[2:]))
    got = results[0][0]
    if not model.stored:  # what QUANTIZE makes of the floats
        first = next(net.tensors[o[0]] for kind, _, o, _ in net.ops if kind == "QUANTIZE")
        x = np.trunc(x / first.scale + np.copysign(0.5, x)) + first.zero
        x = np.clip(x, -128, 127).astype(np.int8)
    expected = net.run(x)[net.outputs[0]].reshape(got.shape)
    if not model.stored:
        last = [net.tensors[i[0]] for kind, i, _, _ in net.ops if kind == "DEQUANTIZE"][-1]
        got = np.rint(got / last.scale) + last.zero
    differing = int((got != expected).sum())
    return f"{differing} of {expected.size} differ from the emulation" if differing else ""
