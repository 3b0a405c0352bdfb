// Products with weights, sums and products of tensors.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/selection.h"

namespace npuc::caffe {
namespace {

constexpr int kMaxOperands = 1 << 10;

// Everything from an axis on, as one vector, times a matrix.
absl::Status ImportInnerProduct(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t outputs, node.BoundedOr("num_output", 0, 1));
  ASSIGN_OR_RETURN(const bool has_bias, node.BoolOr("bias_term", true));
  ASSIGN_OR_RETURN(const bool is_transposed, node.BoolOr("transpose", false));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  RETURN_IF_ERROR(node.ExpectBlobs(has_bias ? 2 : 1));
  Shape result(node.shape(0).begin(), node.shape(0).begin() + axis);
  const int64_t rows = ElementCount(result);
  const int64_t inner =
      ElementCount(absl::MakeConstSpan(node.shape(0)).subspan(static_cast<size_t>(axis)));
  ASSIGN_OR_RETURN(
      ValueRef weight,
      node.Blob(0, "weight", is_transposed ? Shape{inner, outputs} : Shape{outputs, inner}));
  if (!is_transposed) {
    ASSIGN_OR_RETURN(weight, node.Transposed(weight, {1, 0}));
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(node.input(0), {rows, inner}));
  ASSIGN_OR_RETURN(y, node.Emit("MatMul", {y, weight}));
  if (has_bias) {
    ASSIGN_OR_RETURN(const ValueRef bias, node.Blob(1, "bias", {outputs}));
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, bias}));
  }
  result.push_back(outputs);
  return node.SetOutput(node.Reshaped(y, std::move(result)));
}

absl::Status ExpectEqualShapes(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, kMaxOperands));
  for (int i = 1; i < node.input_count(); ++i) {
    if (node.shape(i) == node.shape(0)) continue;
    return absl::InvalidArgumentError(absl::StrCat("bottom ", i, " is ", TypeToString(node.type(i)),
                                                   ", bottom 0 is ", TypeToString(node.type(0)),
                                                   "; all must be of one shape"));
  }
  return absl::OkStatus();
}

absl::Status ImportEltwise(LayerImporter& node) {
  constexpr absl::string_view kOperations[] = {"PROD", "SUM", "MAX"};
  constexpr const char* kOps[] = {"Mul", "Add", "Maximum"};
  constexpr int64_t kSum = 1;
  RETURN_IF_ERROR(ExpectEqualShapes(node));
  ASSIGN_OR_RETURN(const int64_t operation, node.ChoiceOr("operation", kOperations, kSum));
  ASSIGN_OR_RETURN(const std::vector<double> coeffs, node.FloatsOr("coeff", {}));
  if (!coeffs.empty() &&
      (operation != kSum || static_cast<int>(coeffs.size()) != node.input_count())) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("parameter 'coeff' has ", coeffs.size(), " values for an operation ",
                     kOperations[operation], " of ", node.input_count(), " bottoms")));
  }
  ValueRef result;
  for (int i = 0; i < node.input_count(); ++i) {
    Term x(node, node.input(i));
    if (!coeffs.empty()) x = x * coeffs[static_cast<size_t>(i)];
    RETURN_IF_ERROR(x.value.status());
    if (result == nullptr) {
      result = *x.value;
      continue;
    }
    ASSIGN_OR_RETURN(result, node.Emit(kOps[operation], {result, *x.value}));
  }
  return node.SetOutput(std::move(result));
}

// A value whose dimensions are those of operand 0 from `axis` on, as one that broadcasts over it.
absl::StatusOr<ValueRef> AlongAxis(LayerImporter& node, const ValueRef& value, int64_t axis) {
  Shape shape = value->type.shape;
  const Shape& whole = node.shape(0);
  const size_t first = static_cast<size_t>(axis);
  if (shape.size() > whole.size() - first ||
      !std::equal(shape.begin(), shape.end(), whole.begin() + axis)) {
    return absl::InvalidArgumentError(absl::StrCat("a factor or summand of ",
                                                   TypeToString(value->type), " from axis ", axis,
                                                   " of ", TypeToString(node.type(0)), " on"));
  }
  if (shape.empty()) return value;
  shape.resize(whole.size() - first, 1);
  return node.Reshaped(value, std::move(shape));
}

// The dimensions of operand 0 that the layer's own factor has.
absl::StatusOr<Shape> OwnShape(LayerImporter& node, int64_t axis) {
  ASSIGN_OR_RETURN(int64_t count, node.IntOr("num_axes", 1));
  if (count == -1) count = node.rank(0) - axis;
  if (count < 0 || axis + count > node.rank(0)) {
    return node.BadAttribute(
        absl::InvalidArgumentError(absl::StrCat("parameter 'num_axes' is ", count, " from axis ",
                                                axis, " of ", TypeToString(node.type(0)), " on")));
  }
  const auto begin = node.shape(0).begin() + axis;
  return Shape(begin, begin + count);
}

// Operand 1, or blob 0 where the layer has one operand.
absl::StatusOr<ValueRef> SecondFactor(LayerImporter& node, absl::string_view what, int64_t axis) {
  ASSIGN_OR_RETURN(Shape own, OwnShape(node, axis));
  if (node.has(1)) return node.input(1);
  return node.Blob(0, what, std::move(own));
}

