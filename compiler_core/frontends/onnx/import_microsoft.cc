// Operators of domain com.microsoft, which onnxruntime's optimizer writes: fused forms of ONNX's
// own operators. Source: onnxruntime's docs/ContribOperators.md.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

using frontend::Apply;

// The activation that the attributes `activation` and `activation_params` name.
absl::StatusOr<ValueRef> Activated(NodeImporter& node, ValueRef value) {
  ASSIGN_OR_RETURN(const std::string name, node.StringOr("activation", ""));
  ASSIGN_OR_RETURN(const std::vector<double> params, node.FloatsOr("activation_params", {}));
  const auto param = [&](size_t i, double fallback) {
    return i < params.size() ? params[i] : fallback;
  };
  const Term x(node, value);
  const DType dtype = value->type.dtype;
  if (name.empty()) return value;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh") return Apply(name, x).value;
  if (name == "LeakyRelu") return LeakyRelu(x, param(0, 0.01)).value;
  if (name == "Clip") {
    constexpr double kMost = 3.4028234663852886e38;
    return Clip(x, node.Scalar(param(0, -kMost), dtype), node.Scalar(param(1, kMost), dtype)).value;
  }
  if (name == "HardSigmoid") {
    const Term line = x * param(0, 0.2) + param(1, 0.5);
    return Clip(line, node.Scalar(0, dtype), node.Scalar(1, dtype)).value;
  }
  return node.FailMode(absl::StrCat("activation '", Printable(name), "'"),
                       "export the model without onnxruntime's optimizations");
}

// Operands: those of Conv, and a value that is added to its sums before the activation.
absl::Status ImportFusedConv(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 4));
  std::vector<ValueRef> operands = {node.input(0), node.input(1)};
  if (node.has(2)) operands.push_back(node.input(2));
  ASSIGN_OR_RETURN(ValueRef y, RunRule(node, "Conv", std::move(operands)));
  if (node.has(3)) {
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, node.input(3)}));
  }
  return node.SetOutput(Activated(node, std::move(y)));
}

absl::Status ImportFusedGemm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  std::vector<ValueRef> operands = {node.input(0), node.input(1)};
  if (node.has(2)) operands.push_back(node.input(2));
  ASSIGN_OR_RETURN(ValueRef y, RunRule(node, "Gemm", std::move(operands)));
  return node.SetOutput(Activated(node, std::move(y)));
}

// alpha * A * B, each with its last two axes swapped where the attributes say so.
absl::Status ImportFusedMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
  std::vector<ValueRef> operands;
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(const bool in_batch,
                     node.BoolOr(i == 0 ? "transBatchA" : "transBatchB", false));
    if (in_batch) return node.FailMode("a transposed batch", "export the model again without it");
    ASSIGN_OR_RETURN(const bool swaps, node.BoolOr(i == 0 ? "transA" : "transB", false));
    ValueRef value = node.input(i);
    if (swaps && node.rank(i) >= 2) {
      std::vector<int64_t> perm;
      for (int64_t axis = 0; axis < node.rank(i); ++axis) perm.push_back(axis);
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      ASSIGN_OR_RETURN(value, node.Transposed(value, std::move(perm)));
    }
    operands.push_back(std::move(value));
  }
  ASSIGN_OR_RETURN(const ValueRef y, RunRule(node, "MatMul", std::move(operands)));
  return node.SetOutput((Term(node, y) * alpha).value);
}

// x with its bias (operand 1, where there is one).
absl::StatusOr<ValueRef> Biased(NodeImporter& node) {
  if (!node.has(1)) return node.input(0);
  return node.Emit("Add", {node.input(0), node.input(1)});
}

absl::Status ImportBiasedGelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(ValueRef x, Biased(node));
  return node.SetOutput(RunRule(node, "Gelu", {std::move(x)}));
}

absl::Status ImportFastGelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(ValueRef biased, Biased(node));
  const Term x(node, std::move(biased));
  return node.SetOutput(GeluByProducts(x).value);
}

absl::Status ImportQuickGelu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1.702));
  const Term x(node, node.input(0));
  return node.SetOutput(frontend::Swish(x, alpha).value);
}

// Operands: input, skip, gamma, and beta where the form has one, then a bias. Result 3 is the sum
// that was normalised; the mean and deviation (results 1 and 2) exist for training alone.
absl::Status ImportSkipLayerNorm(NodeImporter& node) {
  const bool is_simplified = node.op() == "SkipSimplifiedLayerNormalization";
  const int beta_at = is_simplified ? -1 : 3;
  const int bias_at = is_simplified ? 3 : 4;
  RETURN_IF_ERROR(node.ExpectInputs(3, bias_at + 1));
  ASSIGN_OR_RETURN(const double epsilon, node.FloatOr("epsilon", 1e-12));
  ASSIGN_OR_RETURN(ValueRef sum, node.Emit("Add", {node.input(0), node.input(1)}));
  if (node.has(bias_at)) {
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, node.input(bias_at)}));
  }
  const std::vector<int64_t> axes = {static_cast<int64_t>(sum->type.shape.size()) - 1};
  Term centred(node, sum);
  if (!is_simplified) centred = centred - Reduced("ReduceMean", centred, axes, true);
  const Term scale = InverseDeviation(centred, axes, epsilon);
  Term y = centred * scale;
  y = y * Term(node, node.input(2));
  if (beta_at >= 0 && node.has(beta_at)) y = y + Term(node, node.input(beta_at));
  RETURN_IF_ERROR(y.value.status());
  return node.SetOutputs({*y.value, sum, *scale.value, sum});
}

