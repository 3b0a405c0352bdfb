#include "compiler_core/base/status.h"
#include "compiler_core/ops/comparison.h"
#include "compiler_core/ops/rounding_emit.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

// The one comparison that cores compute, of floats and with a result in floats; passes express the
// others by it (passes/float_selection.cc).
struct Greater : ComparisonOp<Greater> {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kBroadcast, .integer = IntegerRule::kCombine, .is_pointwise = true};

  template <typename T>
  static bool Holds(T a, T b) {
    return a > b;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Shape shape,
                     BroadcastShapes(view.inputs[0].shape, view.inputs[1].shape));
    const int64_t n = ElementCount(shape);
    const Operand difference = context.Temp(n);
    RETURN_IF_ERROR(LowerBroadcastTo(view, context, Arithmetic::kSub, difference));
    EmitIsPositive(context, difference, context.Output(0), n);
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Greater)

}  // namespace npuc
