#include "compiler_core/frontends/common/space_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {

absl::StatusOr<Blocks> ReadBlocks(OperandNode& node, absl::string_view borders) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  Blocks blocks;
  ASSIGN_OR_RETURN(blocks.block, node.ConstantInts(1, "block shape"));
  ASSIGN_OR_RETURN(const Tensor tensor, node.Constant(2, borders));
  const int64_t count = static_cast<int64_t>(blocks.block.size());
  if (count < 1 || count >= node.rank(0) || !IsInteger(tensor.dtype()) ||
      tensor.shape() != Shape{count, 2}) {
    return absl::InvalidArgumentError(
        absl::StrCat("block shape ", ShapeToString(blocks.block), " and ", borders, " ",
                     TypeToString(tensor.type()), " do not fit ", TypeToString(node.type(0))));
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = blocks.block[static_cast<size_t>(i)];
    blocks.before.push_back(tensor.int_at(2 * i));
    blocks.after.push_back(tensor.int_at(2 * i + 1));
    const int64_t least = std::min(blocks.before.back(), blocks.after.back());
    const int64_t most = std::max(blocks.before.back(), blocks.after.back());
    if (block < 1 || block > kMaxElements || least < 0 || most > kMaxElements ||
        blocks.product > kMaxElements / block) {
      return absl::InvalidArgumentError(absl::StrCat("block ", block, " or ", borders, " ", least,
                                                     " and ", most, " are out of range"));
    }
    blocks.product *= block;
  }
  return blocks;
}

absl::StatusOr<ValueRef> SpaceToBatch(Emitter& node, const ValueRef& input, const Blocks& blocks) {
  const size_t count = blocks.block.size();
  const Shape& shape = input->type.shape;
  std::vector<int64_t> paddings(2 * shape.size(), 0);
  Shape split = {shape[0]};
  std::vector<int64_t> perm;
  Shape merged = {shape[0] * blocks.product};
  for (size_t i = 0; i < count; ++i) {
    paddings[2 * (i + 1)] = blocks.before[i];
    paddings[2 * (i + 1) + 1] = blocks.after[i];
    const int64_t size = shape[1 + i] + blocks.before[i] + blocks.after[i];
    if (size % blocks.block[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat("padded dimension ", 1 + i, " is ", size,
                                                     ", no multiple of the block ",
                                                     blocks.block[i]));
    }
    split.push_back(size / blocks.block[i]);
    split.push_back(blocks.block[i]);
    merged.push_back(size / blocks.block[i]);
    perm.push_back(static_cast<int64_t>(2 * i + 2));
  }
  perm.push_back(0);
  for (size_t i = 0; i < count; ++i) perm.push_back(static_cast<int64_t>(2 * i + 1));
  for (size_t i = count + 1; i < shape.size(); ++i) {
    perm.push_back(static_cast<int64_t>(split.size()));
    split.push_back(shape[i]);
    merged.push_back(shape[i]);
  }
  ValueRef value = input;
  if (std::any_of(paddings.begin(), paddings.end(), [](int64_t p) { return p != 0; })) {
    ASSIGN_OR_RETURN(value, node.Emit("Pad", {value}, {{"paddings", paddings}, {"value", 0.0}}));
  }
  ASSIGN_OR_RETURN(value, node.Reshaped(value, std::move(split)));
  ASSIGN_OR_RETURN(value, node.Transposed(value, std::move(perm)));
  return node.Reshaped(value, std::move(merged));
}

absl::StatusOr<ValueRef> BatchToSpace(Emitter& node, const ValueRef& input, const Blocks& blocks) {
  const size_t count = blocks.block.size();
  const Shape& shape = input->type.shape;
  if (shape[0] % blocks.product != 0) {
    return absl::InvalidArgumentError(absl::StrCat("batch ", shape[0], " is no multiple of the ",
                                                   "blocks' product ", blocks.product));
  }
  Shape split(blocks.block.begin(), blocks.block.end());
  split.push_back(shape[0] / blocks.product);
  std::vector<int64_t> perm = {static_cast<int64_t>(count)};
  Shape merged = {shape[0] / blocks.product};
  std::vector<int64_t> begin = {0};
  Shape size = merged;
  for (size_t i = 0; i < count; ++i) {
    perm.push_back(static_cast<int64_t>(split.size()));
    perm.push_back(static_cast<int64_t>(i));
    split.push_back(shape[1 + i]);
    merged.push_back(shape[1 + i] * blocks.block[i]);
    begin.push_back(blocks.before[i]);
    size.push_back(merged.back() - blocks.before[i] - blocks.after[i]);
    if (size.back() < 0) {
      return absl::InvalidArgumentError(absl::StrCat("crops ", blocks.before[i], " and ",
                                                     blocks.after[i], " of dimension ", 1 + i,
                                                     " take more than its ", merged.back()));
    }
  }
  for (size_t i = count + 1; i < shape.size(); ++i) {
    perm.push_back(static_cast<int64_t>(split.size()));
    split.push_back(shape[i]);
    merged.push_back(shape[i]);
    begin.push_back(0);
    size.push_back(shape[i]);
  }
  ASSIGN_OR_RETURN(ValueRef value, node.Reshaped(input, std::move(split)));
  ASSIGN_OR_RETURN(value, node.Transposed(value, std::move(perm)));
  ASSIGN_OR_RETURN(value, node.Reshaped(value, merged));
  if (size == merged) return value;
  std::vector<int64_t> strides(size.size(), 1);
  return node.Emit("Slice", {value},
                   {{"begin", std::move(begin)}, {"size", size}, {"strides", std::move(strides)}});
}

}  // namespace npuc::frontend
