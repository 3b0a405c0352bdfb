#include <algorithm>
#include <utility>

#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/product.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// out [rows, columns] = a * b, sums over inner in ascending order, accumulated wide.
template <typename C>
void Multiply(const ProductGeometry& g, const uint8_t* a, int64_t a_at, const uint8_t* b,
              int64_t b_at, uint8_t* out, int64_t out_at) {
  const int64_t a_row = g.transpose_a ? 1 : g.inner;
  const int64_t a_step = g.transpose_a ? g.rows : 1;
  const int64_t b_row = g.transpose_b ? 1 : g.columns;
  const int64_t b_step = g.transpose_b ? g.inner : 1;
  std::vector<typename C::Wide> sums(g.columns);
  for (int64_t i = 0; i < g.rows; ++i) {
    std::fill(sums.begin(), sums.end(), 0);
    for (int64_t k = 0; k < g.inner; ++k) {
      const auto x = C::Load(a, a_at + i * a_row + k * a_step);
      for (int64_t j = 0; j < g.columns; ++j) {
        sums[j] = WrapAdd(sums[j], WrapMul(x, C::Load(b, b_at + k * b_row + j * b_step)));
      }
    }
    for (int64_t j = 0; j < g.columns; ++j) C::Store(out, out_at + i * g.columns + j, sums[j]);
  }
}

// A copy of a batch of matrices, each transposed.
absl::StatusOr<Operand> TransposedMatrices(LowerContext& context, Operand from,
                                           const Shape& shape) {
  const Operand to = context.Temp(ElementCount(shape));
  Shape result = shape;
  Walk walk{0, RowMajorStrides(shape)};
  const size_t rank = shape.size();
  std::swap(result[rank - 1], result[rank - 2]);
  std::swap(walk.strides[rank - 1], walk.strides[rank - 2]);
  RETURN_IF_ERROR(EmitMove(context, result, from, walk, to, {0, RowMajorStrides(result)}));
  return to;
}

// a [..., m, k] times b [..., k, n] -> [..., m, n]; attributes transpose_a, transpose_b (false)
// swap an operand's last two dimensions; leading dimensions broadcast, as in BatchMatMulV2.
struct MatMul {
  static constexpr OpTraits kTraits = {.layout = LayoutRule::kProduct,
                                       .integer = IntegerRule::kWeighted,
                                       .layer_type = "FullyConnected",
                                       .fp16_error = {.roundings = 4, .of_terms = true}};

  static absl::StatusOr<Types> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(2, 2));
    RETURN_IF_ERROR(CheckNumeric(view));
    RETURN_IF_ERROR(CheckSameDType(view));
    ASSIGN_OR_RETURN(ProductGeometry g,
                     MakeProductGeometry(view.node, view.inputs[0].shape, view.inputs[1].shape));
    Shape shape = std::move(g.batch);
    shape.push_back(g.rows);
    shape.push_back(g.columns);
    return Types{{view.inputs[0].dtype, std::move(shape)}};
  }
  static void Facts(const OpView& view, FactMap& facts) {
    const Shape& weight = view.inputs[1].shape;
    facts["weight_h"] = weight[weight.size() - 2];
    facts["weight_w"] = weight[weight.size() - 1];
  }
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    const Tensor& a = inputs[0];
    const Tensor& b = inputs[1];
    ASSIGN_OR_RETURN(const ProductGeometry g, MakeProductGeometry(node, a.shape(), b.shape()));
    TensorType type{a.dtype(), g.batch};
    type.shape.push_back(g.rows);
    type.shape.push_back(g.columns);
    std::vector<uint8_t> bytes(type.size_bytes());
    if (bytes.empty()) return std::vector<Tensor>{Tensor(type, {})};
    RETURN_IF_ERROR(WithCodec(type.dtype, [&](auto codec) {
      using C = decltype(codec);
      int64_t out_at = 0;
      WalkStrided<2>(g.batch, {BatchStrides(a.shape(), g.batch), BatchStrides(b.shape(), g.batch)},
                     {0, 0}, [&](const std::array<int64_t, 2>& at) {
                       Multiply<C>(g, a.bytes().data(), at[0], b.bytes().data(), at[1],
                                   bytes.data(), out_at);
                       out_at += g.rows * g.columns;
                     });
      return absl::OkStatus();
    }));
    return std::vector<Tensor>{Tensor(std::move(type), std::move(bytes))};
  }
  static int64_t Work(const OpView& view, absl::Span<const TensorType> outputs) {
    const Shape& a = view.inputs[0].shape;
    const int64_t inner = a[a.size() - (BoolAttrOr(view.node, "transpose_a", false) ? 2 : 1)];
    return ElementCount({outputs[0].element_count(), inner}) + 1;
  }
  static absl::Status Lower(const OpView& view, LowerContext& context) {
    ASSIGN_OR_RETURN(const ProductGeometry g,
                     MakeProductGeometry(view.node, view.inputs[0].shape, view.inputs[1].shape));
    ASSIGN_OR_RETURN(Operand a, context.Input(0));
    const Operand d = context.Output(0);
    const int64_t matrices = ElementCount(g.batch);
    if (g.transpose_a) {
      ASSIGN_OR_RETURN(a, TransposedMatrices(context, a, view.inputs[0].shape));
    }
    if (view.constants[1] != nullptr && view.inputs[1].shape.size() == 2) {
      return context.ConstantMatMul(a, d, matrices * g.rows, 1, g.transpose_b);
    }
    ASSIGN_OR_RETURN(Operand b, context.Input(1));
    if (g.transpose_b) {
      ASSIGN_OR_RETURN(b, TransposedMatrices(context, b, view.inputs[1].shape));
    }
    // From here both operands are plain [..., rows, inner] and [..., inner, columns].
    Shape a_shape = view.inputs[0].shape;
    Shape b_shape = view.inputs[1].shape;
    if (g.transpose_a) std::swap(a_shape[a_shape.size() - 1], a_shape[a_shape.size() - 2]);
    if (g.transpose_b) std::swap(b_shape[b_shape.size() - 1], b_shape[b_shape.size() - 2]);
    absl::Status status;
    int64_t d_at = 0;
    WalkStrided<2>(g.batch, {BatchStrides(a_shape, g.batch), BatchStrides(b_shape, g.batch)},
                   {0, 0}, [&](const std::array<int64_t, 2>& at) {
                     if (!status.ok()) return;
                     status = context.DynamicMatMul(a.Plus(2 * at[0]), b.Plus(2 * at[1]),
                                                    d.Plus(2 * d_at), g.rows, g.inner, g.columns);
                     d_at += g.rows * g.columns;
                   });
    return status;
  }
};

}  // namespace

NPUC_DEFINE_OP(MatMul)

}  // namespace npuc