absl::Status ImportScale(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const bool has_bias, node.BoolOr("bias_term", false));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  const int own = node.has(1) ? 0 : 1;
  RETURN_IF_ERROR(node.ExpectBlobs(own + (has_bias ? 1 : 0)));
  ASSIGN_OR_RETURN(const ValueRef factor, SecondFactor(node, "scale", axis));
  ASSIGN_OR_RETURN(const ValueRef scale, AlongAxis(node, factor, axis));
  ASSIGN_OR_RETURN(ValueRef y, node.Emit("Mul", {node.input(0), scale}));
  if (has_bias) {
    ASSIGN_OR_RETURN(const ValueRef summand, node.Blob(own, "bias", factor->type.shape));
    ASSIGN_OR_RETURN(const ValueRef bias, AlongAxis(node, summand, axis));
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, bias}));
  }
  return node.SetOutput(std::move(y));
}

absl::Status ImportBias(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  RETURN_IF_ERROR(node.ExpectBlobs(node.has(1) ? 0 : 1));
  ASSIGN_OR_RETURN(const ValueRef summand, SecondFactor(node, "bias", axis));
  ASSIGN_OR_RETURN(const ValueRef bias, AlongAxis(node, summand, axis));
  return node.EmitOutput("Add", {node.input(0), bias});
}

// scale * x + y, of which the scale is one number a channel of each item.
absl::Status ImportAxpy(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  const Shape& x = node.shape(1);
  if (x.size() < 2 || node.type(0).element_count() != x[0] * x[1] || node.shape(2) != x ||
      node.rank(0) < 2 || node.shape(0)[0] != x[0]) {
    return absl::InvalidArgumentError(absl::StrCat("the bottoms are ", TypeToString(node.type(0)),
                                                   ", ", TypeToString(node.type(1)), " and ",
                                                   TypeToString(node.type(2))));
  }
  Shape shape(x.size(), 1);
  shape[0] = x[0];
  shape[1] = x[1];
  ASSIGN_OR_RETURN(const ValueRef scale, node.Reshaped(node.input(0), std::move(shape)));
  const Term factor(node, scale);
  const Term product = Term(node, node.input(1)) * factor;
  const Term y(node, node.input(2));
  return node.SetOutput((product + y).value);
}

// Everything from an axis on, as one number.
absl::Status ImportReduction(LayerImporter& node) {
  constexpr absl::string_view kOperations[] = {"SUM", "ASUM", "SUMSQ", "MEAN"};
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t operation, node.ChoiceOr("operation", kOperations, 1, 1));
  ASSIGN_OR_RETURN(const double coeff, node.FloatOr("coeff", 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < node.rank(0); ++i) axes.push_back(i);
  Term x(node, node.input(0));
  if (operation == 2) x = Apply("Abs", x);
  if (operation == 3) x = Apply("Square", x);
  const Term result = Reduced(operation == 4 ? "ReduceMean" : "ReduceSum", x, axes, false);
  return node.SetOutput((result * coeff).value);
}

// The places of the top_k greatest elements along an axis, or from dimension 1 on; with out_max_val
// the elements themselves. Caffe sorts pairs of element and place by std::greater, so that the last
// of equal elements comes first. Source: argmax_layer.cpp.
absl::Status ImportArgMax(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const bool gives_value, node.BoolOr("out_max_val", false));
  ASSIGN_OR_RETURN(const int64_t count, node.IntOr("top_k", 1));
  ValueRef x = node.input(0);
  int64_t axis = 2;
  if (node.node().Has("axis")) {
    ASSIGN_OR_RETURN(axis, node.IntOr("axis", 0));
    ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  } else {
    if (gives_value) return node.FailMode("out_max_val without axis", "name the axis");
    if (node.rank(0) < 2) return absl::InvalidArgumentError("the bottom has one dimension");
    const int64_t items = node.shape(0)[0];
    ASSIGN_OR_RETURN(
        x, node.Reshaped(x, {items, 1, items == 0 ? 0 : ElementCount(node.shape(0)) / items}));
  }
  const int64_t most = std::min(frontend::kMaxExtrema, x->type.shape[static_cast<size_t>(axis)]);
  if (count < 1 || count > most) {
    return node.FailMode(
        absl::StrCat("top_k ", count, " of ", TypeToString(x->type), "; allowed are 1 to ", most),
        "take fewer, or cut the layer off by OUTPUT_OPS");
  }
  if (count == 1 && gives_value) return node.SetOutput(node.Reduced("ReduceMax", x, {axis}, true));
  ValueRef places;
  if (count == 1) {
    ASSIGN_OR_RETURN(places,
                     frontend::ArgOf(node, x, {.axis = axis, .keep_dims = true, .last = true}));
  } else {
    ASSIGN_OR_RETURN(const frontend::Extrema greatest,
                     frontend::ExtremaOf(node, x, axis, count, /*is_min=*/false, /*last=*/true));
    if (gives_value) return node.SetOutput(greatest.values);
    places = greatest.indices;
  }
  return node.SetOutput(frontend::CastTo(node, places, DType::kFloat32));  // Caffe has floats alone
}

// A constant that the net learned.
absl::Status ImportParameter(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(0, 0));
  RETURN_IF_ERROR(node.ExpectBlobs(1));
  ASSIGN_OR_RETURN(Shape shape, node.BlobShape(0));
  if (node.node().Has("shape")) {
    const absl::StatusOr<Shape> stated = node.node().Dims("shape");
    if (!stated.ok()) return node.BadAttribute(stated.status());
    shape = *stated;
  }
  return node.SetOutput(node.Blob(0, "value", std::move(shape)));
}

constexpr ImportRule kArithmeticRules[] = {
    {"ArgMax", ImportArgMax},
    {"Axpy", ImportAxpy},
    {"Bias", ImportBias},
    {"Eltwise", ImportEltwise},
    {"InnerProduct", ImportInnerProduct},
    {"Parameter", ImportParameter},
    {"Reduction", ImportReduction},
    {"Scale", ImportScale},
};

}  // namespace

absl::Span<const ImportRule> ArithmeticRules() { return kArithmeticRules; }

}  // namespace npuc::caffe
