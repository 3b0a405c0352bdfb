#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler_core/passes/apply.h"
#include "compiler_core/passes/rewriter.h"

namespace npuc {
namespace {

// What a BatchNorm of constants does to a channel: x * factor + offset.
struct Affine {
  std::vector<double> factor;
  std::vector<double> offset;
};

bool Finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

std::vector<double> DoublesOf(const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) {
    const absl::Span<const float> floats = tensor.as<float>();
    return {floats.begin(), floats.end()};
  }
  std::vector<double> values(tensor.element_count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.at(static_cast<int64_t>(i));
  return values;
}

// Nothing where a parameter is not constant, or a channel has no finite factor.
std::optional<Affine> AffineOf(const Graph& graph, const Node& node) {
  std::array<std::vector<double>, 4> parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor* parameter = graph.ConstantOf(node.inputs[i + 1]);
    if (parameter == nullptr) return std::nullopt;
    parameters[i] = DoublesOf(*parameter);
  }
  const auto& [scale, offset, mean, variance] = parameters;
  const double epsilon = FloatAttrOr(node, "epsilon", 0.0);
  Affine affine{std::vector<double>(scale.size()), std::vector<double>(scale.size())};
  for (size_t c = 0; c < scale.size(); ++c) {
    affine.factor[c] = scale[c] / std::sqrt(variance[c] + epsilon);
    affine.offset[c] = offset[c] - mean[c] * affine.factor[c];
  }
  if (!Finite(affine.factor) || !Finite(affine.offset)) return std::nullopt;
  return affine;
}

// The values, rounded once to a float type.
Tensor Rounded(DType dtype, Shape shape, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(double));
  std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), bytes.size(), bytes.data());
  return CastTensor(Tensor({DType::kFloat64, std::move(shape)}, std::move(bytes)), dtype);
}

// A product whose result channels can be scaled through its constant weight.
struct Product {
  NodeId node;
  const Tensor* weight;
  int64_t inner;  // weight element i belongs to result channel (i / inner) % channels
};

std::optional<Product> MatchProduct(const Graph& graph, ValueId value) {
  const Node& node = graph.def(value);
  if (node.op != Op::kConv2D && node.op != Op::kDepthwiseConv2D && node.op != Op::kMatMul) {
    return std::nullopt;
  }
  const Tensor* weight = graph.ConstantOf(node.inputs[1]);
  // A bias that is already the product's own would have to be scaled, too.
  if (weight == nullptr || node.inputs.size() != 2) return std::nullopt;
  const bool by_rows = node.op == Op::kMatMul && BoolAttrOr(node, "transpose_b", false);
  return Product{graph.value(value).def, weight, by_rows ? weight->shape().back() : 1};
}

// A constant that is one number a channel, the channels last.
bool IsChannelVector(const Tensor& tensor, int64_t channels) {
  return tensor.element_count() == channels && !tensor.shape().empty() &&
         tensor.shape().back() == channels;
}

// Counts how the old graph uses what a new value stands for; values made here have one use.
class UseTracker {
 public:
  explicit UseTracker(const Graph& old) : old_counts_(old.UseCounts()) {}
  void Note(ValueId value, ValueId old_value) {
    counts_.resize(std::max<size_t>(counts_.size(), value.value() + 1), 1);
    counts_[value.value()] = old_counts_[old_value.value()];
  }
  bool UsedOnce(ValueId value) const {
    const size_t i = value.value();
    return i >= counts_.size() || counts_[i] == 1;
  }

 private:
  std::vector<int> old_counts_;
  std::vector<int> counts_;
};

// Adds the scaled product and the Add of the offset; the result, or nothing where the BatchNorm
// does not follow a product that it can go into.
std::optional<ValueId> FuseInto(Graph& graph, const UseTracker& uses, const Node& node,
                                const TensorType& type) {
  const std::optional<Affine> affine = AffineOf(graph, node);
  if (!affine.has_value() || !uses.UsedOnce(node.inputs[0])) return std::nullopt;
  const int64_t channels = static_cast<int64_t>(affine->factor.size());
  ValueId product_value = node.inputs[0];
  std::vector<double> offset = affine->offset;
  NodeSource offset_source = DerivedSource(node.source, "offset");
  if (graph.def(product_value).op == Op::kAdd) {
    const Node& add = graph.def(product_value);
    const Tensor* bias = graph.ConstantOf(add.inputs[1]);
    if (bias == nullptr || !IsChannelVector(*bias, channels)) return std::nullopt;
    for (int64_t c = 0; c < channels; ++c) offset[c] += bias->at(c) * affine->factor[c];
    offset_source = graph.def(add.inputs[1]).source;
    product_value = add.inputs[0];
    if (!uses.UsedOnce(product_value) || graph.type(product_value) != type) return std::nullopt;
  }
  const std::optional<Product> product = MatchProduct(graph, product_value);
  if (!product.has_value()) return std::nullopt;
  Node scaled = graph.node(product->node);
  const NodeSource weight_source = graph.def(scaled.inputs[1]).source;
  std::vector<double> values(product->weight->element_count());
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
    values[i] = product->weight->at(i) * affine->factor[(i / product->inner) % channels];
  }
  scaled.inputs[1] =
      graph.AddConst(Rounded(type.dtype, product->weight->shape(), values), weight_source);
  const ValueId result =
      graph.AddValue(scaled.op, scaled.inputs, scaled.attrs, type, scaled.source);
  const ValueId added = graph.AddConst(Rounded(type.dtype, {channels}, offset), offset_source);
  return graph.AddValue(Op::kAdd, {result, added}, {}, type, node.source);
}

}  // namespace

Graph ApplyFuseBatchNorm(Graph graph) {
  if (!HasOp(graph, {Op::kBatchNorm})) return graph;
  UseTracker uses(graph);
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    const std::vector<ValueId> old_outputs = node.outputs;
    std::optional<ValueId> fused;
    if (node.op == Op::kBatchNorm) {
      fused = FuseInto(rewriter.graph(), uses, node, rewriter.type(old_outputs[0]));
    }
    if (fused.has_value()) {
      rewriter.Replace(node, *fused);
    } else {
      rewriter.Append(std::move(node));
    }
    for (const ValueId output : old_outputs) uses.Note(rewriter.Map(output), output);
  }
  return rewriter.Finish();
}

Graph ApplyRewriteBatchNorm(Graph graph) {
  if (!HasOp(graph, {Op::kBatchNorm})) return graph;
  Rewriter rewriter(std::move(graph));
  for (int i = 0; i < rewriter.old().node_count(); ++i) {
    Node node = rewriter.Take(i);
    Graph& out = rewriter.graph();
    std::optional<Affine> affine;
    if (node.op == Op::kBatchNorm) affine = AffineOf(out, node);
    if (!affine.has_value()) {
      rewriter.Append(std::move(node));
      continue;
    }
    const TensorType type = rewriter.type(node.outputs[0]);
    const auto constant = [&](const std::vector<double>& values, absl::string_view suffix) {
      return out.AddConst(Rounded(type.dtype, {type.shape.back()}, values),
                          DerivedSource(node.source, suffix));
    };
    const ValueId factor = constant(affine->factor, "scale");
    const ValueId scaled = out.AddValue(Op::kMul, {node.inputs[0], factor}, {}, type,
                                        DerivedSource(node.source, "mul"));
    const ValueId offset = constant(affine->offset, "offset");
    rewriter.Replace(node, out.AddValue(Op::kAdd, {scaled, offset}, {}, type, node.source));
  }
  return rewriter.Finish();
}

}  // namespace npuc
