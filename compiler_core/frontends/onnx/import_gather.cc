// Operators that pick or place elements at indices, most of which must be known at compile time.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

// An integer operand's elements, made non-negative for a dimension.
absl::StatusOr<std::vector<int64_t>> Indices(NodeImporter& node, int operand, int64_t dim) {
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(operand, "indices"));
  if (!IsInteger(tensor.dtype()) || tensor.element_count() > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the indices are ", TypeToString(tensor.type()), "; they must be integers"));
  }
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    ASSIGN_OR_RETURN(indices.emplace_back(),
                     frontend::IndexFromFront(tensor.int_at(i), dim, /*may_be_negative=*/true));
  }
  return indices;
}

int64_t Product(const Shape& shape, int64_t begin, int64_t end) {
  return std::accumulate(shape.begin() + begin, shape.begin() + end, int64_t{1},
                         std::multiplies<>());
}

absl::Status ImportGather(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  const Shape& from = node.shape(0);
  if (!node.IsConstant(1)) {
    return node.SetOutput(frontend::LookedUp(node, node.input(0), node.input(1), axis,
                                             /*may_be_negative=*/true));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                   Indices(node, 1, from[static_cast<size_t>(axis)]));
  ASSIGN_OR_RETURN(const ValueRef picked, GatherAxis(node, node.input(0), axis, indices));
  Shape shape = from;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, node.shape(1).begin(), node.shape(1).end());
  return node.SetOutput(node.Reshaped(picked, std::move(shape)));
}

absl::StatusOr<ValueRef> Flat(NodeImporter& node, const ValueRef& value) {
  return node.Reshaped(value, {value->type.element_count()});
}

absl::Status ImportGatherElements(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  return node.SetOutput(frontend::ElementsAt(node, node.input(0), node.input(1), axis,
                                             /*may_be_negative=*/true));
}

// The indices of GatherND and ScatterND: tuples over the leading dimensions of the data.
struct Tuples {
  std::vector<int64_t> starts;  // flat position in the data that each tuple names
  int64_t size = 1;             // elements of each slice
  Shape lead;                   // dimensions of the list of tuples
  int64_t depth = 0;            // dimensions that a tuple and the batch name
};

absl::StatusOr<Tuples> ReadTuples(NodeImporter& node, int64_t batch_dims) {
  const Shape& data = node.shape(0);
  const Shape& shape = node.shape(1);
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(1, "indices"));
  const int64_t length = shape.empty() ? 0 : shape.back();
  const int64_t rank = static_cast<int64_t>(data.size());
  if (!IsInteger(tensor.dtype()) || length < 1 || batch_dims < 0 ||
      batch_dims >= static_cast<int64_t>(shape.size()) || batch_dims + length > rank ||
      tensor.element_count() > kMaxEvaluatedElements ||
      !std::equal(shape.begin(), shape.begin() + batch_dims, data.begin())) {
    return absl::InvalidArgumentError(absl::StrCat("the indices are ", TypeToString(node.type(1)),
                                                   " for ", TypeToString(node.type(0))));
  }
  Tuples tuples;
  tuples.depth = batch_dims + length;
  tuples.lead.assign(shape.begin(), shape.end() - 1);
  tuples.size = Product(data, tuples.depth, rank);
  const int64_t count = ElementCount(tuples.lead);
  ASSIGN_OR_RETURN(tuples.starts, frontend::StartsOfTuples(tensor, data, batch_dims,
                                                           /*may_be_negative=*/true));
  if (tuples.size > 0 && count > kMaxEvaluatedElements / tuples.size) {
    return absl::InvalidArgumentError("the indices name too many elements");
  }
  return tuples;
}

std::vector<int64_t> PositionsOf(const Tuples& tuples) {
  std::vector<int64_t> positions;
  for (const int64_t start : tuples.starts) {
    for (int64_t i = 0; i < tuples.size; ++i) positions.push_back(start + i);
  }
  return positions;
}

absl::Status ImportGatherNd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t batch_dims, node.IntOr("batch_dims", 0));
  if (!node.IsConstant(1) && batch_dims == 0) {
    return node.SetOutput(frontend::LookedUpByTuples(node, node.input(0), node.input(1),
                                                     /*may_be_negative=*/true));
  }
  ASSIGN_OR_RETURN(const Tuples tuples, ReadTuples(node, batch_dims));
  Shape shape = tuples.lead;
  shape.insert(shape.end(), node.shape(0).begin() + tuples.depth, node.shape(0).end());
  ASSIGN_OR_RETURN(const ValueRef flat, Flat(node, node.input(0)));
  return node.SetOutput(GatherFlat(node, flat, PositionsOf(tuples), std::move(shape)));
}

