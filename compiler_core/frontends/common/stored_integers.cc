#include "compiler_core/frontends/common/stored_integers.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc::frontend {
namespace {

// Attributes of a node that has passed its operator's rules.
std::vector<int64_t> IntsOf(const Node& node, absl::string_view name) {
  return IntsAttr(node, name).value_or(std::vector<int64_t>());
}
int64_t AxisOf(const Node& node, const Shape& shape) {
  return AxisAttr(node, "axis", static_cast<int64_t>(shape.size()), 0).value_or(0);
}

// `count` channels from `begin`, `stride` apart.
QuantParams SomeChannels(const QuantParams& params, int64_t begin, int64_t count, int64_t stride) {
  QuantParams some = params;
  some.scale.clear();
  some.zero_point.clear();
  for (int64_t i = 0; i < count; ++i) {
    const size_t channel = static_cast<size_t>(begin + i * stride);
    some.scale.push_back(params.scale[channel]);
    some.zero_point.push_back(params.zero_point[channel]);
  }
  return some;
}

// The dimension of `to` that has as many entries as `axis` of `from`, and as many elements behind
// it; -1 where there is none.
int AxisAfterReshape(int axis, const Shape& from, const Shape& to) {
  const size_t at = static_cast<size_t>(axis);
  const int64_t inner = ElementCount(absl::MakeConstSpan(from).subspan(at + 1));
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == from[at] && ElementCount(absl::MakeConstSpan(to).subspan(d + 1)) == inner) {
      return static_cast<int>(d);
    }
  }
  return -1;
}

using Results = std::optional<std::vector<QuantParams>>;

// One operand whose scales run along a dimension.
Results MoveChannels(const Node& node, const StoredIntegers& operand,
                     absl::Span<const TensorType> results) {
  QuantParams params = operand.params;
  const size_t axis = static_cast<size_t>(params.axis);
  if (node.op == Op::kIdentity) return {{params}};
  if (node.op == Op::kReshape) {
    params.axis = AxisAfterReshape(params.axis, operand.integers.shape(), results[0].shape);
    if (params.axis < 0) return std::nullopt;
    return {{params}};
  }
  if (node.op == Op::kTranspose) {
    const std::vector<int64_t> perm = IntsOf(node, "perm");
    params.axis = static_cast<int>(std::find(perm.begin(), perm.end(), params.axis) - perm.begin());
    return {{params}};
  }
  if (node.op == Op::kSlice) {
    return {{SomeChannels(params, IntsOf(node, "begin")[axis], results[0].shape[axis],
                          IntsOf(node, "strides")[axis])}};
  }
  if (node.op == Op::kPad) {
    if (results[0].shape[axis] != operand.integers.shape()[axis]) return std::nullopt;
    return {{params}};
  }
  std::vector<QuantParams> parts;  // of a Split
  int64_t begin = 0;
  const bool cuts = AxisOf(node, operand.integers.shape()) == params.axis;
  for (const TensorType& part : results) {
    parts.push_back(cuts ? SomeChannels(params, begin, part.shape[axis], 1) : params);
    begin += part.shape[axis];
  }
  return parts;
}

Results JoinParams(const Node& node, absl::Span<const StoredIntegers* const> operands) {
  QuantParams joined = operands[0]->params;
  const bool along = joined.axis >= 0 && joined.axis == AxisOf(node, operands[0]->integers.shape());
  for (const StoredIntegers* operand : operands.subspan(1)) {
    const QuantParams& next = operand->params;
    if (!along) {
      if (next != joined) return std::nullopt;
      continue;
    }
    if (next.axis != joined.axis || next.dtype != joined.dtype || next.qmin != joined.qmin ||
        next.qmax != joined.qmax) {
      return std::nullopt;
    }
    joined.scale.insert(joined.scale.end(), next.scale.begin(), next.scale.end());
    joined.zero_point.insert(joined.zero_point.end(), next.zero_point.begin(),
                             next.zero_point.end());
  }
  return {{joined}};
}

// Whether the operator fills with zeros, which the one zero point stands for; then `attrs` fill
// with that.
bool FillsWithZeroPoint(const QuantParams& params, AttrMap& attrs) {
  const auto value = attrs.find("value");
  const bool is_zero = value == attrs.end() || (std::get_if<double>(&value->second) != nullptr &&
                                                std::get<double>(value->second) == 0);
  const int64_t zero = params.zero_point.empty() ? 0 : params.zero_point[0];
  attrs["value"] = static_cast<double>(zero);
  return is_zero && std::all_of(params.zero_point.begin(), params.zero_point.end(),
                                [zero](int64_t other) { return other == zero; });
}

}  // namespace

std::optional<StoredMove> MoveStored(const Node& node,
                                     absl::Span<const StoredIntegers* const> operands) {
  constexpr Op kMoves[] = {Op::kReshape, Op::kTranspose, Op::kSlice,   Op::kSplit,
                           Op::kConcat,  Op::kPad,       Op::kIdentity};
  if (std::find(std::begin(kMoves), std::end(kMoves), node.op) == std::end(kMoves)) {
    return std::nullopt;
  }
  std::vector<TensorType> types;
  std::vector<const Tensor*> constants;
  for (const StoredIntegers* operand : operands) {
    types.push_back(operand->integers.type());
    constants.push_back(&operand->integers);
  }
  const auto results = DefOf(node.op).infer({node, types, constants});
  if (!results.ok()) return std::nullopt;
  StoredMove move;
  move.attrs = node.attrs;
  const StoredIntegers& first = *operands[0];
  if (node.op == Op::kPad && !FillsWithZeroPoint(first.params, move.attrs)) return std::nullopt;
  Results params;
  if (node.op == Op::kConcat) {
    params = JoinParams(node, operands);
  } else if (first.params.axis < 0) {
    params = std::vector<QuantParams>(results->size(), first.params);
  } else {
    params = MoveChannels(node, first, *results);
  }
  if (!params.has_value()) return std::nullopt;
  move.params = *std::move(params);
  return move;
}

}  // namespace npuc::frontend
