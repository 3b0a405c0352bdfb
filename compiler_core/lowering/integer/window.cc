#include "compiler_core/ops/window.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/lowering/integer/context.h"

namespace npuc {
namespace {

// Whether every window lies wholly on the operand.
bool AllFull(const integer::Pool& c) {
  const integer::Window& w = c.window;
  const auto fits = [](int64_t out, int64_t stride, int64_t kernel, int64_t pad, int64_t in) {
    return pad == 0 && (out - 1) * stride + kernel <= in;
  };
  return fits(c.out_h, w.stride_h, w.kernel_h, w.pad_top, c.in_h) &&
         fits(c.out_w, w.stride_w, w.kernel_w, w.pad_left, c.in_w);
}

// The mean (or sum) of a window, one factor a count of taps where that differs.
absl::Status SetScaled(IntegerContext& context, const QuantParams& from, const QuantParams& to,
                       bool mean, integer::Pool& c) {
  constexpr int64_t kMaxFactors = 65535;
  c.kind = integer::Pool::Kind::kScaled;
  c.a_zero = Number(from.zero_point[0]);
  const int64_t taps = int64_t{c.window.kernel_h} * c.window.kernel_w;
  const int64_t least = AllFull(c) || !mean ? taps : 1;
  if (taps - least >= kMaxFactors) {
    return absl::UnimplementedError(absl::StrCat("a mean of windows of up to ", taps,
                                                 " elements beside padding; allowed are ",
                                                 kMaxFactors));
  }
  std::vector<Scaling> scalings;
  for (int64_t count = least; count <= taps; ++count) {
    const double share = mean ? static_cast<double>(count) : 1.0;
    scalings.push_back({from.scale[0] / (to.scale[0] * share), LargestOf(from) * count});
  }
  std::vector<Factor> factors;
  std::tie(factors, c.rounding) = context.FactorsFor(scalings);
  c.factor_count = Number(static_cast<int64_t>(factors.size()));
  c.factors = context.Factors(factors);
  return absl::OkStatus();
}

enum class Over { kMax, kMean, kSum };

// Emits the pool of c.a, which has the parameters of the layer's operand, into the layer's result.
absl::Status EmitPool(IntegerContext& context, Over over, integer::Pool c) {
  const Layer& layer = context.layer();
  ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(layer.inputs[0]));
  ASSIGN_OR_RETURN(const QuantParams to, context.ActivationParams(layer.outputs[0]));
  c.a_type = from.dtype;
  const Operand d = context.Output(layer.outputs[0], to);
  c.result = context.ResultFor(to, d);
  if (over == Over::kMean && context.exact() && SameParams(from, to)) {
    c.kind = integer::Pool::Kind::kMean;
    c.result.zero = 0;  // stored integers are averaged as they are
  } else if (over != Over::kMax) {
    RETURN_IF_ERROR(SetScaled(context, from, to, over == Over::kMean, c));
  } else if (SameParams(from, to)) {
    c.result.zero = 0;
  } else {
    const int64_t count = int64_t{c.n} * c.out_h * c.out_w * c.c;
    const Operand maxima = context.Temporary(count * SizeOf(from.dtype));
    integer::Result stored = {maxima, from.dtype, 0, Number(from.qmin), Number(from.qmax)};
    std::swap(c.result, stored);
    context.Emit(c);
    ASSIGN_OR_RETURN(const StridedWalk walk, MakeWalk({count}, {{1}, {1}}));
    EmitMove(context, maxima, from, stored, to, walk);
    return absl::OkStatus();
  }
  context.Emit(c);
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerPool(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  ASSIGN_OR_RETURN(const WindowGeometry stated, MakePoolWindow(root, in));
  const WindowGeometry window = WithoutIdleTaps(stated);
  integer::Pool c;
  ASSIGN_OR_RETURN(c.a, context.Input(context.layer().inputs[0]));
  c.n = Number(in[0]);
  c.in_h = Number(in[1]);
  c.in_w = Number(in[2]);
  c.c = Number(in[3]);
  c.out_h = Number(window.output[0]);
  c.out_w = Number(window.output[1]);
  c.window = {Number(window.kernel[0]),     Number(window.kernel[1]),    Number(window.stride[0]),
              Number(window.stride[1]),     Number(window.dilation[0]),  Number(window.dilation[1]),
              Number(window.pad_before[0]), Number(window.pad_before[1])};
  return EmitPool(context, root.op == Op::kMaxPool ? Over::kMax : Over::kMean, c);
}

absl::Status LowerReduction(IntegerContext& context) {
  const Node& root = context.root();
  const Shape& in = context.graph().type(root.inputs[0]).shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, IntsAttr(root, "axes"));
  if (axes.empty()) return LowerReshape(context);
  const ValueId operand = context.layer().inputs[0];
  integer::Pool c;
  int64_t outer = 1;
  int64_t middle = 1;
  int64_t inner = 1;
  if (axes.back() - axes.front() == static_cast<int64_t>(axes.size()) - 1) {
    for (int64_t d = 0; d < static_cast<int64_t>(in.size()); ++d) {
      (d < axes.front() ? outer : d > axes.back() ? inner : middle) *= in[static_cast<size_t>(d)];
    }
    ASSIGN_OR_RETURN(c.a, context.Input(operand));
  } else {  // dimensions that are not neighbours: those that go are moved behind the others
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < static_cast<int64_t>(in.size()); ++d) {
      if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
      perm.push_back(d);
      outer *= in[static_cast<size_t>(d)];
    }
    perm.insert(perm.end(), axes.begin(), axes.end());
    for (const int64_t axis : axes) middle *= in[static_cast<size_t>(axis)];
    ASSIGN_OR_RETURN(const QuantParams from, context.ActivationParams(operand));
    ASSIGN_OR_RETURN(c.a, PermutedInput(context, from, in, perm));
  }
  if (middle > 65535) return absl::UnimplementedError("a reduction of more than 65535 elements");
  c.n = Number(outer);
  c.in_h = c.window.kernel_h = Number(middle);
  c.c = Number(inner);
  const Over over = root.op == Op::kReduceMax   ? Over::kMax
                    : root.op == Op::kReduceSum ? Over::kSum
                                                : Over::kMean;
  return EmitPool(context, over, c);
}

}  // namespace npuc
