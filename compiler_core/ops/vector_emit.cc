#include "compiler_core/ops/vector_emit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

Operand At(Operand base, int64_t elements) { return base.Plus(elements * kHalfBytes); }

// A piece of a walk that fits one command: rows of `inner` elements.
struct Piece {
  int64_t first = 0;   // element offset of the piece
  int64_t middle = 1;  // rows
  int64_t inner = 1;
};

// The least lane, in elements, that is taken to spare a command for what full lanes leave: a
// 16-byte word of fp16 values.
constexpr int64_t kLeastLane = 8;

// The inner extent by which commands walk n contiguous elements: the widest one that divides n, or
// full lanes where all such are narrow or make too many rows for one command.
int64_t LaneOf(const LowerContext& context, int64_t n) {
  const int64_t most = context.limits().max_inner;
  if (n <= most) return n;
  if (context.plain_commands()) return most;
  for (int64_t lane = most; lane >= kLeastLane && n / lane <= context.limits().max_middle; --lane) {
    if (n % lane == 0) return lane;
  }
  return most;
}

// Cuts n contiguous elements into rows of `lane` and a rest, as the vendor's compiler does with
// full lanes.
std::vector<Piece> CutContiguous(const VectorLimits& limits, int64_t n, int64_t lane) {
  std::vector<Piece> pieces;
  int64_t done = 0;
  while (n - done >= lane && n > lane) {
    const int64_t rows =
        std::min<int64_t>({(n - done) / lane, limits.max_middle, limits.max_stride / lane});
    pieces.push_back({done, rows, lane});
    done += rows * lane;
  }
  if (done < n) pieces.push_back({done, 1, n - done});
  return pieces;
}

void SetDenseStrides(VectorCommand& command, const Piece& piece) {
  command.extents = {1, static_cast<uint16_t>(piece.middle), static_cast<uint16_t>(piece.inner)};
  command.a_middle_stride = command.d_middle_stride = static_cast<uint16_t>(piece.inner);
  command.a_outer_stride = command.d_outer_stride =
      static_cast<uint16_t>(piece.middle * piece.inner);
}

// Emits `command` over n contiguous elements of a, d and, for tensor-tensor, b.
void EmitContiguous(LowerContext& context, VectorCommand command, int64_t n) {
  const bool format = command.kind == VectorCommand::Kind::kFormat;
  const VectorLimits& limits = context.limits();
  const int64_t lane = format ? limits.max_format_inner : LaneOf(context, n);
  const int64_t d_bytes = format ? 4 : kHalfBytes;
  for (const Piece& piece : CutContiguous(limits, n, lane)) {
    VectorCommand cut = command;
    SetDenseStrides(cut, piece);
    if (cut.a.present()) cut.a = At(command.a, piece.first);
    if (cut.b.present()) cut.b = At(command.b, piece.first);
    cut.d = command.d.Plus(piece.first * d_bytes);
    context.Emit(cut);
  }
}

uint16_t OuterStrideOrZero(const VectorLimits& limits, int64_t stride) {
  return static_cast<uint16_t>(stride <= limits.max_stride ? stride : 0);
}

// A box of elements that one command walks, and the strides of both sides.
struct Box {
  int64_t outer = 1;
  int64_t middle = 1;
  int64_t inner = 1;
  int64_t a_outer_stride = 0;
  int64_t a_middle_stride = 0;
  int64_t d_outer_stride = 0;
  int64_t d_middle_stride = 0;
};

bool FitsUnit(const VectorLimits& limits, const Box& box) {
  return box.outer <= limits.max_outer && box.middle <= limits.max_middle &&
         box.inner <= limits.max_inner &&
         std::max({box.a_outer_stride, box.a_middle_stride, box.d_outer_stride,
                   box.d_middle_stride}) <= limits.max_stride;
}

void EmitBox(LowerContext& context, VectorCommand command, const Box& box) {
  command.extents = {static_cast<uint16_t>(box.outer), static_cast<uint16_t>(box.middle),
                     static_cast<uint16_t>(box.inner)};
  command.a_outer_stride = static_cast<uint16_t>(box.a_outer_stride);
  command.a_middle_stride = static_cast<uint16_t>(box.a_middle_stride);
  command.d_outer_stride = static_cast<uint16_t>(box.d_outer_stride);
  command.d_middle_stride = static_cast<uint16_t>(box.d_middle_stride);
  context.Emit(command);
}