// Places updates (operand 2) at flat positions of the data. With a reduction, equal positions are
// worked off in rounds, each of which names every position at most once.
absl::Status Scatter(NodeImporter& node, const std::vector<int64_t>& positions) {
  ASSIGN_OR_RETURN(const std::string reduction, node.StringOr("reduction", "none"));
  const absl::string_view op = reduction == "add"   ? "Add"
                               : reduction == "mul" ? "Mul"
                               : reduction == "max" ? "Maximum"
                               : reduction == "min" ? "Minimum"
                                                    : "";
  if (op.empty() && reduction != "none") {
    return node.BadAttribute(
        absl::InvalidArgumentError(absl::StrCat("attribute 'reduction' is '", Printable(reduction),
                                                "'; allowed are none, add, mul, max and min")));
  }
  const int64_t count = node.type(0).element_count();
  if (static_cast<int64_t>(positions.size()) != node.type(2).element_count() ||
      node.type(0).dtype != node.type(2).dtype || count > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(absl::StrCat("the updates are ", TypeToString(node.type(2)),
                                                   " for ", TypeToString(node.type(0))));
  }
  ASSIGN_OR_RETURN(ValueRef data, Flat(node, node.input(0)));
  ASSIGN_OR_RETURN(const ValueRef updates, Flat(node, node.input(2)));
  std::vector<size_t> rest(positions.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  for (int round = 0; !rest.empty(); ++round) {
    if (round == 64)
      return node.FailMode("one element is updated more than 64 times", "update less");
    std::vector<int64_t> sources(static_cast<size_t>(count));
    std::iota(sources.begin(), sources.end(), int64_t{0});
    std::vector<size_t> later;
    for (const size_t i : rest) {
      int64_t& source = sources[static_cast<size_t>(positions[i])];
      const bool is_taken = source >= count;
      if (is_taken && !op.empty()) {
        later.push_back(i);
      } else {
        source = count + static_cast<int64_t>(i);  // the last one counts
      }
    }
    ASSIGN_OR_RETURN(const ValueRef both, node.Joined({data, updates}, 0));
    ASSIGN_OR_RETURN(const ValueRef placed, GatherFlat(node, both, sources, {count}));
    if (op.empty()) {
      data = placed;
      break;
    }
    // Elements that this round leaves alone stay as they are: the others are combined.
    std::vector<int64_t> touched;
    std::vector<int64_t> back(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      back[static_cast<size_t>(i)] = i;
      if (sources[static_cast<size_t>(i)] < count) continue;
      back[static_cast<size_t>(i)] = count + static_cast<int64_t>(touched.size());
      touched.push_back(i);
    }
    ASSIGN_OR_RETURN(const ValueRef a, GatherAxis(node, data, 0, touched));
    ASSIGN_OR_RETURN(const ValueRef b, GatherAxis(node, placed, 0, touched));
    ASSIGN_OR_RETURN(const ValueRef combined, node.Emit(op, {a, b}));
    ASSIGN_OR_RETURN(const ValueRef all, node.Joined({data, combined}, 0));
    ASSIGN_OR_RETURN(data, GatherFlat(node, all, back, {count}));
    rest = std::move(later);
  }
  return node.SetOutput(node.Reshaped(data, node.shape(0)));
}

absl::Status ImportScatterElements(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const Tensor indices, node.Constant(1, "indices"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                   frontend::PositionsOfElements(indices, node.shape(0), axis,
                                                 /*may_be_negative=*/true));
  return Scatter(node, positions);
}

absl::Status ImportScatterNd(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const Tuples tuples, ReadTuples(node, 0));
  return Scatter(node, PositionsOf(tuples));
}

absl::Status ImportCompress(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Tensor condition, node.Constant(1, "condition"));
  ValueRef value = node.input(0);
  int64_t axis = 0;
  if (node.node().HasAttr("axis")) {
    ASSIGN_OR_RETURN(axis, node.IntOr("axis", 0));
    ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  } else {
    ASSIGN_OR_RETURN(value, Flat(node, value));
  }
  const int64_t dim = value->type.shape[static_cast<size_t>(axis)];
  if (condition.dtype() != DType::kBool || condition.element_count() > dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition is ", TypeToString(condition.type()), " for ", dim));
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < condition.element_count(); ++i) {
    if (condition.bytes()[static_cast<size_t>(i)] != 0) kept.push_back(i);
  }
  return node.SetOutput(GatherAxis(node, value, axis, kept));
}

