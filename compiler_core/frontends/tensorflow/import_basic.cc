// Constants, inputs, pass-through nodes and what only exists at compile time: shapes, ranges,
// casts.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/frontends/tensorflow/tensor_proto.h"

namespace npuc::tf {
namespace {

// f64 is computed as f32 throughout: the cores have nothing wider, and users' models are trained in
// f32.
DType ComputeType(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat32 : dtype; }

absl::Status ImportConst(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(0, 0));
  const absl::StatusOr<const fe::tf::TensorProto*> proto = node.node().TensorOf("value");
  if (!proto.ok()) {
    return node.Fail(DiagnosticKind::kBadAttribute, std::string(proto.status().message()),
                     "freeze the model again");
  }
  absl::StatusOr<Tensor> tensor = DecodeTensor(**proto, node.state().constant_bytes_left);
  if (!tensor.ok()) {
    const bool is_limit = absl::IsResourceExhausted(tensor.status());
    return node.Fail(is_limit ? DiagnosticKind::kModelLimitExceeded : DiagnosticKind::kBadTensor,
                     std::string(tensor.status().message()),
                     is_limit ? "compile a smaller model" : "freeze the model again");
  }
  const absl::StatusOr<int> dtype = node.node().Type("dtype");
  if (dtype.ok() && DTypeFromWire(*dtype) != tensor->dtype()) {
    return node.Fail(DiagnosticKind::kBadAttribute,
                     absl::StrCat("attribute 'dtype' is ", DataTypeName(*dtype),
                                  ", but the tensor is ", TypeToString(tensor->type())),
                     "freeze the model again");
  }
  if (tensor->dtype() == DType::kFloat64) tensor = CastTensor(*tensor, DType::kFloat32);
  return node.SetConstant(*std::move(tensor));
}

absl::Status ImportIdentityN(NodeImporter& node) {
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) values.push_back(node.input(i));
  return node.SetOutputs(std::move(values));
}

absl::Status ImportNoOp(NodeImporter& node) { return node.ExpectInputs(0, 0); }

ValueRef ShapeValue(NodeImporter& node, DType dtype, int i) {
  const Shape& shape = node.shape(i);
  return node.MakeConstant(IntTensor(dtype, {static_cast<int64_t>(shape.size())}, shape));
}

absl::Status ImportShape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const DType dtype, node.IndexTypeOr("out_type", DType::kInt32));
  return node.SetOutput(ShapeValue(node, dtype, 0));
}

absl::Status ImportShapeN(NodeImporter& node) {
  ASSIGN_OR_RETURN(const DType dtype, node.IndexTypeOr("out_type", DType::kInt32));
  std::vector<ValueRef> values;
  for (int i = 0; i < node.input_count(); ++i) values.push_back(ShapeValue(node, dtype, i));
  return node.SetOutputs(std::move(values));
}

absl::Status ImportSize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const DType dtype, node.IndexTypeOr("out_type", DType::kInt32));
  return node.SetConstant(IntTensor(dtype, {}, {node.type(0).element_count()}));
}

absl::Status ImportRank(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetConstant(IntTensor(DType::kInt32, {}, {node.rank(0)}));
}

absl::Status ImportFill(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, node.ConstantInts(0, "shape"));
  ASSIGN_OR_RETURN(const Tensor value, node.Constant(1, "value"));
  if (!value.shape().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the value is ", TypeToString(value.type()), "; it must be a scalar"));
  }
  return node.SetConstant(EvaluateBroadcast(value, dims));
}

absl::Status ImportCast(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int wire_type, node.RequiredType("DstT"));
  const DType dtype = ComputeType(DTypeFromWire(wire_type));
  if (dtype == DType::kInvalid) {
    return node.FailMode(absl::StrCat("a cast to ", DataTypeName(wire_type),
                                      "; allowed are floating-point, integer and bool types"),
                         "rebuild the model without this cast");
  }
  if (node.type(0).dtype == dtype) return frontend::ImportIdentity(node);
  if (FactsOf(*node.input(0)).is_all_ones) {
    return node.SetOutput(AllOnes(node, {dtype, node.shape(0)}));
  }
  if (node.IsConstant(0)) {
    return node.SetConstant(CastTensor(*node.input(0)->constant, dtype));
  }
  return node.EmitOutput("Cast", {node.input(0)}, {{"dtype", std::string(NameOf(dtype))}});
}

