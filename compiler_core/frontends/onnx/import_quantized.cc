// Quantized operators: values pass through Quantize and Dequantize (ops/quantize.h), integer
// products are computed as they are.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::onnx {
namespace {

// An operand that no node has.
constexpr int kNoOperand = kMaxInputsPerNode;

// Scale (operand `scale_at`) and zero point (operand `zero_at`, may be left out) of integers of the
// given type and shape. More than one run along `axis`.
absl::StatusOr<QuantParams> ReadParams(NodeImporter& node, int scale_at, int zero_at, DType dtype,
                                       const Shape& shape, int64_t axis) {
  ASSIGN_OR_RETURN(const Tensor scale, node.Constant(scale_at, "scale"));
  if (!IsInteger(dtype) || !IsFloat(scale.dtype()) || scale.shape().size() > 1 ||
      scale.element_count() > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat("integers of type ", NameOf(dtype),
                                                   " with scales ", TypeToString(scale.type())));
  }
  QuantParams params;
  params.dtype = dtype;
  params.qmin = LowestOf(dtype);
  params.qmax = HighestOf(dtype);
  const int64_t count = scale.element_count();
  if (count != 1) {
    ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(shape.size())));
    params.axis = static_cast<int>(axis);
  }
  for (int64_t i = 0; i < count; ++i) params.scale.push_back(scale.at(i));
  params.zero_point.assign(static_cast<size_t>(count), 0);
  if (node.has(zero_at)) {
    ASSIGN_OR_RETURN(const Tensor zero, node.Constant(zero_at, "zero point"));
    if (zero.dtype() != dtype || (zero.element_count() != count && zero.element_count() != 1)) {
      return absl::InvalidArgumentError(absl::StrCat("a zero point of ", TypeToString(zero.type()),
                                                     " beside ", count, " scales for ",
                                                     NameOf(dtype)));
    }
    for (int64_t i = 0; i < count; ++i) {
      params.zero_point[static_cast<size_t>(i)] = zero.int_at(zero.element_count() == 1 ? 0 : i);
    }
  }
  RETURN_IF_ERROR(CheckQuantParams(params, {dtype, shape}));
  return params;
}

// The floats behind integer operand i.
absl::StatusOr<ValueRef> Dequantized(NodeImporter& node, int i, int scale_at, int zero_at,
                                     int64_t axis) {
  ASSIGN_OR_RETURN(QuantParams params,
                   ReadParams(node, scale_at, zero_at, node.type(i).dtype, node.shape(i), axis));
  if (node.IsConstant(i)) {
    return node.MakeStored({*node.input(i)->constant, std::move(params)}, node.input(i)->source);
  }
  return node.Emit("Dequantize", {node.input(i)}, DequantizeAttrs(params));
}

// The type of a QuantizeLinear's result: that of the zero point, else output_dtype, which operator
// set 21 brought, else u8. "If both output_dtype and y_zero_point are specified, output_dtype must
// be T3", the zero point's type.
absl::StatusOr<DType> QuantizedType(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int64_t wire, node.IntOr("output_dtype", 0));
  if (wire == 0) return node.has(2) ? node.type(2).dtype : DType::kUint8;
  const int number = static_cast<int>(std::clamp<int64_t>(wire, -1, INT16_MAX));
  const DType dtype = DTypeFromWire(number);
  if (dtype != DType::kInt8 && dtype != DType::kUint8 && dtype != DType::kInt16 &&
      dtype != DType::kUint16) {
    return node.FailMode(absl::StrCat("output_dtype is ", DataTypeName(number)),
                         "quantize to INT8, UINT8, INT16 or UINT16");
  }
  if (node.has(2) && node.type(2).dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat("output_dtype is ", DataTypeName(number),
                                                   ", and the zero point is ",
                                                   TypeToString(node.type(2))));
  }
  return dtype;
}

