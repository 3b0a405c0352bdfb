// Sequences of tensors. Their lengths and the positions in them are known at import, so that each
// operator is done here and leaves nothing but tensors.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

// A loop may make a longer one with each turn, so this bounds the copies of them.
constexpr size_t kMaxItems = 4096;

struct Sequence : ImportValue::Facts {
  std::vector<ValueRef> items;
};

absl::Status SetSequence(NodeImporter& node, std::vector<ValueRef> items) {
  if (items.size() > kMaxItems) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the sequence has ", items.size(), " tensors; at most ", kMaxItems, " are allowed"));
  }
  auto sequence = std::make_shared<Sequence>();
  sequence->items = std::move(items);
  auto value = std::make_shared<ImportValue>();
  value->source = node.source();
  value->facts = std::move(sequence);
  return node.SetOutput(std::move(value));
}

// The tensors of operand 0.
absl::StatusOr<std::vector<ValueRef>> ItemsOf(const NodeImporter& node) {
  if (!IsSequence(node.input(0))) {
    return absl::InvalidArgumentError("operand 0 must be a sequence, and is a tensor");
  }
  return static_cast<const Sequence&>(*node.input(0)->facts).items;
}

// Operand i, counted from the end of `size` tensors where it is negative: 0..last. `fallback` where
// it is left out.
absl::StatusOr<int64_t> PositionAt(NodeImporter& node, int i, int64_t size, int64_t last,
                                   int64_t fallback) {
  if (!node.has(i)) return fallback;
  ASSIGN_OR_RETURN(const auto numbers, node.IntsAt(i, ""));
  const int64_t stated = numbers.has_value() && numbers->size() == 1 ? numbers->front() : last + 1;
  const int64_t position = stated < 0 ? stated + size : stated;
  if (position >= 0 && position <= last) return position;
  return absl::InvalidArgumentError(
      absl::StrCat("position ", stated, " is not one of the ", size, " of the sequence"));
}

absl::Status ImportSequenceEmpty(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(0, 0));
  return SetSequence(node, {});
}

absl::Status ImportSequenceConstruct(NodeImporter& node) {
  std::vector<ValueRef> items;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i) || IsSequence(node.input(i))) {
      return absl::InvalidArgumentError(absl::StrCat("operand ", i, " must be a tensor"));
    }
    items.push_back(node.input(i));
  }
  return SetSequence(node, std::move(items));
}

absl::Status ImportSequenceInsert(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(std::vector<ValueRef> items, ItemsOf(node));
  if (IsSequence(node.input(1))) return absl::InvalidArgumentError("operand 1 must be a tensor");
  const auto size = static_cast<int64_t>(items.size());
  ASSIGN_OR_RETURN(const int64_t position, PositionAt(node, 2, size, size, size));
  items.insert(items.begin() + position, node.input(1));
  return SetSequence(node, std::move(items));
}

absl::Status ImportSequenceErase(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(std::vector<ValueRef> items, ItemsOf(node));
  const auto size = static_cast<int64_t>(items.size());
  if (size == 0) return absl::InvalidArgumentError("the sequence is empty");
  ASSIGN_OR_RETURN(const int64_t position, PositionAt(node, 1, size, size - 1, size - 1));
  items.erase(items.begin() + position);
  return SetSequence(node, std::move(items));
}

absl::Status ImportSequenceAt(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> items, ItemsOf(node));
  const auto size = static_cast<int64_t>(items.size());
  ASSIGN_OR_RETURN(const int64_t position, PositionAt(node, 1, size, size - 1, 0));
  return node.SetOutput(items[static_cast<size_t>(position)]);
}

absl::Status ImportSequenceLength(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> items, ItemsOf(node));
  return node.SetOutput(
      node.MakeConstant(Tensor::FromInts({}, {static_cast<int64_t>(items.size())})));
}

// Parts of one element, of `split` elements each (the last may be shorter), or of sizes by part.
absl::StatusOr<std::vector<int64_t>> PartSizes(NodeImporter& node, int64_t dim) {
  std::vector<int64_t> sizes;
  int64_t each = 1;
  if (node.has(1)) {
    ASSIGN_OR_RETURN(const auto split, node.IntsAt(1, ""));
    if (node.rank(1) == 1 && split.has_value()) return *split;
    each = split.has_value() && !split->empty() ? split->front() : 0;
  }
  if (each < 1 || dim > each * static_cast<int64_t>(kMaxItems)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts of ", each, " of the ", dim, " elements of the axis"));
  }
  for (int64_t begin = 0; begin < dim; begin += each) sizes.push_back(std::min(each, dim - begin));
  return sizes;
}

absl::Status ImportSplitToSequence(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, node.rank(0)));
  ASSIGN_OR_RETURN(const int64_t keep, node.IntOr("keepdims", 1));
  const int64_t dim = node.shape(0)[static_cast<size_t>(axis)];
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, PartSizes(node, dim));
  std::vector<ValueRef> items = {node.input(0)};
  if (sizes != std::vector<int64_t>{dim}) {
    ASSIGN_OR_RETURN(items, node.EmitAll("Split", {node.input(0)},
                                         {{"axis", axis}, {"sizes", std::move(sizes)}}));
  }
  if (!node.has(1) && keep == 0) {
    Shape shape = node.shape(0);
    shape.erase(shape.begin() + axis);
    for (ValueRef& item : items) {
      ASSIGN_OR_RETURN(item, node.Reshaped(item, shape));
    }
  }
  return SetSequence(node, std::move(items));
}

absl::Status ImportConcatFromSequence(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(std::vector<ValueRef> items, ItemsOf(node));
  if (items.empty()) return absl::InvalidArgumentError("the sequence is empty");
  ASSIGN_OR_RETURN(int64_t axis, node.IntOr("axis", 0));
  ASSIGN_OR_RETURN(const int64_t is_new, node.IntOr("new_axis", 0));
  ASSIGN_OR_RETURN(axis, node.Axis(axis, frontend::RankOf(items[0]) + (is_new != 0 ? 1 : 0)));
  for (ValueRef& item : items) {
    if (is_new == 0) break;
    Shape shape = item->type.shape;
    if (axis > static_cast<int64_t>(shape.size())) {
      return absl::InvalidArgumentError("the tensors are of unlike ranks");
    }
    shape.insert(shape.begin() + axis, 1);
    ASSIGN_OR_RETURN(item, node.Reshaped(item, std::move(shape)));
  }
  return node.SetOutput(node.Joined(items, axis));
}

constexpr ImportRule kSequenceRules[] = {
    {"ConcatFromSequence", ImportConcatFromSequence, true},
    {"SequenceAt", ImportSequenceAt, true},
    {"SequenceConstruct", ImportSequenceConstruct, true},
    {"SequenceEmpty", ImportSequenceEmpty, true},
    {"SequenceErase", ImportSequenceErase, true},
    {"SequenceInsert", ImportSequenceInsert, true},
    {"SequenceLength", ImportSequenceLength, true},
    {"SplitToSequence", ImportSplitToSequence},
};

}  // namespace

bool IsSequence(const ValueRef& value) {
  return value != nullptr && dynamic_cast<const Sequence*>(value->facts.get()) != nullptr;
}

absl::Span<const ImportRule> SequenceRules() { return kSequenceRules; }

}  // namespace npuc::onnx
