#include "compiler_core/frontends/common/stored_integers.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "gtest/gtest.h"

namespace npuc::frontend {
namespace {

// 0, 1, 2 ... of a shape; one scale, or one for each index of `axis`.
StoredIntegers Stored(Shape shape, int axis, int64_t zero = 5) {
  std::vector<uint8_t> bytes(static_cast<size_t>(ElementCount(shape)));
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  StoredIntegers stored;
  stored.params = {DType::kInt8, -128, 127, axis, {}, {}};
  const int64_t count = axis < 0 ? 1 : shape[static_cast<size_t>(axis)];
  for (int64_t i = 0; i < count; ++i) {
    stored.params.scale.push_back(0.5 + static_cast<double>(i));
    stored.params.zero_point.push_back(zero);
  }
  stored.integers = Tensor({DType::kInt8, std::move(shape)}, std::move(bytes));
  return stored;
}

Node NodeOf(Op op, AttrMap attrs) { return {op, {}, {}, std::move(attrs), {}}; }

std::vector<float> RealOf(const StoredIntegers& stored) {
  const Node dequantize = NodeOf(Op::kDequantize, DequantizeAttrs(stored.params));
  return DefOf(Op::kDequantize).reference(dequantize, {{stored.integers}}).value()[0].ToFloats();
}

// The moved integers stand for what the operator gives of the floats.
void ExpectMoves(const Node& node, const std::vector<StoredIntegers>& operands) {
  std::vector<const StoredIntegers*> stored;
  std::vector<Tensor> integers;
  std::vector<Tensor> floats;
  for (const StoredIntegers& operand : operands) {
    stored.push_back(&operand);
    integers.push_back(operand.integers);
    floats.push_back(Tensor::FromFloats(operand.integers.shape(), RealOf(operand)));
  }
  const std::optional<StoredMove> move = MoveStored(node, stored);
  ASSERT_TRUE(move.has_value()) << node.op;
  const OpDef& def = DefOf(node.op);
  const auto moved = def.reference(NodeOf(node.op, move->attrs), integers);
  const auto wanted = def.reference(node, floats);
  ASSERT_TRUE(moved.ok() && wanted.ok()) << moved.status() << wanted.status();
  ASSERT_EQ(move->params.size(), wanted->size());
  for (size_t i = 0; i < wanted->size(); ++i) {
    EXPECT_EQ(RealOf({(*moved)[i], move->params[i]}), (*wanted)[i].ToFloats()) << node.op;
  }
}

TEST(MoveStored, GivesTheSameNumbersAsTheOperatorOnFloats) {
  using Ints = std::vector<int64_t>;
  const Node pad = NodeOf(Op::kPad, {{"paddings", Ints{1, 0, 0, 2, 0, 0}}, {"value", 0.0}});
  const Node slice = NodeOf(
      Op::kSlice, {{"begin", Ints{1, 2, 0}}, {"size", Ints{1, 2, 4}}, {"strides", Ints{1, -1, 1}}});
  for (const int axis : {-1, 0, 1, 2}) {
    const StoredIntegers stored = Stored({2, 3, 4}, axis);
    ExpectMoves(NodeOf(Op::kIdentity, {}), {stored});
    ExpectMoves(NodeOf(Op::kTranspose, {{"perm", Ints{2, 0, 1}}}), {stored});
    ExpectMoves(slice, {stored});
    ExpectMoves(NodeOf(Op::kReshape, {{"shape", Ints{2, 3, 1, 4}}}), {stored});
    for (int64_t at = -3; at < 3; ++at) {
      const int64_t dim = stored.integers.shape()[static_cast<size_t>(at < 0 ? at + 3 : at)];
      ExpectMoves(NodeOf(Op::kSplit, {{"axis", at}, {"sizes", Ints{1, dim - 1}}}), {stored});
      ExpectMoves(NodeOf(Op::kConcat, {{"axis", at}}), {stored, stored});
    }
    if (axis < 0 || axis == 2) ExpectMoves(pad, {stored});
  }
}

TEST(MoveStored, RefusesWhatNoParametersDescribe) {
  const StoredIntegers one = Stored({2, 3}, -1);
  const StoredIntegers other = Stored({2, 3}, -1, 6);
  const StoredIntegers channels = Stored({2, 3}, 0);
  const auto moves = [](const Node& node, std::vector<const StoredIntegers*> operands) {
    return MoveStored(node, operands).has_value();
  };
  EXPECT_FALSE(moves(NodeOf(Op::kConcat, {{"axis", int64_t{0}}}), {&one, &other}));
  EXPECT_FALSE(moves(NodeOf(Op::kConcat, {{"axis", int64_t{1}}}), {&one, &channels}));
  EXPECT_FALSE(moves(NodeOf(Op::kReshape, {{"shape", std::vector<int64_t>{6}}}), {&channels}));
  EXPECT_FALSE(moves(NodeOf(Op::kRelu, {}), {&one}));
  const AttrMap around = {{"paddings", std::vector<int64_t>{1, 0, 0, 0}}, {"value", 0.0}};
  EXPECT_TRUE(moves(NodeOf(Op::kPad, around), {&one}));
  EXPECT_FALSE(moves(NodeOf(Op::kPad, around), {&channels}));
  const AttrMap half = {{"paddings", std::vector<int64_t>{1, 0, 0, 0}}, {"value", 0.5}};
  EXPECT_FALSE(moves(NodeOf(Op::kPad, half), {&one}));
  EXPECT_FALSE(moves(NodeOf(Op::kTranspose, {{"perm", std::vector<int64_t>{0}}}), {&one}));
}

}  // namespace
}  // namespace npuc::frontend