absl::Status ImportQuantizeLinear(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", 1));
  ASSIGN_OR_RETURN(const DType dtype, QuantizedType(node));
  ASSIGN_OR_RETURN(const QuantParams params, ReadParams(node, 1, 2, dtype, node.shape(0), axis));
  if (!node.IsConstant(0) || params.axis >= 0 || node.type(1).dtype != node.type(0).dtype) {
    ASSIGN_OR_RETURN(const ValueRef integers, node.Quantized(node.input(0), params));
    if (params.axis < 0 && !node.IsConstant(0)) {
      node.products().SetQuantized(
          integers, {integers, node.input(1), node.has(2) ? node.input(2) : nullptr, params});
    }
    return node.SetOutput(integers);
  }
  // The quotient of known values is rounded to their type first, as ONNX defines it.
  ASSIGN_OR_RETURN(const ValueRef quotient, node.Emit("Div", {node.input(0), node.input(1)}));
  QuantParams steps = params;
  steps.scale = {1.0};
  ASSIGN_OR_RETURN(const ValueRef stored, node.Quantized(quotient, steps));
  return node.SetOutput(node.Reshaped(stored, node.shape(0)));
}

absl::Status ImportDequantizeLinear(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 3));
  ASSIGN_OR_RETURN(const int64_t axis, node.IntOr("axis", 1));
  return node.SetOutput(Dequantized(node, 0, 1, 2, axis));
}

// uint8 by the range of the values themselves, which include 0: results, scale, zero point.
absl::Status ImportDynamicQuantizeLinear(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  const Term x(node, node.input(0));
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < node.rank(0); ++i) axes.push_back(i);
  const Term highest = Max(Term(node, node.Reduced("ReduceMax", node.input(0), axes, false)), 0);
  ASSIGN_OR_RETURN(const ValueRef negated, (-x).value);
  const Term lowest = -Max(Term(node, node.Reduced("ReduceMax", negated, axes, false)), 0);
  const Term scale = (highest - lowest) / 255.0;
  const Term zero = Apply("Round", Min(Max(-lowest / scale, 0), 255));
  const Term stored = Min(Max(Apply("Round", x / scale) + zero, 0), 255);
  RETURN_IF_ERROR(stored.value.status());
  const AttrMap to_integers = {{"dtype", std::string("u8")}};
  ASSIGN_OR_RETURN(ValueRef integers, node.Emit("Cast", {*stored.value}, to_integers));
  ASSIGN_OR_RETURN(ValueRef zero_point, node.Emit("Cast", {*zero.value}, to_integers));
  node.products().SetQuantized(integers, {node.input(0), *scale.value, zero_point, std::nullopt});
  return node.SetOutputs({std::move(integers), *scale.value, std::move(zero_point)});
}

// Operand `at`, i32 integers that are added to sums of products: their scale is that of the operand
// (operand x_scale_at) times the weight's, one or one for each result, and
// alpha.
absl::StatusOr<ValueRef> SumsBias(NodeImporter& node, int at, int x_scale_at, int w_scale_at,
                                  double alpha = 1) {
  ASSIGN_OR_RETURN(QuantParams params,
                   ReadParams(node, w_scale_at, kNoOperand, DType::kInt32, node.shape(at),
                              std::max<int64_t>(node.rank(at) - 1, 0)));
  ASSIGN_OR_RETURN(const double x_scale, node.ConstantFloat(x_scale_at, "scale"));
  for (double& scale : params.scale) scale *= alpha * x_scale;
  ASSIGN_OR_RETURN(Tensor integers, node.Constant(at, "bias"));
  if (integers.dtype() != DType::kInt32) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bias is ", TypeToString(integers.type()), "; it must be i32"));
  }
  return node.MakeStored({std::move(integers), std::move(params)}, node.input(at)->source);
}

