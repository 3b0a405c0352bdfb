#include "compiler_core/frontends/common/selection.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/ops/facts.h"

namespace npuc::frontend {
namespace {

ValueRef Truth(Emitter& node, bool value) {
  return node.MakeConstant(IntTensor(DType::kBool, {}, {value ? 1 : 0}));
}

ValueRef Number(Emitter& node, int64_t value, DType dtype) {
  return node.MakeConstant(CastTensor(Tensor::FromInts({}, {value}), dtype));
}

absl::StatusOr<ValueRef> Negated(Emitter& node, absl::StatusOr<ValueRef> x) {
  RETURN_IF_ERROR(x.status());
  return node.Emit("Equal", {*x, Truth(node, false)});
}

absl::StatusOr<ValueRef> Logic(Emitter& node, absl::string_view op, const ValueRef& a,
                               const ValueRef& b) {
  if (op == "LogicalAnd") return Selected(node, a, b, Truth(node, false));
  if (op == "LogicalOr") return Selected(node, a, Truth(node, true), b);
  return Negated(node, node.Emit("Equal", {a, b}));  // LogicalXor
}

// 1, 0 or -1 of the operand's type.
absl::StatusOr<ValueRef> Sign(Emitter& node, const ValueRef& x) {
  const ValueRef zero = Number(node, 0, x->type.dtype);
  ASSIGN_OR_RETURN(ValueRef above, node.Emit("Greater", {x, zero}));
  ASSIGN_OR_RETURN(ValueRef below, node.Emit("Greater", {zero, x}));
  ASSIGN_OR_RETURN(above, CastTo(node, above, x->type.dtype));
  ASSIGN_OR_RETURN(below, CastTo(node, below, x->type.dtype));
  return node.Emit("Sub", {above, below});
}

// Indices below 0 count from the end of a dimension of `size`.
absl::StatusOr<ValueRef> FromFront(Emitter& node, const ValueRef& indices, int64_t size) {
  const DType dtype = indices->type.dtype;
  ASSIGN_OR_RETURN(const ValueRef is_negative,
                   node.Emit("Greater", {Number(node, 0, dtype), indices}));
  ASSIGN_OR_RETURN(const ValueRef from_end, node.Emit("Add", {indices, Number(node, size, dtype)}));
  return Selected(node, is_negative, from_end, indices);
}

// Compares an index, which has one element along `axis`, with each position of that axis.
absl::StatusOr<ValueRef> IsAt(Emitter& node, const ValueRef& index, int64_t axis, int64_t size) {
  std::vector<int64_t> positions(static_cast<size_t>(size));
  std::iota(positions.begin(), positions.end(), 0);
  Shape along(index->type.shape.size(), 1);
  along[static_cast<size_t>(axis)] = size;
  const ValueRef places = node.MakeConstant(
      CastTensor(Tensor::FromInts(std::move(along), positions), index->type.dtype));
  return node.Emit("Equal", {index, places});
}

// A number below all elements along an axis: below the least by the size of the furthest from 0, so
// that no rounding loses the difference, and by 1. -inf where an element is infinite.
absl::StatusOr<ValueRef> BelowAll(Emitter& node, const ValueRef& x, int64_t axis) {
  ASSIGN_OR_RETURN(const ValueRef most, node.Reduced("ReduceMax", x, {axis}, true));
  ASSIGN_OR_RETURN(ValueRef least, node.Emit("Neg", {x}));
  ASSIGN_OR_RETURN(least, node.Reduced("ReduceMax", least, {axis}, true));  // negated
  ASSIGN_OR_RETURN(const ValueRef size, node.Emit("Maximum", {most, least}));
  ASSIGN_OR_RETURN(const ValueRef below, node.Emit("Sub", {Number(node, -1, x->type.dtype), size}));
  return node.Emit("Sub", {below, least});
}

// The finite number of the type that is furthest from 0, below it or above.
ValueRef FiniteEnd(Emitter& node, const ValueRef& x, double sign) {
  const DType dtype = x->type.dtype;
  const double largest = dtype == DType::kFloat16   ? kLargestHalf
                         : dtype == DType::kFloat64 ? std::numeric_limits<double>::max()
                                                    : std::numeric_limits<float>::max();
  return node.Scalar(sign * largest, dtype);
}

// x in the opposite order, exactly: its negative, or for an integer n the i64 -1 - n, which exists
// for each. Applied again it gives x.
absl::StatusOr<ValueRef> Reversed(Emitter& node, const ValueRef& x) {
  if (!IsInteger(x->type.dtype)) return node.Emit("Neg", {x});
  ASSIGN_OR_RETURN(const ValueRef wide, CastTo(node, x, DType::kInt64));
  return node.Emit("Sub", {Number(node, -1, DType::kInt64), wide});
}

// The k > 1 largest elements and their indices. Values are found among the elements as they are,
// indices among finite ones.
absl::StatusOr<Extrema> LargestOf(Emitter& node, const ValueRef& x, int64_t axis, int64_t k,
                                  bool last) {
  const int64_t size = x->type.shape[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(const ValueRef below, BelowAll(node, x, axis));
  ValueRef rest = x;
  ValueRef finite_rest = x;
  if (IsFloat(x->type.dtype)) {
    ASSIGN_OR_RETURN(finite_rest, AboveInfinity(node, x));
  }
  std::vector<ValueRef> values;
  std::vector<ValueRef> indices;
  for (int64_t i = 0; i < k; ++i) {
    ASSIGN_OR_RETURN(values.emplace_back(), node.Reduced("ReduceMax", rest, {axis}, true));
    ASSIGN_OR_RETURN(indices.emplace_back(),
                     ArgOf(node, finite_rest, {.axis = axis, .keep_dims = true, .last = last}));
    if (i + 1 == k) break;
    ASSIGN_OR_RETURN(const ValueRef is_taken, IsAt(node, indices.back(), axis, size));
    ASSIGN_OR_RETURN(rest, Selected(node, is_taken, below, rest));
    ASSIGN_OR_RETURN(finite_rest, Selected(node, is_taken, below, finite_rest));
  }
  Extrema extrema;
  ASSIGN_OR_RETURN(extrema.values, node.Joined(values, axis));
  ASSIGN_OR_RETURN(extrema.indices, node.Joined(indices, axis));
  return extrema;
}

}  // namespace

absl::StatusOr<ValueRef> CastTo(Emitter& node, const ValueRef& x, DType dtype) {
  if (x->type.dtype == dtype) return x;
  return node.Emit("Cast", {x}, {{"dtype", std::string(NameOf(dtype))}});
}

absl::StatusOr<ValueRef> ComputedUnary(Emitter& node, absl::string_view op, const ValueRef& x) {
  const bool is_float = IsFloat(x->type.dtype);
  const bool is_bool = x->type.dtype == DType::kBool;
  if (op == "LogicalNot" && is_bool) return Negated(node, x);
  if (op == "Sign" && !is_bool) return Sign(node, x);
  if (!is_float) return ValueRef();
  if (op == "Floor") return node.Emit("Floor", {x});
  if (op == "Erf") return Erf(Term(node, x)).value;
  if (op == "Erfc") return Erfc(Term(node, x)).value;
  if (op == "Round" || op == "Rint") return node.Emit("Round", {x});
  if (op == "Ceil") {
    ASSIGN_OR_RETURN(ValueRef y, node.Emit("Neg", {x}));
    ASSIGN_OR_RETURN(y, node.Emit("Floor", {y}));
    return node.Emit("Neg", {y});
  }
  return ValueRef();
}

absl::StatusOr<ValueRef> ComputedBinary(Emitter& node, absl::string_view op, const ValueRef& a,
                                        const ValueRef& b) {
  if (a->type.dtype != b->type.dtype) return ValueRef();
  if (op == "Equal") return node.Emit("Equal", {a, b});
  if (op == "NotEqual") return Negated(node, node.Emit("Equal", {a, b}));
  if (op == "Greater") return node.Emit("Greater", {a, b});
  if (op == "GreaterEqual") return node.Emit("GreaterEqual", {a, b});
  if (op == "Less") return node.Emit("Greater", {b, a});
  if (op == "LessEqual") return node.Emit("GreaterEqual", {b, a});
  if (a->type.dtype == DType::kBool) {
    const bool is_logic = op == "LogicalAnd" || op == "LogicalOr" || op == "LogicalXor";
    return is_logic ? Logic(node, op, a, b) : ValueRef();
  }
  if (op == "FloorDiv" && IsFloat(a->type.dtype)) {
    ASSIGN_OR_RETURN(const ValueRef quotient, node.Emit("Div", {a, b}));
    return node.Emit("Floor", {quotient});
  }
  return ValueRef();
}

absl::StatusOr<ValueRef> ReducedLogic(Emitter& node, bool all, const ValueRef& x,
                                      std::vector<int64_t> axes, bool keep_dims) {
  ValueRef y = x;
  if (all) {
    ASSIGN_OR_RETURN(y, Negated(node, y));
  }
  ASSIGN_OR_RETURN(y, CastTo(node, y, DType::kInt32));
  ASSIGN_OR_RETURN(y, node.Reduced("ReduceMax", y, std::move(axes), keep_dims));
  ASSIGN_OR_RETURN(y, node.Emit("Equal", {y, Number(node, all ? 0 : 1, DType::kInt32)}));
  return y;
}

absl::StatusOr<ValueRef> Selected(Emitter& node, const ValueRef& condition, const ValueRef& a,
                                  const ValueRef& b) {
  return node.Emit("Select", {condition, a, b});
}

absl::StatusOr<ValueRef> ReducedMin(Emitter& node, const ValueRef& x, std::vector<int64_t> axes,
                                    bool keep_dims) {
  ASSIGN_OR_RETURN(ValueRef y, Reversed(node, x));
  ASSIGN_OR_RETURN(y, node.Reduced("ReduceMax", y, std::move(axes), keep_dims));
  ASSIGN_OR_RETURN(y, Reversed(node, y));
  return CastTo(node, y, x->type.dtype);
}

absl::StatusOr<ValueRef> AboveInfinity(Emitter& node, const ValueRef& x) {
  return node.Emit("Maximum", {x, FiniteEnd(node, x, -1)}, {{kBoundsInfinityFact, true}});
}

absl::StatusOr<ValueRef> WithinInfinity(Emitter& node, const ValueRef& x) {
  ASSIGN_OR_RETURN(const ValueRef above, AboveInfinity(node, x));
  return node.Emit("Minimum", {above, FiniteEnd(node, x, 1)}, {{kBoundsInfinityFact, true}});
}

absl::StatusOr<ValueRef> ArgOf(Emitter& node, const ValueRef& x, const ArgOptions& options) {
  ValueRef y = x;
  if (options.is_min) {
    ASSIGN_OR_RETURN(y, Reversed(node, y));
  }
  const int64_t size = x->type.shape[static_cast<size_t>(options.axis)];
  if (options.last) {
    ASSIGN_OR_RETURN(y, node.Sliced(y, options.axis, size - 1, size, -1));
  }
  ASSIGN_OR_RETURN(ValueRef index, node.Emit("ArgMax", {y},
                                             {{"axis", options.axis},
                                              {"dtype", std::string(NameOf(options.dtype))}}));
  if (options.last) {
    ASSIGN_OR_RETURN(index, node.Emit("Sub", {Number(node, size - 1, options.dtype), index}));
  }
  if (!options.keep_dims) return index;
  Shape shape = x->type.shape;
  shape[static_cast<size_t>(options.axis)] = 1;
  return node.Reshaped(index, std::move(shape));
}

absl::StatusOr<Extrema> ExtremaOf(Emitter& node, const ValueRef& x, int64_t axis, int64_t k,
                                  bool is_min, bool last) {
  const int64_t size = x->type.shape.empty() ? 0 : x->type.shape[static_cast<size_t>(axis)];
  if (k < 1 || k > size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", k, " largest or least elements of ", TypeToString(x->type)));
  }
  if (k > kMaxExtrema) {
    return node.FailMode(
        absl::StrCat("the ", k, " largest or least elements; allowed are ", kMaxExtrema),
        "name the operand in OUTPUT_OPS, and sort on the CPU");
  }
  const DType dtype = x->type.dtype;
  ValueRef wide = x;
  if (IsInteger(dtype)) {  // a number below all others may be none of its type
    ASSIGN_OR_RETURN(wide, CastTo(node, x, DType::kInt64));
  }
  if (is_min) {
    ASSIGN_OR_RETURN(wide, node.Emit("Neg", {wide}));
  }
  Extrema extrema;
  if (k == 1) {
    ASSIGN_OR_RETURN(extrema.values, node.Reduced("ReduceMax", wide, {axis}, true));
    ASSIGN_OR_RETURN(extrema.indices,
                     ArgOf(node, wide, {.axis = axis, .keep_dims = true, .last = last}));
  } else {
    ASSIGN_OR_RETURN(extrema, LargestOf(node, wide, axis, k, last));
  }
  if (is_min) {
    ASSIGN_OR_RETURN(extrema.values, node.Emit("Neg", {extrema.values}));
  }
  ASSIGN_OR_RETURN(extrema.values, CastTo(node, extrema.values, dtype));
  return extrema;
}

absl::StatusOr<ValueRef> LookedUp(Emitter& node, const ValueRef& data, const ValueRef& indices,
                                  int64_t axis, bool may_be_negative) {
  ValueRef from_front = indices;
  if (may_be_negative && IsInteger(indices->type.dtype)) {
    ASSIGN_OR_RETURN(from_front,
                     FromFront(node, indices, data->type.shape[static_cast<size_t>(axis)]));
  }
  return node.Emit("Gather", {data, from_front}, {{"axis", axis}});
}

absl::StatusOr<ValueRef> LookedUpByTuples(Emitter& node, const ValueRef& data,
                                          const ValueRef& indices, bool may_be_negative) {
  const Shape& from = data->type.shape;
  const Shape& shape = indices->type.shape;
  const int64_t length = shape.empty() ? 0 : shape.back();
  if (!IsInteger(indices->type.dtype) || length < 1 || length > static_cast<int64_t>(from.size())) {
    return absl::InvalidArgumentError(absl::StrCat("the indices are ", TypeToString(indices->type),
                                                   " for ", TypeToString(data->type)));
  }
  const int64_t last = static_cast<int64_t>(shape.size()) - 1;
  ValueRef flat;
  int64_t count = 1;
  for (int64_t k = 0; k < length; ++k) {
    const int64_t size = from[static_cast<size_t>(k)];
    count *= size;
    ASSIGN_OR_RETURN(ValueRef index, node.Sliced(indices, last, k, 1));
    if (may_be_negative) {
      ASSIGN_OR_RETURN(index, FromFront(node, index, size));
    }
    if (flat != nullptr) {
      ASSIGN_OR_RETURN(flat, node.Emit("Mul", {flat, Number(node, size, indices->type.dtype)}));
      ASSIGN_OR_RETURN(index, node.Emit("Add", {flat, index}));
    }
    flat = index;
  }
  ASSIGN_OR_RETURN(flat, node.Reshaped(flat, Shape(shape.begin(), shape.end() - 1)));
  Shape rows = {count};
  rows.insert(rows.end(), from.begin() + length, from.end());
  ASSIGN_OR_RETURN(const ValueRef table, node.Reshaped(data, std::move(rows)));
  return node.Emit("Gather", {table, flat}, {{"axis", int64_t{0}}});
}

absl::StatusOr<ValueRef> ElementsAt(Emitter& node, const ValueRef& data, const ValueRef& indices,
                                    int64_t axis, bool may_be_negative) {
  const Shape& from = data->type.shape;
  const TensorType& type = indices->type;
  ASSIGN_OR_RETURN(const ValueRef flat, node.Reshaped(data, {data->type.element_count()}));
  if (indices->constant.has_value()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                     PositionsOfElements(*indices->constant, from, axis, may_be_negative));
    return GatherFlat(node, flat, positions, type.shape);
  }
  // The positions that zeros name, and a stride of the axis for each one more. Narrow integers
  // could not hold them.
  if (type.element_count() > kMaxEvaluatedElements || SizeOf(type.dtype) < 4) {
    return absl::InvalidArgumentError(absl::StrCat("the indices are ", TypeToString(type)));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                   PositionsOfElements(Tensor::Zeros(type), from, axis, /*may_be_negative=*/false));
  ValueRef index = indices;
  if (may_be_negative) {
    ASSIGN_OR_RETURN(index, FromFront(node, index, from[static_cast<size_t>(axis)]));
  }
  const int64_t stride = ElementCount(Shape(from.begin() + axis + 1, from.end()));
  if (stride != 1) {
    ASSIGN_OR_RETURN(index, node.Emit("Mul", {index, Number(node, stride, type.dtype)}));
  }
  if (std::any_of(starts.begin(), starts.end(), [](int64_t start) { return start != 0; })) {
    const ValueRef first = node.MakeConstant(IntTensor(type.dtype, type.shape, starts));
    ASSIGN_OR_RETURN(index, node.Emit("Add", {index, first}));
  }
  return node.Emit("Gather", {flat, index}, {{"axis", int64_t{0}}});
}

absl::StatusOr<ValueRef> OneHotOf(Emitter& node, const ValueRef& indices, int64_t depth,
                                  const ValueRef& off, const ValueRef& on, int64_t axis,
                                  bool may_be_negative) {
  if (depth < 1 || depth > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(absl::StrCat("a depth of ", depth));
  }
  ValueRef from_front = indices;
  if (may_be_negative) {
    ASSIGN_OR_RETURN(from_front, FromFront(node, indices, depth));
  }
  Shape shape = indices->type.shape;
  shape.insert(shape.begin() + axis, 1);
  RETURN_IF_ERROR(CheckShape(shape));
  ASSIGN_OR_RETURN(from_front, node.Reshaped(from_front, shape));
  ASSIGN_OR_RETURN(const ValueRef is_there, IsAt(node, from_front, axis, depth));
  return Selected(node, is_there, on, off);
}

}  // namespace npuc::frontend
