"""get_profiler_data of Compass's guide (section 6.3): a profiled run as a dictionary.

The files are graph.json of a build with profile=true and profile_data.bin of its run; their forms
are in compiler_core/pipeline/profile_graph.h and compiler_core/report/profile_buffer.h. Needs
nothing beside Python.
"""

import json
import struct

HEAD = struct.Struct("<8sIIQ32s")
RECORD = struct.Struct("<II7Q")
UNITS = ("AIFF", "TPC", "DMA")


def _read_buffer(path):
    """MD5 of the commands, and a tuple for each: core, offset, cycles, the units' busy cycles,
    bytes read, bytes written, multiply-adds."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < HEAD.size:
        raise ValueError(f"{path} is no profile of a run")
    magic, version, size, count, md5 = HEAD.unpack_from(data)
    if (magic, version, size) != (b"NPUCPROF", 1, RECORD.size):
        raise ValueError(f"{path} is no profile of a run, or one of another version")
    if len(data) != HEAD.size + count * RECORD.size:
        raise ValueError(f"{path} is cut short: {len(data)} bytes, {count} records")
    return md5.decode("ascii"), list(RECORD.iter_unpack(data[HEAD.size:]))


def _figures(records, frequency):
    """The counters of some commands together, by the names of the guide's report."""
    sums = [sum(column) for column in zip(*records)] if records else [0] * 9
    _, _, cycles, *busy, read, written, macs = sums
    figures = {"Cycles": cycles, "Cost Time (ms)": cycles / (1000.0 * frequency)}
    for unit, value in zip(UNITS, busy):
        figures[f"{unit} Busy Cycles"] = value
        figures[f"{unit} Utilization"] = value / cycles if cycles else 0.0
    figures.update({"AIPU Read Bytes": read, "AIPU Write Bytes": written,
                    "Algorithm Ops": 2 * macs})
    return figures


def get_profiler_data(json_path, bin_path, **kwargs):
    """The dictionary of the profile: graph_name, frequency, graph, profile_data, summary.

    json_path: graph.json; bin_path: the counters of a run. frequency=MHZ stands in place of
    graph.json's. ValueError: a file is damaged, or the two are of different builds.
    """
    unknown = set(kwargs) - {"frequency"}
    if unknown:
        raise TypeError(f"get_profiler_data has no parameter {sorted(unknown)[0]}")
    with open(json_path, encoding="utf-8") as f:
        description = json.load(f)
    md5, records = _read_buffer(bin_path)
    nodes_of = description["node_of_command"]
    if md5 != description["commands_md5"] or len(records) != len(nodes_of):
        raise ValueError(f"{bin_path} is the profile of another build than {json_path}")
    frequency = kwargs.get("frequency") or description["frequency"]
    graph = description["graph"]
    shapes = {tensor["name"]: tensor["shape"] for tensor in graph["tensors"]}
    by_node = {}
    for node, record in zip(nodes_of, records):
        if node >= 0:
            by_node.setdefault(node, []).append(record)
    data = []
    for i, commands in by_node.items():
        node = graph["nodes"][i]
        figures = {"Core ID": commands[0][0], "Level": node["level"]}
        figures.update(_figures(commands, frequency))
        figures["Input Shapes"] = ",".join(
            "[" + ",".join(str(dim) for dim in shapes[name]) + "]"
            for name in node["input"] if name in shapes)
        data.append({"name": node["name"], "runtime_information": figures})
    return {"graph_name": description["graph_name"], "frequency": frequency, "graph": graph,
            "profile_data": data,
            "summary": {"Layers": len(data), **_figures(records, frequency)}}
