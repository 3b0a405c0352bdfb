"""Every config key on a float core, an integer core and the fixed-point core: none is taken in
silence.

    config_keys [-v]

A small net (that of conv_keys, with a sigmoid, a concatenation and a softmax behind it) is compiled
once as it is and once for each key with another value than the default. The key must have an effect
(a file of the output differs beside what repeats the config), or npuc must speak of it (an error,
warning or note that names it, or the log), or its help says that it changes nothing. A key or QUANT
key that `npuc --config-help` lists and VALUES does not is a failure, so a new key comes with its
row here.
"""

import hashlib
import json
import os
import re
import sys

import numpy as np

import conv_keys
import guide_nets
import harness

CORES = ("GRUS", "X2_1204", "APUS")
# Keys that every config here has already.
GIVEN = {"CORENAME", "FRAMEWORK", "MODEL_FILE", "OUTPUT_FILE", "INPUT_OPS", "OUTPUT_OPS", "QUANT",
         "PB_FILE"}
# A value that is not the default; {DATA} and the like are files of the folder.
VALUES = {
    "NPU_UNIT": "NPU64", "PROTOTXT": "a.prototxt", "MODEL_BIN": "a.bin", "OUTPUT_TYPE": "json",
    "INPUT_NCX_TO_NXC": "[0]", "FP16_OUT_OPS": "[out]", "FUSE_BN": "true", "FUSE_BIASADD": "true",
    "COMPRESS": "true", "CONV2D_COMPRESS": "true", "EXCLUDE_COMPRESS_OPS": "[fc/kernel]",
    "EXCLUDE_CONV2D_COMPRESS_OPS": "[conv1/kernel]",
    "WEIGHT_MIN_MAX": "{fc/kernel: [-0.1, 0.1]}", "WEIGHT_CACHE_SIZE": "10240",
    "MODEL_INFO": "words", "OPT_CONFIG": "{TEMPLATE}", "MEMORY_PLAN": "in_place",
    "LAYER_ERROR_FRAMES": "2", "MAX_CACHE_SIZE": "65536", "USE_DATA_CACHE": "true",
    "SPLIT_CMD": "true", "COMPRESS_QUANT_BITS": "4", "COMPRESS_TYPE": "GAUSSIAN",
    "INPUT_DATA": "input.npy", "SPACE_OPTIMIZATION": "true", "MEAN_SHRINK_OPS": "[mean]",
    "FLOAT16": "true", "FLOAT16_EXP_BITS": "4"}
QUANT_VALUES = {
    "weight_bits": "4", "bias_bits": "16", "activation_bits": "12", "lut_items_in_bits": "6",
    "quantize_method_for_weight": "per_channel_symmetric_restricted_range",
    "quantize_method_for_activation": "per_tensor_asymmetric",
    "calibration_strategy_for_activation": "KLD", "calibration_strategy_for_weight": "2std",
    "calibration_data": "{OTHER}", "calibration_batch_size": "4", "dataset": "imagenet",
    "running_statistic_momentum": "0.2", "histc_bins": "64",
    "trim_infinity_before_statistic": "'(-0.5, 0.5):clip'", "save_statistic_info": "true",
    "statistic_file": "{STATISTICS}", "opt_config": "{TEMPLATE}", "bias_effective_bits": "6",
    "unify_scales_for_concat": "true", "unify_scales_for_concat_max_depth": "3",
    "mixed_precision_auto_search": "'2,0.00001,L'", "global_calibration": "[equalization]",
    "fake_quant_scopes_for_debug": "[fc]", "fake_quant_operators_for_debug": "[FullyConnected]",
    "force_float_ir": "true", "with_winograd": "true", "cast_dtypes_for_lib": "true",
    "dump": "true", "data": "{DATA}", "label": "{LABEL}", "metric": "[mse]",
    "metric_batch_size": "3", "without_batch_dim": "true", "dump_dir": "d",
    "featuremap_tiling_param": "x", "featuremap_splits_item_x": "2",
    "featuremap_splits_item_y": "2", "featuremap_splits_overlap_rate": "2"}
