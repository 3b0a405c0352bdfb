#include "compiler_core/pipeline/integer_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "compiler_core/config/config_options.h"
#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/ir/integer/access.h"
#include "compiler_core/pipeline/report_parts.h"
#include "compiler_core/quant/params.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

CommandLoad LoadOf(const integer::Command& command) {
  CommandLoad load;
  const bool multiplies = std::holds_alternative<integer::Convolve>(command.body);
  (multiplies ? load.macs : load.elements) = integer::WorkOf(command.body);
  for (const Access& access : integer::AccessesOf(command.body)) {
    (access.writes ? load.written_bytes : load.read_bytes) += access.size_bytes;
  }
  return load;
}

// What the commands of one layer use.
struct LayerUse {
  int64_t commands = 0;
  CommandLoad load;
  int64_t cycles = 0;
  std::set<int32_t> data_buffers;
  std::map<int64_t, int64_t> weights;  // sizes by offset: what two commands read counts once

  void Add(const integer::Command& command, const integer::Program& program,
           const CycleModel& model) {
    const CommandLoad one = LoadOf(command);
    ++commands;
    load += one;
    cycles += EstimateCycles(model, one);
    for (const Access& access : integer::AccessesOf(command.body)) {
      const int32_t id = access.operand.buffer.value();
      const Slot slot = program.buffers[static_cast<size_t>(id)].slot;
      if (slot == Slot::kData) data_buffers.insert(id);
      if (slot == Slot::kWeight) {
        int64_t& size = weights[access.operand.offset_bytes];
        size = std::max(size, access.size_bytes);
      }
    }
  }
  int64_t data_bytes(const integer::Program& program) const {
    int64_t sum = 0;
    for (const int32_t id : data_buffers) {
      sum += program.buffers[static_cast<size_t>(id)].size_bytes;
    }
    return sum;
  }
  int64_t weight_bytes() const {
    int64_t sum = 0;
    for (const auto& [offset, size] : weights) sum += size;
    return sum;
  }
};

int BitsOf(const QuantParams& params) {
  return params.qmin < 0 ? static_cast<int>(std::ceil(std::log2(params.qmax + 1.0))) + 1
                         : static_cast<int>(std::ceil(std::log2(params.qmax + 1.0)));
}

class Writer {
 public:
  explicit Writer(const IntegerFacts& facts)
      : facts_(facts),
        graph_(facts.quantized.graph),
        plan_(facts.quantized.plan),
        nodes_(NodesOfReport(graph_)),
        ranges_(LiveRangesOf(facts.program)),
        buffers_(DataBuffers(facts.program.buffers, ranges_)) {
    for (const integer::Command& command : facts.program.commands) {
      all_.Add(command, facts.program, *facts.core.cycles);
      uses_[command.layer].Add(command, facts.program, *facts.core.cycles);
    }
    std::set<std::string> layers;
    for (const Layer& layer : plan_.layers) {
      layers.insert(layer.name);
      if (layer.weight.valid() && graph_.ConstantOf(layer.weight) != nullptr &&
          plan_.values.contains(layer.weight)) {
        weights_.push_back(&layer);
      }
    }
    for (const auto& [name, use] : uses_) {
      if (!layers.contains(name)) copies_.push_back(name);
    }
  }

  std::string Write() {
    ListWriter lists(out_, {{"nodes", plan_.layers.size() + copies_.size()},
                            {"weights", weights_.size()},
                            {"graph", nodes_.size()},
                            {"memory_map", buffers_.size()}});
    out_.BeginObject();
    WriteHead();
    WriteMetrics();
    WriteNodes(lists);
    WriteWeights(lists);
    WriteGraph(graph_, nodes_, out_, lists);
    WriteMemoryMap(facts_.program.buffers, facts_.program.commands.size(), ranges_, buffers_, out_,
                   lists);
    WriteDiagnostics(facts_.diagnostics, out_);
    out_.EndObject();
    return out_.Take() + "\n";
  }

 private:
  void WriteHead() {
    const CompiledModel& model = facts_.model;
    out_.Members("compiler", model.version, "core", model.core, "command_set", "integer", "model",
                 Printable(facts_.options.model_name), "model_md5", model.model_md5, "config",
                 ConfigJson(facts_.options), "sizes_bytes", SizesJson(model, facts_.memory),
                 "memory_plan", MemoryPlanJson(facts_.memory));
    out_.Members("inputs", PortsJson(model.inputs, model.inputs), "outputs",
                 PortsJson(model.inputs, model.outputs));
    out_.Member("cycle_model", CycleModelJson(*facts_.core.cycles));
    std::map<absl::string_view, int64_t> kinds;
    for (const integer::Command& command : facts_.program.commands) {
      ++kinds[integer::NameOf(command.body)];
    }
    out_.Key("commands");
    out_.BeginObject();
    for (const auto& [kind, count] : kinds) out_.Member(kind, count);
    out_.EndObject();
  }