absl::Status ImportLike(NodeImporter& node, int64_t value) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const TensorType& type = node.type(0);
  const Tensor scalar = type.dtype == DType::kBool
                            ? CastTensor(Tensor::FromInts({}, {value}), DType::kBool)
                            : CastTensor(Tensor::FromInts({}, {value}), type.dtype);
  return node.SetConstant(EvaluateBroadcast(scalar, type.shape));
}
absl::Status ImportZerosLike(NodeImporter& node) { return ImportLike(node, 0); }
absl::Status ImportOnesLike(NodeImporter& node) { return ImportLike(node, 1); }

// A vector condition of Select (not V2) chooses whole rows.
absl::Status ImportSelect(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  if (FactsOf(*node.input(0)).is_all_ones && node.shape(0) == node.shape(1) &&
      node.type(1).dtype == node.type(2).dtype) {
    const absl::StatusOr<Shape> shape = BroadcastShape(node.shape(1), node.shape(2));
    if (shape.ok() && *shape == node.shape(1)) return node.SetOutput(node.input(1));
  }
  if (!node.IsConstant(0)) {
    Shape shape = node.shape(0);
    const bool chooses_rows = node.node().op() == "Select" && shape.size() == 1;
    if (chooses_rows) shape.resize(std::max<size_t>(1, node.shape(1).size()), 1);
    ASSIGN_OR_RETURN(const ValueRef choice, node.Reshaped(node.input(0), std::move(shape)));
    return node.SetOutput(frontend::Selected(node, choice, node.input(1), node.input(2)));
  }
  ASSIGN_OR_RETURN(Tensor condition, node.Constant(0, "condition"));
  if (condition.dtype() != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition is ", TypeToString(condition.type()), "; it must be bool"));
  }
  const absl::Span<const uint8_t> choices = condition.bytes();
  const bool all = std::all_of(choices.begin(), choices.end(), [](uint8_t c) { return c != 0; });
  const bool none = std::all_of(choices.begin(), choices.end(), [](uint8_t c) { return c == 0; });
  const bool by_rows = node.node().op() == "Select" && condition.shape().size() == 1;
  const absl::StatusOr<Shape> joint = BroadcastShape(condition.shape(), node.shape(1));
  if ((all || none) && node.shape(1) == node.shape(2) &&
      (by_rows || (joint.ok() && *joint == node.shape(1)))) {
    return node.SetOutput(node.input(all ? 1 : 2));
  }
  if (!node.IsConstant(1) || !node.IsConstant(2)) {
    return node.FailMode("a choice between computed values element by element",
                         "rebuild the model with Maximum, Minimum or Mul by a mask");
  }
  if (by_rows && node.rank(1) > 1) {
    Shape column(static_cast<size_t>(node.rank(1)), 1);
    column[0] = condition.shape()[0];
    condition = Tensor({DType::kBool, std::move(column)},
                       std::vector<uint8_t>(choices.begin(), choices.end()));
  }
  return node.SetConstant(
      EvaluateSelect(condition, *node.input(1)->constant, *node.input(2)->constant));
}

constexpr ImportRule kBasicRules[] = {
    {"CheckNumerics", frontend::ImportIdentity},
    {"Cast", ImportCast},
    {"Const", ImportConst},
    {"Fill", ImportFill},
    {"Identity", frontend::ImportIdentity},
    {"IdentityN", ImportIdentityN},
    {"NoOp", ImportNoOp},
    {"OnesLike", ImportOnesLike},
    {"PlaceholderWithDefault", frontend::ImportIdentity},
    {"PreventGradient", frontend::ImportIdentity},
    {"Range", frontend::ImportRange},
    {"Rank", ImportRank},
    {"Select", ImportSelect},
    {"SelectV2", ImportSelect},
    {"Shape", ImportShape},
    {"ShapeN", ImportShapeN},
    {"Size", ImportSize},
    {"Snapshot", frontend::ImportIdentity},
    {"StopGradient", frontend::ImportIdentity},
    {"ZerosLike", ImportZerosLike},
};

}  // namespace

absl::Span<const ImportRule> BasicRules() { return kBasicRules; }

}  // namespace npuc::tf
