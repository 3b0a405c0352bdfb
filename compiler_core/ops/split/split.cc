#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

constexpr size_t kMaxResults = size_t{1} << 16;

// Cuts the operand along attribute axis into parts of attribute sizes, which add up to it.
struct Split {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kAxis, .integer = IntegerRule::kSplit, .keeps_parameters = true};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    const TensorType& input = view.inputs[0];
    RETURN_IF_ERROR(IntAttr(view.node, "axis").status());
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(view.node, "axis", static_cast<int64_t>(input.shape.size()), 0));
    ASSIGN_OR_RETURN(std::vector<int64_t> sizes, IntsAttr(view.node, "sizes"));
    if (sizes.empty() || sizes.size() > kMaxResults) {
      return absl::InvalidArgumentError(absl::StrCat("a split into ", sizes.size(), " parts; 1 to ",
                                                     kMaxResults, " are allowed"));
    }
    ASSIGN_OR_RETURN(sizes, BoundedIntsAttr(view.node, "sizes", sizes.size(), 0, kMaxElements));
    Types types;
    int64_t total = 0;
    for (const int64_t size : sizes) {
      types.push_back(input);
      types.back().shape[axis] = size;
      total += size;
    }
    if (total != input.shape[axis]) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes add up to ", total, "; dimension ", axis, " is ", input.shape[axis]));
    }
    return types;
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(node, "axis", static_cast<int64_t>(x.shape().size()), 0));
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntsAttr(node, "sizes"));
    StridedBlock source{RowMajorStrides(x.shape())};
    std::vector<Tensor> results;
    for (const int64_t size : sizes) {
      TensorType type = x.type();
      type.shape[axis] = size;
      std::vector<uint8_t> bytes(type.size_bytes());
      CopyStrided(type.shape, SizeOf(type.dtype), x.bytes().data(), source, bytes.data(),
                  {RowMajorStrides(type.shape)});
      source.offset += source.strides[axis] * size;
      results.push_back(Tensor(std::move(type), std::move(bytes)));
    }
    return results;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    const Shape& shape = view.inputs[0].shape;
    ASSIGN_OR_RETURN(const int64_t axis,
                     AxisAttr(view.node, "axis", static_cast<int64_t>(shape.size()), 0));
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, IntsAttr(view.node, "sizes"));
    Walk from{0, RowMajorStrides(shape)};
    for (size_t i = 0; i < sizes.size(); ++i) {
      Shape part = shape;
      part[axis] = sizes[i];
      RETURN_IF_ERROR(EmitMove(context, part, a, from, context.Output(static_cast<int>(i)),
                               {0, RowMajorStrides(part)}));
      from.offset += from.strides[axis] * sizes[i];
    }
    return absl::OkStatus();
  }
};

}  // namespace

NPUC_DEFINE_OP(Split)

}  // namespace npuc