// Operands: x, its scale and zero point, w and its, y's, bias (of scale x's times w's).
absl::Status ImportQLinearConv(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(8, 9));
  ASSIGN_OR_RETURN(const ValueRef x, Dequantized(node, 0, 1, 2, 1));
  ASSIGN_OR_RETURN(const ValueRef w, Dequantized(node, 3, 4, 5, 0));
  std::vector<ValueRef> operands = {x, w};
  if (node.has(8)) {
    ASSIGN_OR_RETURN(ValueRef bias, SumsBias(node, 8, 1, 4));
    operands.push_back(std::move(bias));
  }
  ASSIGN_OR_RETURN(const ValueRef y, RunRule(node, "Conv", std::move(operands)));
  const DType dtype = node.has(7) ? node.type(7).dtype : DType::kUint8;
  ASSIGN_OR_RETURN(const QuantParams params, ReadParams(node, 6, 7, dtype, y->type.shape, 1));
  return node.SetOutput(node.Quantized(y, params));
}

absl::Status ImportQLinearMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(8, 8));
  ASSIGN_OR_RETURN(const ValueRef a,
                   Dequantized(node, 0, 1, 2, std::max<int64_t>(node.rank(0) - 2, 0)));
  ASSIGN_OR_RETURN(const ValueRef b,
                   Dequantized(node, 3, 4, 5, std::max<int64_t>(node.rank(3) - 1, 0)));
  ASSIGN_OR_RETURN(const ValueRef y, RunRule(node, "MatMul", {a, b}));
  ASSIGN_OR_RETURN(
      const QuantParams params,
      ReadParams(node, 6, 7, node.type(7).dtype, y->type.shape,
                 std::max<int64_t>(static_cast<int64_t>(y->type.shape.size()) - 2, 0)));
  return node.SetOutput(node.Quantized(y, params));
}

// Operand i in a wider type, less its zero point (operand `zero_at`); several zero points run along
// `axis`.
absl::StatusOr<ValueRef> Centred(NodeImporter& node, int i, int zero_at, DType dtype,
                                 int64_t axis) {
  const AttrMap attrs = {{"dtype", std::string(NameOf(dtype))}};
  ASSIGN_OR_RETURN(const ValueRef value, node.Emit("Cast", {node.input(i)}, attrs));
  if (!node.has(zero_at)) return value;
  ASSIGN_OR_RETURN(ValueRef zero, node.Emit("Cast", {node.input(zero_at)}, attrs));
  if (zero->type.shape.size() == 1) {
    Shape shape(node.shape(i).size(), 1);
    if (zero->type.shape[0] != 1 && !shape.empty()) {
      shape[static_cast<size_t>(axis)] = zero->type.shape[0];
    }
    ASSIGN_OR_RETURN(zero, node.Reshaped(zero, std::move(shape)));
  }
  return node.Emit("Sub", {value, zero});
}

// Two zero points, null for 0, that are one value or equal constants.
bool AreSame(const ValueRef& a, const ValueRef& b) {
  const auto is_zero = [](const ValueRef& v) {
    return v == nullptr || (v->constant.has_value() && v->constant->element_count() == 1 &&
                            v->constant->int_at(0) == 0);
  };
  if (a == b || (is_zero(a) && is_zero(b))) return true;
  return a != nullptr && b != nullptr && a->constant.has_value() && b->constant.has_value() &&
         a->constant->element_count() == 1 && b->constant->element_count() == 1 &&
         a->constant->int_at(0) == b->constant->int_at(0);
}

// Notes what the sums of operands 0 and 1 of an integer product stand for.
void NoteProduct(NodeImporter& node, absl::string_view op, const ValueRef& sums, int channel_axis,
                 int result_axis) {
  const IntegerProducts::Source* const x = node.products().FindQuantized(node.input(0));
  const ValueRef x_zero = node.has(2) ? node.input(2) : nullptr;
  const ValueRef w_zero = node.has(3) ? node.input(3) : nullptr;
  if (x == nullptr || !node.IsConstant(1) || node.rank(1) < 2 || !AreSame(x->zero, x_zero) ||
      (w_zero != nullptr && !w_zero->constant.has_value())) {
    return;
  }
  const auto compute = [node, op](ValueRef a, ValueRef b) mutable {
    return RunRule(node, op, {std::move(a), std::move(b)});
  };
  node.products().SetSums(sums, {*x, node.input(1), w_zero, channel_axis, result_axis, compute});
}