# Keys that act only beside another one.
BESIDE = {"EXCLUDE_COMPRESS_OPS": "COMPRESS: true\n",
          "WEIGHT_MIN_MAX": "COMPRESS: true\n",
          "EXCLUDE_CONV2D_COMPRESS_OPS": "CONV2D_COMPRESS: true\n"}
QUANT_BESIDE = {"calibration_batch_size": {"running_statistic_momentum": "0.5"},
                "histc_bins": {"calibration_strategy_for_activation": "KLD"},
                "label": {"data": "{DATA}"}, "metric": {"data": "{DATA}", "label": "{LABEL}"},
                "metric_batch_size": {"data": "{DATA}", "label": "{LABEL}"}}
# A change of a core's template, so that giving it back has an effect.
TEMPLATE_EDITS = {"GRUS": ('"q_bits_weight": 16', '"q_bits_weight": 8'),
                  "X2_1204": ('"q_bits_weight": 8', '"q_bits_weight": 6'),
                  "APUS": ('"lut_items_in_bits": 12', '"lut_items_in_bits": 14')}
# Defects that are known and not cured yet: the line of the issue by (core, key). Empty where none.
KNOWN_SILENT = {
    (core, key): "18.12" for core in ("X2_1204", "APUS")
    for key in ("NPU_UNIT", "FP16_OUT_OPS", "unify_scales_for_concat_max_depth")} | {
    ("APUS", key): "18.12" for key in ("lut_items_in_bits", "calibration_batch_size")}


def net(folder):
    g = conv_keys.Net().graph
    g.op("Sigmoid", "s", "y")
    g.concat("both", ["y", "s"], 1)
    g.op("Softmax", "out", "both")
    with open(os.path.join(folder, "net.pb"), "wb") as f:
        f.write(g.serialize())
    random = np.random.RandomState(5)
    for name, count in (("samples", 12), ("other", 5), ("data", 6)):
        np.save(os.path.join(folder, name + ".npy"),
                (random.randn(count, 10, 10, 3) * (2 if name == "other" else 1)).astype(np.float32))
    np.save(os.path.join(folder, "label.npy"), random.randint(0, 20, 6).astype(np.int64))


def config(folder, core, more="", quant=None):
    text = (f"CORENAME: {core}\nFRAMEWORK: TF\nMODEL_FILE: net.pb\nOUTPUT_FILE: net.h\n"
            "INPUT_OPS: {x: [1, 10, 10, 3]}\nOUTPUT_OPS: [out]\n" + more)
    if core != "GRUS":
        keys = {"calibration_data": "samples.npy", **(quant or {})}
        text += "QUANT:\n" + "".join(f"  {k}: {v}\n" for k, v in keys.items())
    elif quant:
        text += "QUANT:\n" + "".join(f"  {k}: {v}\n" for k, v in quant.items())
    path = os.path.join(folder, "net.yaml")
    for name, file in FILES.items():
        text = text.replace(name, os.path.join(folder, file))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


FILES = {"{TEMPLATE}": "template.json", "{STATISTICS}": "statistics.json", "{OTHER}": "other.npy",
         "{DATA}": "data.npy", "{LABEL}": "label.npy"}


def without_config(name, data):
    """A file's content but for the report's copy of the config and of what was said."""
    if name == "report.json":
        report = json.loads(data)
        report.pop("diagnostics")
        report.pop("config")
        return json.dumps(report)
    return data.decode("utf-8", "replace")


def outputs(folder, path):
    """(exit code, what was said, digest of each file)."""
    out = os.path.join(folder, "out")
    done = harness.npuc(path, "-o", out, expect=None)
    said, files = done.stdout + done.stderr, {}
    for name in sorted(os.listdir(out)) if os.path.isdir(out) else []:
        with open(os.path.join(out, name), "rb") as f:
            data = f.read()
        os.remove(os.path.join(out, name))
        if name == "compile.log":
            said += data.decode("utf-8", "replace")
        elif name != "report.html":
            files[name] = hashlib.md5(without_config(name, data).encode()).hexdigest()
    harness.check(done.returncode in (0, 1), f"{path}: exit {done.returncode}: {said[-500:]}")
    harness.check("NPUC19" not in said, f"{path}: {said[-500:]}")
    return done.returncode, said, files