  void WriteMetrics() {
    const ModelMetrics& metrics = facts_.metrics;
    if (metrics.figures.empty()) return;
    out_.Key("metrics");
    out_.BeginObject();
    out_.Members("source", metrics.source, "by", metrics.by, "items", metrics.items);
    out_.Key("figures");
    out_.BeginArray();
    for (const MetricFigure& figure : metrics.figures) {
      out_.BeginObject();
      out_.Members("metric", figure.metric, "output", Printable(figure.output), "float",
                   figure.of_float, "quantized", figure.quantized);
      out_.EndObject();
    }
    out_.EndArray();
    out_.EndObject();
  }

  // Parameters of a layer's results.
  void WriteResults(const Layer& layer) {
    out_.Key("results");
    out_.BeginArray();
    for (const ValueId output : layer.outputs) {
      const auto found = plan_.values.find(output);
      if (found == plan_.values.end()) continue;
      const QuantParams& params = found->second;
      out_.BeginObject();
      out_.Members("type", std::string(NameOf(params.dtype)), "bits", BitsOf(params), "qmin",
                   params.qmin, "qmax", params.qmax, "scale", Json(params.scale), "zero_point",
                   params.zero_point);
      out_.EndObject();
    }
    out_.EndArray();
  }

  void WriteUse(const LayerUse& use) {
    out_.Member("commands", use.commands);
    WriteLoad(use.load, use.cycles, out_);
    out_.Members("data_bytes", use.data_bytes(facts_.program), "weight_bytes", use.weight_bytes());
  }

  void WriteNodes(ListWriter& lists) {
    out_.Key("per_frame");
    out_.BeginObject();
    out_.Member("commands", all_.commands);
    WriteLoad(all_.load, all_.cycles, out_);
    out_.EndObject();
    const std::vector<LayerFidelity>& fidelity = facts_.quantized.fidelity;
    lists.Write("nodes", plan_.layers.size() + copies_.size(), [&](size_t i) {
      if (i >= plan_.layers.size()) {
        const std::string& name = copies_[i - plan_.layers.size()];
        out_.Members("node", Printable(name), "operator", "Copy");
        return WriteUse(uses_[name]);
      }
      const Layer& layer = plan_.layers[i];
      out_.Members("node", Printable(layer.name), "operator", graph_.node(layer.root).op,
                   "layer_type", Printable(layer.type));
      if (!layer.outputs.empty()) out_.Member("shape", graph_.type(layer.outputs[0]).shape);
      WriteUse(uses_[layer.name]);
      WriteResults(layer);
      if (i < fidelity.size()) {
        out_.Members("rms_error", std::sqrt(fidelity[i].mse), "similarity", fidelity[i].cosine);
      }
    });
  }

  void WriteWeights(ListWriter& lists) {
    lists.Write("weights", weights_.size(), [&](size_t i) {
      const Layer& layer = *weights_[i];
      const QuantParams& params = plan_.values.at(layer.weight);
      const Tensor& real = *graph_.ConstantOf(layer.weight);
      const std::vector<float> values = real.ToFloats();
      const auto given = plan_.constants.find(layer.weight);
      const Tensor integers = given != plan_.constants.end()
                                  ? given->second
                                  : QuantizeTensor(params, values, real.shape());
      const std::vector<float> kept = DequantizeTensor(params, integers).ToFloats();
      double most = 0;
      double sum = 0;
      int64_t zeros = 0;
      for (size_t k = 0; k < values.size(); ++k) {
        const double error = std::fabs(static_cast<double>(kept[k]) - values[k]);
        most = std::max(most, error);
        sum += error * error;
        zeros += kept[k] == 0 ? 1 : 0;
      }
      const auto count = static_cast<double>(std::max<size_t>(values.size(), 1));
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      out_.Members("name", Printable(graph_.def(layer.weight).source.name), "used_by",
                   Printable(layer.name), "shape", real.shape(), "bits", BitsOf(params), "min",
                   values.empty() ? 0.0 : static_cast<double>(*low), "max",
                   values.empty() ? 0.0 : static_cast<double>(*high), "step",
                   *std::max_element(params.scale.begin(), params.scale.end()), "sparsity",
                   static_cast<double>(zeros) / count, "max_abs_error", most, "rms_error",
                   std::sqrt(sum / count), "bytes",
                   static_cast<int64_t>(values.size()) * SizeOf(params.dtype));
      out_.Key("histogram");
      WriteHistogram(ReportHistogram(real), out_);
    });
  }

  const IntegerFacts& facts_;
  const Graph& graph_;
  const QuantPlan& plan_;
  std::vector<const Node*> nodes_;
  std::vector<LiveRange> ranges_;
  std::vector<size_t> buffers_;
  std::vector<const Layer*> weights_;  // the layers that have one
  std::vector<std::string> copies_;    // outputs that are only copied to their place
  LayerUse all_;
  std::map<std::string, LayerUse> uses_;
  JsonWriter out_;
};

}  // namespace

std::string IntegerReportJson(const IntegerFacts& facts) { return Writer(facts).Write(); }

}  // namespace npuc
