// Operators of QONNX, which Brevitas and FINN write: floats that are rounded to steps of a scale.
// Source: qonnx's docs/qonnx-custom-ops (quant_op.md, bipolar_quant_op.md).
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::onnx {
namespace {

constexpr int64_t kMostBits = 16;

// The axis of x along which an operand of one element, or of a row of them, runs; -1: of one.
absl::StatusOr<int> AxisOf(const Tensor& scale, const Shape& shape) {
  if (scale.element_count() == 1) return -1;
  const int offset = static_cast<int>(shape.size()) - static_cast<int>(scale.shape().size());
  for (int i = 0; i < static_cast<int>(scale.shape().size()); ++i) {
    const int axis = offset + i;
    if (axis >= 0 && scale.shape()[static_cast<size_t>(i)] == scale.element_count() &&
        shape[static_cast<size_t>(axis)] == scale.element_count()) {
      return axis;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("a scale ", TypeToString(scale.type()),
                                                 " for a tensor ", ShapeToString(shape),
                                                 "; one, or one along a single axis, is read"));
}

// The integers that Quant rounds to. Operands: x, scale, zero point, width in bits.
absl::StatusOr<QuantParams> ParamsOf(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Tensor scale, node.Constant(1, "scale"));
  ASSIGN_OR_RETURN(const Tensor zero, node.Constant(2, "zero point"));
  ASSIGN_OR_RETURN(const Tensor width, node.Constant(3, "width"));  // a float, or an integer
  if (width.element_count() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the width is ", TypeToString(width.type())));
  }
  const double bits = width.at(0);
  ASSIGN_OR_RETURN(const bool is_signed, node.BoolOr("signed", true));
  ASSIGN_OR_RETURN(const bool is_narrow, node.BoolOr("narrow", false));
  ASSIGN_OR_RETURN(const std::string rounding, node.StringOr("rounding_mode", "ROUND"));
  if (rounding != "ROUND" && rounding != "HALF_EVEN") {
    return node.FailMode(absl::StrCat("rounding mode '", Printable(rounding), "'"),
                         "train with rounding_mode ROUND");
  }
  if (bits != std::floor(bits) || bits < 2 || bits > kMostBits) {
    return node.FailMode(absl::StrCat("a width of ", bits, " bits; read are 2 to ", kMostBits),
                         "quantize by such a width");
  }
  const int64_t steps = int64_t{1} << static_cast<int64_t>(bits);
  QuantParams params;
  params.dtype = bits <= 8 ? (is_signed ? DType::kInt8 : DType::kUint8)
                           : (is_signed ? DType::kInt16 : DType::kUint16);
  params.qmin = is_signed ? -steps / 2 + (is_narrow ? 1 : 0) : 0;
  params.qmax = is_signed ? steps / 2 - 1 : steps - 1 - (is_narrow ? 1 : 0);
  ASSIGN_OR_RETURN(params.axis, AxisOf(scale, node.shape(0)));
  for (int64_t i = 0; i < scale.element_count(); ++i) params.scale.push_back(scale.at(i));
  if (zero.element_count() != 1 && zero.element_count() != scale.element_count()) {
    return absl::InvalidArgumentError(absl::StrCat("a zero point of ", zero.element_count(),
                                                   " elements for ", scale.element_count(),
                                                   " scales"));
  }
  for (int64_t i = 0; i < scale.element_count(); ++i) {
    const double number = zero.at(zero.element_count() == 1 ? 0 : i);
    if (number != std::floor(number) || std::abs(number) > static_cast<double>(steps)) {
      return absl::InvalidArgumentError(absl::StrCat("a zero point of ", number));
    }
    params.zero_point.push_back(static_cast<int64_t>(number));
  }
  RETURN_IF_ERROR(CheckQuantParams(params, {params.dtype, node.shape(0)}));
  return params;
}

// The integers of constant x, computed in float32 as QONNX does.
Tensor RoundedConstant(const Tensor& x, const QuantParams& params) {
  int64_t inner = 1;  // elements for each index of the axis
  int64_t count = 1;
  if (params.axis >= 0) {
    const Shape& shape = x.shape();
    count = shape[static_cast<size_t>(params.axis)];
    for (size_t i = static_cast<size_t>(params.axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  }
  std::vector<int64_t> integers;
  integers.reserve(static_cast<size_t>(x.element_count()));
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const auto channel = static_cast<size_t>(i / inner % count);
    const float step = static_cast<float>(x.at(i)) / static_cast<float>(params.scale[channel]) +
                       static_cast<float>(params.zero_point[channel]);
    const float kept =
        std::clamp(step, static_cast<float>(params.qmin), static_cast<float>(params.qmax));
    integers.push_back(std::isnan(kept) ? 0 : static_cast<int64_t>(std::nearbyint(kept)));
  }
  return CastTensor(Tensor::FromInts(x.shape(), integers), params.dtype);
}

absl::Status ImportQuant(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 4));
  ASSIGN_OR_RETURN(QuantParams params, ParamsOf(node));
  if (!node.IsConstant(0)) return node.SetOutput(node.Requantized(node.input(0), params));
  Tensor integers = RoundedConstant(*node.input(0)->constant, params);
  return node.SetOutput(
      node.MakeStored({std::move(integers), std::move(params)}, node.input(0)->source));
}

// Operands: x, scale. Results are the scale, or minus the scale where x is below 0.
absl::Status ImportBipolarQuant(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  ASSIGN_OR_RETURN(const Tensor scale, node.Constant(1, "scale"));
  if (!node.IsConstant(0)) {
    const Term step(node, node.MakeConstant(scale));
    ASSIGN_OR_RETURN(const ValueRef below,
                     node.Emit("Greater", {node.ScalarLike(node.input(0), 0), node.input(0)}));
    const Term is_below(node, CastTo(node, below, node.type(0).dtype));
    return node.SetOutput((step - (step * 2.0) * is_below).value);
  }
  QuantParams params;
  params.dtype = DType::kInt8;
  params.qmin = -1;
  params.qmax = 1;
  ASSIGN_OR_RETURN(params.axis, AxisOf(scale, node.shape(0)));
  for (int64_t i = 0; i < scale.element_count(); ++i) params.scale.push_back(scale.at(i));
  params.zero_point.assign(params.scale.size(), 0);
  const Tensor& x = *node.input(0)->constant;
  std::vector<int64_t> signs;
  for (int64_t i = 0; i < x.element_count(); ++i) signs.push_back(x.at(i) < 0 ? -1 : 1);
  return node.SetOutput(node.MakeStored(
      {CastTensor(Tensor::FromInts(x.shape(), signs), params.dtype), std::move(params)},
      node.input(0)->source));
}

// An operator of ONNX on data and weights whose channels are last. Source: qonnx's
// custom_op/channels_last.
absl::Status ImportChannelsLast(NodeImporter& node, absl::string_view op) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 16));
  const int64_t rank = node.rank(0);
  if (rank < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("data of ", TypeToString(node.type(0)), " has no place beside its channels"));
  }
  std::vector<int64_t> first = {0, rank - 1};
  std::vector<int64_t> last = {0};
  for (int64_t i = 1; i + 1 < rank; ++i) first.push_back(i);
  for (int64_t i = 2; i < rank; ++i) last.push_back(i);
  last.push_back(1);
  std::vector<ValueRef> operands;
  for (int i = 0; i < node.input_count(); ++i) {
    operands.push_back(node.input(i));
    if (operands.back() == nullptr || node.rank(i) != rank) continue;  // a bias, a mean
    ASSIGN_OR_RETURN(operands.back(), node.Transposed(operands.back(), first));
  }
  ASSIGN_OR_RETURN(const ValueRef y, RunRule(node, op, std::move(operands)));
  return node.SetOutput(node.Transposed(y, last));
}
absl::Status ImportConvLast(NodeImporter& node) { return ImportChannelsLast(node, "Conv"); }
absl::Status ImportPoolLast(NodeImporter& node) { return ImportChannelsLast(node, "MaxPool"); }
absl::Status ImportNormLast(NodeImporter& node) {
  return ImportChannelsLast(node, "BatchNormalization");
}

constexpr ImportRule kQonnxRules[] = {
    {"finn.custom_op.general.BipolarQuant", ImportBipolarQuant},
    {"finn.custom_op.general.Quant", ImportQuant},
    {"onnx.brevitas.BipolarQuant", ImportBipolarQuant},
    {"onnx.brevitas.Quant", ImportQuant},
    {"qonnx.custom_op.channels_last.BatchNormalization", ImportNormLast},
    {"qonnx.custom_op.channels_last.Conv", ImportConvLast},
    {"qonnx.custom_op.channels_last.MaxPool", ImportPoolLast},
    {"qonnx.custom_op.general.BipolarQuant", ImportBipolarQuant},
    {"qonnx.custom_op.general.Quant", ImportQuant},
};

}  // namespace

absl::Span<const ImportRule> QonnxRules() { return kQonnxRules; }

}  // namespace npuc::onnx