absl::Status ImportMatMulInteger(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 4));
  ASSIGN_OR_RETURN(const ValueRef a,
                   Centred(node, 0, 2, DType::kInt32, std::max<int64_t>(node.rank(0) - 2, 0)));
  ASSIGN_OR_RETURN(const ValueRef b,
                   Centred(node, 1, 3, DType::kInt32, std::max<int64_t>(node.rank(1) - 1, 0)));
  ASSIGN_OR_RETURN(const ValueRef sums, RunRule(node, "MatMul", {a, b}));
  NoteProduct(node, "MatMul", sums, static_cast<int>(node.rank(1)) - 1, -1);
  return node.SetOutput(sums);
}

// In doubles, which hold every sum of products of bytes exactly.
absl::Status ImportConvInteger(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 4));
  ASSIGN_OR_RETURN(const ValueRef x, Centred(node, 0, 2, DType::kFloat64, 1));
  ASSIGN_OR_RETURN(const ValueRef w, Centred(node, 1, 3, DType::kFloat64, 0));
  ASSIGN_OR_RETURN(const ValueRef y, RunRule(node, "Conv", {x, w}));
  ASSIGN_OR_RETURN(const ValueRef sums, node.Emit("Cast", {y}, {{"dtype", std::string("i32")}}));
  NoteProduct(node, "Conv", sums, 0, 1 - static_cast<int>(node.rank(0)));
  return node.SetOutput(sums);
}

// Operand `at`, a constant of 8 bits, as the floats that it stands for.
absl::StatusOr<ValueRef> RealConstant(NodeImporter& node, int at, int scale_at, int zero_at) {
  if (!node.IsConstant(at))
    return node.FailMode("a weight that is computed", "quantize it statically");
  return Dequantized(node, at, scale_at, zero_at, std::max<int64_t>(node.rank(at) - 1, 0));
}

// The floats a times operand 1, plus the bias (operand `bias_at`, where there is one).
absl::Status SetRealProduct(NodeImporter& node, const ValueRef& a, const ValueRef& b, int bias_at) {
  ASSIGN_OR_RETURN(ValueRef y, RunRule(node, "MatMul", {a, b}));
  if (node.has(bias_at)) {
    ASSIGN_OR_RETURN(y, node.Emit("Add", {y, node.input(bias_at)}));
  }
  return node.SetOutput(std::move(y));
}

// Operands: floats, which it quantizes by their own range, a weight, its scale and zero point,
// bias. In floats: what rounding them would change depends on all values of a frame.
absl::Status ImportDynamicQuantizeMatMul(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 5));
  ASSIGN_OR_RETURN(const ValueRef b, RealConstant(node, 1, 2, 3));
  return SetRealProduct(node, node.input(0), b, 4);
}

// Operands: integers, a weight, the scales of both, the zero points of both, bias.
absl::Status ImportMatMulIntegerToFloat(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(4, 7));
  ASSIGN_OR_RETURN(const ValueRef b, RealConstant(node, 1, 3, 5));
  const IntegerProducts::Source* const x = node.products().FindQuantized(node.input(0));
  if (x != nullptr && !x->params.has_value() && x->scale == node.input(2)) {
    return SetRealProduct(node, x->value, b, 6);
  }
  ASSIGN_OR_RETURN(const ValueRef a, Dequantized(node, 0, 2, 4, 0));
  return SetRealProduct(node, a, b, 6);
}