// Emits `command` with source strides of 0 over the box, in pieces that fit the unit.
void EmitSpread(LowerContext& context, VectorCommand command, const Box& box) {
  const VectorLimits& limits = context.limits();
  const int64_t outer_max = box.d_outer_stride <= limits.max_stride ? limits.max_outer : 1;
  const int64_t middle_max = box.d_middle_stride <= limits.max_stride ? limits.max_middle : 1;
  const Operand d = command.d;
  Box piece = box;
  piece.d_outer_stride = OuterStrideOrZero(limits, box.d_outer_stride);
  piece.d_middle_stride = OuterStrideOrZero(limits, box.d_middle_stride);
  for (int64_t outer = 0; outer < box.outer; outer += outer_max) {
    for (int64_t middle = 0; middle < box.middle; middle += middle_max) {
      piece.outer = std::min(outer_max, box.outer - outer);
      piece.middle = std::min(middle_max, box.middle - middle);
      command.d = At(d, outer * box.d_outer_stride + middle * box.d_middle_stride);
      EmitBox(context, command, piece);
    }
  }
}

// Rows of n elements, a_stride and d_stride apart; b and c, where present, are vectors of n.
void EmitRows(LowerContext& context, const VectorCommand& command, int64_t a_stride,
              int64_t d_stride, int64_t rows, int64_t n) {
  if (n == 0) return;
  const VectorLimits& limits = context.limits();
  const int64_t lane = LaneOf(context, n);
  const Box lanes{rows, n / lane, lane, a_stride, lane, d_stride, lane};
  if (!command.b.present() && rows > 1 && lanes.middle > 1 && FitsUnit(limits, lanes)) {
    // The lanes of all rows at once; what is left are rows of less than a lane.
    EmitBox(context, command, lanes);
    VectorCommand rest = command;
    rest.a = At(command.a, n / lane * lane);
    rest.d = At(command.d, n / lane * lane);
    return EmitRows(context, rest, a_stride, d_stride, rows, n % lane);
  }
  const bool strides_fit = a_stride <= limits.max_stride && d_stride <= limits.max_stride;
  if (!command.b.present() && !strides_fit) {
    for (int64_t row = 0; row < rows; ++row) {
      VectorCommand one = command;
      one.a = At(command.a, row * a_stride);
      one.d = At(command.d, row * d_stride);
      EmitContiguous(context, one, n);
    }
    return;
  }
  const int64_t rows_max = strides_fit ? limits.max_middle : 1;
  for (int64_t row = 0; row < rows; row += rows_max) {
    const int64_t row_count = std::min(rows_max, rows - row);
    for (int64_t column = 0; column < n; column += limits.max_inner) {
      VectorCommand cut = command;
      const int64_t width = std::min<int64_t>(limits.max_inner, n - column);
      cut.extents = {1, static_cast<uint16_t>(row_count), static_cast<uint16_t>(width)};
      cut.a_middle_stride = OuterStrideOrZero(limits, a_stride);
      cut.d_middle_stride = OuterStrideOrZero(limits, d_stride);
      cut.a_outer_stride = OuterStrideOrZero(limits, row_count * a_stride);
      cut.d_outer_stride = OuterStrideOrZero(limits, row_count * d_stride);
      cut.a = At(command.a, row * a_stride + column);
      if (command.b.present()) cut.b = At(command.b, column);
      if (command.c.present()) cut.c = At(command.c, column);
      cut.d = At(command.d, row * d_stride + column);
      context.Emit(cut);
    }
  }
}

VectorCommand VectorOp(Arithmetic arithmetic, Operand a, Operand b, Operand d) {
  VectorCommand command;
  command.kind = VectorCommand::Kind::kTensorVector;
  command.arithmetic = arithmetic;
  command.a = a;
  command.b = b;
  command.d = d;
  return command;
}

VectorCommand TensorOp(Arithmetic arithmetic, Operand a, Operand b, Operand d) {
  VectorCommand command = VectorOp(arithmetic, a, b, d);
  command.kind = VectorCommand::Kind::kTensorTensor;
  return command;
}

