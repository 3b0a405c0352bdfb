#!/usr/bin/env python3
"""Turns core descriptions (cores/*.yaml) into core_tables.cc.

Usage: generate_cores.py OUTPUT.cc CORE.yaml...

Every key and value is checked here, so that a slip in a data file stops the build with the file
and line instead of surfacing in a compile. AllCores() has them in the order of their places.
"""

import os
import re
import sys

import yaml

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "base", "frameworks.inc")
LIMITS = [
    "macs", "sram_bytes", "npu_sram_bytes", "region_alignment_bytes", "weight_alignment_bytes",
    "address_bits", "matrix_block", "matrix_product_limit", "matrix_dim_bits",
    ("extent_bits", 3), "stride_bits", "immediate_bits", "pool_window_max", "weight_code_bits",
    "vector_lanes", "format_lanes", "buffer_alignment_bytes",
    "conv_side_max", "plane_side_max", "plane_taps_max", "plane_stride_max",
    "node_commands_max",
]
# Family -> the section of limits that it needs.
FAMILIES = {"fp16": ("kFp16", "limits"), "fp16_books": ("kFp16Books", "limits"),
            "integer": ("kInteger", "integer"), "fixed_point": ("kFixedPoint", "integer")}
INTEGER = ["cores", "engines", "sram_bytes", "buffer_alignment_bytes"]
CYCLES = ["command_cycles", "register_sets", "macs_per_cycle", "elements_per_cycle",
          "bytes_per_cycle"]
ARRAY = ["outputs", "inputs", "pixels", "weights_per_cycle"]
CORE_KEYS = {"name", "alias", "place", "family", "chips", "npu_units", "unit_macs",
             "output_types", "compute_type", "note", "limits", "integer", "cycles", "array",
             "operators", "operators_of"}
LINE = "__line__"


class Loader(yaml.SafeLoader):
    """Keeps the line of every mapping and refuses duplicate keys, which PyYAML merges."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise Fault(f"{key_node.start_mark.name}:{key_node.start_mark.line + 1}: "
                            f"duplicate key {key!r}")
            seen.add(key)
        mapping = super().construct_mapping(node, deep=True)
        mapping[LINE] = node.start_mark.line + 1
        return mapping


class Fault(Exception):
    pass


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Writer:
    """Collects the arrays that spans point to."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def array(self, kind, items):
        """A span over a new array; `{}` where there is nothing."""
        if not items:
            return "{}"
        name = f"kArray{self.count}"
        self.count += 1
        self.lines.append(f"constexpr {kind} {name}[] = {{{', '.join(items)}}};")
        return name

    def strings(self, items):
        return self.array("absl::string_view", [literal(i) for i in items])


class Rule:
    def __init__(self, kind, facts, key, lo=0, hi=0, round_up=1, text=""):
        self.kind, self.facts, self.key = kind, facts, key
        self.lo, self.hi, self.round_up, self.text = lo, hi, round_up, text


def whole(value):
    if not isinstance(value, int) or isinstance(value, bool):
        raise Fault(f"{value!r} is not an integer")
    return value


def pair(value):
    if not isinstance(value, list) or len(value) != 2:
        raise Fault(f"{value!r} is not a pair")
    return value


def true(value):
    if value is not True:
        raise Fault(f"{value!r} is not true")


