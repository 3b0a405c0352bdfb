// Operators of domain ai.onnx.ml, which scikit-learn's models become: scaling, normalizing, linear
// models. Source: onnx/docs/Operators-ml.md; Normalizer and the classes as onnxruntime has them.
#include "compiler_core/frontends/onnx/import_ml.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/selection.h"

namespace npuc::onnx {
namespace {

// One number for all columns of the operand, or one for each.
absl::StatusOr<ValueRef> ByColumn(NodeImporter& node, absl::string_view name, double fallback) {
  ASSIGN_OR_RETURN(std::vector<double> numbers, node.FloatsOr(name, {fallback}));
  const auto count = static_cast<int64_t>(numbers.size());
  const Shape& shape = node.shape(0);
  if (count != 1 && (shape.empty() || shape.back() != count)) {
    return node.BadAttribute(absl::InvalidArgumentError(absl::StrCat(
        "attribute '", name, "' has ", count, " numbers for ", TypeToString(node.type(0)))));
  }
  return node.Floats({count}, numbers, DType::kFloat32);
}

absl::Status ImportScaler(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term offset(node, ByColumn(node, "offset", 0));
  const Term scale(node, ByColumn(node, "scale", 1));
  RETURN_IF_ERROR(offset.value.status());
  RETURN_IF_ERROR(scale.value.status());
  const Term shifted = Term(node, node.input(0)) - offset;
  return node.SetOutput((shifted * scale).value);
}

// Rows over their largest number, the sum of their sizes, or the root of their squares' sum; a row
// of zeros stays. onnxruntime takes the largest number itself, not its size.
absl::StatusOr<ValueRef> Normalized(NodeImporter& node, const ValueRef& x,
                                    const std::string& norm) {
  const std::vector<int64_t> last = {static_cast<int64_t>(x->type.shape.size()) - 1};
  const Term value(node, x);
  Term size = value;
  if (norm == "MAX") {
    size = frontend::Reduced("ReduceMax", value, last, true);
  } else if (norm == "L1") {
    size = frontend::Reduced("ReduceSum", frontend::Apply("Abs", value), last, true);
  } else if (norm == "L2") {
    const Term sum = frontend::Reduced("ReduceSum", frontend::Apply("Square", value), last, true);
    size = frontend::Apply("Sqrt", sum);
  } else {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'norm' is '", Printable(norm), "'; allowed are MAX, L1 and L2")));
  }
  // fp16 has no smaller number than 2^-24.
  constexpr double kLeast = 0x1p-24;
  return (norm == "MAX" ? value / size : value / Max(size, kLeast)).value;
}

absl::Status ImportNormalizer(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) < 1) return absl::InvalidArgumentError("a number has no rows");
  ASSIGN_OR_RETURN(const std::string norm, node.StringOr("norm", "MAX"));
  return node.SetOutput(Normalized(node, node.input(0), norm));
}

// x [rows, columns] by the coefficients [targets, columns], and the intercepts.
absl::StatusOr<ValueRef> Linear(NodeImporter& node, int64_t targets) {
  ValueRef x = node.input(0);
  if (node.rank(0) == 1) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {1, x->type.shape[0]}));
  }
  ASSIGN_OR_RETURN(const std::vector<double> weights, node.FloatsOr("coefficients", {}));
  ASSIGN_OR_RETURN(const std::vector<double> intercepts, node.FloatsOr("intercepts", {}));
  const Shape& shape = x->type.shape;
  if (shape.size() != 2 || targets < 1 ||
      static_cast<int64_t>(weights.size()) != targets * shape[1] ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != targets)) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat(weights.size(), " coefficients and ", intercepts.size(), " intercepts for ",
                     TypeToString(x->type), " and ", targets, " targets")));
  }
  ASSIGN_OR_RETURN(
      const ValueRef weight,
      node.Transposed(node.Floats({targets, shape[1]}, weights, DType::kFloat32), {1, 0}));
  ASSIGN_OR_RETURN(const ValueRef product, node.Emit("MatMul", {x, weight}));
  if (intercepts.empty()) return product;
  return node.Emit("Add", {product, node.Floats({targets}, intercepts, DType::kFloat32)});
}

}  // namespace

absl::StatusOr<ValueRef> FeatureRows(NodeImporter& node) {
  ValueRef x = node.input(0);
  if (node.rank(0) == 1) {
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {1, x->type.shape[0]}));
  }
  if (x->type.shape.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of features are [rows, columns], not ", TypeToString(x->type)));
  }
  return CastTo(node, x, DType::kFloat32);
}