// The immediate of a sum or a divisor may be there to keep it from 0, which it must not become.
uint16_t ImmediateOf(LowerContext& context, Arithmetic arithmetic, float value) {
  const bool keeps_from_zero = arithmetic == Arithmetic::kAdd || arithmetic == Arithmetic::kDiv;
  return context.Immediate(keeps_from_zero ? context.AwayFromZero(value) : value);
}

VectorCommand ScalarOp(LowerContext& context, Arithmetic arithmetic, Operand a, float immediate,
                       Operand d) {
  VectorCommand command;
  command.kind = VectorCommand::Kind::kTensorScalar;
  command.arithmetic = arithmetic;
  command.a = a;
  command.d = d;
  command.immediate = ImmediateOf(context, arithmetic, immediate);
  return command;
}

// A pooling window of h x w contiguous elements.
struct Window {
  int64_t h = 1;
  int64_t w = 1;
  int64_t size() const { return h * w; }
};

// The window of exactly `size` elements whose sides differ least, or size() 0 where there is none.
Window SquarestWindow(int64_t size, int64_t max_side) {
  for (int64_t h = max_side; h >= 1; --h) {
    if (h * h <= size && size % h == 0 && size / h <= max_side) return {h, size / h};
  }
  return {0, 0};
}

// The window for one level of a maximum over n > 1 elements: all of n where it factors, else a
// large divisor, else the largest window at all (the last one then overlaps its neighbour).
Window ChooseWindow(int64_t n, int64_t max_side) {
  const int64_t largest = std::min(n, max_side * max_side);
  constexpr int64_t kWorthwhileDivisor = 6;
  for (int64_t size = largest; size >= kWorthwhileDivisor; --size) {
    if (n % size != 0) continue;
    const Window window = SquarestWindow(size, max_side);
    if (window.size() > 0) return window;
  }
  for (int64_t size = largest; size > 1; --size) {
    const Window window = SquarestWindow(size, max_side);
    if (window.size() > 0) return window;
  }
  return {1, 1};
}

// Max-pools `count` adjacent windows of [window.size(), inner] -> [count, inner].
void EmitPools(LowerContext& context, Window window, Operand a, Operand d, int64_t count,
               int64_t inner) {
  const VectorLimits& limits = context.limits();
  const int64_t count_max = std::max<int64_t>(1, limits.max_outer / window.h);
  for (int64_t first = 0; first < count; first += count_max) {
    const int64_t now = std::min(count_max, count - first);
    for (int64_t column = 0; column < inner; column += limits.max_inner) {
      VectorCommand pool;
      pool.kind = VectorCommand::Kind::kPool;
      pool.window_h = static_cast<uint8_t>(window.h);
      pool.window_w = static_cast<uint8_t>(window.w);
      pool.a = At(a, first * window.size() * inner + column);
      pool.d = At(d, first * inner + column);
      const int64_t width = std::min<int64_t>(limits.max_inner, inner - column);
      pool.extents = {static_cast<uint16_t>(now * window.h), static_cast<uint16_t>(window.w),
                      static_cast<uint16_t>(width)};
      pool.a_middle_stride = pool.d_middle_stride = static_cast<uint16_t>(inner);
      pool.a_outer_stride = static_cast<uint16_t>(window.w * inner);
      pool.d_outer_stride = static_cast<uint16_t>(inner);
      context.Emit(pool);
    }
  }
}

// From this many rows on, commands that walk all of them are preferred to fewer levels.
constexpr int64_t kManyRows = 8;
// From this many elements on, maxima of few rows are taken for all lanes of a row at once.
constexpr int64_t kWideRow = 256;

