#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"
#include "compiler_core/ops/quantize.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// q [...] integer -> [...] float: (q - zero_point) * scale, computed in double and rounded once.
// Attributes: ops/quantize.h.
struct Dequantize {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kConversion,
                                       .integer = IntegerRule::kNone};

  // The integers of a model stay as they are stored; quant/kept/float_form.h turns them into
  // floats.
  static constexpr bool kFolds = false;

  static absl::StatusOr<TensorType> ResultOf(const Node& node, const Shape& shape) {
    DType dtype = DType::kFloat32;
    if (node.attrs.contains("dtype")) {
      ASSIGN_OR_RETURN(const std::string name, StringAttr(node, "dtype"));
      dtype = DTypeFromName(name);
    }
    if (IsFloat(dtype)) return TensorType{dtype, shape};
    return absl::InvalidArgumentError("dtype is no float type");
  }
  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    RETURN_IF_ERROR(QuantParamsOf(view.node, view.inputs[0]).status());
    ASSIGN_OR_RETURN(TensorType type, ResultOf(view.node, view.inputs[0].shape));
    return Types{std::move(type)};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& q = inputs[0];
    ASSIGN_OR_RETURN(const QuantParams params, QuantParamsOf(node, q.type()));
    ASSIGN_OR_RETURN(const TensorType type, ResultOf(node, q.shape()));
    std::vector<uint8_t> bytes(static_cast<size_t>(type.size_bytes()));
    const int64_t inner = params.axis < 0 ? 1 : RowMajorStrides(type.shape)[params.axis];
    const int64_t channels = static_cast<int64_t>(params.scale.size());
    const int64_t count = type.element_count();
    RETURN_IF_ERROR(WithCodec(q.dtype(), [&](auto from) {
      return WithFloatCodec(type.dtype, [&](auto to) {
        for (int64_t i = 0; i < count; ++i) {
          const size_t c = static_cast<size_t>(i / inner % channels);
          // Apart, so that no difference of 64-bit integers can overflow.
          const double value = static_cast<double>(decltype(from)::Load(q.bytes().data(), i)) -
                               static_cast<double>(params.zero_point[c]);
          decltype(to)::Store(bytes.data(), i, value * params.scale[c]);
        }
        return absl::OkStatus();
      });
    }));
    return std::vector<Tensor>{Tensor(type, std::move(bytes))};
  }
};

}  // namespace

NPUC_DEFINE_OP(Dequantize)

}  // namespace npuc