def rules_of(key, value):
    """The rules that one `key: value` of a data file stands for."""
    if key == "const_input":
        return [Rule("ConstInput", [f"input_{whole(value)}_is_const"], key, value)]
    if key == "positive_input":
        return [Rule("PositiveInput", [f"input_{whole(value)}_is_positive"], key, value)]
    if key == "same_shape":
        a, b = map(whole, pair(value))
        return [Rule("SameShape", [f"inputs_{a}_{b}_same_shape"], key, a, b)]
    flags = {"static_shape": ("StaticShape", "static_shape"),
             "compile_time_only": ("CompileTimeOnly", "folds_to_constant"),
             "transpose_2d": ("Transpose2d", "is_2d_transpose"),
             "one_dim_per_item": ("OneDimPerItem", "one_dim_per_item")}
    if key in flags:
        true(value)
        return [Rule(flags[key][0], [flags[key][1]], key)]
    if key == "only_in_pattern":
        return [Rule("OnlyInPattern", [f"in_pattern_{value}"], key, text=value)]
    if key == "requires_attr":
        return [Rule("RequiresAttr", [f"has_{value}"], key, text=value)]
    if key in ("layout", "padding"):
        return [Rule(key.capitalize(), [key], key, text=value)]
    if key == "range":
        return [Rule("Range", [fact], key, *map(whole, pair(bounds)))
                for fact, bounds in value.items() if fact != LINE]
    if key == "equal_const":
        return [Rule("EqualConst", [fact], key, whole(number), number)
                for fact, number in value.items() if fact != LINE]
    if key == "rank":
        return [Rule("Rank", ["rank"], key, whole(value), value)]
    if key == "max_rank":
        return [Rule("MaxRank", ["rank"], key, 0, whole(value))]
    if key == "product_max":
        return [Rule("ProductMax", value["of"], key, hi=whole(value["limit"]))]
    if key == "product_lt":
        return [Rule("ProductMax", value["of"], key, hi=whole(value["limit"]) - 1,
                     round_up=whole(value["round_up_to"]))]
    if key in ("equal", "not_both_one", "divisible"):
        kind = {"equal": "Equal", "not_both_one": "NotBothOne", "divisible": "Divisible"}[key]
        return [Rule(kind, pair(value), key)]
    if key == "odd":
        return [Rule("Odd", [value], key)]
    raise Fault(f"unknown rule {key!r}")


def conditions_of(when):
    """[(fact, equal, value)] of a `when:` mapping; a fact named X_not must differ."""
    out = []
    for fact, value in when.items():
        if fact == LINE:
            continue
        equal = not fact.endswith("_not")
        out.append((fact if equal else fact[:-len("_not")], equal, whole(value)))
    return out


def write_rules(writer, prefix, entries, path, ids):
    rows = []
    for entry in entries:
        source = f"{path}:{entry[LINE]}"
        conditions = conditions_of(entry.get("when", {}))
        suffix = "".join(f"@{f}{'=' if e else '!='}{v}" for f, e, v in conditions)
        rules = []
        try:
            for key, value in entry.items():
                if key == "prefer":
                    rules += [(True, r) for k, v in value.items() if k != LINE
                              for r in rules_of(k, v)]
                elif key not in (LINE, "when", "note", "rewrite"):
                    rules += [(False, r) for r in rules_of(key, value)]
        except (Fault, KeyError, TypeError, AttributeError) as fault:
            raise Fault(f"{source}: {fault}")
        if not rules:
            raise Fault(f"{source}: the entry has no rule that can be checked")
        for advisory, rule in rules:
            identity = f"{prefix}/{rule.key}/{'+'.join(rule.facts)}{suffix}"
            if identity in ids:
                raise Fault(f"{source}: second rule {identity}")
            ids.add(identity)
            when = writer.array("FactCondition", [
                f"{{{literal(f)}, {'true' if e else 'false'}, {v}}}" for f, e, v in conditions])
            rows.append(
                f"{{{literal(identity)}, RuleKind::k{rule.kind}, "
                f"{'true' if advisory else 'false'}, {writer.strings(rule.facts)}, {rule.lo}, "
                f"{rule.hi}, {rule.round_up}, {literal(rule.text)}, {when}, "
                f"{literal(entry.get('note', ''))}, {literal(entry.get('rewrite', ''))}, "
                f"{literal(source)}}}")
    return writer.array("SupportRule", rows)


def read_frameworks():
    """The value of FRAMEWORK -> its enumerator, by the rows of frameworks.inc."""
    with open(ROWS, encoding="utf-8") as stream:
        rows = re.findall(r'^NPUC_FRONT_END\((\w+), \.name = "(\w+)"', stream.read(), re.M)
    return {name: f"k{constant}" for constant, name in rows}


