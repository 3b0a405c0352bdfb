#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/move_emit.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/shape_util.h"

namespace npuc {
namespace {

// The matrices of a product, after transposition: a [rows, inner], b [inner, columns].
struct Geometry {
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  Shape batch;  // broadcast of both operands' leading dimensions
};

absl::Span<const int64_t> BatchOf(const Shape& shape) {
  return absl::MakeConstSpan(shape).subspan(0, shape.size() - 2);
}

absl::StatusOr<Geometry> GeometryOf(const Node& node, const Shape& a, const Shape& b) {
  for (const Shape* shape : {&a, &b}) {
    if (shape->size() >= 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operand of shape ", ShapeToString(*shape), "; rank 2 or more is needed"));
  }
  Geometry g;
  g.transpose_a = BoolAttrOr(node, "transpose_a", false);
  g.transpose_b = BoolAttrOr(node, "transpose_b", false);
  g.rows = a[a.size() - (g.transpose_a ? 1 : 2)];
  g.inner = a[a.size() - (g.transpose_a ? 2 : 1)];
  g.columns = b[b.size() - (g.transpose_b ? 2 : 1)];
  const int64_t b_inner = b[b.size() - (g.transpose_b ? 1 : 2)];
  if (g.inner != b_inner) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shapes ", ShapeToString(a), g.transpose_a ? " transposed" : "", " and ", ShapeToString(b),
        g.transpose_b ? " transposed" : "", " do not multiply: ", g.inner, " against ", b_inner));
  }
  ASSIGN_OR_RETURN(g.batch, BroadcastShapes(BatchOf(a), BatchOf(b)));
  return g;
}

// The strides, in elements, of a broadcast batch of matrices.
Shape BatchStrides(const Shape& shape, const Shape& batch) {
  Shape strides = BroadcastStrides(BatchOf(shape), batch);
  const int64_t matrix = shape[shape.size() - 1] * shape[shape.size() - 2];
  for (int64_t& stride : strides) stride *= matrix;
  return strides;
}

// out [rows, columns] = a * b, sums over inner in ascending order, accumulated wide.
template <typename C>
void Multiply(const Geometry& g, const uint8_t* a, int64_t a_at, const uint8_t* b, int64_t b_at,
              uint8_t* out, int64_t out_at) {
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
    ASSIGN_OR_RETURN(Geometry g, GeometryOf(view.node, view.inputs[0].shape, view.inputs[1].shape));
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
    ASSIGN_OR_RETURN(const Geometry g, GeometryOf(node, a.shape(), b.shape()));
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
    ASSIGN_OR_RETURN(const Geometry g,
                     GeometryOf(view.node, view.inputs[0].shape, view.inputs[1].shape));
    ASSIGN_OR_RETURN(Operand a, context.Input(0));
    const Operand d = context.Output(0);
    const int64_t matrices = ElementCount(g.batch);
    if (g.transpose_a) {
      ASSIGN_OR_RETURN(a, TransposedMatrices(context, a, view.inputs[0].shape));
    }
    if (view.constants[1] != nullptr && view.inputs[1].shape.size() == 2 &&
        ElementCount(BatchOf(view.inputs[0].shape)) == matrices) {
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