// One level of maxima over the middle of a [outer,middle,inner] by windows of 1 x w, for all of
// outer at once; where w does not divide middle the last window overlaps its neighbour.
void EmitRowPools(LowerContext& context, int64_t w, Operand a, Operand d, int64_t outer,
                  int64_t middle, int64_t inner) {
  const VectorLimits& limits = context.limits();
  const int64_t full = middle / w;
  const int64_t results = (middle + w - 1) / w;
  const auto emit = [&](int64_t from, int64_t to, int64_t count) {
    for (int64_t row = 0; row < outer; row += limits.max_outer) {
      const int64_t rows = std::min<int64_t>(limits.max_outer, outer - row);
      for (int64_t column = 0; column < inner; column += limits.max_inner) {
        VectorCommand pool;
        pool.kind = VectorCommand::Kind::kPool;
        pool.window_h = 1;
        pool.window_w = static_cast<uint8_t>(w);
        pool.a = At(a, (row * middle + from) * inner + column);
        pool.d = At(d, (row * results + to) * inner + column);
        const int64_t width = std::min<int64_t>(limits.max_inner, inner - column);
        pool.extents = {static_cast<uint16_t>(rows), static_cast<uint16_t>(count * w),
                        static_cast<uint16_t>(width)};
        pool.a_middle_stride = pool.d_middle_stride = static_cast<uint16_t>(inner);
        pool.a_outer_stride = static_cast<uint16_t>(middle * inner);
        pool.d_outer_stride = static_cast<uint16_t>(results * inner);
        context.Emit(pool);
      }
    }
  };
  const int64_t windows_max = limits.max_middle / w;
  for (int64_t first = 0; first < full; first += windows_max) {
    emit(first * w, first, std::min(windows_max, full - first));
  }
  if (results > full) emit(middle - w, full, 1);
}

// One level of maxima over `count` groups of h rows of `width` elements, wide rows by one command
// for all their lanes: a [count,h,width] -> d [count,width].
void EmitWideRowPools(LowerContext& context, int64_t h, Operand a, Operand d, int64_t count,
                      int64_t width) {
  const VectorLimits& limits = context.limits();
  VectorCommand pool;
  pool.kind = VectorCommand::Kind::kPool;
  pool.window_h = static_cast<uint8_t>(h);
  pool.window_w = 1;
  const int64_t lanes_max = limits.max_middle * limits.max_inner;
  const int64_t count_max = std::max<int64_t>(1, limits.max_outer / h);
  for (int64_t first = 0; first < count; first += count_max) {
    const int64_t now = std::min(count_max, count - first);
    for (int64_t column = 0; column < width;) {
      const int64_t left = std::min(width - column, lanes_max);
      const int64_t lane = std::min<int64_t>(left, limits.max_inner);
      pool.a = At(a, first * h * width + column);
      pool.d = At(d, first * width + column);
      EmitBox(context, pool, {now * h, left / lane, lane, width, lane, width, lane});
      column += left / lane * lane;
    }
  }
}

VectorCommand ReductionOf(bool over_middle, float scale, Operand a, Operand d) {
  VectorCommand reduce;
  reduce.kind = VectorCommand::Kind::kReduce;
  reduce.reduce_middle = over_middle;
  reduce.immediate = FloatToHalf(scale);
  reduce.a = a;
  reduce.d = d;
  return reduce;
}

// [rows,n] -> [rows] sums, rows lying a_stride apart and results d_stride apart; n <= max_inner.
void EmitRowSums(LowerContext& context, float scale, Operand a, int64_t a_stride, Operand d,
                 int64_t d_stride, int64_t rows, int64_t n) {
  const VectorLimits& limits = context.limits();
  const bool strides_fit = a_stride <= limits.max_stride && d_stride <= limits.max_stride;
  const int64_t rows_max = strides_fit ? limits.max_middle : 1;
  for (int64_t row = 0; row < rows; row += rows_max) {
    const int64_t now = std::min(rows_max, rows - row);
    VectorCommand reduce = ReductionOf(false, scale, At(a, row * a_stride), At(d, row * d_stride));
    reduce.extents = {1, static_cast<uint16_t>(now), static_cast<uint16_t>(n)};
    reduce.a_middle_stride = OuterStrideOrZero(limits, a_stride);
    reduce.a_outer_stride = OuterStrideOrZero(limits, now * a_stride);
    reduce.d_middle_stride = OuterStrideOrZero(limits, d_stride);
    reduce.d_outer_stride = OuterStrideOrZero(limits, now * d_stride);
    context.Emit(reduce);
  }
}

// The part of a mean's scale that sums of `terms` terms take, so that they do not overflow before
// the rest of it follows: a power of two, which rounds nothing. 1 for sums.
float TakeFactor(float& scale, int64_t terms) {
  float factor = 1.0f;
  for (; terms > 1 && scale < 1.0f; terms = (terms + 1) / 2) {
    factor *= 0.5f;
    scale *= 2.0f;
  }
  return factor;
}

