"""Each config key on each kind of core: an effect, a word or a refusal, and never silence.

    run_e2e.py config_keys [KEY...]

The keys are those that `npuc --config-help` prints, QUANT's among them; a key without a row here
fails. Each row sets its key to a value that is not the default, some beside other keys that the row
and the compile which it is compared with both have. Then the compile must either give another
program (or, of the keys in REPORTED, another report), or say something that names the key, or be
refused by a diagnostic that names it.
"""

import json
import os
import re
import subprocess

import numpy as np

import guide_nets
import harness

CORES = ("GRUS", "LEO", "X2_1204", "APUS")
FLOATS = ("GRUS", "LEO")
SEED = 3
# Their effect is in report.json alone.
REPORTED = {"LAYER_ERROR_FRAMES", "WEIGHT_CACHE_SIZE", "data", "label", "metric"}
# The words of a refusal in place of the key's name.
REFUSALS = {"DETECTION_POSTPROCESS": "boxes.yaml", "PLUGINS": "ops.yaml",
            "ADDRESSES": "addresses.ini", "INPUT_DATA": "CONST_INPUTS",
            "fake_quant_scopes_for_debug": "stays in float",
            "fake_quant_operators_for_debug": "stays in float"}



class ByCore:
    """A value of a key whose default differs: for the cores of fp16, for the others."""

    def __init__(self, floats, others):
        self.floats, self.others = floats, others

    def on(self, core):
        return self.floats if core in FLOATS else self.others