def write_op_lists(writer, core, path):
    known = read_frameworks()
    ids = set()
    frameworks = {}
    for section in core["operators"]:
        framework = section["framework"]
        if framework not in known:
            raise Fault(f"{path}:{section[LINE]}: framework {framework!r} is not one of "
                        f"{', '.join(known)}")
        unknown = set(section) - {"framework", "source", "rewrites", "ops", LINE}
        if unknown:
            raise Fault(f"{path}:{section[LINE]}: unknown keys {sorted(unknown)}")
        is_rewrite = section.get("rewrites", False)
        ops = frameworks.setdefault(framework, {})
        for op, value in section["ops"].items():
            if op == LINE:
                continue
            if op in ops:
                raise Fault(f"{path}:{section[LINE]}: {op} is listed twice for {framework}")
            if isinstance(value, list):
                value = {"rules": value, LINE: section[LINE]}
            unknown = set(value) - {"rules", "torch", "note", LINE}
            if unknown:
                raise Fault(f"{path}:{value[LINE]}: unknown keys {sorted(unknown)}")
            if is_rewrite and not value.get("note"):
                raise Fault(f"{path}:{value[LINE]}: {op} needs a note: what it is rewritten into")
            rules = write_rules(writer, f"{core['name']}/{framework}/{op}",
                                value.get("rules", []), path, ids)
            ops[op] = (f"{{{literal(op)}, {writer.strings(value.get('torch', []))}, {rules}, "
                       f"{literal(value.get('note', ''))}, {literal(section['source'])}, "
                       f"{'true' if is_rewrite else 'false'}}}")
    lists = []
    for framework, ops in frameworks.items():
        array = writer.array("OpSupport", [ops[op] for op in sorted(ops)])
        lists.append(f"{{Framework::{known[framework]}, {array}}}")
    return writer.array("OpList", lists)


def write_numbers(writer, core, path, key, kind, fields):
    """A struct of positive integers: `fields` are its names, or (name, count) for a list."""
    section = core.get(key)
    if section is None:
        return "nullptr"
    numbers = []
    names = {LINE}
    for field in fields:
        name, count = field if isinstance(field, tuple) else (field, 1)
        names.add(name)
        if name not in section:
            raise Fault(f"{path}:{section[LINE]}: {key}: {name} is missing")
        values = section[name] if count > 1 else [section[name]]
        if len(values) != count or any(whole(v) <= 0 for v in values):
            raise Fault(f"{path}:{section[LINE]}: {name} must be {count} positive integer(s)")
        numbers += [str(v) for v in values]
    if set(section) - names:
        raise Fault(f"{path}:{section[LINE]}: unknown {key} {sorted(set(section) - names)}")
    name = f"k{key.capitalize()}{core['name']}"
    writer.lines.append(f"constexpr {kind} {name} = {{{', '.join(numbers)}}};")
    return f"&{name}"


def family_of(core, path):
    """The enumerator of a core's family, whose limits the core must have, and no others."""
    family = core.get("family")
    if family not in FAMILIES:
        raise Fault(f"{path}: family {family!r} is not one of {', '.join(FAMILIES)}")
    name, limits = FAMILIES[family]
    for section in ("limits", "integer"):
        if (section in core) != (section == limits):
            raise Fault(f"{path}: a core of family {family} has "
                        f"{'no ' if section in core else ''}section {section}")
    return f"NpuFamily::{name}"


def write_unit_cycles(writer, core, path):
    """The cycle model of each NPU unit: the core's, with the unit's own multipliers."""
    macs = core.get("unit_macs", [])
    if macs and len(macs) != len(core["npu_units"]):
        raise Fault(f"{path}: unit_macs needs a number for each of npu_units")
    models = []
    for count in macs:
        if whole(count) <= 0:
            raise Fault(f"{path}: unit_macs must be positive")
        model = {**core["cycles"], "macs_per_cycle": count}
        models.append(f"{{{', '.join(str(model[field]) for field in CYCLES)}}}")
    return writer.array("CycleModel", models)