void EmitSumOverLast(LowerContext& context, Operand a, Operand d, int64_t rows, int64_t n,
                     float scale) {
  const int64_t lane = context.limits().max_inner;
  while (n > lane) {
    const int64_t full = n / lane;
    const int64_t rest = n % lane;
    const int64_t partials = full + (rest > 0 ? 1 : 0);
    const Operand partial = context.Temp(rows * partials);
    const float factor = TakeFactor(scale, lane);
    context.Step();
    if (n <= context.limits().max_stride && full < rows) {
      for (int64_t chunk = 0; chunk < full; ++chunk) {
        EmitRowSums(context, factor, At(a, chunk * lane), n, At(partial, chunk), partials, rows,
                    lane);
      }
    } else {
      for (int64_t row = 0; row < rows; ++row) {
        EmitRowSums(context, factor, At(a, row * n), lane, At(partial, row * partials), 1, full,
                    lane);
      }
    }
    if (rest > 0) {
      EmitRowSums(context, factor, At(a, full * lane), n, At(partial, full), partials, rows, rest);
    }
    a = partial;
    n = partials;
  }
  context.Step();
  EmitRowSums(context, scale, a, n, d, 1, rows, n);
}

}  // namespace

void EmitActivation(LowerContext& context, Activation activation, Operand a, Operand d, int64_t n) {
  VectorCommand command;
  command.kind = VectorCommand::Kind::kActivation;
  command.activation = activation;
  command.a = a;
  command.d = d;
  context.Step();
  EmitContiguous(context, command, n);
}

void EmitScalar(LowerContext& context, Arithmetic arithmetic, Operand a, float immediate, Operand d,
                int64_t n) {
  context.Step();
  EmitContiguous(context, ScalarOp(context, arithmetic, a, immediate, d), n);
}

void EmitScalarFirst(LowerContext& context, Arithmetic arithmetic, float immediate, Operand a,
                     Operand d, int64_t n) {
  VectorCommand command = TensorOp(arithmetic, Operand{}, a, d);
  command.a_is_immediate = true;
  command.immediate = context.Immediate(immediate);
  context.Step();
  EmitContiguous(context, command, n);
}

void EmitScalarRows(LowerContext& context, Arithmetic arithmetic, Operand a, float immediate,
                    Operand d, int64_t stride, int64_t rows, int64_t n) {
  if (rows == 1) return EmitScalar(context, arithmetic, a, immediate, d, n);
  context.Step();
  EmitRows(context, ScalarOp(context, arithmetic, a, immediate, d), stride, stride, rows, n);
}

void EmitTensor(LowerContext& context, Arithmetic arithmetic, Operand a, Operand b, Operand d,
                int64_t n) {
  context.Step();
  EmitContiguous(context, TensorOp(arithmetic, a, b, d), n);
}

void EmitVector(LowerContext& context, Arithmetic arithmetic, Operand a, Operand b, Operand d,
                int64_t rows, int64_t n) {
  context.Step();
  EmitRows(context, VectorOp(arithmetic, a, b, d), n, n, rows, n);
}

void EmitBatchNorm(LowerContext& context, Operand a, Operand factors, Operand offsets, Operand d,
                   int64_t rows, int64_t n) {
  VectorCommand command;
  command.kind = VectorCommand::Kind::kBatchNorm;
  command.a = a;
  command.b = factors;
  command.c = offsets;
  command.d = d;
  context.Step();
  EmitRows(context, command, n, n, rows, n);
}

void EmitCopy(LowerContext& context, Operand a, Operand d, int64_t n) {
  VectorCommand command;
  command.a = a;
  command.d = d;
  context.Step();
  EmitContiguous(context, command, n);
}

void EmitCopyRows(LowerContext& context, Operand a, int64_t a_stride, Operand d, int64_t d_stride,
                  int64_t rows, int64_t n) {
  if (a_stride == n && d_stride == n) return EmitCopy(context, a, d, rows * n);
  VectorCommand command;
  command.a = a;
  command.d = d;
  context.Step();
  EmitRows(context, command, a_stride, d_stride, rows, n);
}