absl::Status ImportReverseSequence(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t batch_axis, node.IntOr("batch_axis", 1));
  ASSIGN_OR_RETURN(const int64_t time_axis, node.IntOr("time_axis", 0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, node.ConstantInts(1, "lengths"));
  const Shape& shape = node.shape(0);
  if (node.rank(0) < 2 || batch_axis < 0 || batch_axis > 1 || time_axis != 1 - batch_axis ||
      static_cast<int64_t>(lengths.size()) != shape[static_cast<size_t>(batch_axis)] ||
      node.type(0).element_count() > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(
        absl::StrCat(lengths.size(), " lengths for ", TypeToString(node.type(0))));
  }
  const int64_t inner = Product(shape, 2, node.rank(0));
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      const int64_t length = lengths[static_cast<size_t>(batch_axis == 0 ? i : j)];
      const int64_t t = batch_axis == 0 ? j : i;
      const int64_t limit = shape[static_cast<size_t>(time_axis)];
      const int64_t from = t < std::min(length, limit) ? std::min(length, limit) - 1 - t : t;
      const int64_t start = (batch_axis == 0 ? i * shape[1] + from : from * shape[1] + j) * inner;
      for (int64_t k = 0; k < inner; ++k) positions.push_back(start + k);
    }
  }
  ASSIGN_OR_RETURN(const ValueRef flat, Flat(node, node.input(0)));
  return node.SetOutput(GatherFlat(node, flat, positions, shape));
}

absl::Status ImportOneHot(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const Tensor depth_tensor, node.Constant(1, "depth"));
  ASSIGN_OR_RETURN(const Tensor values, node.Constant(2, "values"));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", -1));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0) + 1));
  if (depth_tensor.element_count() != 1 || values.element_count() != 2) {
    return absl::InvalidArgumentError("the depth must be one element, the values two");
  }
  const int64_t depth = depth_tensor.int_at(0);
  if (!node.IsConstant(0)) {
    const auto value = [&](int64_t i) { return node.Scalar(values.at(i), values.dtype()); };
    return node.SetOutput(frontend::OneHotOf(node, node.input(0), depth, value(0), value(1), axis,
                                             /*may_be_negative=*/true));
  }
  ASSIGN_OR_RETURN(const Tensor indices, node.Constant(0, "indices"));
  if (depth < 1 || depth > kMaxElements)
    return absl::InvalidArgumentError("the depth is too large");
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, depth);
  RETURN_IF_ERROR(CheckShape(shape));
  if (ElementCount(shape) > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError("the result has too many elements");
  }
  const int64_t inner = Product(shape, axis + 1, static_cast<int64_t>(shape.size()));
  std::vector<double> result(static_cast<size_t>(ElementCount(shape)), values.at(0));
  for (int64_t i = 0; i < indices.element_count(); ++i) {
    const int64_t index = static_cast<int64_t>(indices.at(i));
    if (index < -depth || index >= depth) continue;
    const int64_t at =
        (i / inner * depth + (index < 0 ? index + depth : index)) * inner + i % inner;
    result[static_cast<size_t>(at)] = values.at(1);
  }
  return node.SetOutput(node.Floats(std::move(shape), result, values.dtype()));
}

// A matrix with what lies above (or below) a diagonal replaced by zeros.
absl::Status ImportTrilu(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const bool upper, node.BoolOr("upper", true));
  int64_t k = 0;
  if (node.has(1)) {
    ASSIGN_OR_RETURN(k, node.ConstantInt(1, "diagonal"));
  }
  if (node.rank(0) < 2) return absl::InvalidArgumentError("the operand is no matrix");
  const Shape shape(node.shape(0).end() - 2, node.shape(0).end());
  if (ElementCount(shape) > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError("the matrices are too large");
  }
  k = std::clamp<int64_t>(k, -kMaxElements, kMaxElements);
  std::vector<int64_t> is_kept;
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      is_kept.push_back((upper ? j - i >= k : j - i <= k) ? 1 : 0);
    }
  }
  return node.EmitOutput("Select", {node.MakeConstant(IntTensor(DType::kBool, shape, is_kept)),
                                    node.input(0), node.Scalar(0, node.type(0).dtype)});
}

constexpr ImportRule kGatherRules[] = {
    {"Compress", ImportCompress},
    {"Gather", ImportGather},
    {"GatherElements", ImportGatherElements},
    {"GatherND", ImportGatherNd},
    {"OneHot", ImportOneHot},
    {"ReverseSequence", ImportReverseSequence},
    {"Scatter", ImportScatterElements},
    {"ScatterElements", ImportScatterElements},
    {"ScatterND", ImportScatterNd},
    {"Trilu", ImportTrilu},
};

}  // namespace

absl::Span<const ImportRule> GatherRules() { return kGatherRules; }

}  // namespace npuc::onnx
