#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// Attributes begin, size, strides, one item a dimension: result index j is operand index
// begin + j * stride, for j below size. Strides may be negative, never 0.
struct Slice {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kSlice, .integer = IntegerRule::kSlice, .keeps_parameters = true};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    const TensorType& input = view.inputs[0];
    const size_t rank = input.shape.size();
    ASSIGN_OR_RETURN(const std::vector<int64_t> begin,
                     BoundedIntsAttr(view.node, "begin", rank, -kMaxElements, kMaxElements));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                     BoundedIntsAttr(view.node, "size", rank, 0, kMaxElements));
    ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                     BoundedIntsAttr(view.node, "strides", rank, -kMaxElements, kMaxElements));
    for (size_t i = 0; i < rank; ++i) {
      const int64_t dim = input.shape[i];
      if (strides[i] == 0) return absl::InvalidArgumentError("a stride of 0");
      if (size[i] == 0) continue;
      const int64_t last = begin[i] + (size[i] - 1) * strides[i];
      if (begin[i] < 0 || begin[i] >= dim || last < 0 || last >= dim) {
        return absl::InvalidArgumentError(absl::StrCat("slice of dimension ", i, " runs from ",
                                                       begin[i], " to ", last,
                                                       "; the dimension is ", dim));
      }
    }
    return Types{{input.dtype, size}};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& x = inputs[0];
    ASSIGN_OR_RETURN(const std::vector<int64_t> begin, IntsAttr(node, "begin"));
    ASSIGN_OR_RETURN(std::vector<int64_t> size, IntsAttr(node, "size"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntsAttr(node, "strides"));
    TensorType type{x.dtype(), std::move(size)};
    std::vector<uint8_t> bytes(type.size_bytes());
    if (bytes.empty()) return std::vector<Tensor>{Tensor(std::move(type), {})};
    StridedBlock source{RowMajorStrides(x.shape())};
    for (size_t i = 0; i < begin.size(); ++i) {
      source.offset += begin[i] * source.strides[i];
      source.strides[i] *= strides[i];
    }
    CopyStrided(type.shape, SizeOf(type.dtype), x.bytes().data(), source, bytes.data(),
                {RowMajorStrides(type.shape)});
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const Operand a, context.Input(0));
    ASSIGN_OR_RETURN(const std::vector<int64_t> begin, IntsAttr(view.node, "begin"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> size, IntsAttr(view.node, "size"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> strides, IntsAttr(view.node, "strides"));
    Walk from{0, RowMajorStrides(view.inputs[0].shape)};
    for (size_t i = 0; i < begin.size(); ++i) {
      from.offset += begin[i] * from.strides[i];
      from.strides[i] *= strides[i];
    }
    return EmitMove(context, size, a, from, context.Output(0), {0, RowMajorStrides(size)});
  }
};

}  // namespace

NPUC_DEFINE_OP(Slice)

}  // namespace npuc