# key: (value, other keys) ...
CONFIG_ROWS = {
    "CORENAME": [("APUZ", {})],
    "NPU_UNIT": [("NPU16", {})],
    "FRAMEWORK": [("ONNX", {})],
    "MODEL_FILE": [("other.pb", {})],
    "PB_FILE": [("other.pb", {})],
    "PROTOTXT": [("net.prototxt", {})],
    "MODEL_BIN": [("net.bin", {})],
    "WEIGHTS_FILE": [("net.params", {})],
    "DETECTION_POSTPROCESS": [("boxes.yaml", {})],
    "BOXES": [("{type: YOLO3_TINY, image_size: [16, 16]}", {})],
    "PLUGINS": [("ops.yaml", {})],
    "ADDRESSES": [("addresses.ini", {})],
    "OUTPUT_TYPE": [("raw", {})],
    "OUTPUT_FILE": [("other.h", {})],
    "INPUT_OPS": [({"x": [2, 10, 10, 3]}, {})],
    "CONST_INPUTS": [({"x": 0.5}, {})],
    "DIMS": [({"batch": 2}, {})],
    "PREPROCESS": [("RGB2BGR", {})],
    "OUTPUT_OPS": [(["middle"], {})],
    "KEEP_STATES": [(["*"], {})],
    "INPUT_NCX_TO_NXC": [([0], {})],
    "FP16_OUT_OPS": [(["y"], {})],
    "FUSE_BN": [(True, {})],
    "FUSE_BIASADD": [(True, {})],
    "COMPRESS": [(True, {})],
    "CONV2D_COMPRESS": [(True, {})],
    "EXCLUDE_COMPRESS_OPS": [(["fc/kernel"], {}), (["fc/kernel"], {"COMPRESS": True})],
    "EXCLUDE_CONV2D_COMPRESS_OPS": [(["conv1/kernel"], {}),
                                    (["conv1/kernel"], {"CONV2D_COMPRESS": True})],
    "WEIGHT_MIN_MAX": [({"fc/kernel": [-0.1, 0.1]}, {}),
                       ({"fc/kernel": [-0.1, 0.1]}, {"COMPRESS": True})],
    "WEIGHT_CACHE_SIZE": [(10240, {})],
    "MODEL_INFO": [("kws-v1", {})],
    "OPT_CONFIG": [("edited.json", {})],
    "MEMORY_PLAN": [(ByCore("in_place", "compatible"), {})],
    "OPTIMIZE": [("size", {})],
    "SRAM_LIMIT": [(1 << 20, {}), (16, {})],
    "CODE_WEIGHTS": [(False, {})],
    "CORES": [(2, {})],
    "KEEP_DEAD": [(True, {})],
    "LAYER_ERROR_FRAMES": [(2, {})],
    "STRICT_OPS": [(True, {})],
    "QUANT": [({"calibration_data": "other.npy"}, {})],
    "MAX_CACHE_SIZE": [(65536, {})],
    "USE_DATA_CACHE": [(True, {})],
    "SPLIT_CMD": [(True, {})],
    "COMPRESS_QUANT_BITS": [(6, {}), (6, {"COMPRESS": True})],
    "COMPRESS_TYPE": [("GAUSSIAN", {}), ("GAUSSIAN", {"CONV2D_COMPRESS": True})],
    "INPUT_DATA": [({"x": 0.5}, {})],
    "SPACE_OPTIMIZATION": [(True, {})],
    "MEAN_SHRINK_OPS": [(["mean"], {})],
    "FLOAT16": [(True, {}), (True, {"FLOAT16_EXP_BITS": 4})],
    "FLOAT16_EXP_BITS": [(6, {}), (6, {"FLOAT16": True})],
    "SECURE": [(True, {})],
    "DEBUG_INFO_ENABLE": [(True, {})],
}
DATA = {"data": "x.npy"}
STATISTICS = {"calibration_data": None, "statistic_file": "statistics.json"}
QUANT_ROWS = {
    "preset": [("fast", {}), ("best", {})],
    "weight_bits": [(4, {}), (12, {})],
    "bias_bits": [(16, {})],
    "activation_bits": [(12, {})],
    "least_sqnr": [(60, {})],
    "lut_items_in_bits": [(5, {}), (5, {"activation_bits": 16}), (14, {"activation_bits": 16})],
    "quantize_method_for_weight": [("per_channel_symmetric_full_range", {})],
    "quantize_method_for_activation": [("per_tensor_asymmetric", {})],
    "calibration_strategy_for_activation": [("KLD", {}), ("3std", {}), ("best_single", {}),
                                            ("auto", {})],
    "calibration_strategy_for_weight": [("3std", {})],
    "calibration_data": [("other.npy", {})],
    "calibration_batch_size": [(4, {}), (4, {"calibration_strategy_for_activation": "extrema"})],
    "dataset": [("imagenet", {})],
    "running_statistic_momentum": [(0.5, {}),
                                   (0.5, {"calibration_strategy_for_activation": "extrema"})],
    "histc_bins": [(64, {}), (64, {"calibration_strategy_for_activation": "KLD"}),
                   (64, {"save_statistic_info": True})],
    "trim_infinity_before_statistic": [("(-1, 1):clip", {}), ("[(0, 2):(-1, 1):clip]", {}),
                                       ("[tile:(-1, 1):clip]", {}), ("(-1, 1):clip", STATISTICS)],
    "save_statistic_info": [(True, {})],
    "statistic_file": [("other.json", STATISTICS), ("statistics.json", {})],
    "opt_config": [("edited.json", {})],
    "bias_effective_bits": [(4, {}), (40, {})],
    "unify_scales_for_concat": [(True, {})],
    "unify_scales_for_concat_max_depth": [(1, {}), (1, {"unify_scales_for_concat": True})],
    "mixed_precision_auto_search": [("1,0.,L", {}), ("1,0.,L", STATISTICS)],
    "global_calibration": [(["equalization"], {}), (["adaround"], {}), (["bias_correction"], {}),
                           (["adaround"], STATISTICS)],
    "fake_quant_scopes_for_debug": [(["fc"], {}), ("[(1,1)]", {})],
    "fake_quant_operators_for_debug": [(["FullyConnected"], {})],
    "force_float_ir": [(True, {})],
    "with_winograd": [(True, {})],
    "cast_dtypes_for_lib": [(True, {})],
    "dump": [(True, {})],
    "input_bytes": [("1/50, 120", {})],
    "data": [("x.npy", {})],
    "label": [("labels.npy", {**DATA, "metric": ["cosine"]}), ("labels.npy", {})],
    "metric": [(["cosine"], DATA), (["cosine"], {})],
    "metric_batch_size": [(4, DATA)],
    "without_batch_dim": [(True, {})],
    "dump_dir": [("d", {})],
    "featuremap_tiling_param": [("[(1,2,2,2)]", {})],
    "featuremap_splits_item_x": [(2, {})],
    "featuremap_splits_item_y": [(2, {})],
    "featuremap_splits_overlap_rate": [(40, {})],
    "resize_degrade_to_nearest": [(True, {})],
}