bool EmitCopyBoxes(LowerContext& context, Operand a, const std::array<int64_t, 2>& a_strides,
                   Operand d, const std::array<int64_t, 2>& d_strides, int64_t outer,
                   int64_t middle, int64_t n) {
  const VectorLimits& limits = context.limits();
  const int64_t lane = std::min<int64_t>(n, limits.max_inner);
  Box box{outer, middle, lane, a_strides[0], a_strides[1], d_strides[0], d_strides[1]};
  if ((n + lane - 1) / lane >= std::min(outer, middle) || !FitsUnit(limits, box)) return false;
  VectorCommand command;
  context.Step();
  for (int64_t column = 0; column < n; column += lane) {
    command.a = At(a, column);
    command.d = At(d, column);
    box.inner = std::min(lane, n - column);
    EmitBox(context, command, box);
  }
  return true;
}

void EmitFillRows(LowerContext& context, float value, Operand d, int64_t d_stride, int64_t rows,
                  int64_t n) {
  if (rows * n == 0) return;
  if (rows == 1 || d_stride == n) {
    n *= rows;
    rows = 1;
  }
  const int64_t lane = LaneOf(context, n);
  VectorCommand copy;
  copy.a = context.Repeated(value, lane);
  copy.d = d;
  context.Step();
  if (n == lane) return EmitSpread(context, copy, {1, rows, lane, 0, 0, rows * d_stride, d_stride});
  EmitSpread(context, copy, {rows, n / lane, lane, 0, 0, d_stride, lane});
  if (n % lane == 0) return;
  copy.d = At(d, n / lane * lane);
  EmitSpread(context, copy, {1, rows, n % lane, 0, 0, rows * d_stride, d_stride});
}

void EmitRepeat(LowerContext& context, Operand a, Operand d, int64_t times, int64_t n) {
  if (times <= 0 || n == 0) return;
  const VectorLimits& limits = context.limits();
  if (!context.plain_commands() && n <= limits.max_inner && times <= limits.max_middle) {
    return EmitCopyRows(context, a, 0, d, n, times, n);
  }
  EmitCopy(context, a, d, n);
  for (int64_t have = 1; have < times; have *= 2) {
    EmitCopy(context, d, At(d, have * n), std::min(have, times - have) * n);
  }
}

void EmitFormat(LowerContext& context, Operand a, Operand d, int64_t n) {
  VectorCommand command;
  command.kind = VectorCommand::Kind::kFormat;
  command.a = a;
  command.d = d;
  context.Step();
  EmitContiguous(context, command, n);
}

absl::Status EmitMaxOverMiddle(LowerContext& context, Operand a, Operand d, int64_t outer,
                               int64_t middle, int64_t inner) {
  const VectorLimits& limits = context.limits();
  if (inner > limits.max_stride ||
      (middle > limits.max_window && inner * limits.max_window > limits.max_stride)) {
    // Too wide for the window's row stride: gather a band of columns, reduce it, put it back.
    const int64_t widest =
        limits.max_stride / (middle <= limits.max_window ? 1 : limits.max_window);
    const int64_t band = widest / limits.max_inner * limits.max_inner;
    for (int64_t column = 0; column < inner; column += band) {
      const int64_t width = std::min(band, inner - column);
      const Operand gathered = context.Temp(outer * middle * width);
      const Operand reduced = context.Temp(outer * width);
      EmitCopyRows(context, At(a, column), inner, gathered, width, outer * middle, width);
      RETURN_IF_ERROR(EmitMaxOverMiddle(context, gathered, reduced, outer, middle, width));
      EmitCopyRows(context, reduced, width, At(d, column), inner, outer, width);
    }
    return absl::OkStatus();
  }
  if (middle < 1) return absl::InvalidArgumentError("maximum over an empty axis is undefined");
  if (middle == 1) {
    EmitCopy(context, a, d, outer * inner);
    return absl::OkStatus();
  }
  while (middle > 1) {
    if (middle <= limits.max_window && inner > kWideRow) {
      context.Step();
      EmitWideRowPools(context, middle, a, d, outer, inner);
      return absl::OkStatus();
    }
    Window window = ChooseWindow(middle, limits.max_window);
    if (middle % window.size() != 0 && outer > kManyRows && middle * inner <= limits.max_stride) {
      window = {1, std::min<int64_t>(limits.max_window, middle)};
    }
    const int64_t full = middle / window.size();
    const bool overlap = middle % window.size() != 0;
    const int64_t results = full + (overlap ? 1 : 0);
    const Operand target = results == 1 ? d : context.Temp(outer * results * inner);
    context.Step();
    if (!overlap) {
      EmitPools(context, window, a, target, outer * full, inner);
    } else if (window.h == 1 && middle * inner <= limits.max_stride) {
      EmitRowPools(context, window.w, a, target, outer, middle, inner);
    } else {
      for (int64_t row = 0; row < outer; ++row) {
        const Operand from = At(a, row * middle * inner);
        const Operand to = At(target, row * results * inner);
        EmitPools(context, window, from, to, full, inner);
        EmitPools(context, window, At(from, (middle - window.size()) * inner), At(to, full * inner),
                  1, inner);
      }
    }
    a = target;
    middle = results;
  }
  return absl::OkStatus();
}

