// TensorArrays, which the while loops of TensorFlow 1 read and fill. They exist only here: an
// element is a value, and the flow that orders reads and writes says which version is meant.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {

absl::StatusOr<ValueRef> ElementAt(NodeImporter& node, int version, int64_t index) {
  for (int v = version; v >= 0;) {
    const ArrayVersion& at = node.state().array_versions[static_cast<size_t>(v)];
    const auto it = at.elements.find(index);
    if (it != at.elements.end()) return it->second;
    if (--node.state().fold_work_left < 0) {
      return node.Fail(DiagnosticKind::kModelLimitExceeded,
                       "the TensorArrays and TensorLists of the model take too long to follow",
                       "run the loop on fewer turns");
    }
    v = at.before;
  }
  return ValueRef();
}

ArrayVersion After(NodeImporter& node, int version) {
  const ArrayVersion& before = node.state().array_versions[static_cast<size_t>(version)];
  return {.array = before.array, .before = version, .size = before.size};
}

namespace {

constexpr int64_t kMaxArraySize = 1 << 16;

ValueRef FlowOf(NodeImporter& node, ArrayVersion version) {
  std::vector<ArrayVersion>& versions = node.state().array_versions;
  ValueRef flow = node.MakeConstant(Tensor::ScalarFloat(0));
  auto facts = std::make_shared<ControlFacts>();
  facts->array_version = static_cast<int>(versions.size());
  flow->facts = std::move(facts);
  versions.push_back(std::move(version));
  return flow;
}

absl::Status ImportTensorArray(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  TensorArray array;
  ASSIGN_OR_RETURN(array.size, node.ConstantInt(0, "size"));
  ASSIGN_OR_RETURN(array.is_dynamic, node.BoolOr("dynamic_size", false));
  if (array.size < 0 || array.size > kMaxArraySize) {
    return absl::InvalidArgumentError(absl::StrCat("the TensorArray's size is ", array.size,
                                                   "; allowed are 0 to ", kMaxArraySize));
  }
  auto handle = std::make_shared<ImportValue>();
  handle->source = node.source();
  auto facts = std::make_shared<ControlFacts>();
  facts->array = static_cast<int>(node.state().arrays.size());
  node.state().arrays.push_back(array);
  const ArrayVersion first{.array = facts->array, .size = array.size};
  handle->facts = std::move(facts);
  ValueRef flow = FlowOf(node, first);
  return node.SetOutputs({std::move(handle), std::move(flow)});
}

// The version that the node's last operand, a flow, stands for.
absl::StatusOr<int> VersionOf(NodeImporter& node, int operands) {
  RETURN_IF_ERROR(node.ExpectInputs(operands, operands));
  const int handle = FactsOf(*node.input(0)).array;
  const int version = FactsOf(*node.input(operands - 1)).array_version;
  if (handle < 0 || version < 0 ||
      node.state().array_versions[static_cast<size_t>(version)].array != handle) {
    return absl::InvalidArgumentError(
        "its first and last operands are not a TensorArray and the flow of the same one");
  }
  return version;
}

absl::StatusOr<ValueRef> WrittenElement(NodeImporter& node, int version, int64_t index) {
  ASSIGN_OR_RETURN(ValueRef value, ElementAt(node, version, index));
  if (value != nullptr) return value;
  const int64_t size = node.state().array_versions[static_cast<size_t>(version)].size;
  return absl::InvalidArgumentError(absl::StrCat("element ", index, " of the TensorArray of ", size,
                                                 " elements is read, but was never written"));
}

// Adds an element to a version in the making, which follows `before`.
absl::Status SetElement(NodeImporter& node, int64_t index, ValueRef value, ArrayVersion& next) {
  if (FactsOf(*value).array >= 0) {
    return absl::InvalidArgumentError("an element is itself a TensorArray; it must be a tensor");
  }
  const TensorArray& array = node.state().arrays[static_cast<size_t>(next.array)];
  const int64_t limit = array.is_dynamic ? kMaxArraySize : next.size;
  if (index < 0 || index >= limit) {
    return absl::InvalidArgumentError(absl::StrCat("element ", index,
                                                   " of the TensorArray is written; allowed are 0 "
                                                   "to ",
                                                   limit - 1));
  }
  ASSIGN_OR_RETURN(const ValueRef old, ElementAt(node, next.before, index));
  if (old != nullptr || !next.elements.emplace(index, std::move(value)).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " of the TensorArray is written twice"));
  }
  next.size = std::max(next.size, index + 1);
  return absl::OkStatus();
}

