// Reductions, softmax and cumulative sums.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

struct Reduction {
  std::vector<int64_t> axes;  // sorted, unique, not negative
  bool keep_dims = true;
};

absl::StatusOr<Reduction> ReadReduction(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  Reduction reduction;
  ASSIGN_OR_RETURN(const auto given, node.IntsAt(1, "axes"));
  ASSIGN_OR_RETURN(reduction.keep_dims, node.BoolOr("keepdims", true));
  ASSIGN_OR_RETURN(const bool noop, node.BoolOr("noop_with_empty_axes", false));
  const std::vector<int64_t> axes = given.value_or(std::vector<int64_t>());
  if (axes.empty() && !noop) {
    for (int64_t i = 0; i < node.rank(0); ++i) reduction.axes.push_back(i);
    return reduction;
  }
  ASSIGN_OR_RETURN(reduction.axes, node.Axes(axes, node.rank(0)));
  return reduction;
}

Term Reduce(const Term& x, absl::string_view op, const Reduction& r) {
  return Reduced(op, x, r.axes, r.keep_dims);
}

absl::Status ImportReduction(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  const Term x(node, node.input(0));
  if (node.type(0).dtype == DType::kBool && node.op() == "ReduceMax") {
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(0, "operand"));
    return node.SetConstant(EvaluateReduction("Any", value, r.axes, r.keep_dims));
  }
  return node.SetOutput(Reduce(x, node.op(), r).value);
}
absl::Status ImportReduceMin(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  if (node.type(0).dtype == DType::kBool) {
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(0, "operand"));
    return node.SetConstant(EvaluateReduction("All", value, r.axes, r.keep_dims));
  }
  return node.SetOutput(frontend::ReducedMin(node, node.input(0), r.axes, r.keep_dims));
}
absl::Status ImportL1(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  return node.SetOutput(Norm(Term(node, node.input(0)), 1, r.axes, r.keep_dims).value);
}
absl::Status ImportL2(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  return node.SetOutput(Norm(Term(node, node.input(0)), 2, r.axes, r.keep_dims).value);
}
absl::Status ImportSumSquare(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  return node.SetOutput(Reduce(Apply("Square", Term(node, node.input(0))), "ReduceSum", r).value);
}
absl::Status ImportLogSum(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  return node.SetOutput(Log(Reduce(Term(node, node.input(0)), "ReduceSum", r)).value);
}
// With the greatest element taken out first, so that nothing overflows, but no infinity.
absl::Status ImportLogSumExp(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  const Term x(node, node.input(0));
  if (node.type(0).element_count() == 0) {
    return node.SetOutput(Log(Reduce(Exp(x), "ReduceSum", r)).value);
  }
  const auto greatest_of = [&](bool keep_dims) -> absl::StatusOr<ValueRef> {
    ASSIGN_OR_RETURN(const ValueRef most,
                     node.Reduced("ReduceMax", node.input(0), r.axes, keep_dims));
    return frontend::WithinInfinity(node, most);
  };
  const Term greatest(node, greatest_of(true));
  const Term shift = r.keep_dims ? greatest : Term(node, greatest_of(false));
  return node.SetOutput((Log(Reduce(Exp(x - greatest), "ReduceSum", r)) + shift).value);
}

// The product of the slices of each axis.
absl::Status ImportProd(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  ValueRef x = node.input(0);
  if (node.IsConstant(0) || node.type(0).element_count() == 0) {
    ASSIGN_OR_RETURN(const Tensor value, node.Constant(0, "operand"));
    return node.SetConstant(EvaluateReduction("Prod", value, r.axes, r.keep_dims));
  }
  Shape squeezed;
  for (int64_t axis = 0; axis < node.rank(0); ++axis) {
    const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
    if (!std::binary_search(r.axes.begin(), r.axes.end(), axis)) {
      squeezed.push_back(dim);
      continue;
    }
    if (dim > kMaxInputsPerNode) {
      return node.FailMode(absl::StrCat("a product of ", dim, " elements"),
                           absl::StrCat("reduce at most ", kMaxInputsPerNode));
    }
    ValueRef product;
    for (int64_t i = 0; i < dim; ++i) {
      ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(x, axis, i, 1));
      if (product == nullptr) {
        product = part;
        continue;
      }
      ASSIGN_OR_RETURN(product, node.Emit("Mul", {product, part}));
    }
    x = product;
  }
  if (r.keep_dims) return node.SetOutput(std::move(x));
  return node.SetOutput(node.Reshaped(x, std::move(squeezed)));
}

// Before operator set 13 the dimensions from `axis` on were one.
absl::Status ImportSoftmax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const bool is_old = node.opset() < 13;
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", is_old ? 1 : -1));
  if (node.rank(0) == 1 && is_old && axis == 1) axis = 0;
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  if (!is_old || axis == node.rank(0) - 1) {
    return node.EmitOutput(node.op(), {node.input(0)}, {{"axis", axis}});
  }
  Shape flat = {1, 1};
  for (int64_t i = 0; i < node.rank(0); ++i) {
    flat[i < axis ? 0 : 1] *= node.shape(0)[static_cast<size_t>(i)];
  }
  ASSIGN_OR_RETURN(ValueRef y, node.Reshaped(node.input(0), std::move(flat)));
  ASSIGN_OR_RETURN(y, node.Emit(node.op(), {y}, {{"axis", int64_t{1}}}));
  return node.SetOutput(node.Reshaped(y, node.shape(0)));
}