absl::StatusOr<ValueRef> TransformedScores(NodeImporter& node, const ValueRef& scores) {
  ASSIGN_OR_RETURN(const std::string transform, node.StringOr("post_transform", "NONE"));
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return node.Emit("Sigmoid", {scores});
  if (transform == "SOFTMAX") return node.Emit("Softmax", {scores}, {{"axis", int64_t{1}}});
  return node.FailMode(absl::StrCat("post_transform ", Printable(transform)),
                       "use NONE, LOGISTIC or SOFTMAX");
}

absl::StatusOr<ValueRef> LabelsAt(NodeImporter& node, const ValueRef& index,
                                  const std::vector<int64_t>& labels) {
  if (labels.empty()) {
    return node.FailMode("labels that are texts",
                         "name the scores in OUTPUT_OPS; the label is that of the largest one");
  }
  bool is_counted = true;
  for (size_t i = 0; i < labels.size(); ++i) {
    is_counted = is_counted && labels[i] == static_cast<int64_t>(i);
  }
  if (is_counted) return index;
  const ValueRef table =
      node.MakeConstant(Tensor::FromInts({static_cast<int64_t>(labels.size())}, labels));
  return LookedUp(node, table, index, /*axis=*/0, /*may_be_negative=*/false);
}

absl::StatusOr<ValueRef> LabelsOfLargest(NodeImporter& node, const ValueRef& scores,
                                         const std::vector<int64_t>& labels) {
  ASSIGN_OR_RETURN(const ValueRef index, ArgOf(node, scores, {.axis = 1, .dtype = DType::kInt64}));
  return LabelsAt(node, index, labels);
}

namespace {

absl::Status ImportLinearRegressor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t targets, node.IntOr("targets", 1));
  ASSIGN_OR_RETURN(const ValueRef y, Linear(node, targets));
  return node.SetOutput(TransformedScores(node, y));
}

// Results: labels [rows], scores [rows, classes].
absl::Status ImportLinearClassifier(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> labels, node.IntsOr("classlabels_ints", {}));
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, node.StringsOr("classlabels_strings", {}));
  const size_t classes = labels.empty() ? texts.size() : labels.size();
  ASSIGN_OR_RETURN(const std::vector<double> weights, node.FloatsOr("coefficients", {}));
  const int64_t columns = node.shape(0).empty() ? 0 : node.shape(0).back();
  if (classes == 2 && static_cast<int64_t>(weights.size()) == columns) {
    return node.FailMode("one row of coefficients for two classes",
                         "export the model with a row for each class");
  }
  ASSIGN_OR_RETURN(const ValueRef raw, Linear(node, static_cast<int64_t>(classes)));
  std::vector<ValueRef> outputs(2);
  if (node.WantsOutput(0)) {
    ASSIGN_OR_RETURN(outputs[0], LabelsOfLargest(node, raw, labels));
  }
  ASSIGN_OR_RETURN(outputs[1], TransformedScores(node, raw));
  return node.SetOutputs(std::move(outputs));
}

// A list of maps from labels to scores: here, the scores.
absl::Status ImportZipMap(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetOutput(node.input(0));
}

// Columns of the operand by known numbers.
absl::Status ImportArrayFeatureExtractor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(0) < 1) return absl::InvalidArgumentError("a number has no columns");
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.ConstantInts(1, "columns"));
  const int64_t axis = node.rank(0) - 1;
  const int64_t columns = node.shape(0).back();
  for (const int64_t index : indices) {
    if (index >= 0 && index < columns) continue;
    return absl::InvalidArgumentError(absl::StrCat("column ", index, " of ", columns));
  }
  ASSIGN_OR_RETURN(ValueRef y, GatherAxis(node, node.input(0), axis, indices));
  if (axis == 0) {
    ASSIGN_OR_RETURN(y, node.Reshaped(y, {1, static_cast<int64_t>(indices.size())}));
  }
  return node.SetOutput(std::move(y));
}

constexpr ImportRule kMlRules[] = {
    {"ai.onnx.ml.ArrayFeatureExtractor", ImportArrayFeatureExtractor},
    {"ai.onnx.ml.LinearClassifier", ImportLinearClassifier},
    {"ai.onnx.ml.LinearRegressor", ImportLinearRegressor},
    {"ai.onnx.ml.Normalizer", ImportNormalizer},
    {"ai.onnx.ml.Scaler", ImportScaler},
    {"ai.onnx.ml.ZipMap", ImportZipMap},
};

}  // namespace

absl::Span<const ImportRule> MlRules() { return kMlRules; }

}  // namespace npuc::onnx