absl::Status ImportRead(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int version, VersionOf(node, 3));
  ASSIGN_OR_RETURN(const int64_t index, node.ConstantInt(1, "index"));
  return node.SetOutput(WrittenElement(node, version, index));
}

absl::Status ImportWrite(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int version, VersionOf(node, 4));
  ASSIGN_OR_RETURN(const int64_t index, node.ConstantInt(1, "index"));
  ArrayVersion next = After(node, version);
  RETURN_IF_ERROR(SetElement(node, index, node.input(2), next));
  return node.SetOutput(FlowOf(node, std::move(next)));
}

// The slices of a tensor along its first dimension become the elements at the indices.
absl::Status ImportScatter(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int version, VersionOf(node, 4));
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.ConstantInts(1, "indices"));
  const int64_t count = static_cast<int64_t>(indices.size());
  if (node.rank(2) < 1 || node.shape(2)[0] != count) {
    return absl::InvalidArgumentError(absl::StrCat("a value of ", TypeToString(node.type(2)),
                                                   " is scattered to ", count,
                                                   " elements; its first dimension must be that"));
  }
  ArrayVersion next = After(node, version);
  node.SetRewritten();
  if (count > 0) {
    std::vector<ValueRef> parts = {node.input(2)};
    if (count > 1) {
      ASSIGN_OR_RETURN(
          parts, node.EmitAll("Split", {node.input(2)},
                              {{"axis", int64_t{0}}, {"sizes", std::vector<int64_t>(count, 1)}}));
    }
    const Shape shape(node.shape(2).begin() + 1, node.shape(2).end());
    for (size_t i = 0; i < indices.size(); ++i) {
      ASSIGN_OR_RETURN(ValueRef part, node.Reshaped(parts[i], shape));
      RETURN_IF_ERROR(SetElement(node, indices[i], std::move(part), next));
    }
  }
  return node.SetOutput(FlowOf(node, std::move(next)));
}

absl::Status ImportArrayGather(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int version, VersionOf(node, 3));
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, node.ConstantInts(1, "indices"));
  if (indices.empty()) {
    return node.FailMode("no elements of a TensorArray are gathered", "gather one element or more");
  }
  std::vector<ValueRef> rows;
  node.SetRewritten();
  for (int64_t index : indices) {
    ASSIGN_OR_RETURN(const ValueRef value, WrittenElement(node, version, index));
    if (!rows.empty() && value->type.element_count() != rows[0]->type.element_count()) {
      return absl::InvalidArgumentError(absl::StrCat("element ", index, " of the TensorArray is ",
                                                     TypeToString(value->type),
                                                     "; all that are gathered must be alike"));
    }
    Shape shape = value->type.shape;
    shape.insert(shape.begin(), 1);
    ASSIGN_OR_RETURN(rows.emplace_back(), node.Reshaped(value, std::move(shape)));
  }
  return node.SetOutput(node.Joined(rows, 0));
}

absl::Status ImportArraySize(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int version, VersionOf(node, 2));
  const int64_t size = node.state().array_versions[static_cast<size_t>(version)].size;
  return node.SetConstant(IntTensor(DType::kInt32, {}, {size}));
}

constexpr ImportRule kTensorArrayRules[] = {
    {"TensorArrayGatherV3", ImportArrayGather}, {"TensorArrayReadV3", ImportRead},
    {"TensorArrayScatterV3", ImportScatter},    {"TensorArraySizeV3", ImportArraySize},
    {"TensorArrayV3", ImportTensorArray},       {"TensorArrayWriteV3", ImportWrite},
};

}  // namespace

absl::Span<const ImportRule> TensorArrayRules() { return kTensorArrayRules; }

bool TakesHandles(absl::string_view op) {
  constexpr absl::string_view kPassing[] = {"Enter", "Exit",   "Identity",     "IdentityN",
                                            "Merge", "Switch", "NextIteration"};
  const auto is_it = [&](const ImportRule& rule) { return rule.op == op; };
  return std::find(std::begin(kPassing), std::end(kPassing), op) != std::end(kPassing) ||
         std::any_of(std::begin(kTensorArrayRules), std::end(kTensorArrayRules), is_it) ||
         std::any_of(TensorListRules().begin(), TensorListRules().end(), is_it);
}

}  // namespace npuc::tf