// The sums of a constant's elements from the first, or the last, of each of its rows.
std::vector<double> RunningSums(const Tensor& rows, int64_t dim, bool exclusive, bool reverse) {
  std::vector<double> sums(static_cast<size_t>(rows.element_count()));
  for (int64_t start = 0; start < rows.element_count(); start += dim) {
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i) {
      const int64_t at = start + (reverse ? dim - 1 - i : i);
      const double before = sum;
      sum += rows.at(at);
      sums[static_cast<size_t>(at)] = exclusive ? before : sum;
    }
  }
  return sums;
}

// A product with a triangle of ones. Its zeros would make NaN of a constant's infinities.
absl::Status ImportCumSum(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(1, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const bool exclusive, node.BoolOr("exclusive", false));
  ASSIGN_OR_RETURN(const bool reverse, node.BoolOr("reverse", false));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  if (dim > 4096) return node.FailMode(absl::StrCat("a sum along ", dim), "sum at most 4096");
  std::vector<double> triangle;
  for (int64_t i = 0; i < dim; ++i) {
    for (int64_t j = 0; j < dim; ++j) {
      const int64_t from = reverse ? i - j : j - i;
      triangle.push_back(from > 0 || (from == 0 && !exclusive) ? 1 : 0);
    }
  }
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < node.rank(0); ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  ASSIGN_OR_RETURN(ValueRef x, node.Transposed(node.input(0), perm));
  const Shape shape = x->type.shape;
  ASSIGN_OR_RETURN(x, node.Reshaped(x, {dim == 0 ? 0 : ElementCount(shape) / dim, dim}));
  const DType dtype = x->type.dtype;
  if (x->constant.has_value() && IsFloat(dtype)) {
    x = node.Floats(x->type.shape, RunningSums(*x->constant, dim, exclusive, reverse), dtype);
  } else {
    ASSIGN_OR_RETURN(x, node.Emit("MatMul", {x, node.Floats({dim, dim}, triangle, dtype)}));
  }
  ASSIGN_OR_RETURN(x, node.Reshaped(x, shape));
  return node.SetOutput(node.Transposed(x, perm));
}

// The largest or least elements and their indices, in order.
absl::Status ImportTopK(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  int64_t k = 0;
  if (node.has(1)) {
    ASSIGN_OR_RETURN(k, node.ConstantInt(1, "k"));
  } else {
    ASSIGN_OR_RETURN(k, node.RequiredInt("k"));
  }
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const bool largest, node.BoolOr("largest", true));
  ASSIGN_OR_RETURN(const bool sorted, node.BoolOr("sorted", true));
  if (!sorted && k != 1) {
    return node.FailMode("the largest elements in no known order (sorted = 0)",
                         "export with sorted = 1");
  }
  ASSIGN_OR_RETURN(frontend::Extrema extrema,
                   frontend::ExtremaOf(node, node.input(0), axis, k, !largest));
  return node.SetOutputs({std::move(extrema.values), std::move(extrema.indices)});
}

// 1 at the first largest element, 0 elsewhere.
absl::Status ImportHardmax(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const bool is_old = node.opset() < 13;
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", is_old ? 1 : -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  if (is_old && axis != node.rank(0) - 1) {
    return node.FailMode("Hardmax over several dimensions", "export with opset 13 or later");
  }
  ASSIGN_OR_RETURN(const ValueRef index, frontend::ArgOf(node, node.input(0), {.axis = axis}));
  const DType dtype = node.type(0).dtype;
  return node.SetOutput(frontend::OneHotOf(node, index, node.shape(0)[static_cast<size_t>(axis)],
                                           node.Scalar(0, dtype), node.Scalar(1, dtype), axis,
                                           /*may_be_negative=*/false));
}

// The index of the greatest or least element.
absl::Status ImportArg(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const bool keep_dims, node.BoolOr("keepdims", true));
  ASSIGN_OR_RETURN(const bool last, node.BoolOr("select_last_index", false));
  const bool is_max = node.op() == "ArgMax";
  return node.SetOutput(
      frontend::ArgOf(node, node.input(0),
                      {.axis = axis, .keep_dims = keep_dims, .is_min = !is_max, .last = last}));
}

constexpr ImportRule kReduceRules[] = {
    {"ArgMax", ImportArg},
    {"ArgMin", ImportArg},
    {"CumSum", ImportCumSum},
    {"Hardmax", ImportHardmax},
    {"LogSoftmax", ImportSoftmax},
    {"ReduceL1", ImportL1},
    {"ReduceL2", ImportL2},
    {"ReduceLogSum", ImportLogSum},
    {"ReduceLogSumExp", ImportLogSumExp},
    {"ReduceMax", ImportReduction},
    {"ReduceMean", ImportReduction},
    {"ReduceMin", ImportReduceMin},
    {"ReduceProd", ImportProd},
    {"ReduceSum", ImportReduction},
    {"ReduceSumSquare", ImportSumSquare},
    {"Softmax", ImportSoftmax},
    {"TopK", ImportTopK},
};

}  // namespace

absl::Span<const ImportRule> ReduceRules() { return kReduceRules; }

}  // namespace npuc::onnx
