#include "compiler_core/frontends/tensorflow/outline.h"

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/features.h"
#include "compiler_core/frontends/tensorflow/import.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc {
namespace tf {

namespace {

// Operators that pass a tensor's elements on in their places.
bool KeepsShape(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"Identity", "Relu", "Relu6", "Tanh",   "Sigmoid",
                                        "Abs",      "Cast", "Neg",   "Square", "StopGradient"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Dimensions of the constant that an operand is, by way of Identity; empty: it is none.
std::vector<int64_t> ConstantDims(const GraphFile& graph, absl::string_view operand) {
  constexpr int kMaxSteps = 8;
  for (int step = 0; step < kMaxSteps; ++step) {
    const absl::StatusOr<TensorName> name = ParseTensorName(operand);
    const int index = name.ok() ? graph.Find(name->node) : -1;
    if (index < 0) return {};
    const NodeView& node = graph.node(index);
    if (node.op() == "Const") {
      const auto value = node.TensorOf("value");
      if (!value.ok() || (*value)->tensor_shape().dim_size() > static_cast<int>(kMaxRank))
        return {};
      std::vector<int64_t> dims;
      for (const auto& dim : (*value)->tensor_shape().dim()) dims.push_back(dim.size());
      return dims;
    }
    if (node.op() != "Identity" || node.input_count() == 0) return {};
    operand = node.input(0);
  }
  return {};
}

// The shape that a node demands of its operand 0 by the weight beside it; empty: nothing.
std::vector<int64_t> ShapeByWeight(const GraphFile& graph, const NodeView& node) {
  if (node.input_count() < 2) return {};
  const std::vector<int64_t> weight = ConstantDims(graph, node.input(1));
  const auto flag = [&](absl::string_view name) { return node.Bool(name).value_or(false); };
  if (node.op() == "MatMul" && weight.size() == 2 && !flag("transpose_a")) {
    return {-1, weight[flag("transpose_b") ? 1 : 0]};
  }
  const bool is_conv = node.op() == "Conv2D" || node.op() == "DepthwiseConv2dNative";
  if (!is_conv || weight.size() != 4) return {};
  if (node.String("data_format").value_or("NHWC") == "NCHW") return {-1, weight[2], -1, -1};
  return {-1, -1, -1, weight[2]};
}

}  // namespace

std::optional<std::vector<int64_t>> LikelyShape(const GraphFile& graph, int placeholder) {
  const NodeView& node = graph.node(placeholder);
  const absl::StatusOr<PartialShape> stated = node.ShapeOf("shape");
  std::optional<std::vector<int64_t>> dims;
  // TensorFlow before graph version 24 wrote a shape that it did not know as [].
  if (stated.ok() && !stated->unknown_rank &&
      (!stated->dims.empty() || graph.producer_version() >= 24)) {
    dims = stated->dims;
    if (std::none_of(dims->begin(), dims->end(), [](int64_t dim) { return dim < 0; })) return dims;
  }
  absl::flat_hash_set<absl::string_view> same{node.name()};
  for (int i = 0; i < graph.node_count(); ++i) {  // consumers mostly come behind
    const NodeView& reader = graph.node(i);
    if (reader.input_count() == 0) continue;
    const absl::StatusOr<TensorName> operand = ParseTensorName(reader.input(0));
    if (!operand.ok() || operand->output != 0 || !same.contains(operand->node)) continue;
    if (KeepsShape(reader.op())) same.insert(reader.name());
    const std::vector<int64_t> told = ShapeByWeight(graph, reader);
    if (told.empty() || (dims.has_value() && dims->size() != told.size())) continue;
    if (!dims.has_value()) dims.emplace(told.size(), -1);
    for (size_t k = 0; k < told.size(); ++k) {
      if ((*dims)[k] < 0) (*dims)[k] = told[k];
    }
  }
  return dims;
}

namespace {

constexpr size_t kMaxLookedAt = 64;  // placeholders; each is a look at all nodes

class OutlineReader {
 public:
  explicit OutlineReader(const GraphFile& graph) : graph_(graph) {}

  ModelOutline Read() {
    if (graph_.producer_version() > 0) {
      outline_.producer = absl::StrCat("graph version ", graph_.producer_version());
    }
    ReadEdges();
    for (int i = 0; i < graph_.node_count(); ++i) ReadNode(i);
    LeaveOutFeatures();
    MarkDependent();
    AddOutputs();
    return std::move(outline_);
  }

 private:
  static bool IsPlaceholder(const NodeView& node) {
    return absl::StartsWith(node.op(), "Placeholder");
  }

  void ReadEdges() {
    readers_.resize(static_cast<size_t>(graph_.node_count()));
    for (int i = 0; i < graph_.node_count(); ++i) {
      const NodeView& node = graph_.node(i);
      for (int k = 0; k < node.input_count(); ++k) {
        const absl::StatusOr<TensorName> name = ParseTensorName(node.input(k));
        const int producer = name.ok() ? graph_.Find(name->node) : -1;
        if (producer >= 0) readers_[static_cast<size_t>(producer)].push_back(i);
      }
    }
  }