def listed_keys():
    """({key: help} of a config, of QUANT)."""
    text = harness.npuc("--config-help").stdout
    head, rest = text.split("Keys of its QUANT mapping:")
    keys = {m[1]: m[0] for m in re.finditer(r"^([A-Z][A-Z0-9_]+): .*\n(?: .*\n)*", head, re.M)}
    quant = {m[1]: m[0] for m in re.finditer(r"^  ([a-z_]+): .*$",
                                             rest.split("\nKeys of a .cfg")[0], re.M)}
    return keys, quant


def verdict(key, base, changed, help_text):
    code, said, files = changed
    if code == 1:
        return "refused" if key.lower() in said.lower() or "NPUC" in said else "silent"
    if files != base[2]:
        return "effect"
    if key.lower() in said.lower():
        return "word"
    if key == "force_float_ir":
        return "documented"  # of a quantized model, which this one is not
    if re.search(r"changes? nothing|cach\w* nothing|no splitting|all give the same|"
                 r"command stream is the same", help_text):
        return "documented"
    return "silent"


def prepare(folder, core):
    """The plain compile, and the files that a compile leaves for keys that take one."""
    quant = {"save_statistic_info": "true"} if core != "GRUS" else None
    first = os.path.join(folder, "first")
    harness.npuc(config(folder, core, quant=quant), "-o", first)
    for name, kept in (("opt_template.json", "template.json"),
                       ("statistics.json", "statistics.json")):
        if os.path.exists(os.path.join(first, name)):
            os.replace(os.path.join(first, name), os.path.join(folder, kept))
    path = os.path.join(folder, "template.json")
    with open(path, encoding="utf-8") as f:
        text = json.dumps(json.load(f))
    was, now = TEMPLATE_EDITS[core]
    harness.check(was in text, f"{core}: its template has no {was}")
    text = text.replace(was, now)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def check_core(core, keys, quant_keys, verbose):
    silent, counts = [], {}
    with harness.scratch() as folder:
        net(folder)
        prepare(folder, core)
        jobs = [(key, f"{BESIDE.get(key, '')}{key}: {VALUES[key]}\n", {}, BESIDE.get(key, ""), {})
                for key in keys if key in VALUES]
        if core != "GRUS":
            jobs += [(key, "", {**QUANT_BESIDE.get(key, {}), key: QUANT_VALUES[key]}, "",
                      QUANT_BESIDE.get(key, {})) for key in quant_keys]
        for key, more, quant, beside, quant_beside in jobs:
            base = outputs(folder, config(folder, core, beside, quant_beside))
            changed = outputs(folder, config(folder, core, more, quant))
            found = verdict(key, base, changed, keys.get(key) or quant_keys[key])
            counts[found] = counts.get(found, 0) + 1
            if verbose:
                print(f"{core} {key}: {found}", flush=True)
            if found == "silent" and (core, key) not in KNOWN_SILENT:
                silent.append(f"{core}: {key}")
    return silent, counts


def main(arguments):
    keys, quant_keys = listed_keys()
    missing = [k for k in keys if k not in VALUES and k not in GIVEN]
    missing += [k for k in quant_keys if k not in QUANT_VALUES]
    harness.check(not missing, f"keys without a value in VALUES or QUANT_VALUES: {missing}")
    silent = []
    for core in CORES:
        found, counts = check_core(core, keys, quant_keys, "-v" in arguments)
        silent += found
        harness.figure(f"config keys on {core}: " + ", ".join(f"{n} {v}" for v, n in
                                                              sorted(counts.items())))
    harness.check(not silent, "taken in silence: " + ", ".join(silent))


if __name__ == "__main__":
    main(sys.argv[1:])