def net(seed):
    """Two convolutions, one with a batch norm; nested concatenations of unlike ranges; dense. The
    vendor lists no Maximum for GRUS. Nothing reads the last channel of relu1."""
    g = guide_nets.Writer(seed)
    window = {"strides": [1, 1, 1, 1], "padding": b"VALID", "data_format": b"NHWC"}
    g.placeholder("x", [1, 10, 10, 3])
    g.weight("conv1/kernel", 3, 3, 3, 8)
    g.weight("conv1/b", 8, scale=0.5)
    g.op("Conv2D", "conv1", "x", "conv1/kernel", **window)
    g.op("BiasAdd", "conv1/bias", "conv1", "conv1/b")
    for part in ("gamma", "beta", "mean"):
        g.weight(f"bn/{part}", 8, scale=0.5)
    g.const("bn/variance", np.linspace(0.5, 1.5, 8).astype(np.float32))
    g.node("FusedBatchNormV3", "bn", ["conv1/bias", *(f"bn/{p}" for p in
                                                      ("gamma", "beta", "mean", "variance"))],
           {"T": guide_nets.FLOAT, "U": guide_nets.FLOAT, "epsilon": 0.001, "is_training": False,
            "data_format": b"NHWC"})
    g.op("Relu", "relu1", "bn")
    random = np.random.RandomState(seed)
    kernel = random.randn(1, 1, 8, 8) / np.sqrt(8)
    kernel[:, :, 7] = 0
    g.const("conv2/kernel", kernel.astype(np.float32))
    g.weight("conv2/b", 8, scale=0.5)
    g.op("Conv2D", "conv2", "relu1", "conv2/kernel", **window)
    g.op("BiasAdd", "conv2/bias", "conv2", "conv2/b")
    g.op("Sigmoid", "gate", "conv2/bias")
    g.op("Mul", "middle", "conv2/bias", "gate")
    g.op("Maximum", "most", "middle", "gate")
    g.concat("inner", ["most", "gate"], 3)
    g.concat("outer", ["inner", "relu1"], 3)
    g.reshape("flat", "outer", [-1, 8 * 8 * 24])
    kernel = random.randn(8, 8, 24, 4) / np.sqrt(8 * 8 * 24)
    kernel[:, :, 23] = 0
    g.const("fc/kernel", kernel.reshape(-1, 4).astype(np.float32))
    g.weight("fc/b", 4, scale=9)
    g.op("MatMul", "fc", "flat", "fc/kernel", transpose_a=False, transpose_b=False)
    g.op("BiasAdd", "y", "fc", "fc/b")
    return g