// Operands `needed` must be there, of at most `most`; zero points may be left out.
absl::Status ExpectThese(NodeImporter& node, std::initializer_list<int> needed, int most) {
  for (const int i : needed) {
    if (!node.has(i)) return node.ExpectInputs(i + 1, most);
  }
  return node.ExpectInputs(0, most);
}

// The operands of com.microsoft's quantized operators come in threes: value, scale, zero point. The
// result has the scale at `scale_at`, the zero point behind it, and the type of that.
absl::Status SetQuantized(NodeImporter& node, absl::StatusOr<ValueRef> y, int scale_at,
                          DType fallback) {
  RETURN_IF_ERROR(y.status());
  const int zero_at = scale_at + 1;
  const DType dtype = node.has(zero_at) ? node.type(zero_at).dtype : fallback;
  ASSIGN_OR_RETURN(const QuantParams params,
                   ReadParams(node, scale_at, zero_at, dtype, (*y)->type.shape, 0));
  return node.SetOutput(node.Quantized(*y, params));
}

// QLinearAdd and QLinearMul. Operands: a and its scale and zero point, b and its, the result's.
absl::Status ImportQLinearBinary(NodeImporter& node) {
  RETURN_IF_ERROR(ExpectThese(node, {0, 1, 3, 4, 6}, 8));
  ASSIGN_OR_RETURN(const ValueRef a, Dequantized(node, 0, 1, 2, 0));
  ASSIGN_OR_RETURN(const ValueRef b, Dequantized(node, 3, 4, 5, 0));
  const absl::string_view op = node.op() == "QLinearAdd" ? "Add" : "Mul";
  return SetQuantized(node, node.Emit(op, {a, b}), 6, node.type(0).dtype);
}

// QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax. Operands: x and its, the result's.
absl::Status ImportQLinearFunction(NodeImporter& node) {
  RETURN_IF_ERROR(ExpectThese(node, {0, 1, 3}, 5));
  ASSIGN_OR_RETURN(const ValueRef x, Dequantized(node, 0, 1, 2, 0));
  const absl::string_view op = node.op().substr(absl::string_view("QLinear").size());
  // Softmax's axis depends on the operator set, which the node states.
  ASSIGN_OR_RETURN(const int64_t opset, node.IntOr("opset", node.opset()));
  return SetQuantized(node, RunRule(node, op, {x}, opset), 3, node.type(0).dtype);
}

// QLinearGlobalAveragePool and QLinearAveragePool.
absl::Status ImportQLinearPool(NodeImporter& node) {
  RETURN_IF_ERROR(ExpectThese(node, {0, 1, 3}, 5));
  ASSIGN_OR_RETURN(const bool channels_last, node.BoolOr("channels_last", false));
  ASSIGN_OR_RETURN(ValueRef x, Dequantized(node, 0, 1, 2, 0));
  const int64_t rank = node.rank(0);
  std::vector<int64_t> first;  // to channels first, and back
  std::vector<int64_t> last;
  if (channels_last && rank > 2) {
    first = {0, rank - 1};
    last = {0};
    for (int64_t i = 1; i < rank - 1; ++i) first.push_back(i);
    for (int64_t i = 2; i < rank; ++i) last.push_back(i);
    last.push_back(1);
    ASSIGN_OR_RETURN(x, node.Transposed(x, first));
  }
  ASSIGN_OR_RETURN(ValueRef y,
                   RunRule(node, node.op().substr(absl::string_view("QLinear").size()), {x}));
  if (!last.empty()) {
    ASSIGN_OR_RETURN(y, node.Transposed(y, last));
  }
  return SetQuantized(node, std::move(y), 3, node.type(0).dtype);
}

