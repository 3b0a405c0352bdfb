#include "compiler_core/frontends/tflite/dilation.h"

#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/space_batch.h"

namespace npuc::tflite {
namespace {

using frontend::Blocks;

// The way of a value from the operand of a SPACE_TO_BATCH_ND.
struct DilationGroup : frontend::ImportValue::Facts {
  ValueRef base;  // that operand: [n,h,w,c] or [n,w,c]
  Blocks blocks;
  Shape shape;  // of the value that carries this
  std::optional<PlainConv> conv;
  std::optional<QuantParams> quant;  // of the convolution's result
};

// The group that a value is part of; null: none.
const DilationGroup* GroupOf(const ValueRef& value) {
  const auto* group = dynamic_cast<const DilationGroup*>(value->facts.get());
  return group != nullptr && group->shape == value->type.shape ? group : nullptr;
}

ValueRef WithGroup(const ValueRef& value, DilationGroup group) {
  auto marked = std::make_shared<frontend::ImportValue>(*value);
  group.shape = value->type.shape;
  marked->facts = std::make_shared<const DilationGroup>(std::move(group));
  return marked;
}

absl::Status ImportSpaceToBatch(NodeImporter& node) {
  ASSIGN_OR_RETURN(Blocks blocks, frontend::ReadBlocks(node, "paddings"));
  const ValueRef& base = node.input(0);
  ASSIGN_OR_RETURN(const ValueRef batched, frontend::SpaceToBatch(node, base, blocks));
  const size_t count = blocks.block.size();
  if (frontend::IsKnown(base) || count > 2 || count + 2 != base->type.shape.size() ||
      node.operand(0).quant != node.output(0).quant) {
    return node.SetOutput(batched);
  }
  DilationGroup group;
  group.base = base;
  group.blocks = std::move(blocks);
  return node.SetOutput(WithGroup(batched, std::move(group)));
}

// The attribute pads of the dilated convolution: what of the paddings the crops leave; none where
// they leave less than nothing.
std::optional<Shape> PadsLeft(const Blocks& padded, const Blocks& cropped) {
  if (padded.block != cropped.block) return std::nullopt;
  Shape pads = {0, 0, 0, 0};
  const size_t first = 2 - padded.block.size();
  for (size_t i = 0; i < padded.block.size(); ++i) {
    const size_t at = 2 * (first + i);
    pads[at] = padded.before[i] - cropped.before[i];
    pads[at + 1] = padded.after[i] - cropped.after[i];
    if (pads[at] < 0 || pads[at + 1] < 0) return std::nullopt;
  }
  return pads;
}

// The dilated convolution that a group amounts to.
absl::StatusOr<ValueRef> ConvolvedGroup(NodeImporter& node, const DilationGroup& group,
                                        Shape pads) {
  const bool is_flat = group.base->type.shape.size() == 3;
  ValueRef base = group.base;
  if (is_flat) {
    Shape shape = base->type.shape;
    shape.insert(shape.begin() + 1, 1);
    ASSIGN_OR_RETURN(base, node.Reshaped(base, std::move(shape)));
  }
  Shape dilations(2 - group.blocks.block.size(), 1);
  dilations.insert(dilations.end(), group.blocks.block.begin(), group.blocks.block.end());
  ASSIGN_OR_RETURN(const ValueRef value, Convolved(node, base, *group.conv,
                                                   {{"strides", Shape{1, 1}},
                                                    {"dilations", std::move(dilations)},
                                                    {"pads", std::move(pads)}}));
  if (!is_flat) return value;
  Shape shape = value->type.shape;
  shape.erase(shape.begin() + 1);
  return node.Reshaped(value, std::move(shape));
}

absl::Status ImportBatchToSpace(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Blocks blocks, frontend::ReadBlocks(node, "crops"));
  const DilationGroup* group = GroupOf(node.input(0));
  if (group != nullptr && group->conv.has_value() && group->quant == node.output(0).quant &&
      group->base->type.shape.size() == node.shape(0).size()) {
    std::optional<Shape> pads = PadsLeft(group->blocks, blocks);
    if (pads.has_value()) return node.SetOutput(ConvolvedGroup(node, *group, *std::move(pads)));
  }
  return node.SetOutput(frontend::BatchToSpace(node, node.input(0), blocks));
}

constexpr ImportRule kDilationRules[] = {{"BATCH_TO_SPACE_ND", ImportBatchToSpace},
                                         {"SPACE_TO_BATCH_ND", ImportSpaceToBatch}};

bool IsPlain(const AttrMap& attrs) {
  return std::get<Shape>(attrs.at("strides")) == Shape{1, 1} &&
         std::get<Shape>(attrs.at("dilations")) == Shape{1, 1} &&
         std::get<Shape>(attrs.at("pads")) == Shape{0, 0, 0, 0};
}

}  // namespace

absl::StatusOr<ValueRef> Convolved(NodeImporter& node, const ValueRef& image, const PlainConv& conv,
                                   AttrMap attrs) {
  ASSIGN_OR_RETURN(ValueRef sums, node.Emit(conv.op, {image, conv.weight}, std::move(attrs)));
  if (conv.bias != nullptr) {
    ASSIGN_OR_RETURN(sums, node.Emit("Add", {sums, conv.bias}));
  }
  return node.Activated(std::move(sums), conv.activation);
}

absl::Status SetConvolved(NodeImporter& node, PlainConv conv, AttrMap attrs) {
  const DilationGroup* open = GroupOf(node.input(0));
  const bool joins = open != nullptr && !open->conv.has_value() && IsPlain(attrs);
  ASSIGN_OR_RETURN(const ValueRef result, Convolved(node, node.input(0), conv, std::move(attrs)));
  if (!joins) return node.SetOutput(result);
  DilationGroup group = *open;
  group.conv = std::move(conv);
  group.quant = node.output(0).quant;
  return node.SetOutput(WithGroup(result, std::move(group)));
}

absl::Status SetReshaped(NodeImporter& node, Shape shape) {
  const DilationGroup* group = GroupOf(node.input(0));
  ASSIGN_OR_RETURN(const ValueRef result, node.Reshaped(node.input(0), shape));
  if (group == nullptr || group->base->type.shape.size() != 3) return node.SetOutput(result);
  Shape image = shape.size() == 4 ? shape : node.shape(0);
  Shape row = shape.size() == 4 ? node.shape(0) : shape;
  row.insert(row.begin() + 1, 1);
  return node.SetOutput(row.size() == 4 && row == image ? WithGroup(result, *group) : result);
}

absl::Span<const ImportRule> DilationRules() { return kDilationRules; }

}  // namespace npuc::tflite
