// Constants, pass-through nodes, types, and what only exists at compile time: shapes, ranges.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/common/positions.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/common/shared_rules.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/frontends/onnx/tensor_proto.h"
#include "npuc/fe/onnx/model.pb.h"

namespace npuc::onnx {
namespace {

absl::StatusOr<Tensor> Decoded(NodeImporter& node, absl::string_view name) {
  const auto proto = node.node().TensorOf(name);
  if (!proto.ok()) return node.BadAttribute(proto.status());
  absl::StatusOr<Tensor> tensor =
      DecodeTensor(**proto, node.state().constant_bytes_left, node.external());
  if (tensor.ok()) {
    node.state().constant_bytes_left -= tensor->type().size_bytes();
    return tensor;
  }
  if (absl::IsNotFound(tensor.status())) {
    return node.Fail(DiagnosticKind::kOnnxExternalData, std::string(tensor.status().message()),
                     kExternalFix);
  }
  return node.Fail(absl::IsResourceExhausted(tensor.status()) ? DiagnosticKind::kModelLimitExceeded
                                                              : DiagnosticKind::kBadTensor,
                   std::string(tensor.status().message()), "export the model again");
}

absl::Status ImportConstant(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(0, 0));
  const NodeView& view = node.node();
  if (view.HasAttr("value")) {
    return node.SetConstant(Decoded(node, "value"));
  }
  if (view.HasAttr("value_float")) {
    ASSIGN_OR_RETURN(const double value, node.FloatOr("value_float", 0));
    return node.SetOutput(node.Scalar(value, DType::kFloat32));
  }
  if (view.HasAttr("value_floats")) {
    ASSIGN_OR_RETURN(const std::vector<double> values, node.FloatsOr("value_floats", {}));
    return node.SetOutput(
        node.Floats({static_cast<int64_t>(values.size())}, values, DType::kFloat32));
  }
  if (view.HasAttr("value_int")) {
    ASSIGN_OR_RETURN(const int64_t value, node.IntOr("value_int", 0));
    return node.SetConstant(Tensor::FromInts({}, {value}));
  }
  if (view.HasAttr("value_ints")) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.IntsOr("value_ints", {}));
    return node.SetOutput(
        node.MakeConstant(Tensor::FromInts({static_cast<int64_t>(values.size())}, values)));
  }
  return node.FailMode("a constant that is no dense tensor of numbers",
                       "export it as attribute 'value'");
}

// Inference: what training would drop stays, and the mask is all true.
absl::Status ImportDropout(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 3));
  if (node.has(2)) {
    ASSIGN_OR_RETURN(const Tensor training, node.Constant(2, "training mode"));
    const bool is_training = training.element_count() == 1 && training.at(0) != 0;
    double ratio = 0.5;
    if (is_training && node.has(1)) {
      ASSIGN_OR_RETURN(ratio, node.ConstantFloat(1, "ratio"));
    }
    if (is_training && ratio != 0) {
      return node.FailMode("training mode, which drops values at random",
                           "export the model in inference mode");
    }
  }
  std::vector<ValueRef> outputs = {node.input(0)};
  if (node.WantsOutput(1)) {
    const Tensor one = CastTensor(Tensor::FromInts({}, {1}), DType::kBool);
    ASSIGN_OR_RETURN(Tensor mask, EvaluateBroadcast(one, node.shape(0)));
    outputs.push_back(node.MakeConstant(std::move(mask)));
  }
  return node.SetOutputs(std::move(outputs));
}

absl::Status ImportShape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const int64_t rank = node.rank(0);
  ASSIGN_OR_RETURN(int64_t start, node.IntOr("start", 0));
  ASSIGN_OR_RETURN(int64_t end, node.IntOr("end", rank));
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  const Shape& shape = node.shape(0);
  const Shape part(shape.begin() + start, shape.begin() + end);
  return node.SetConstant(Tensor::FromInts({end - start}, part));
}

absl::Status ImportSize(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  return node.SetConstant(Tensor::FromInts({}, {node.type(0).element_count()}));
}

