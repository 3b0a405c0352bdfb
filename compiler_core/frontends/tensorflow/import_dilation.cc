#include "compiler_core/frontends/tensorflow/import_dilation.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/space_batch.h"

namespace npuc::tf {
namespace {

using frontend::BatchToSpace;
using frontend::Blocks;
using frontend::ReadBlocks;
using frontend::SpaceToBatch;

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

constexpr ImportRule kDilationRules[] = {
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

absl::Span<const ImportRule> DilationRules() { return kDilationRules; }

}  // namespace npuc::tf
