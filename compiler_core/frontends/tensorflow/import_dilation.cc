#include "compiler_core/frontends/tensorflow/import_dilation.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::tf {
namespace {

// Operands of SpaceToBatchND and BatchToSpaceND: one block, and two borders, per spatial dimension.
struct Blocks {
  std::vector<int64_t> block;
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  int64_t product = 1;
};

absl::StatusOr<Blocks> ReadBlocks(NodeImporter& node, absl::string_view borders) {
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

// SpaceToBatchND as Pad, Reshape, Transpose, Reshape.
absl::StatusOr<ValueRef> SpaceToBatch(NodeImporter& node, const ValueRef& input,
                                      const Blocks& blocks) {
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

// BatchToSpaceND as Reshape, Transpose, Reshape, Slice.
absl::StatusOr<ValueRef> BatchToSpace(NodeImporter& node, const ValueRef& input,
                                      const Blocks& blocks) {
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

// A value that is computed only if someone outside the group asks.
ValueRef HeldBack(NodeImporter& node, TensorType type, std::shared_ptr<const DilationGroup> group,
                  std::function<absl::StatusOr<ValueRef>(NodeImporter&)> compute) {
  auto value = std::make_shared<ImportValue>();
  value->type = std::move(type);
  value->source = node.source();
  auto facts = std::make_shared<ControlFacts>();
  facts->group = std::move(group);
  value->facts = std::move(facts);
  value->compute = [state = &node.state(), view = &node.node(), compute = std::move(compute)] {
    NodeImporter importer(state, view, {});
    return compute(importer);
  };
  return value;
}

absl::Status ImportSpaceToBatch(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(node, "paddings"));
  const size_t count = blocks.block.size();
  const Shape& shape = node.shape(0);
  const bool is_groupable = !node.IsConstant(0) && count + 2 == shape.size() && count <= 2;
  auto group = std::make_shared<DilationGroup>();
  Shape batched = {shape[0] * blocks.product};
  bool divides = true;
  for (size_t i = 0; is_groupable && i < count; ++i) {
    const size_t axis = 2 - count + i;
    group->block[axis] = blocks.block[i];
    group->pad_before[axis] = blocks.before[i];
    group->pad_after[axis] = blocks.after[i];
    const int64_t size = shape[1 + i] + blocks.before[i] + blocks.after[i];
    divides = divides && size % blocks.block[i] == 0;
    batched.push_back(size / blocks.block[i]);
  }
  if (!is_groupable || !divides) {
    ASSIGN_OR_RETURN(ValueRef value, SpaceToBatch(node, node.input(0), blocks));
    return node.SetOutput(std::move(value));
  }
  batched.push_back(shape.back());
  RETURN_IF_ERROR(CheckShape(batched));
  group->base = node.input(0);
  group->batched = batched;
  if (count == 1) group->batched.insert(group->batched.begin() + 1, 1);
  return node.SetOutput(HeldBack(node, {node.type(0).dtype, std::move(batched)}, std::move(group),
                                 [input = node.input(0), blocks](NodeImporter& importer) {
                                   return SpaceToBatch(importer, input, blocks);
                                 }));
}

// The dilated convolution that a group amounts to, given the crops that close it; null where it
// amounts to none.
absl::StatusOr<ValueRef> CloseGroup(NodeImporter& node, const Blocks& blocks) {
  const std::shared_ptr<const DilationGroup> group = FactsOf(*node.input(0)).group;
  if (group == nullptr || group->node == nullptr) return ValueRef();
  const size_t count = blocks.block.size();
  Shape expected = group->convolved;
  const bool is_flat = group->base->type.shape.size() == 3;
  if (is_flat) expected.erase(expected.begin() + 1);
  if (count != (is_flat ? 1 : 2) || node.shape(0) != expected) return ValueRef();
  std::vector<int64_t> pads = {0, 0, 0, 0};
  for (size_t i = 0; i < count; ++i) {
    const size_t axis = 2 - count + i;
    pads[2 * axis] = group->pad_before[axis] - blocks.before[i];
    pads[2 * axis + 1] = group->pad_after[axis] - blocks.after[i];
    if (blocks.block[i] != group->block[axis] || pads[2 * axis] < 0 || pads[2 * axis + 1] < 0) {
      return ValueRef();
    }
  }
  NodeImporter convolution(&node.state(), group->node, {});
  ValueRef base = group->base;
  if (is_flat) {
    Shape shape = base->type.shape;
    shape.insert(shape.begin() + 1, 1);
    ASSIGN_OR_RETURN(base, convolution.Reshaped(base, std::move(shape)));
  }
  ASSIGN_OR_RETURN(
      ValueRef value,
      convolution.Emit(group->op, {base, group->weight},
                       {{"strides", std::vector<int64_t>{1, 1}},
                        {"dilations", std::vector<int64_t>{group->block[0], group->block[1]}},
                        {"pads", std::move(pads)}}));
  if (!is_flat) return value;
  Shape shape = value->type.shape;
  shape.erase(shape.begin() + 1);
  return node.Reshaped(value, std::move(shape));
}

absl::Status ImportBatchToSpace(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Blocks blocks, ReadBlocks(node, "crops"));
  ASSIGN_OR_RETURN(ValueRef value, CloseGroup(node, blocks));
  if (value == nullptr) {
    ASSIGN_OR_RETURN(value, BatchToSpace(node, node.input(0), blocks));
  }
  return node.SetOutput(std::move(value));
}

constexpr ImportRule kRules[] = {
    {"BatchToSpaceND", ImportBatchToSpace},
    {"SpaceToBatchND", ImportSpaceToBatch},
};

}  // namespace

ValueRef ReshapedInGroup(NodeImporter& node, const ValueRef& value, Shape shape) {
  return HeldBack(node, {value->type.dtype, shape}, FactsOf(*value).group,
                  [value, shape](NodeImporter& importer) {
                    return importer.Emit("Reshape", {value}, {{"shape", shape}});
                  });
}

absl::Status ConvolveInGroup(NodeImporter& node, absl::string_view op, AttrMap attrs) {
  const ValueRef& input = node.input(0);
  const ValueRef& weight = node.input(1);
  const Shape& kernel = weight->type.shape;
  const Shape& shape = input->type.shape;
  const std::shared_ptr<const DilationGroup>& open = FactsOf(*input).group;
  const bool is_plain =
      std::get<std::vector<int64_t>>(attrs["strides"]) == std::vector<int64_t>{1, 1} &&
      std::get<std::vector<int64_t>>(attrs["dilations"]) == std::vector<int64_t>{1, 1} &&
      std::get<std::vector<int64_t>>(attrs["pads"]) == std::vector<int64_t>{0, 0, 0, 0};
  const bool fits = weight->type.dtype == input->type.dtype && kernel[0] >= 1 && kernel[1] >= 1 &&
                    kernel[2] == shape[3] && kernel[0] <= shape[1] && kernel[1] <= shape[2];
  if (!is_plain || !fits || open->node != nullptr || shape != open->batched) {
    return node.EmitOutput(op, {input, weight}, std::move(attrs));
  }
  auto group = std::make_shared<DilationGroup>(*open);
  group->node = &node.node();
  group->op = std::string(op);
  group->weight = weight;
  const int64_t channels = op == "Conv2D" ? kernel[3] : kernel[2] * kernel[3];
  group->convolved = {shape[0], shape[1] - kernel[0] + 1, shape[2] - kernel[1] + 1, channels};
  RETURN_IF_ERROR(CheckShape(group->convolved));
  TensorType type{input->type.dtype, group->convolved};
  return node.SetOutput(HeldBack(
      node, std::move(type), std::move(group),
      [input, weight, name = std::string(op), attrs = std::move(attrs)](NodeImporter& importer) {
        return importer.Emit(name, {input, weight}, attrs);
      }));
}

absl::Span<const ImportRule> DilationRules() { return kRules; }

}  // namespace npuc::tf
