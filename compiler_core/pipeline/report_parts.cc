#include "compiler_core/pipeline/report_parts.h"

#include <string>

#include "absl/strings/str_cat.h"

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

namespace {

Json QuantJson(const QuantOptions& options) {
  const QuantOptions usual;
  Json out = Json::object();
  const auto put = [&](const char* key, const auto& value, const auto& usual_value) {
    if (!(value == usual_value)) out[key] = value;
  };
  put("weight_bits", options.weight_bits, usual.weight_bits);
  put("bias_bits", options.bias_bits, usual.bias_bits);
  put("activation_bits", options.activation_bits, usual.activation_bits);
  put("lut_items_in_bits", options.lut_items_in_bits, usual.lut_items_in_bits);
  put("quantize_method_for_weight", NameOf(options.weight_method), NameOf(usual.weight_method));
  put("quantize_method_for_activation", NameOf(options.activation_method),
      NameOf(usual.activation_method));
  put("calibration_strategy_for_activation", NameOf(options.activation_strategy),
      NameOf(usual.activation_strategy));
  put("calibration_strategy_for_weight", NameOf(options.weight_strategy),
      NameOf(usual.weight_strategy));
  put("bias_effective_bits", options.bias_effective_bits, usual.bias_effective_bits);
  put("unify_scales_for_concat", options.unify_scales_for_concat, usual.unify_scales_for_concat);
  put("force_float_ir", options.force_float_ir, usual.force_float_ir);
  put("metric", options.metrics, usual.metrics);
  if (options.mixed_precision_batches > 0) {
    out["mixed_precision_auto_search"] =
        absl::StrCat(options.mixed_precision_batches, ",", options.mixed_precision_threshold, ",",
                     options.mixed_precision_less_is_better ? "L" : "G");
  }
  constexpr const char* kGlobal[] = {"equalization", "adaround", "bias_correction"};
  for (const GlobalCalibration what : options.global_calibration) {
    out["global_calibration"].push_back(kGlobal[static_cast<size_t>(what)]);
  }
  return out;
}

}  // namespace

Json ConfigJson(const CompileOptions& options) {
  Json config{{"CORENAME", options.core},
              {"FRAMEWORK", FrameworkName(options.framework)},
              {"MODEL_FILE", Printable(options.model_name)},
              {"OUTPUT_FILE", Printable(options.output_file)}};
  if (!options.npu_unit.empty()) config["NPU_UNIT"] = options.npu_unit;
  for (const InputDecl& input : options.inputs) {
    config["INPUT_OPS"][Printable(input.name)] = input.shape;
  }
  const auto names = [&](const char* key, const std::vector<std::string>& values) {
    for (const std::string& value : values) config[key].push_back(Printable(value));
  };
  const auto flag = [&](const char* key, bool value) {
    if (value) config[key] = true;
  };
  names("OUTPUT_OPS", options.outputs);
  names("FP16_OUT_OPS", options.fp16_outputs);
  if (!options.input_ncx_to_nxc.empty()) config["INPUT_NCX_TO_NXC"] = options.input_ncx_to_nxc;
  flag("FUSE_BN", options.fuse_bn);
  flag("FUSE_BIASADD", options.fuse_biasadd);
  flag("COMPRESS", options.compress);
  flag("CONV2D_COMPRESS", options.conv2d_compress);
  names("EXCLUDE_COMPRESS_OPS", options.exclude_compress_ops);
  names("EXCLUDE_CONV2D_COMPRESS_OPS", options.exclude_conv2d_compress_ops);
  for (const auto& [name, range] : options.weight_min_max) {
    config["WEIGHT_MIN_MAX"][Printable(name)] = {range.first, range.second};
  }
  if (options.weight_cache_size_bytes) {
    config["WEIGHT_CACHE_SIZE"] = *options.weight_cache_size_bytes;
  }
  if (options.memory_plan == CompileOptions::MemoryPlan::kInPlace) {
    config["MEMORY_PLAN"] = "in_place";
  }
  if (options.quant.has_value()) config["QUANT"] = QuantJson(*options.quant);
  flag("STRICT_OPS", options.strict_ops);
  if (options.layer_error_frames > 0) config["LAYER_ERROR_FRAMES"] = options.layer_error_frames;
  return config;
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
