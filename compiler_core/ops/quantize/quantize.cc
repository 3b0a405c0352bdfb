#include "compiler_core/ops/quantize.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// x [...] float -> [...] of `dtype`: clamp(round_half_even(x / scale) + zero_point, qmin, qmax),
// computed in double; NaN gives the zero point. Attributes: ops/quantize.h.
struct Quantize {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kConversion,
                                       .integer = IntegerRule::kNone};

  static absl::StatusOr<TensorType> ResultOf(const Node& node, const Shape& shape) {
    ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "dtype"));
    const DType dtype = DTypeFromName(name);
    if (IsInteger(dtype)) return TensorType{dtype, shape};
    return absl::InvalidArgumentError(absl::StrCat("dtype '", name, "' is no integer type"));
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    RETURN_IF_ERROR(CheckFloat(view));
    ASSIGN_OR_RETURN(TensorType type, ResultOf(view.node, view.inputs[0].shape));
    RETURN_IF_ERROR(QuantParamsOf(view.node, type).status());
    RETURN_IF_ERROR(LayerQuantOf(view.node).status());
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static int64_t Clamped(double value, const QuantParams& params) {
    if (value <= static_cast<double>(params.qmin)) return params.qmin;
    if (value >= static_cast<double>(params.qmax)) return params.qmax;
    return static_cast<int64_t>(value);
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const TensorType type, ResultOf(node, x.shape()));
    ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, type));
    std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
    const int64_t inner = params.axis < 0 ? 1 : RowMajorStrides(type.shape)[params.axis];
    const int64_t channels = static_cast<int64_t>(params.scale.size());
    const int64_t count = type.element_count();
    RETURN_IF_ERROR(WithFloatCodec(x.dtype(), [&](auto from) {
      return WithCodec(type.dtype, [&](auto to) {
        using To = decltype(to);
        for (int64_t i = 0; i < count; ++i) {
          const size_t c = static_cast<size_t>(i / inner % channels);
          const double value = decltype(from)::Load(x.bytes().data(), i) / params.scale[c];
          const double zero_point = static_cast<double>(params.zero_point[c]);
          const double rounded = std::isnan(value) ? 0.0 : std::nearbyint(value);
          To::Store(bytes.data(), i,
                    static_cast<typename To::Wide>(Clamped(rounded + zero_point, params)));
        }
        return absl::OkStatus();
      });
    }));
    return std::vector<Tensor>{Tensor(type, std::move(bytes))};
  }
};

}  // namespace

NPUC_DEFINE_OP(Quantize)

}  // namespace npuc
