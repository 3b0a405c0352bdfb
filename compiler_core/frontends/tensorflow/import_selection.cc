// Positions of elements, and what positions name.
#include <set>
#include <utility>
#include <vector>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

// Operands: value, axis.
absl::Status ImportArg(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.ConstantInt(1, "axis"));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const DType dtype, node.IndexTypeOr("output_type", DType::kInt64));
  return node.SetOutput(frontend::ArgOf(
      node, node.input(0), {.axis = axis, .is_min = node.node().op() == "ArgMin", .dtype = dtype}));
}

// The largest elements of the last dimension and their indices.
absl::Status ImportTopK(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t k, node.ConstantInt(1, "k"));
  ASSIGN_OR_RETURN(const bool sorted, node.BoolOr("sorted", true));
  if (!sorted && k != 1) {
    return node.FailMode("the largest elements in no known order (sorted is false)",
                         "rebuild the model with sorted = True");
  }
  ASSIGN_OR_RETURN(frontend::Extrema extrema,
                   frontend::ExtremaOf(node, node.input(0), node.rank(0) - 1, k, false));
  ASSIGN_OR_RETURN(extrema.indices, frontend::CastTo(node, extrema.indices, DType::kInt32));
  return node.SetOutputs({std::move(extrema.values), std::move(extrema.indices)});
}

// Operands: indices, depth, the values on and off.
absl::Status ImportOneHot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(const int64_t depth, node.ConstantInt(1, "depth"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  return node.SetOutput(frontend::OneHotOf(node, node.input(0), depth, node.input(3), node.input(2),
                                           axis, /*may_be_negative=*/false));
}

absl::Status ImportGatherNd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  return node.SetOutput(frontend::LookedUpByTuples(node, node.input(0), node.input(1),
                                                   /*may_be_negative=*/false));
}

// The numbers of x that are not in y, in their order, and where they stand. How many there are
// depends on values, so that they must be known.
absl::Status ImportListDiff(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> x, node.ConstantInts(0, "list"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> y, node.ConstantInts(1, "list to leave out"));
  const std::set<int64_t> left_out(y.begin(), y.end());
  std::vector<int64_t> numbers;
  std::vector<int64_t> places;
  for (size_t i = 0; i < x.size(); ++i) {
    if (left_out.contains(x[i])) continue;
    numbers.push_back(x[i]);
    places.push_back(static_cast<int64_t>(i));
  }
  ASSIGN_OR_RETURN(const DType place_type, node.IndexTypeOr("out_idx", DType::kInt32));
  const auto list = [&](const std::vector<int64_t>& values, DType dtype) {
    const Shape shape = {static_cast<int64_t>(values.size())};
    return node.MakeConstant(CastTensor(Tensor::FromInts(shape, values), dtype));
  };
  return node.SetOutputs({list(numbers, node.type(0).dtype), list(places, place_type)});
}

constexpr ImportRule kSelectionRules[] = {
    {"ArgMax", ImportArg},        {"ArgMin", ImportArg},    {"GatherNd", ImportGatherNd},
    {"ListDiff", ImportListDiff}, {"OneHot", ImportOneHot}, {"TopKV2", ImportTopK},
};

}  // namespace

absl::Span<const ImportRule> SelectionRules() { return kSelectionRules; }

}  // namespace npuc::tf