// [B,S,H] -> [B,heads,S,H/heads]
absl::StatusOr<ValueRef> Heads(NodeImporter& node, const ValueRef& value, int64_t heads) {
  const Shape s = value->type.shape;
  ASSIGN_OR_RETURN(const ValueRef split, node.Reshaped(value, {s[0], s[1], heads, s[2] / heads}));
  return node.Transposed(split, {0, 2, 1, 3});
}

// Plain self-attention. Operands: input [B,S,I], weight [I,3H], bias [3H].
absl::Status ImportAttention(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 7));
  for (int i = 3; i < node.input_count(); ++i) {
    if (node.has(i)) {
      return node.FailMode("an attention mask, a past or an attention bias",
                           "export the model without onnxruntime's optimizations");
    }
  }
  ASSIGN_OR_RETURN(const int64_t heads, node.RequiredInt("num_heads"));
  ASSIGN_OR_RETURN(const bool is_causal, node.BoolOr("unidirectional", false));
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.IntsOr("qkv_hidden_sizes", {}));
  ASSIGN_OR_RETURN(const bool is_rotary, node.BoolOr("do_rotary", false));
  if (is_rotary) {
    return node.FailMode("do_rotary is 1: positions would turn query and key",
                         "export the model without onnxruntime's optimizations");
  }
  if (is_causal || !sizes.empty()) {
    return node.FailMode("unidirectional attention, or unlike sizes of query, key and value",
                         "export the model without onnxruntime's optimizations");
  }
  if (node.rank(0) != 3 || node.rank(1) != 2 || heads < 1 || node.shape(1)[1] % (3 * heads) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the operand is ", TypeToString(node.type(0)),
                                                   ", the weight ", TypeToString(node.type(1)),
                                                   " and the heads are ", heads));
  }
  const int64_t hidden = node.shape(1)[1] / 3;
  const double fallback = 1 / std::sqrt(static_cast<double>(hidden) / static_cast<double>(heads));
  ASSIGN_OR_RETURN(const double scale, node.FloatOr("scale", fallback));
  ASSIGN_OR_RETURN(ValueRef all, RunRule(node, "MatMul", {node.input(0), node.input(1)}));
  if (node.has(2)) {
    ASSIGN_OR_RETURN(all, node.Emit("Add", {all, node.input(2)}));
  }
  std::vector<ValueRef> parts;
  for (int64_t i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(all, 2, i * hidden, hidden));
    ASSIGN_OR_RETURN(parts.emplace_back(), Heads(node, part, heads));
  }
  ASSIGN_OR_RETURN(const ValueRef keys, node.Transposed(parts[1], {0, 1, 3, 2}));
  ASSIGN_OR_RETURN(const ValueRef products, RunRule(node, "MatMul", {parts[0], keys}));
  ASSIGN_OR_RETURN(const ValueRef scores, (Term(node, products) * scale).value);
  ASSIGN_OR_RETURN(const ValueRef shares, node.Emit("Softmax", {scores}, {{"axis", int64_t{3}}}));
  ASSIGN_OR_RETURN(ValueRef y, RunRule(node, "MatMul", {shares, parts[2]}));
  ASSIGN_OR_RETURN(y, node.Transposed(y, {0, 2, 1, 3}));
  return node.SetOutput(node.Reshaped(y, {node.shape(0)[0], node.shape(0)[1], hidden}));
}

constexpr ImportRule kMicrosoftRules[] = {
    {"com.microsoft.Attention", ImportAttention},
    {"com.microsoft.BiasGelu", ImportBiasedGelu},
    {"com.microsoft.FastGelu", ImportFastGelu},
    {"com.microsoft.FusedConv", ImportFusedConv},
    {"com.microsoft.FusedGemm", ImportFusedGemm},
    {"com.microsoft.FusedMatMul", ImportFusedMatMul},
    {"com.microsoft.Gelu", ImportBiasedGelu},
    {"com.microsoft.QuickGelu", ImportQuickGelu},
    {"com.microsoft.SkipLayerNormalization", ImportSkipLayerNorm},
    {"com.microsoft.SkipSimplifiedLayerNormalization", ImportSkipLayerNorm},
};

}  // namespace

absl::Span<const ImportRule> MicrosoftRules() { return kMicrosoftRules; }

}  // namespace npuc::onnx
