// Operators of two operands by element, sums and reductions.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

struct Pair {
  ValueRef x;
  ValueRef y;
};

// X and Y as they broadcast: dimension 0 of Y stands at `axis` of X, and dimensions of 1 at the end
// of Y may be missing. -1: the last ones stand together, as in NumPy.
absl::StatusOr<Pair> ReadPair(OpImporter& node) {
  Pair pair;
  ASSIGN_OR_RETURN(pair.x, node.In("X"));
  ASSIGN_OR_RETURN(pair.y, node.In("Y"));
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", -1));
  const auto x_rank = static_cast<int64_t>(pair.x->type.shape.size());
  const auto y_rank = static_cast<int64_t>(pair.y->type.shape.size());
  if (axis < 0 || axis == x_rank - y_rank || y_rank > x_rank) return pair;
  Shape shape = pair.y->type.shape;
  while (!shape.empty() && axis + static_cast<int64_t>(shape.size()) > x_rank &&
         shape.back() == 1) {
    shape.pop_back();
  }
  const int64_t missing = x_rank - axis - static_cast<int64_t>(shape.size());
  if (axis > x_rank || missing < 0) {
    return absl::InvalidArgumentError(absl::StrCat("Y ", TypeToString(pair.y->type),
                                                   " at dimension ", axis, " of X ",
                                                   TypeToString(pair.x->type)));
  }
  shape.insert(shape.end(), static_cast<size_t>(missing), 1);
  ASSIGN_OR_RETURN(pair.y, node.Reshaped(pair.y, std::move(shape)));
  return pair;
}

template <Op kOp>
absl::Status ImportBinary(OpImporter& node) {
  ASSIGN_OR_RETURN(const Pair pair, ReadPair(node));
  return node.Give("Out", node.Emit(NameOf(kOp), {pair.x, pair.y}));
}

// The evaluator's names of comparisons, logic and whole quotients.
absl::string_view EvaluatedName(absl::string_view op) {
  constexpr std::pair<absl::string_view, absl::string_view> kNames[] = {
      {"elementwise_floordiv", "FloorDiv"},
      {"elementwise_mod", "FloorMod"},
      {"equal", "Equal"},
      {"greater_equal", "GreaterEqual"},
      {"greater_than", "Greater"},
      {"less_equal", "LessEqual"},
      {"less_than", "Less"},
      {"logical_and", "LogicalAnd"},
      {"logical_or", "LogicalOr"},
      {"logical_xor", "LogicalXor"},
      {"not_equal", "NotEqual"}};
  for (const auto& [name, evaluated] : kNames) {
    if (name == op) return evaluated;
  }
  return op;
}

absl::Status ImportEvaluated(OpImporter& node) {
  ASSIGN_OR_RETURN(const Pair pair, ReadPair(node));
  const absl::string_view op = EvaluatedName(node.node().type());
  if (!frontend::IsKnown(pair.x) || !frontend::IsKnown(pair.y)) {
    ASSIGN_OR_RETURN(ValueRef value, frontend::ComputedBinary(node, op, pair.x, pair.y));
    if (value != nullptr) return node.Give("Out", std::move(value));
  }
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(node.At("X"), "X"));
  ASSIGN_OR_RETURN(const Tensor y, node.Constant(node.At("Y"), "Y"));
  ASSIGN_OR_RETURN(Tensor result, EvaluateBinary(op, x, y.WithShape(pair.y->type.shape)));
  return node.Give("Out", node.MakeConstant(std::move(result)));
}

absl::Status ImportSum(OpImporter& node) {
  const std::vector<ValueRef> all = node.All("X");
  if (all.empty()) return node.In("X").status();
  ValueRef sum = all[0];
  for (size_t i = 1; i < all.size(); ++i) {
    ASSIGN_OR_RETURN(sum, node.Emit("Add", {sum, all[i]}));
  }
  return node.Give("Out", std::move(sum));
}

struct Reduction {
  std::vector<int64_t> axes;
  bool keep_dims = false;
};

absl::StatusOr<Reduction> ReadReduction(OpImporter& node, int64_t rank) {
  Reduction r;
  ASSIGN_OR_RETURN(r.axes, node.IntsAt("", "", "dim"));
  ASSIGN_OR_RETURN(const bool all, node.BoolOr("reduce_all", false));
  ASSIGN_OR_RETURN(r.keep_dims, node.BoolOr("keep_dim", false));
  if (all || r.axes.empty()) {
    r.axes.clear();
    for (int64_t i = 0; i < rank; ++i) r.axes.push_back(i);
  }
  ASSIGN_OR_RETURN(r.axes, node.Axes(std::move(r.axes), rank));
  return r;
}

absl::Status Reduce(OpImporter& node, absl::string_view op) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  ASSIGN_OR_RETURN(Reduction r, ReadReduction(node, static_cast<int64_t>(x->type.shape.size())));
  const bool is_least = op == "ReduceMin";  // the greatest of the negated ones
  ValueRef value = x;
  if (is_least) {
    ASSIGN_OR_RETURN(value, node.Emit("Neg", {x}));
  }
  ASSIGN_OR_RETURN(value, node.Reduced(is_least ? "ReduceMax" : op, value, r.axes, r.keep_dims));
  if (is_least) {
    ASSIGN_OR_RETURN(value, node.Emit("Neg", {value}));
  }
  return node.Give("Out", std::move(value));
}
absl::Status ImportReduceMean(OpImporter& node) { return Reduce(node, "ReduceMean"); }
absl::Status ImportReduceSum(OpImporter& node) { return Reduce(node, "ReduceSum"); }
absl::Status ImportReduceMax(OpImporter& node) { return Reduce(node, "ReduceMax"); }
absl::Status ImportReduceMin(OpImporter& node) { return Reduce(node, "ReduceMin"); }

// The mean of everything.
absl::Status ImportMean(OpImporter& node) {
  ASSIGN_OR_RETURN(const ValueRef x, node.In("X"));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x->type.shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return node.Give("Out", node.Reduced("ReduceMean", x, std::move(axes), false));
}

constexpr ImportRule kElementwiseRules[] = {
    {"elementwise_add", ImportBinary<Op::kAdd>},
    {"elementwise_div", ImportBinary<Op::kDiv>},
    {"elementwise_floordiv", ImportEvaluated},
    {"elementwise_max", ImportBinary<Op::kMaximum>},
    {"elementwise_min", ImportBinary<Op::kMinimum>},
    {"elementwise_mod", ImportEvaluated},
    {"elementwise_mul", ImportBinary<Op::kMul>},
    {"elementwise_pow", ImportBinary<Op::kPow>},
    {"elementwise_sub", ImportBinary<Op::kSub>},
    {"equal", ImportEvaluated},
    {"greater_equal", ImportEvaluated},
    {"greater_than", ImportEvaluated},
    {"less_equal", ImportEvaluated},
    {"less_than", ImportEvaluated},
    {"logical_and", ImportEvaluated},
    {"logical_or", ImportEvaluated},
    {"logical_xor", ImportEvaluated},
    {"maximum", ImportBinary<Op::kMaximum>},
    {"mean", ImportMean},
    {"minimum", ImportBinary<Op::kMinimum>},
    {"not_equal", ImportEvaluated},
    {"reduce_max", ImportReduceMax},
    {"reduce_mean", ImportReduceMean},
    {"reduce_min", ImportReduceMin},
    {"reduce_sum", ImportReduceSum},
    {"sum", ImportSum},
};

}  // namespace

absl::Span<const ImportRule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace npuc::paddle
