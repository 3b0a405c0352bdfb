#include "compiler_core/ops/table.h"

#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ops/numeric.h"
#include "compiler_core/ops/op.h"

namespace npuc {
namespace {

constexpr int kFloatBits = 23;  // behind the leading one

// The points and values of a node; TablePoints says which points a table has.
struct Values {
  absl::Span<const float> values;
  int bits = 0;
  float first = 0;  // the least point above 0
  float last = 0;
  int64_t side = 0;  // points above 0

  // The value at a number; between two points on the straight line that joins them.
  double At(double x) const {
    if (std::isnan(x)) return x;
    const float size = std::fabs(static_cast<float>(x));
    const int64_t begin = x < 0 ? side : 0;  // value i is that of point i - begin of its side
    const auto value = [&](int64_t i) {
      return static_cast<double>(values[static_cast<size_t>(i == 0 ? 0 : begin + i)]);
    };
    if (size >= last) return value(side);
    if (size < first) return Between(value(0), value(1), size / first);
    const uint32_t offset = std::bit_cast<uint32_t>(size) - std::bit_cast<uint32_t>(first);
    const uint32_t step = uint32_t{1} << (kFloatBits - bits);
    const int64_t i = 1 + static_cast<int64_t>(offset / step);
    return Between(value(i), value(i + 1), static_cast<double>(offset % step) / step);
  }
  static double Between(double a, double b, double share) {
    return share == 0 ? a : a + (b - a) * share;
  }
};

absl::StatusOr<Values> ValuesOf(const Node& node) {
  TableGrid grid;
  ASSIGN_OR_RETURN(grid.lowest, IntAttr(node, "lowest"));
  ASSIGN_OR_RETURN(grid.highest, IntAttr(node, "highest"));
  ASSIGN_OR_RETURN(grid.bits, IntAttr(node, "bits"));
  RETURN_IF_ERROR(CheckTableGrid(grid));
  const auto found = node.attrs.find("values");
  const Tensor* const tensor =
      found == node.attrs.end() ? nullptr : std::get_if<Tensor>(&found->second);
  const int64_t side = TableSide(grid);
  if (tensor == nullptr || tensor->dtype() != DType::kFloat32 ||
      tensor->shape() != Shape{2 * side + 1}) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'values' must be a tensor f32[", 2 * side + 1, "]"));
  }
  return Values{tensor->as<float>(), static_cast<int>(grid.bits),
                std::ldexp(1.0f, static_cast<int>(grid.lowest)),
                std::ldexp(1.0f, static_cast<int>(grid.highest)), side};
}

// A function of one number by its values at many points (ops/table.h); attributes `lowest`,
// `highest` and `bits` say at which, and `values` is a tensor of f32.
struct Table {
  static constexpr OpTraits kTraits = {
      .layout = LayoutRule::kElementwise, .integer = IntegerRule::kFunction, .is_pointwise = true};
  static absl::StatusOr<std::vector<TensorType>> InferShapes(const OpView& view) {
    RETURN_IF_ERROR(view.CheckInputCount(1, 1));
    RETURN_IF_ERROR(ValuesOf(view.node).status());
    if (!IsFloat(view.inputs[0].dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("operand 0 is ", TypeToString(view.inputs[0]), "; it must hold floats"));
    }
    return std::vector<TensorType>{view.inputs[0]};
  }
  static void Facts(const OpView& view, FactMap& facts) {}
  static absl::StatusOr<std::vector<Tensor>> Reference(const Node& node,
                                                       absl::Span<const Tensor> inputs) {
    ASSIGN_OR_RETURN(const Values values, ValuesOf(node));
    const Tensor& x = inputs[0];
    std::vector<float> results(static_cast<size_t>(x.element_count()));
    for (size_t i = 0; i < results.size(); ++i) {
      results[i] = static_cast<float>(values.At(x.at(static_cast<int64_t>(i))));
    }
    return std::vector<Tensor>{CastTensor(Tensor::FromFloats(x.shape(), results), x.dtype())};
  }
};

}  // namespace

NPUC_DEFINE_OP(Table)

absl::Status CheckTableGrid(const TableGrid& grid) {
  constexpr int64_t kLeast = -126;
  constexpr int64_t kMost = 127;
  constexpr int64_t kMostBits = 16;
  if (grid.lowest < kLeast || grid.highest > kMost || grid.lowest >= grid.highest ||
      grid.bits < 0 || grid.bits > kMostBits) {
    return absl::InvalidArgumentError(absl::StrCat("a table from 2^", grid.lowest, " to 2^",
                                                   grid.highest, " with ", grid.bits,
                                                   " bits; powers from ", kLeast, " to ", kMost,
                                                   " and 0 to ", kMostBits, " bits are allowed"));
  }
  return absl::OkStatus();
}

int64_t TableSide(const TableGrid& grid) { return ((grid.highest - grid.lowest) << grid.bits) + 1; }

std::vector<float> TablePoints(const TableGrid& grid) {
  std::vector<float> points = {0};
  const uint32_t first = std::bit_cast<uint32_t>(std::ldexp(1.0f, static_cast<int>(grid.lowest)));
  for (int64_t i = 0; i < TableSide(grid); ++i) {
    points.push_back(
        std::bit_cast<float>(first + (static_cast<uint32_t>(i) << (kFloatBits - grid.bits))));
  }
  const size_t side = points.size() - 1;
  for (size_t i = 1; i <= side; ++i) points.push_back(-points[i]);
  return points;
}

}  // namespace npuc
