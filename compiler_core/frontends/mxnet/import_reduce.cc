// Reductions.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

struct Reduction {
  std::vector<int64_t> axes;  // sorted, unique, not negative
  bool keep_dims = false;
};

// Without axes all are reduced; with `exclude`, all but those named.
absl::StatusOr<Reduction> ReadReduction(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  Reduction reduction;
  ASSIGN_OR_RETURN(reduction.keep_dims, node.BoolOr("keepdims", false));
  ASSIGN_OR_RETURN(const bool exclude, node.BoolOr("exclude", false));
  std::vector<int64_t> all;
  for (int64_t i = 0; i < node.rank(0); ++i) all.push_back(i);
  ASSIGN_OR_RETURN(const std::vector<int64_t> named, node.AxesOr("axis", {}));
  if (!exclude) {
    reduction.axes = named.empty() ? all : named;
    return reduction;
  }
  for (const int64_t axis : all) {
    if (!std::binary_search(named.begin(), named.end(), axis)) reduction.axes.push_back(axis);
  }
  return reduction;
}

// MXNet has no scalars: all axes reduced leave a vector of one element.
absl::Status SetReduced(NodeImporter& node, const Term& reduced, const Reduction& r) {
  RETURN_IF_ERROR(reduced.value.status());
  const bool is_scalar = !r.keep_dims && static_cast<int64_t>(r.axes.size()) == node.rank(0);
  if (!is_scalar) return node.SetOutput(reduced.value);
  return node.SetOutput(node.Reshaped(*reduced.value, {1}));
}

template <Op kOp>
absl::Status ImportReduction(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  const Term x(node, node.input(0));
  return SetReduced(node, Reduced(NameOf(kOp), x, r.axes, r.keep_dims), r);
}

// min x = -max -x, exactly.
absl::Status ImportMin(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  const Term negative = -Term(node, node.input(0));
  return SetReduced(node, -Reduced("ReduceMax", negative, r.axes, r.keep_dims), r);
}

absl::Status ImportNorm(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Reduction r, ReadReduction(node));
  ASSIGN_OR_RETURN(const int64_t order, node.IntOr("ord", 2));
  if (order != 1 && order != 2) return node.FailMode(absl::StrCat("ord is ", order), "use 1 or 2");
  const Term x(node, node.input(0));
  return SetReduced(node, frontend::Norm(x, order, r.axes, r.keep_dims), r);
}

constexpr ImportRule kReduceRules[] = {
    {"max", ImportReduction<Op::kReduceMax>},
    {"max_axis", ImportReduction<Op::kReduceMax>},
    {"mean", ImportReduction<Op::kReduceMean>},
    {"min", ImportMin},
    {"min_axis", ImportMin},
    {"norm", ImportNorm},
    {"sum", ImportReduction<Op::kReduceSum>},
    {"sum_axis", ImportReduction<Op::kReduceSum>},
};

}  // namespace

absl::Span<const ImportRule> ReduceRules() { return kReduceRules; }

}  // namespace npuc::mxnet