def check_cores(core, path):
    """A command's header has three bits for its core (INTEGER_ISA.md)."""
    if "integer" in core and core["integer"]["cores"] > 8:
        raise Fault(f"{path}: {core['integer']['cores']} cores; a command's header counts 8")


def check_cycles(core, path):
    """A core that fetches its next command while one runs holds two (target/README.md)."""
    if "cycles" in core and core["cycles"]["register_sets"] > 2:
        raise Fault(f"{path}:{core['cycles'][LINE]}: register_sets is 1 or 2")


def check_array(core, path):
    """An array has as many multipliers as the cycle model says."""
    array = core.get("array")
    if array is None:
        return
    count = array["outputs"] * array["inputs"] * array["pixels"]
    if count != core["cycles"]["macs_per_cycle"]:
        raise Fault(f"{path}:{array[LINE]}: outputs x inputs x pixels is {count}, not "
                    "macs_per_cycle")


def load(path):
    with open(path, encoding="utf-8") as stream:
        core = yaml.load(stream, Loader)
    shown = "/".join(os.path.abspath(path).split(os.sep)[-4:])
    core.pop(LINE)
    if set(core) - CORE_KEYS:
        raise Fault(f"{shown}: unknown keys {sorted(set(core) - CORE_KEYS)}")
    return shown, core


def load_all(paths):
    """(shown path, core) of each file, in the order of their places, which lists of cores keep."""
    by_place = {}
    for shown, core in map(load, paths):
        place = core.get("place")
        if type(place) is not int or place < 1:
            raise Fault(f"{shown}: place must be a whole number from 1 on")
        if place in by_place:
            raise Fault(f"{shown}: place {place} is that of {by_place[place][0]}")
        by_place[place] = shown, core
    return [by_place[place] for place in sorted(by_place)]


def generate(paths):
    writer = Writer()
    lists = {}
    names = []
    arrays = []
    for shown, core in load_all(paths):
        family = family_of(core, shown)
        if "operators_of" in core:
            if core["operators_of"] not in lists:
                raise Fault(f"{shown}: operators_of must name a core of an earlier place")
            op_lists = lists[core["operators_of"]]
        elif "integer" in core:  # what it accepts is what lowering knows, whatever the framework
            op_lists = "{}"
        else:
            op_lists = write_op_lists(writer, core, shown)
        lists[core["name"]] = op_lists
        fields = [literal(core["name"]), literal(core["alias"]), family,
                  writer.strings(core["chips"]), writer.strings(core["npu_units"]),
                  writer.strings(core["output_types"]), literal(core["compute_type"]),
                  literal(core["note"]),
                  write_numbers(writer, core, shown, "limits", "CoreLimits", LIMITS),
                  write_numbers(writer, core, shown, "integer", "IntegerLimits", INTEGER),
                  write_numbers(writer, core, shown, "cycles", "CycleModel", CYCLES),
                  write_unit_cycles(writer, core, shown), op_lists]
        arrays.append(write_numbers(writer, core, shown, "array", "MacArray", ARRAY))
        check_cycles(core, shown)
        check_array(core, shown)
        check_cores(core, shown)
        name = f"kCore{core['name']}"
        writer.lines.append(f"constexpr CoreSpec {name} = {{{', '.join(fields)}}};")
        names.append(f"&{name}")
    body = "\n".join(writer.lines)
    return f"""// Made by generate_cores.py from cores/*.yaml; do not edit.
#include "compiler_core/target/core_tables.h"

namespace npuc::core_tables {{
namespace {{

{body}

}}  // namespace

const CoreSpec* const kAllCores[] = {{{', '.join(names)}}};
const size_t kCoreCount = {len(names)};
const MacArray* const kMacArrays[] = {{{', '.join(arrays)}}};

}}  // namespace npuc::core_tables
"""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        text = generate(sys.argv[2:])
    except (Fault, yaml.YAMLError) as fault:
        sys.exit(f"generate_cores.py: {fault}")
    with open(sys.argv[1], "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