absl::Status ImportConstantOfShape(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const Shape shape, node.ConstantInts(0, "shape"));
  RETURN_IF_ERROR(CheckShape(shape));
  Tensor value = Tensor::FromFloats({1}, {0});
  if (node.node().HasAttr("value")) {
    ASSIGN_OR_RETURN(value, Decoded(node, "value"));
  }
  if (value.element_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the value is ", TypeToString(value.type()), "; it must be one element"));
  }
  return node.SetConstant(EvaluateBroadcast(value.WithShape({}), shape));
}

// The nearest bfloat16, the upper half of a float, ties to even. NaN stays NaN.
float RoundToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return value;
  return std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

Tensor Rounded(const Tensor& floats, float (*round)(float)) {
  std::vector<float> values = floats.ToFloats();
  for (float& value : values) value = round(value);
  return Tensor::FromFloats(floats.shape(), values);
}

// All floats are one type: a cast between them changes nothing but the rounding, which known values
// alone get.
absl::Status CastTo(NodeImporter& node, int wire_type, DType dtype) {
  if (dtype == DType::kInvalid) {
    return node.FailMode(absl::StrCat("a cast to ", DataTypeName(wire_type),
                                      "; allowed are FLOAT, FLOAT16, BFLOAT16, DOUBLE, BOOL and "
                                      "integers"),
                         "export the model without this cast");
  }
  if (node.IsConstant(0)) {
    ASSIGN_OR_RETURN(ValueRef value, node.Converted(node.input(0), dtype));
    const bool is_half = wire_type == fe::onnx::TensorProto::FLOAT16;
    if (is_half || wire_type == fe::onnx::TensorProto::BFLOAT16) {
      const NodeSource source = value->source;
      value = node.MakeConstant(Rounded(*value->constant, is_half ? RoundToHalf : RoundToBFloat16));
      value->source = source;
    }
    return node.SetOutput(std::move(value));
  }
  if (node.type(0).dtype == dtype) return node.SetOutput(node.input(0));
  ASSIGN_OR_RETURN(const ValueRef cast,
                   node.Emit("Cast", {node.input(0)}, {{"dtype", std::string(NameOf(dtype))}}));
  node.products().SetCast(node.input(0), cast);
  return node.SetOutput(cast);
}

absl::Status ImportCast(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t to, node.RequiredInt("to"));
  const int wire_type = static_cast<int>(std::clamp<int64_t>(to, -1, 1 << 20));
  return CastTo(node, wire_type, DTypeFromWire(wire_type));
}

absl::Status ImportCastLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  const DType dtype = node.type(1).dtype;
  return CastTo(node, IsFloat(dtype) ? node.StatedType(1) : 0, dtype);
}

// A choice by a known condition picks elements of the two operands; values that are all known are
// picked at once.
absl::Status ImportWhere(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 3));
  if (!node.IsConstant(0)) {
    return node.SetOutput(frontend::Selected(node, node.input(0), node.input(1), node.input(2)));
  }
  ASSIGN_OR_RETURN(const Tensor condition, node.Constant(0, "condition"));
  if (node.IsConstant(1) && node.IsConstant(2)) {
    return node.SetConstant(
        EvaluateSelect(condition, *node.input(1)->constant, *node.input(2)->constant));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShape(node.shape(1), node.shape(2)));
  ASSIGN_OR_RETURN(shape, BroadcastShape(shape, condition.shape()));
  ASSIGN_OR_RETURN(const Tensor choice, EvaluateBroadcast(condition, shape));
  if (choice.dtype() != DType::kBool || node.type(1).dtype != node.type(2).dtype) {
    return absl::InvalidArgumentError("operands must be a bool and two of one type");
  }
  ASSIGN_OR_RETURN(const ValueRef a, BroadcastTo(node, node.input(1), shape));
  ASSIGN_OR_RETURN(const ValueRef b, BroadcastTo(node, node.input(2), shape));
  const int64_t count = ElementCount(shape);
  std::vector<int64_t> positions(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    positions[static_cast<size_t>(i)] = choice.bytes()[static_cast<size_t>(i)] != 0 ? i : count + i;
  }
  ASSIGN_OR_RETURN(const ValueRef flat_a, node.Reshaped(a, {count}));
  ASSIGN_OR_RETURN(const ValueRef flat_b, node.Reshaped(b, {count}));
  ASSIGN_OR_RETURN(const ValueRef both, node.Joined({flat_a, flat_b}, 0));
  return node.SetOutput(GatherFlat(node, both, positions, shape));
}

