#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// x [..., C], scale, offset, mean, variance [C] -> (x - mean) * scale / sqrt(variance + epsilon) +
// offset. Attribute epsilon, >= 0.
struct BatchNorm {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kBatchNorm,
                                       .integer = IntegerRule::kNone,
                                       .listed_as = "FusedBatchNorm",
                                       .fp16_error = {.roundings = 4, .floor = 0x1p-8}};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(5, 5));
    RETURN_IF_ERROR(CheckFloat(view));
    RETURN_IF_ERROR(CheckSameDType(view));
    const Shape& shape = view.inputs[0].shape;
    if (shape.empty())
      return absl::InvalidArgumentError("operand 0 is a scalar; it needs channels");
    for (int i = 1; i < 5; ++i) {
      if (view.inputs[i].shape == Shape{shape.back()}) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("operand ", i, " has shape ", ShapeToString(view.inputs[i].shape),
                       "; operand 0 has ", shape.back(), " channels"));
    }
    ASSIGN_OR_RETURN(const double epsilon, FloatAttr(view.node, "epsilon"));
    if (!(epsilon >= 0)) {
      return absl::InvalidArgumentError(absl::StrCat("epsilon ", epsilon, " is not >= 0"));
    }
    return Types{view.inputs[0]};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    facts["in_channels"] = view.inputs[0].shape.back();
    facts["layout"] = std::string("NHWC");
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const double epsilon, FloatAttr(node, "epsilon"));
    const int64_t channels = x.shape().back();
    std::vector<uint8_t> bytes(x.type().size_bytes());
    RETURN_IF_ERROR(WithFloatCodec(x.dtype(), [&](auto codec) {
      using C = decltype(codec);
      const int64_t count = x.element_count();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t c = i % channels;
        const auto parameter = [&](int operand) {
          return C::Load(inputs[operand].bytes().data(), c);
        };
        const double centred = C::Load(x.bytes().data(), i) - parameter(3);
        C::Store(bytes.data(), i,
                 centred * parameter(1) / std::sqrt(parameter(4) + epsilon) + parameter(2));
      }
      return absl::OkStatus();
    }));
    return std::vector<Tensor>{Tensor(x.type(), std::move(bytes))};
  }
};

}  // namespace

NPUC_DEFINE_OP(BatchNorm)

}  // namespace npuc
