// TensorLists, which the while loops of TensorFlow 2 read and fill. They exist only here: a list is
// a version of a TensorArray's elements (import_tensor_array.cc), and what changes it gives
// another.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

constexpr int64_t kMaxTensorListSize = 1 << 16;

// The value that stands for a list.
ValueRef ListOf(NodeImporter& node, ArrayVersion version) {
  auto list = std::make_shared<ImportValue>();
  list->source = node.source();
  auto facts = std::make_shared<ControlFacts>();
  facts->array = version.array;
  facts->array_version = static_cast<int>(node.state().array_versions.size());
  list->facts = std::move(facts);
  node.state().array_versions.push_back(std::move(version));
  return list;
}

absl::StatusOr<ArrayVersion> NewList(NodeImporter& node, int64_t size) {
  if (size < 0 || size > kMaxTensorListSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the TensorList has ", size, " elements; allowed are 0 to ", kMaxTensorListSize));
  }
  const ArrayVersion version{.array = static_cast<int>(node.state().arrays.size()), .size = size};
  node.state().arrays.push_back({.size = size});
  return version;
}

// The version that the node's first operand stands for.
absl::StatusOr<int> ListVersion(NodeImporter& node) {
  const ControlFacts& facts = FactsOf(*node.input(0));
  if (facts.array < 0 || facts.array_version < 0) {
    return absl::InvalidArgumentError("its first operand is no TensorList");
  }
  return facts.array_version;
}

int64_t ListSize(NodeImporter& node, int version) {
  return node.state().array_versions[static_cast<size_t>(version)].size;
}

// The element at an index of the list; null where nothing was set.
absl::StatusOr<ValueRef> ListElement(NodeImporter& node, int version, int64_t index) {
  if (index < 0 || index >= ListSize(node, version)) {
    return absl::InvalidArgumentError(absl::StrCat("element ", index, " of a TensorList of ",
                                                   ListSize(node, version), " elements"));
  }
  return ElementAt(node, version, index);
}

absl::Status ImportReserve(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int64_t size, node.ConstantInt(1, "num_elements"));
  ASSIGN_OR_RETURN(ArrayVersion version, NewList(node, size));
  return node.SetOutput(ListOf(node, std::move(version)));
}

absl::Status ImportEmpty(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(ArrayVersion version, NewList(node, 0));
  return node.SetOutput(ListOf(node, std::move(version)));
}

// The slices of a tensor along its first dimension are the elements.
absl::Status ImportFromTensor(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(0) < 1) return absl::InvalidArgumentError("a number has no elements");
  const int64_t size = node.shape(0)[0];
  ASSIGN_OR_RETURN(ArrayVersion version, NewList(node, size));
  node.SetRewritten();
  std::vector<ValueRef> parts = {node.input(0)};
  if (size > 1) {
    ASSIGN_OR_RETURN(parts,
                     node.EmitAll("Split", {node.input(0)},
                                  {{"axis", int64_t{0}},
                                   {"sizes", std::vector<int64_t>(static_cast<size_t>(size), 1)}}));
  }
  const Shape shape(node.shape(0).begin() + 1, node.shape(0).end());
  for (int64_t i = 0; i < size; ++i) {
    ASSIGN_OR_RETURN(version.elements[i], node.Reshaped(parts[static_cast<size_t>(i)], shape));
  }
  return node.SetOutput(ListOf(node, std::move(version)));
}

absl::Status ImportGetItem(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const int version, ListVersion(node));
  ASSIGN_OR_RETURN(const int64_t index, node.ConstantInt(1, "index"));
  ASSIGN_OR_RETURN(ValueRef value, ListElement(node, version, index));
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " of the TensorList is read, but was never written"));
  }
  return node.SetOutput(std::move(value));
}

absl::Status SetListElement(NodeImporter& node, ArrayVersion next, int64_t index, ValueRef value) {
  if (FactsOf(*value).array >= 0) {
    return absl::InvalidArgumentError("an element is itself a TensorList; it must be a tensor");
  }
  if (index < 0 || index >= next.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " of a TensorList of ", next.size, " elements is written"));
  }
  next.elements[index] = std::move(value);
  return node.SetOutput(ListOf(node, std::move(next)));
}

absl::Status ImportSetItem(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  ASSIGN_OR_RETURN(const int version, ListVersion(node));
  ASSIGN_OR_RETURN(const int64_t index, node.ConstantInt(1, "index"));
  return SetListElement(node, After(node, version), index, node.input(2));
}

absl::Status ImportPushBack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int version, ListVersion(node));
  ArrayVersion next = After(node, version);
  if (next.size == kMaxTensorListSize) return NewList(node, next.size + 1).status();
  ++next.size;
  return SetListElement(node, next, next.size - 1, node.input(1));
}

absl::Status ImportStack(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const int version, ListVersion(node));
  std::vector<ValueRef> values;
  ValueRef some;
  for (int64_t i = 0; i < ListSize(node, version); ++i) {
    ASSIGN_OR_RETURN(values.emplace_back(), ListElement(node, version, i));
    if (values.back() != nullptr) some = values.back();
  }
  if (some == nullptr) {
    return node.FailMode("a TensorList is stacked of which no element was written",
                         "write one element or more");
  }
  node.SetRewritten();
  Shape shape = some->type.shape;
  shape.insert(shape.begin(), 1);
  for (ValueRef& value : values) {
    if (value == nullptr) value = node.MakeConstant(Tensor::Zeros(some->type));
    if (value->type.element_count() != some->type.element_count()) {
      return absl::InvalidArgumentError(absl::StrCat("an element of the TensorList is ",
                                                     TypeToString(value->type), " and one is ",
                                                     TypeToString(some->type)));
    }
    ASSIGN_OR_RETURN(value, node.Reshaped(value, shape));
  }
  return node.SetOutput(node.Joined(values, 0));
}

absl::Status ImportLength(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int version, ListVersion(node));
  return node.SetConstant(IntTensor(DType::kInt32, {}, {ListSize(node, version)}));
}

constexpr ImportRule kTensorListRules[] = {
    {"EmptyTensorList", ImportEmpty},       {"TensorListFromTensor", ImportFromTensor},
    {"TensorListGetItem", ImportGetItem},   {"TensorListLength", ImportLength},
    {"TensorListPushBack", ImportPushBack}, {"TensorListReserve", ImportReserve},
    {"TensorListSetItem", ImportSetItem},   {"TensorListStack", ImportStack},
};

}  // namespace

absl::Span<const ImportRule> TensorListRules() { return kTensorListRules; }

}  // namespace npuc::tf
