// Elements chosen by conditions, windows over an axis, sums by an equation.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/einsum.h"
#include "compiler_core/frontends/common/gather.h"
#include "compiler_core/frontends/torchscript/choice.h"
#include "compiler_core/frontends/torchscript/layout.h"
#include "compiler_core/frontends/torchscript/op_call.h"
#include "compiler_core/frontends/torchscript/torch_type.h"
#include "compiler_core/frontends/torchscript/truth.h"

namespace npuc::pt {
namespace {

absl::StatusOr<ScriptValue> ImportWhere(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef condition, call.TensorArg(0));
  if (!call.Has(1) || !call.Has(2)) {
    return call.FailMode("where() of a condition alone: the shape of its result depends on data",
                         "give where() two tensors to choose from");
  }
  // A number is of the other one's type.
  const auto like = [&](int i) { return call.IsTensor(i) ? call.TensorArg(i) : call.Scalar(0); };
  ASSIGN_OR_RETURN(const ValueRef beside_a, like(2));
  ASSIGN_OR_RETURN(const ValueRef beside_b, like(1));
  ASSIGN_OR_RETURN(const ValueRef a, call.TensorOrNumber(1, beside_a));
  ASSIGN_OR_RETURN(const ValueRef b, call.TensorOrNumber(2, beside_b));
  return call.Result(Chosen(call, condition, a, b));
}

absl::StatusOr<ScriptValue> ImportMaskedFill(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const ValueRef mask, call.TensorArg(1));
  ASSIGN_OR_RETURN(ValueRef value, call.TensorOrNumber(2, x));
  if (value->constant.has_value()) {
    ASSIGN_OR_RETURN(value, ConvertedTo(call, value, TorchTypeOf(x)));
  }
  return call.Result(Chosen(call, mask, value, x));
}

// tril and triu: elements on one side of a diagonal become 0.
absl::StatusOr<ScriptValue> ImportTriangle(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t diagonal, call.IntOr(1, 0));
  const Shape& shape = x->type.shape;
  if (shape.size() < 2) return absl::InvalidArgumentError("a triangle needs two dimensions");
  const int64_t rows = shape[shape.size() - 2];
  const int64_t columns = shape.back();
  RETURN_IF_ERROR(CheckShape({rows, columns}));
  std::vector<int64_t> kept(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t right = i % columns - i / columns;  // of the main diagonal
    const bool is_kept = call.name() == "tril" ? right <= diagonal : right >= diagonal;
    kept[static_cast<size_t>(i)] = is_kept ? 1 : 0;
  }
  const ValueRef mask = call.MakeConstant(Tensor::FromInts({rows, columns}, kept));
  ASSIGN_OR_RETURN(const ValueRef zero, ConvertedTo(call, call.Scalar(0), TorchTypeOf(x)));
  return call.Result(Chosen(call, mask, x, zero));
}

// x.unfold(dim, size, step): windows along the axis, each as a new last axis.
absl::StatusOr<ScriptValue> ImportUnfold(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const int64_t dim, call.Int(1));
  ASSIGN_OR_RETURN(const int64_t size, call.Int(2));
  ASSIGN_OR_RETURN(const int64_t step, call.Int(3));
  const int64_t rank = static_cast<int64_t>(x->type.shape.size());
  ASSIGN_OR_RETURN(const int64_t axis, call.Axis(dim, rank));
  if (rank == 0 || size < 1 || step < 1 || size > x->type.shape[axis]) {
    return absl::InvalidArgumentError(absl::StrCat("windows of ", size, " elements, ", step,
                                                   " apart, over ", TypeToString(x->type)));
  }
  const int64_t count = (x->type.shape[axis] - size) / step + 1;
  Shape shape = x->type.shape;
  shape[axis] = count;
  shape.insert(shape.begin() + axis + 1, size);
  RETURN_IF_ERROR(CheckShape(shape));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count * size; ++i) places.push_back(i / size * step + i % size);
  ASSIGN_OR_RETURN(ValueRef y, frontend::GatherAxis(call, x, axis, places));
  ASSIGN_OR_RETURN(y, call.Reshaped(y, std::move(shape)));
  std::vector<int64_t> perm;
  for (int64_t i = 0; i <= rank; ++i) {
    if (i != axis + 1) perm.push_back(i);
  }
  perm.push_back(axis + 1);
  return call.Result(call.Transposed(y, std::move(perm)));
}

// F.unfold: the windows of an image as columns [N, C*kh*kw, L]: a depthwise convolution by kernels
// that each pick one element.
absl::StatusOr<ScriptValue> ImportIm2col(OpCall& call) {
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, call.IntsOf(1, 2, {}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, call.IntsOf(2, 2, {1}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> padding, call.IntsOf(3, 2, {0}));
  ASSIGN_OR_RETURN(const std::vector<int64_t> strides, call.IntsOf(4, 2, {1}));
  ImageLayout layout;
  ASSIGN_OR_RETURN(const ValueRef image, ToImage(call, x, 2, layout));
  const int64_t channels = image->type.shape[3];
  RETURN_IF_ERROR(CheckShape({kernel[0], kernel[1], channels}));
  const int64_t taps = kernel[0] * kernel[1];
  RETURN_IF_ERROR(CheckShape({taps, taps, channels}));
  std::vector<float> picks(static_cast<size_t>(taps * channels * taps), 0);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t c = 0; c < channels; ++c) {
      picks[static_cast<size_t>((tap * channels + c) * taps + tap)] = 1;
    }
  }
  const ValueRef weight =
      call.MakeConstant(Tensor::FromFloats({kernel[0], kernel[1], channels, taps}, picks));
  const std::vector<int64_t> pads = {padding[0], padding[0], padding[1], padding[1]};
  ASSIGN_OR_RETURN(
      ValueRef y, call.EmitUnder("DepthwiseConv2d", "DepthwiseConv2D", {image, weight},
                                 {{"strides", strides}, {"pads", pads}, {"dilations", dilations}}));
  ASSIGN_OR_RETURN(y, FromImage(call, y, layout));
  Shape shape(y->type.shape.begin(), y->type.shape.end() - 2);
  shape.push_back(y->type.shape.end()[-2] * y->type.shape.end()[-1]);
  return call.Result(call.Reshaped(y, std::move(shape)));
}

absl::StatusOr<ScriptValue> ImportEinsum(OpCall& call) {
  ASSIGN_OR_RETURN(const std::string equation, call.StringOr(0, ""));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> operands, call.Tensors(1));
  if (operands.empty()) return absl::InvalidArgumentError("einsum of no tensor");
  return call.Result(frontend::Einsum(call, equation, operands));
}

constexpr OpRule kSelectRules[] = {
    {"einsum", "equation tensors path", ImportEinsum},
    {"im2col", "self kernel_size dilation padding stride", ImportIm2col},
    {"masked_fill", "self mask value", ImportMaskedFill},
    {"tril", "self diagonal", ImportTriangle},
    {"triu", "self diagonal", ImportTriangle},
    {"unfold", "self dimension size step", ImportUnfold},
    {"where", "condition self other", ImportWhere},
};

}  // namespace

absl::Span<const OpRule> SelectRules() { return kSelectRules; }

}  // namespace npuc::pt
