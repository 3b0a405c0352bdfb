#include "compiler_core/pipeline/report_parts.h"

#include <string>

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReportBins = 32;

}  // namespace

Json SizesJson(const CompiledModel& model, const MemoryPlanResult& memory) {
  return Json{{"cmd_content", model.cmd_content.size()},
              {"weight_content", model.weight_content.size()},
              {"ops_content", model.ops_content.size()},
              {"data_content", model.data_bytes},
              {"data_liveness_bound", memory.lower_bound_bytes},
              {"input", model.input_struct_bytes()},
              {"output", model.output_struct_bytes()},
              {"npu_size", model.npu_size()},
              {"total_size", model.total_size()}};
}

Json MemoryPlanJson(const MemoryPlanResult& memory) {
  return Json{{"arena_bytes", memory.arena_bytes},
              {"liveness_bound_bytes", memory.lower_bound_bytes},
              {"method", NameOf(memory.method)},
              {"search_nodes", memory.search_nodes}};
}

std::vector<const Node*> NodesOfReport(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConst) nodes.push_back(&node);
  }
  return nodes;
}

// `from` holds positions in the list.
void WriteGraph(const Graph& graph, absl::Span<const Node* const> nodes, JsonWriter& out,
                ListWriter& lists) {
  std::vector<int64_t> position(graph.value_count(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId output : nodes[i]->outputs) {
      position[output.value()] = static_cast<int64_t>(i);
    }
  }
  lists.Write("graph", nodes.size(), [&](size_t i) {
    const Node& node = *nodes[i];
    out.Members("name", Printable(node.source.name), "operator", NameOf(node.op));
    out.Key("from");
    out.BeginArray();
    for (const ValueId input : node.inputs) {
      if (position[input.value()] >= 0) out.Value(position[input.value()]);
    }
    out.EndArray();
    if (!node.outputs.empty()) out.Member("shape", graph.type(node.outputs[0]).shape);
  });
}

std::vector<size_t> DataBuffers(absl::Span<const Buffer> buffers,
                                absl::Span<const LiveRange> ranges) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].slot == Slot::kData && !ranges[i].empty()) shown.push_back(i);
  }
  std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });
  return shown;
}

void WriteMemoryMap(absl::Span<const Buffer> buffers, size_t command_count,
                    absl::Span<const LiveRange> ranges, absl::Span<const size_t> shown,
                    JsonWriter& out, ListWriter& lists) {
  lists.Announce(shown.size());
  out.Key("memory_map");
  out.BeginObject();
  out.Member("commands", command_count);
  lists.Write("buffers", shown.size(), [&](size_t i) {
    const Buffer& buffer = buffers[shown[i]];
    const LiveRange& range = ranges[shown[i]];
    out.Members("node", Printable(buffer.name), "offset", buffer.offset_bytes, "bytes",
                buffer.size_bytes, "first", range.first, "last", range.last);
  });
  out.EndObject();
}

Histogram ReportHistogram(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) return MakeHistogram(tensor.as<float>(), kReportBins);
  return MakeHistogram(tensor.ToFloats(), kReportBins);
}

void WriteHistogram(const Histogram& histogram, JsonWriter& out) {
  out.BeginObject();
  out.Members("low", histogram.low, "high", histogram.high, "min", histogram.min, "max",
              histogram.max, "values", histogram.total + histogram.not_finite, "counts",
              histogram.counts);
  out.EndObject();
}

void WriteDiagnostics(const Diagnostics& diagnostics, JsonWriter& out) {
  out.Key("diagnostics");
  out.BeginArray();
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    out.BeginObject();
    out.Members("id", IdOf(diagnostic.kind), "text", diagnostic.ToString());
    out.EndObject();
  }
  out.EndArray();
}

}  // namespace npuc