absl::Status ImportEyeLike(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  if (node.rank(0) != 2 || node.type(0).element_count() > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("the operand is ", TypeToString(node.type(0)), "; it must be a matrix"));
  }
  ASSIGN_OR_RETURN(const int64_t k, node.IntOr("k", 0));
  ASSIGN_OR_RETURN(const int64_t wire_type, node.IntOr("dtype", 0));
  DType dtype = node.type(0).dtype;
  if (wire_type != 0)
    dtype = DTypeFromWire(static_cast<int>(std::clamp<int64_t>(wire_type, -1, 99)));
  if (dtype == DType::kInvalid) return node.FailMode("a result of that type", "use FLOAT");
  std::vector<int64_t> values(static_cast<size_t>(node.type(0).element_count()), 0);
  for (int64_t row = 0; row < node.shape(0)[0]; ++row) {
    const int64_t column = k >= -kMaxElements && k <= kMaxElements ? row + k : -1;
    if (column < 0 || column >= node.shape(0)[1]) continue;
    values[static_cast<size_t>(row * node.shape(0)[1] + column)] = 1;
  }
  return node.SetConstant(IntTensor(dtype, node.shape(0), values));
}

// Windows of a known length: cosines with these coefficients.
absl::Status CosineWindow(NodeImporter& node, double a0, double a1, double a2) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t size, node.ConstantInt(0, "size"));
  ASSIGN_OR_RETURN(const bool periodic, node.BoolOr("periodic", true));
  if (size < 1 || size > kMaxEvaluatedElements) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", size, " elements"));
  }
  std::vector<double> values;
  const double period = periodic ? static_cast<double>(size) : static_cast<double>(size - 1);
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * M_PI * static_cast<double>(i) / period;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return node.SetOutput(node.Floats({size}, values, DType::kFloat32));
}
absl::Status ImportHann(NodeImporter& node) { return CosineWindow(node, 0.5, 0.5, 0); }
absl::Status ImportHamming(NodeImporter& node) {
  return CosineWindow(node, 25.0 / 46, 21.0 / 46, 0);
}
absl::Status ImportBlackman(NodeImporter& node) { return CosineWindow(node, 0.42, 0.5, 0.08); }

// The positions of a constant's elements that are not zero, [rank, count].
absl::Status ImportNonZero(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const Tensor x, node.Constant(0, "condition"));
  ASSIGN_OR_RETURN(const Tensor rows, EvaluateNonZero(x));
  const int64_t count = rows.shape()[0];
  const int64_t rank = rows.shape()[1];
  std::vector<int64_t> columns;
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t i = 0; i < count; ++i) columns.push_back(rows.int_at(i * rank + d));
  }
  return node.SetConstant(Tensor::FromInts({rank, count}, columns));
}

constexpr ImportRule kBasicRules[] = {
    {"BlackmanWindow", ImportBlackman},
    {"Cast", ImportCast},
    {"CastLike", ImportCastLike},
    {"Constant", ImportConstant},
    {"ConstantOfShape", ImportConstantOfShape},
    {"Dropout", ImportDropout},
    {"EyeLike", ImportEyeLike},
    {"HammingWindow", ImportHamming},
    {"HannWindow", ImportHann},
    {"Identity", frontend::ImportIdentity},
    {"NonZero", ImportNonZero},
    {"Range", frontend::ImportRange},
    {"Shape", ImportShape},
    {"Size", ImportSize},
    {"Where", ImportWhere},
};

}  // namespace

absl::Span<const ImportRule> BasicRules() { return kBasicRules; }

}  // namespace npuc::onnx