class Bench:
    """A folder with the model, its data and what earlier compiles of it wrote; one core."""

    def __init__(self, folder, core):
        self.folder, self.core = folder, core
        for name, seed in (("net.pb", SEED), ("other.pb", SEED + 1)):
            with open(self.path(name), "wb") as f:
                f.write(net(seed).serialize())
        random = np.random.RandomState(SEED)
        np.save(self.path("x.npy"), random.randn(12, 10, 10, 3).astype(np.float32))
        np.save(self.path("other.npy"), 3 * random.randn(12, 10, 10, 3).astype(np.float32))
        np.save(self.path("labels.npy"), np.arange(12) % 4)
        self.seen = {}
        if core not in FLOATS:
            for data, name in (("x.npy", "statistics.json"), ("other.npy", "other.json")):
                files = self.compile({}, {"calibration_data": data, "save_statistic_info": True})[2]
                with open(self.path(name), "wb") as f:
                    f.write(files["statistics.json"])
        self.edit_template(self.compile({}, {})[2]["opt_template.json"])

    def path(self, name):
        return os.path.join(self.folder, name)

    def edit_template(self, text):
        template = json.loads(text)
        if self.core in FLOATS:
            template["fc/kernel"]["q_bits_weight"] = 8
        else:
            template["fc"]["bias_effective_bits"] = 6
        with open(self.path("edited.json"), "w", encoding="utf-8") as f:
            json.dump(template, f)

    def compile(self, keys, quant):
        """(exit code, what was said, artifacts by name); keys and quant over the usual ones."""
        config = {"CORENAME": self.core, "FRAMEWORK": "TF", "MODEL_FILE": "net.pb",
                  "OUTPUT_FILE": "net.h", "INPUT_OPS": {"x": [1, 10, 10, 3]}, "OUTPUT_OPS": ["y"]}
        if self.core == "LEO":
            config["NPU_UNIT"] = "NPU32"
        if self.core not in FLOATS:
            mapping = {"calibration_data": "x.npy", **quant}
            config["QUANT"] = {k: v for k, v in mapping.items() if v is not None}
        config.update(keys)
        text = json.dumps(config, sort_keys=True)  # JSON is YAML
        if text not in self.seen:
            self.seen[text] = self.run(text)
        return self.seen[text]

    def run(self, text):
        with open(self.path("config.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        out = self.path("out")
        subprocess.run(["rm", "-rf", out], check=True)
        done = subprocess.run([harness.program("npuc"), self.path("config.yaml"), "-o", out],
                              capture_output=True, text=True, timeout=120, check=False)
        harness.check(done.returncode in (0, 1), f"exit code {done.returncode}: {text}")
        files = {}
        for name in os.listdir(out) if os.path.isdir(out) else []:
            with open(os.path.join(out, name), "rb") as f:
                files[name] = f.read()
        return done.returncode, done.stdout + done.stderr, files


def told(key, artifacts):
    """What an effect of the key would change."""
    def is_program(name):
        return name.endswith(".h") or name == "statistics.json"
    # A header says when it was made.
    chosen = {name: re.sub(rb"\(\d{14}\)", b"", data) for name, data in artifacts.items()
              if is_program(name)}
    if key in REPORTED:
        report = json.loads(artifacts["report.json"])
        report.pop("diagnostics", None)
        report.pop("config", None)
        chosen["report"] = json.dumps(report, sort_keys=True)
    return chosen


def outcome(bench, key, keys, quant, usual):
    code, said, files = bench.compile(keys, quant)
    is_named = re.search(rf"\b{re.escape(key)}\b", said) or REFUSALS.get(key, "\0") in said
    if code != 0:
        harness.check(is_named, f"{bench.core}, {key}: refused without its name: {said}")
        return "refused"
    if is_named:
        return "word"
    harness.check(usual[0] == 0, f"{bench.core}, {key}: what it is compared with fails: {usual[1]}")
    harness.check(told(key, files) != told(key, usual[2]),
                  f"{bench.core}, {key}: silent. Set to another value than the default, it changes "
                  f"nothing and nothing is said. {keys} {quant}")
    return "effect"


def listed_keys():
    text = harness.npuc("--config-help").stdout
    own, _, quant = text.partition("QUANT mapping")
    keys = re.findall(r"^([A-Z][A-Z0-9_]+): ", own, re.M)
    return keys, re.findall(r"^ +([a-z_]+): ", quant.split("aipubuild")[0], re.M)


def check_core(core, wanted):
    counts = {"effect": 0, "word": 0, "refused": 0}
    with harness.scratch() as folder:
        bench = Bench(folder, core)
        for key, rows in CONFIG_ROWS.items():
            for value, beside in rows if wanted(key) else []:
                value = value.on(core) if isinstance(value, ByCore) else value
                usual = bench.compile(beside, {})
                counts[outcome(bench, key, {**beside, key: value}, {}, usual)] += 1
        for key, rows in QUANT_ROWS.items() if core not in FLOATS else []:
            for value, beside in rows if wanted(key) else []:
                usual = bench.compile({}, beside)
                counts[outcome(bench, key, {}, {**beside, key: value}, usual)] += 1
    harness.figure(f"config_keys, {core}: " + ", ".join(f"{n} {w}" for w, n in counts.items()))


def main(arguments):
    keys, quant = listed_keys()
    harness.check(len(keys) > 20 and len(quant) > 20, f"keys of --config-help: {keys} {quant}")
    for listed, rows in ((keys, CONFIG_ROWS), (quant, QUANT_ROWS)):
        harness.check(set(listed) == set(rows),
                      f"keys without a row, or rows without a key: {set(listed) ^ set(rows)}")
    for core in CORES:
        check_core(core, lambda key: not arguments or key in arguments)
