// Lists of tensors, which the loops of recurrent layers read and fill. They exist only here: an
// element is a value, and writing one gives another list. "Flex" marks an operator that TensorFlow
// Lite leaves to TensorFlow.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tflite/node_import.h"

namespace npuc::tflite {
namespace {

constexpr int64_t kMaxListSize = 1 << 12;

// A value that is a list; elements that nothing was written to are null.
struct ListFacts : frontend::ImportValue::Facts {
  std::vector<ValueRef> elements;
};

ValueRef ListValue(NodeImporter& node, std::vector<ValueRef> elements) {
  auto facts = std::make_shared<ListFacts>();
  facts->elements = std::move(elements);
  auto value = std::make_shared<frontend::ImportValue>();
  value->source = node.source();
  value->facts = std::move(facts);
  // A list that is used as a tensor.
  value->compute = [state = &node.state(), source = node.source()]() -> absl::StatusOr<ValueRef> {
    state->AddError(DiagnosticKind::kOperandMismatch, source,
                    "its result is a list of tensors, and is used as a tensor",
                    "read the list by TensorListStack or TensorListGetItem");
    return absl::InvalidArgumentError("a list is no tensor");
  };
  return value;
}

absl::StatusOr<const ListFacts*> ListOf(NodeImporter& node) {
  const auto* facts =
      node.has(0) ? dynamic_cast<const ListFacts*>(node.input(0)->facts.get()) : nullptr;
  if (facts == nullptr)
    return absl::InvalidArgumentError("its first operand is no list of tensors");
  return facts;
}

// The index that operand 1 states, within the list.
absl::StatusOr<size_t> IndexIn(NodeImporter& node, const ListFacts& list) {
  ASSIGN_OR_RETURN(const int64_t index, node.ConstantInt(1, "index"));
  if (index >= 0 && index < static_cast<int64_t>(list.elements.size())) {
    return static_cast<size_t>(index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("element ", index, " of a list of ", list.elements.size()));
}

// Operands: the elements' shape, how many there are.
absl::Status ImportReserve(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t size, node.ConstantInt(1, "size"));
  if (size < 0 || size > kMaxListSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", size, " elements; allowed are 0 to ", kMaxListSize));
  }
  return node.SetOutput(ListValue(node, std::vector<ValueRef>(static_cast<size_t>(size))));
}

absl::Status ImportFromTensor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  if (node.rank(0) < 1 || node.shape(0)[0] > kMaxListSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list is made of ", TypeToString(node.type(0))));
  }
  const Shape shape(node.shape(0).begin() + 1, node.shape(0).end());
  std::vector<ValueRef> elements;
  for (int64_t i = 0; i < node.shape(0)[0]; ++i) {
    ASSIGN_OR_RETURN(const ValueRef slice, node.Sliced(node.input(0), 0, i, 1));
    ASSIGN_OR_RETURN(elements.emplace_back(), node.Reshaped(slice, shape));
  }
  return node.SetOutput(ListValue(node, std::move(elements)));
}

absl::Status ImportGetItem(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const ListFacts* list, ListOf(node));
  ASSIGN_OR_RETURN(const size_t index, IndexIn(node, *list));
  if (list->elements[index] == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " is read, but was never written"));
  }
  return node.SetOutput(list->elements[index]);
}

absl::Status ImportSetItem(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const ListFacts* list, ListOf(node));
  ASSIGN_OR_RETURN(const size_t index, IndexIn(node, *list));
  std::vector<ValueRef> elements = list->elements;
  elements[index] = node.input(2);
  return node.SetOutput(ListValue(node, std::move(elements)));
}

// Elements that nothing was written to are zeros.
absl::Status ImportStack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 2));
  ASSIGN_OR_RETURN(const ListFacts* list, ListOf(node));
  const auto written = std::find_if(list->elements.begin(), list->elements.end(),
                                    [](const ValueRef& v) { return v != nullptr; });
  if (written == list->elements.end()) {
    return absl::InvalidArgumentError("a list is stacked that nothing was written to");
  }
  const TensorType type = (*written)->type;
  Shape shape = type.shape;
  shape.insert(shape.begin(), 1);
  std::vector<ValueRef> parts;
  for (ValueRef element : list->elements) {
    if (element == nullptr) {
      element = node.Floats(
          type.shape, std::vector<double>(static_cast<size_t>(type.element_count())), type.dtype);
    }
    if (element->type.shape != type.shape) {
      return absl::InvalidArgumentError(absl::StrCat("elements of shapes ",
                                                     ShapeToString(type.shape), " and ",
                                                     ShapeToString(element->type.shape)));
    }
    ASSIGN_OR_RETURN(parts.emplace_back(), node.Reshaped(element, shape));
  }
  return node.SetOutput(node.Joined(parts, 0));
}

absl::Status ImportLength(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const ListFacts* list, ListOf(node));
  return node.SetOutput(node.MakeConstant(
      IntTensor(DType::kInt32, {}, {static_cast<int64_t>(list->elements.size())})));
}

constexpr ImportRule kTensorListRules[] = {
    {"FlexTensorListFromTensor", ImportFromTensor},
    {"FlexTensorListGetItem", ImportGetItem},
    {"FlexTensorListLength", ImportLength},
    {"FlexTensorListReserve", ImportReserve},
    {"FlexTensorListSetItem", ImportSetItem},
    {"FlexTensorListStack", ImportStack},
    {"TensorListFromTensor", ImportFromTensor},
    {"TensorListGetItem", ImportGetItem},
    {"TensorListLength", ImportLength},
    {"TensorListReserve", ImportReserve},
    {"TensorListSetItem", ImportSetItem},
    {"TensorListStack", ImportStack},
};

}  // namespace

absl::Span<const ImportRule> TensorListRules() { return kTensorListRules; }

}  // namespace npuc::tflite