  void ReadNode(int index) {
    const NodeView& node = graph_.node(index);
    if (node.op() == "Const") {
      const auto value = node.TensorOf("value");
      if (!value.ok()) return;
      std::vector<int64_t> dims;
      for (const auto& dim : (*value)->tensor_shape().dim()) dims.push_back(dim.size());
      CountWeight(dims, SizeOf(DTypeFromWire((*value)->dtype())), outline_);
      return;
    }
    if (!IsPlaceholder(node)) {
      ++outline_.operators[Printable(node.op())];
      return;
    }
    const std::string name(node.name());
    ModelOutline::Port port{.key = name, .name = name};
    if (outline_.inputs.size() < kMaxLookedAt) port.dims = LikelyShape(graph_, index);
    port.may_be_left_out = node.op() == "PlaceholderWithDefault";
    const absl::StatusOr<int> type = node.Type("dtype");
    if (type.ok()) {
      const DType dtype = DTypeFromWire(*type);
      port.type = dtype == DType::kInvalid ? DataTypeName(*type) : OutlineTypeName(dtype);
    }
    outline_.inputs.push_back(std::move(port));
  }

  // The net begins behind the extraction of features.
  void LeaveOutFeatures() {
    const Features features(graph_, {});
    std::string sound;
    std::erase_if(outline_.inputs, [&](const ModelOutline::Port& port) {
      if (!features.Replaces(port.name)) return false;
      absl::StrAppend(&sound, sound.empty() ? "'" : ", '", Printable(port.name), "'");
      return true;
    });
    if (sound.empty()) return;
    for (const InputDecl& input : features.inputs()) {
      ModelOutline::Port port{.key = input.name, .name = input.name, .type = "float32"};
      if (!input.shape.empty()) port.dims = input.shape;
      outline_.inputs.push_back(std::move(port));
    }
    outline_.notes.push_back(absl::StrCat(
        "no core makes features of sound (", sound, "): ", NamesOf(features.inputs()),
        " is taken for the input, which the application computes: ", features.description()));
  }

  // Which nodes a placeholder reaches.
  void MarkDependent() {
    depends_.assign(readers_.size(), false);
    std::vector<int> waiting;
    for (int i = 0; i < graph_.node_count(); ++i) {
      if (IsPlaceholder(graph_.node(i))) waiting.push_back(i);
    }
    while (!waiting.empty()) {
      const auto node = static_cast<size_t>(waiting.back());
      waiting.pop_back();
      if (depends_[node]) continue;
      depends_[node] = true;
      waiting.insert(waiting.end(), readers_[node].begin(), readers_[node].end());
    }
  }

  bool IsOutput(int index) const {
    const NodeView& node = graph_.node(index);
    return depends_[static_cast<size_t>(index)] && readers_[static_cast<size_t>(index)].empty() &&
           node.op() != "NoOp" && node.op() != "Assert" && !IsPlaceholder(node);
  }

  // The nodes that tf.gradients adds to train the net end it, too, but are none of its outputs.
  void AddOutputs() {
    std::vector<int> ends;
    for (int i = 0; i < graph_.node_count(); ++i) {
      if (IsOutput(i)) ends.push_back(i);
    }
    const auto trains = [this](int index) {
      return absl::StartsWith(graph_.node(index).name(), "gradients/");
    };
    const auto count = std::count_if(ends.begin(), ends.end(), trains);
    if (count > 0 && count < static_cast<int64_t>(ends.size())) {
      std::erase_if(ends, trains);
      outline_.notes.push_back(absl::StrCat(
          count, " nodes below 'gradients/' train the net; they are not taken for outputs"));
    }
    for (const int end : ends) AddOutput(end);
  }

  // The index of a greatest value is the application's to find: what it is found in is the output.
  void AddOutput(int index) {
    const NodeView& node = graph_.node(index);
    std::string name(node.name());
    if ((node.op() == "ArgMax" || node.op() == "ArgMin") && node.input_count() > 0) {
      const std::string operand(node.input(0));
      outline_.notes.push_back(absl::StrCat("'", Printable(name), "' (", node.op(),
                                            ") is an index, which no core computes: its operand '",
                                            Printable(operand), "' is taken for the output"));
      name = operand;
    }
    for (const ModelOutline::Port& known : outline_.outputs) {
      if (known.key == name) return;
    }
    outline_.outputs.push_back({.key = name, .name = name});
  }

  const GraphFile& graph_;
  ModelOutline outline_;
  std::vector<std::vector<int>> readers_;  // by node
  std::vector<bool> depends_;
};

}  // namespace
}  // namespace tf

absl::StatusOr<ModelOutline> OutlineTensorFlow(absl::string_view model_bytes,
                                               absl::string_view file, Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<tf::GraphFile> graph = tf::GraphFile::Parse(model_bytes, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  return tf::OutlineReader(*graph).Read();
}

}  // namespace npuc