// Operands: the result's scale and zero point, then each part with its own.
absl::Status ImportQLinearConcat(NodeImporter& node) {
  RETURN_IF_ERROR(ExpectThese(node, {0, 2, 3}, kMaxInputsPerNode));
  ASSIGN_OR_RETURN(int64_t axis, node.RequiredInt("axis"));
  if ((node.input_count() - 2) % 3 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.input_count(), " operands are not two and threes of them"));
  }
  std::vector<ValueRef> parts;
  for (int i = 2; i < node.input_count(); i += 3) {
    RETURN_IF_ERROR(ExpectThese(node, {i, i + 1}, kMaxInputsPerNode));
    ASSIGN_OR_RETURN(parts.emplace_back(), Dequantized(node, i, i + 1, i + 2, 0));
  }
  ASSIGN_OR_RETURN(axis, node.Axis(axis, static_cast<int64_t>(parts[0]->type.shape.size())));
  return SetQuantized(node, node.Joined(parts, axis), 0, node.type(2).dtype);
}

// Operands: a and its, b and its, c (of scale a's times b's), the result's, which may be left out:
// the result is then float.
absl::Status ImportQGemm(NodeImporter& node) {
  RETURN_IF_ERROR(ExpectThese(node, {0, 1, 3, 4}, 9));
  ASSIGN_OR_RETURN(const bool swaps, node.BoolOr("transB", false));
  ASSIGN_OR_RETURN(const ValueRef a, Dequantized(node, 0, 1, 2, 0));
  ASSIGN_OR_RETURN(const ValueRef b, Dequantized(node, 3, 4, 5, swaps ? 0 : 1));
  std::vector<ValueRef> operands = {a, b};
  if (node.has(6)) {
    // C is "quantized with zero_point = 0 and scale = alpha / beta * a_scale * b_scale"
    // (onnxruntime's ContribOperators.md); beta is no attribute and 1.
    ASSIGN_OR_RETURN(const double alpha, node.FloatOr("alpha", 1));
    if (!(alpha > 0)) {
      return node.FailMode(absl::StrCat("alpha is ", alpha, ", a factor of the scale of C"),
                           "use an alpha above 0");
    }
    ASSIGN_OR_RETURN(ValueRef bias, SumsBias(node, 6, 1, 4, alpha));
    operands.push_back(std::move(bias));
  }
  ASSIGN_OR_RETURN(ValueRef y, RunRule(node, "Gemm", std::move(operands)));
  if (!node.has(7)) return node.SetOutput(std::move(y));
  return SetQuantized(node, std::move(y), 7, node.type(0).dtype);
}

constexpr ImportRule kQuantizedRules[] = {
    {"ConvInteger", ImportConvInteger},
    {"DequantizeLinear", ImportDequantizeLinear},
    {"DynamicQuantizeLinear", ImportDynamicQuantizeLinear},
    {"MatMulInteger", ImportMatMulInteger},
    {"QLinearConv", ImportQLinearConv},
    {"QLinearMatMul", ImportQLinearMatMul},
    {"QuantizeLinear", ImportQuantizeLinear},
    {"com.microsoft.DequantizeLinear", ImportDequantizeLinear},
    {"com.microsoft.DynamicQuantizeMatMul", ImportDynamicQuantizeMatMul},
    {"com.microsoft.MatMulIntegerToFloat", ImportMatMulIntegerToFloat},
    {"com.microsoft.QGemm", ImportQGemm},
    {"com.microsoft.QLinearAdd", ImportQLinearBinary},
    {"com.microsoft.QLinearAveragePool", ImportQLinearPool},
    {"com.microsoft.QLinearConcat", ImportQLinearConcat},
    {"com.microsoft.QLinearGlobalAveragePool", ImportQLinearPool},
    {"com.microsoft.QLinearLeakyRelu", ImportQLinearFunction},
    {"com.microsoft.QLinearMul", ImportQLinearBinary},
    {"com.microsoft.QLinearSigmoid", ImportQLinearFunction},
    {"com.microsoft.QLinearSoftmax", ImportQLinearFunction},
    {"com.microsoft.QuantizeLinear", ImportQuantizeLinear},
};

}  // namespace

absl::Span<const ImportRule> QuantizedRules() { return kQuantizedRules; }

}  // namespace npuc::onnx
