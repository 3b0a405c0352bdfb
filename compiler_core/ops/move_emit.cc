#include "compiler_core/ops/move_emit.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/cmd/raw_forms.h"
#include "compiler_core/ops/shape_util.h"
#include "compiler_core/ops/vector_emit.h"

namespace npuc {
namespace {

struct Dim {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// The dimensions with those of 1 dropped and neighbours merged where both sides run on; the last is
// contiguous on both sides (of size 1 where the tensor's own last dimension is not).
std::vector<Dim> MergedDims(const Shape& shape, const Walk& from, const Walk& to) {
  std::vector<Dim> dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    const Dim dim{shape[i], from.strides[i], to.strides[i]};
    if (!dims.empty() && dims.back().from == dim.from * dim.size &&
        dims.back().to == dim.to * dim.size) {
      dims.back() = {dims.back().size * dim.size, dim.from, dim.to};
    } else {
      dims.push_back(dim);
    }
  }
  if (dims.empty() || dims.back().from != 1 || dims.back().to != 1) dims.push_back({1, 1, 1});
  return dims;
}

bool StrideFits(const VectorLimits& limits, int64_t stride) {
  return stride >= 0 && stride <= limits.max_stride;
}

struct Mover {
  LowerContext& context;
  int64_t commands = 0;

  absl::Status Move(absl::Span<const Dim> dims, Operand a, Operand d) {
    const VectorLimits& limits = context.limits();
    const bool rows =
        dims.size() == 2 && StrideFits(limits, dims[0].from) && StrideFits(limits, dims[0].to);
    if (dims.size() == 1 || rows) return Rows(dims, a, d);
    const bool forward = std::all_of(dims.begin(), dims.end(),
                                     [](const Dim& dim) { return dim.from >= 0 && dim.to >= 0; });
    if (dims.size() == 3 && forward &&
        EmitCopyBoxes(context, a, {dims[0].from, dims[1].from}, d, {dims[0].to, dims[1].to},
                      dims[0].size, dims[1].size, dims[2].size)) {
      return Count();
    }
    for (int64_t i = 0; i < dims[0].size; ++i) {
      RETURN_IF_ERROR(Move(dims.subspan(1), a.Plus(i * dims[0].from * kHalfBytes),
                           d.Plus(i * dims[0].to * kHalfBytes)));
    }
    return absl::OkStatus();
  }

  absl::Status Count() {
    if (++commands <= context.limits().max_node_commands) return absl::OkStatus();
    return TooManyCommands(context.limits(), "moving the data needs");
  }

  absl::Status Rows(absl::Span<const Dim> dims, Operand a, Operand d) {
    RETURN_IF_ERROR(Count());
    if (dims.size() == 1) {
      EmitCopy(context, a, d, dims[0].size);
    } else {
      EmitCopyRows(context, a, dims[0].from, d, dims[0].to, dims[0].size, dims[1].size);
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status EmitMove(LowerContext& context, const Shape& shape, Operand a, const Walk& from,
                      Operand d, const Walk& to) {
  if (ElementCount(shape) == 0) return absl::OkStatus();
  std::vector<Dim> dims = MergedDims(shape, from, to);
  // Each command walks one outer dimension: the longest one saves the most commands.
  const auto longest = std::max_element(dims.begin(), dims.end() - 1,
                                        [](const Dim& x, const Dim& y) { return x.size < y.size; });
  if (dims.size() > 2 && longest->from >= 0) std::rotate(longest, longest + 1, dims.end() - 1);
  return Mover{context}.Move(dims, a.Plus(from.offset * kHalfBytes),
                             d.Plus(to.offset * kHalfBytes));
}

absl::Status EmitTranspose(LowerContext& context, Operand a, Operand d, int64_t rows,
                           int64_t columns) {
  if (rows == 1 || columns == 1) {
    EmitCopy(context, a, d, rows * columns);
    return absl::OkStatus();
  }
  if (rows > kMaxBlockExtent || columns > kMaxBlockExtent) {
    return EmitMove(context, {columns, rows}, a, {0, {1, columns}}, d, {0, {rows, 1}});
  }
  RawCommand command =
      MakeTranspose({.rows = static_cast<int>(rows), .columns = static_cast<int>(columns)});
  command.a = a;
  command.d = d;
  context.Step();
  context.Emit(std::move(command));
  return absl::OkStatus();
}

bool LiesTransposed(const LowerContext& context, int64_t rows, int64_t columns) {
  return !context.plain_commands() && (rows == 1 || columns == 1);
}

absl::StatusOr<Operand> TransposedView(LowerContext& context, Operand a, int64_t rows,
                                       int64_t columns) {
  if (LiesTransposed(context, rows, columns)) return a;
  const Operand d = context.Temp(rows * columns);
  RETURN_IF_ERROR(EmitTranspose(context, a, d, rows, columns));
  return d;
}

absl::Status EmitFill(LowerContext& context, float value, Operand d, int64_t n) {
  if (n == 0) return absl::OkStatus();
  if (!context.plain_commands()) {
    EmitFillRows(context, value, d, n, 1, n);
    return absl::OkStatus();
  }
  const int64_t lane = std::min<int64_t>(n, context.limits().max_inner);
  ASSIGN_OR_RETURN(const Operand constant,
                   context.Constant(std::vector<float>(static_cast<size_t>(lane), value)));
  EmitRepeat(context, constant, d, n / lane, lane);
  if (n % lane > 0) {
    EmitCopy(context, constant, d.Plus((n - n % lane) * kHalfBytes), n % lane);
  }
  return absl::OkStatus();
}

absl::Status LowerExtremum(const OpView& view, LowerContext& context, bool minimum) {
  ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(view.inputs[0].shape, view.inputs[1].shape));
  const int64_t n = ElementCount(shape);
  const float sign = minimum ? -1.0f : 1.0f;
  const Operand pair = context.Temp(2 * n);
  for (int i = 0; i < 2; ++i) {
    const Operand half = pair.Plus(i * n * kHalfBytes);
    const Tensor* constant = view.constants[i];
    if (constant != nullptr && constant->element_count() == 1) {
      const float bound = context.AwayFromZero(static_cast<float>(constant->at(0)));
      RETURN_IF_ERROR(EmitFill(context, sign * bound, half, n));
      continue;
    }
    ASSIGN_OR_RETURN(const Operand a, context.Input(i));
    if (view.inputs[i].shape != shape) {
      RETURN_IF_ERROR(EmitMove(context, shape, a,
                               {0, BroadcastStrides(view.inputs[i].shape, shape)}, half,
                               {0, RowMajorStrides(shape)}));
      if (minimum) EmitScalar(context, Arithmetic::kMul, half, sign, half, n);
    } else if (minimum) {
      EmitScalar(context, Arithmetic::kMul, a, sign, half, n);
    } else {
      EmitCopy(context, a, half, n);
    }
  }
  const Operand largest = minimum ? context.Temp(n) : context.Output(0);
  RETURN_IF_ERROR(EmitMaxOverMiddle(context, pair, largest, 1, 2, n));
  if (minimum) EmitScalar(context, Arithmetic::kMul, largest, sign, context.Output(0), n);
  return absl::OkStatus();
}

}  // namespace npuc
