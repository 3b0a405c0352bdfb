#include "compiler_core/frontends/common/const_inputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::frontend {
namespace {

// The shape of the value; of a list without a stated shape its length.
absl::StatusOr<Shape> ShapeOf(const ConstInput& given,
                              const std::optional<std::vector<int64_t>>& dims) {
  const int64_t count = static_cast<int64_t>(given.values.size());
  if (!dims.has_value()) return given.is_list ? Shape{count} : Shape{};
  Shape shape = *dims;
  const auto is_open = [](int64_t dim) { return dim < 0; };
  const auto open = std::find_if(shape.begin(), shape.end(), is_open);
  const bool fills = count == 1;
  if (open != shape.end() && !fills && std::none_of(open + 1, shape.end(), is_open)) {
    *open = 1;
    const int64_t others = ElementCount(shape);
    if (others > 0 && count % others == 0) *open = count / others;
  }
  std::replace_if(shape.begin(), shape.end(), is_open, int64_t{1});
  RETURN_IF_ERROR(CheckShape(shape));
  if (fills || ElementCount(shape) == count) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", count, " numbers; the input is ", OutlineShape(*dims)));
}

}  // namespace

absl::StatusOr<Tensor> TensorOf(const ConstInput& given, DType dtype,
                                const std::optional<std::vector<int64_t>>& dims) {
  ASSIGN_OR_RETURN(Shape shape, ShapeOf(given, dims));
  const size_t count = static_cast<size_t>(ElementCount(shape));
  if (IsFloat(dtype)) {
    std::vector<float> floats(count, static_cast<float>(given.values[0]));
    if (given.values.size() > 1) floats.assign(given.values.begin(), given.values.end());
    return CastTensor(Tensor::FromFloats(std::move(shape), floats), dtype);
  }
  for (const double value : given.values) {
    const bool fits = given.is_whole &&
                      (dtype == DType::kBool ? value == 0 || value == 1
                                             : value >= static_cast<double>(LowestOf(dtype)) &&
                                                   value <= static_cast<double>(HighestOf(dtype)));
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat("it holds ", value, "; the input is of type ", OutlineTypeName(dtype)));
    }
  }
  std::vector<int64_t> integers(count, static_cast<int64_t>(given.values[0]));
  if (given.values.size() > 1) integers.assign(given.values.begin(), given.values.end());
  return CastTensor(Tensor::FromInts(std::move(shape), integers), dtype);
}

ValueRef ConstInputValue(ImportState& state, const ConstInput& given, DType dtype,
                         const std::optional<std::vector<int64_t>>& dims) {
  absl::StatusOr<Tensor> tensor = TensorOf(given, dtype, dims);
  if (!tensor.ok()) {
    state.AddError(DiagnosticKind::kInputShapeConflict, {},
                   absl::StrCat("the value of '", Printable(given.name),
                                "' in CONST_INPUTS is refused: ", tensor.status().message()),
                   "write a value that the model can take, or declare the input in INPUT_OPS");
    return nullptr;
  }
  state.constant_bytes_left -= tensor->type().size_bytes();
  const NodeSource source{given.name, "Constant"};
  return state.ConstantsFit(source) ? ConstantValue(*std::move(tensor), source) : nullptr;
}

}  // namespace npuc::frontend