namespace {

// The sums, or means, over the middle of a [outer,middle,inner], one row at a time.
void EmitSumOfRows(LowerContext& context, Operand a, Operand d, int64_t outer, int64_t middle,
                   int64_t inner, float scale) {
  const float factor = TakeFactor(scale, middle);
  const Operand scaled = factor == 1.0f ? Operand{} : context.Temp(inner);
  for (int64_t row = 0; row < outer; ++row) {
    const Operand from = At(a, row * middle * inner);
    const Operand to = At(d, row * inner);
    if (factor == 1.0f) {
      EmitCopy(context, from, to, inner);
    } else {
      EmitScalar(context, Arithmetic::kMul, from, factor, to, inner);
    }
    for (int64_t i = 1; i < middle; ++i) {
      Operand term = At(from, i * inner);
      if (factor != 1.0f) {
        EmitScalar(context, Arithmetic::kMul, term, factor, scaled, inner);
        term = scaled;
      }
      EmitTensor(context, Arithmetic::kAdd, to, term, to, inner);
    }
    if (scale != 1.0f) EmitScalar(context, Arithmetic::kMul, to, scale, to, inner);
  }
}

}  // namespace

void EmitSumOverMiddle(LowerContext& context, Operand a, Operand d, int64_t outer, int64_t middle,
                       int64_t inner, float scale) {
  if (inner == 1) return EmitSumOverLast(context, a, d, outer, middle, scale);
  const VectorLimits& limits = context.limits();
  const int64_t lane = LaneOf(context, inner);
  const auto emit = [&](float factor, Operand from, Operand to, int64_t count) {
    const Box lanes{inner / lane, count, lane, lane, inner, lane, inner};
    int64_t column = 0;
    if (!context.plain_commands() && lanes.outer > 1 && FitsUnit(limits, lanes)) {
      EmitBox(context, ReductionOf(true, factor, from, to), lanes);
      column = lanes.outer * lane;
    }
    for (; column < inner; column += limits.max_inner) {
      VectorCommand reduce = ReductionOf(true, factor, At(from, column), At(to, column));
      const int64_t width = std::min<int64_t>(limits.max_inner, inner - column);
      reduce.extents = {1, static_cast<uint16_t>(count), static_cast<uint16_t>(width)};
      reduce.a_middle_stride = reduce.d_middle_stride = reduce.d_outer_stride =
          OuterStrideOrZero(limits, inner);
      reduce.a_outer_stride = OuterStrideOrZero(limits, count * inner);
      context.Emit(reduce);
    }
  };
  // A row stride that does not fit leaves plain additions, one row at a time.
  const int64_t terms_max = inner <= limits.max_stride ? limits.max_middle : 1;
  if (terms_max == 1) return EmitSumOfRows(context, a, d, outer, middle, inner, scale);
  while (middle > terms_max) {
    const int64_t parts = (middle + terms_max - 1) / terms_max;
    const Operand partial = context.Temp(outer * parts * inner);
    const float factor = TakeFactor(scale, terms_max);
    context.Step();
    for (int64_t row = 0; row < outer; ++row) {
      for (int64_t part = 0; part < parts; ++part) {
        emit(factor, At(a, (row * middle + part * terms_max) * inner),
             At(partial, (row * parts + part) * inner),
             std::min(terms_max, middle - part * terms_max));
      }
    }
    a = partial;
    middle = parts;
  }
  context.Step();
  for (int64_t row = 0; row < outer; ++row) {
    emit(scale, At(a, row * middle * inner), At(d, row * inner), middle);
  }
}

absl::Status TooManyCommands(const VectorLimits& limits, absl::string_view what) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " more than ", limits.max_node_commands, " commands"));
}

}  // namespace npuc
