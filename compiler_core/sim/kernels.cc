#include "compiler_core/sim/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using Kind = VectorCommand::Kind;

constexpr size_t kHalfCount = 65536;
constexpr size_t kMaxInner = 256;
using Row = std::array<float, kMaxInner>;

// A double rounded to fp16 once. Going through float could round twice; where the float is a tie
// between two fp16 values that the double is not, it is moved to the double's side first.
uint16_t DoubleToHalf(double value) {
  float rounded = static_cast<float>(value);
  if (std::isfinite(rounded) && static_cast<double>(rounded) != value) {
    const uint32_t bits = std::bit_cast<uint32_t>(rounded);
    // Only a float with no bits below the tie position can be a tie.
    if ((bits & 0xfffu) == 0) {
      rounded =
          std::nextafter(rounded, static_cast<double>(rounded) < value ? HUGE_VALF : -HUGE_VALF);
    }
  }
  return FloatToHalf(rounded);
}

template <typename Function>
UnaryTable MakeTable(const Function& function) {
  UnaryTable table(kHalfCount);
  for (size_t i = 0; i < kHalfCount; ++i) {
    table[i] = DoubleToHalf(function(static_cast<double>(HalfValues()[i])));
  }
  return table;
}

void Load(const uint16_t* from, size_t count, Row& row) {
  const std::array<float, kHalfCount>& values = HalfValues();
  for (size_t i = 0; i < count; ++i) row[i] = values[from[i]];
}

void Store(const Row& row, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) to[i] = FloatToHalf(row[i]);
}

// row = a op b, element by element. The float result of two fp16 values, rounded to fp16, is the
// correctly rounded one (base/fp16.h); pow is computed in double.
void Apply(Arithmetic op, const Row& a, const Row& b, size_t count, Row& row) {
  switch (op) {
    case Arithmetic::kAdd:
      for (size_t i = 0; i < count; ++i) row[i] = a[i] + b[i];
      return;
    case Arithmetic::kSub:
      for (size_t i = 0; i < count; ++i) row[i] = a[i] - b[i];
      return;
    case Arithmetic::kMul:
      for (size_t i = 0; i < count; ++i) row[i] = a[i] * b[i];
      return;
    case Arithmetic::kDiv:
      for (size_t i = 0; i < count; ++i) row[i] = a[i] / b[i];
      return;
    case Arithmetic::kPow:
      for (size_t i = 0; i < count; ++i) {
        row[i] = HalfToFloat(
            DoubleToHalf(std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))));
      }
      return;
    case Arithmetic::kExp:
    case Arithmetic::kLog:
      break;  // by table
  }
}

// The start of row (outer, middle) in a strided walk.
size_t RowStart(size_t outer, size_t outer_stride, size_t middle, size_t middle_stride) {
  return outer * outer_stride + middle * middle_stride;
}

// Calls f(a offset, d offset) for every row.
template <typename Function>
void ForEachRow(const VectorCommand& v, const Function& f) {
  for (size_t o = 0; o < v.extents[0]; ++o) {
    for (size_t m = 0; m < v.extents[1]; ++m) {
      f(RowStart(o, v.a_outer_stride, m, v.a_middle_stride),
        RowStart(o, v.d_outer_stride, m, v.d_middle_stride));
    }
  }
}

void RunTable(const VectorCommand& v, const VectorOperands& x, const UnaryTable& table) {
  const size_t inner = v.extents[2];
  ForEachRow(v, [&](size_t a, size_t d) {
    std::array<uint16_t, kMaxInner> row;
    for (size_t i = 0; i < inner; ++i) row[i] = table[x.a[a + i]];
    std::copy_n(row.begin(), inner, x.d + d);
  });
}

void RunCopy(const VectorCommand& v, const VectorOperands& x) {
  ForEachRow(v, [&](size_t a, size_t d) {
    std::memmove(x.d + d, x.a + a, v.extents[2] * sizeof(uint16_t));
  });
}

void RunArithmetic(const VectorCommand& v, const VectorOperands& x) {
  const size_t inner = v.extents[2];
  const float immediate = HalfToFloat(v.immediate);
  Row a;
  Row b;
  Row row;
  a.fill(immediate);
  b.fill(immediate);
  ForEachRow(v, [&](size_t from, size_t to) {
    if (x.a != nullptr) Load(x.a + from, inner, a);
    if (v.kind == Kind::kTensorTensor) Load(x.b + from, inner, b);
    if (v.kind == Kind::kTensorVector) Load(x.b, inner, b);
    Apply(v.arithmetic, a, b, inner, row);
    Store(row, inner, x.d + to);
  });
}

void RunBatchNorm(const VectorCommand& v, const VectorOperands& x) {
  const size_t inner = v.extents[2];
  Row a;
  Row b;
  Row c;
  Row row;
  ForEachRow(v, [&](size_t from, size_t to) {
    Load(x.a + from, inner, a);
    Load(x.b, inner, b);
    Load(x.c, inner, c);
    for (size_t i = 0; i < inner; ++i) row[i] = a[i] * b[i] + c[i];
    Store(row, inner, x.d + to);
  });
}

void RunFormat(const VectorCommand& v, const VectorOperands& x) {
  const size_t inner = v.extents[2];
  Row row;
  ForEachRow(v, [&](size_t from, size_t to) {
    Load(x.a + from, inner, row);
    // Strides of d count its own elements, floats; memory is in units of fp16.
    std::memcpy(x.d + 2 * to, row.data(), inner * sizeof(float));
  });
}

float Larger(float a, float b) {
  if (std::isnan(a)) return a;
  return std::isnan(b) || b > a ? b : a;
}

// One output row of a pool: the window whose first row of the input is at `a`.
void PoolWindow(const VectorCommand& v, const uint16_t* a, Row& result) {
  const size_t inner = v.extents[2];
  Row row;
  for (size_t h = 0; h < v.window_h; ++h) {
    for (size_t w = 0; w < v.window_w; ++w) {
      Load(a + RowStart(h, v.a_outer_stride, w, v.a_middle_stride), inner, row);
      if (h == 0 && w == 0) {
        std::copy_n(row.begin(), inner, result.begin());
      } else if (v.average) {
        for (size_t i = 0; i < inner; ++i) result[i] += row[i];
      } else {
        for (size_t i = 0; i < inner; ++i) result[i] = Larger(result[i], row[i]);
      }
    }
  }
  if (!v.average) return;
  const float count = static_cast<float>(v.window_h * v.window_w);
  for (size_t i = 0; i < inner; ++i) result[i] /= count;
}

void RunPool(const VectorCommand& v, const VectorOperands& x) {
  Row result = {};
  for (size_t o = 0; o < static_cast<size_t>(v.extents[0] / v.window_h); ++o) {
    for (size_t m = 0; m < static_cast<size_t>(v.extents[1] / v.window_w); ++m) {
      PoolWindow(
          v, x.a + RowStart(o * v.window_h, v.a_outer_stride, m * v.window_w, v.a_middle_stride),
          result);
      Store(result, v.extents[2], x.d + RowStart(o, v.d_outer_stride, m, v.d_middle_stride));
    }
  }
}

void RunReduce(const VectorCommand& v, const VectorOperands& x) {
  const size_t inner = v.extents[2];
  const float scale = HalfToFloat(v.immediate);
  Row row;
  for (size_t o = 0; o < v.extents[0]; ++o) {
    Row sums = {};
    for (size_t m = 0; m < v.extents[1]; ++m) {
      Load(x.a + RowStart(o, v.a_outer_stride, m, v.a_middle_stride), inner, row);
      if (v.reduce_middle) {
        for (size_t i = 0; i < inner; ++i) sums[i] += row[i];
        continue;
      }
      float sum = 0;
      for (size_t i = 0; i < inner; ++i) sum += row[i];
      x.d[RowStart(o, v.d_outer_stride, m, v.d_middle_stride)] = FloatToHalf(sum * scale);
    }
    if (!v.reduce_middle) continue;
    for (size_t i = 0; i < inner; ++i) sums[i] *= scale;
    Store(sums, inner, x.d + o * v.d_outer_stride);
  }
}

}  // namespace

const std::array<float, 65536>& HalfValues() {
  static const std::array<float, 65536>& values = *[] {
    auto* table = new std::array<float, 65536>;
    for (size_t i = 0; i < table->size(); ++i) (*table)[i] = HalfToFloat(static_cast<uint16_t>(i));
    return table;
  }();
  return values;
}

UnaryTable MakeActivationTable(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      // NaN stays NaN; -0 becomes +0.
      return MakeTable([](double x) { return x > 0 || std::isnan(x) ? x : 0.0; });
    case Activation::kSigmoid:
      return MakeTable([](double x) { return 1.0 / (1.0 + std::exp(-x)); });
    case Activation::kTanh:
      return MakeTable([](double x) { return std::tanh(x); });
    case Activation::kSelu: {
      // The constants are the command's own, fp16.
      const double scale = HalfToFloat(0x3c34);
      const double scaled_alpha = HalfToFloat(0x3f08);
      return MakeTable(
          [=](double x) { return x > 0 ? scale * x : scaled_alpha * std::exp(x) - scaled_alpha; });
    }
  }
  return UnaryTable(kHalfCount);
}

UnaryTable MakeExpTable() {
  return MakeTable([](double x) { return std::exp(x); });
}

UnaryTable MakeLogTable() {
  return MakeTable([](double x) { return std::log(x); });
}

void RunVector(const VectorCommand& command, const VectorOperands& operands,
               const UnaryTable* table) {
  if (table != nullptr) return RunTable(command, operands, *table);
  switch (command.kind) {
    case Kind::kCopy:
      return RunCopy(command, operands);
    case Kind::kPool:
      return RunPool(command, operands);
    case Kind::kReduce:
      return RunReduce(command, operands);
    case Kind::kTensorVector:
    case Kind::kTensorTensor:
    case Kind::kTensorScalar:
      return RunArithmetic(command, operands);
    case Kind::kFormat:
      return RunFormat(command, operands);
    case Kind::kBatchNorm:
      return RunBatchNorm(command, operands);
    case Kind::kActivation:
      break;  // always by table
  }
}

void PanelMatrix::Resize(int64_t row_count, int64_t column_count) {
  rows = row_count;
  columns = column_count;
  values.assign(static_cast<size_t>((columns + kPanel - 1) / kPanel * rows * kPanel), 0.0f);
}

void MultiplyRow(const float* a, const PanelMatrix& matrix, uint16_t* d) {
  const float* weights = matrix.values.data();
  for (int64_t first = 0; first < matrix.columns; first += kPanel) {
    // A sum for each column, all in the order of the rows; fixed length, so it stays in registers.
    std::array<float, kPanel> sums = {};
    for (int64_t row = 0; row < matrix.rows; ++row, weights += kPanel) {
      const float factor = a[row];
      for (size_t i = 0; i < kPanel; ++i) sums[i] += factor * weights[i];
    }
    const int64_t count = std::min(kPanel, matrix.columns - first);
    for (int64_t i = 0; i < count; ++i) {
      float sum = sums[static_cast<size_t>(i)];
      if (!matrix.bias.empty()) sum += matrix.bias[static_cast<size_t>(first + i)];
      d[first + i] = FloatToHalf(sum);
    }
  }
}

void RunFullyConnected(const PanelMatrix& weights, const uint16_t* a, uint16_t* d) {
  std::vector<float> row(static_cast<size_t>(weights.rows));
  for (size_t i = 0; i < row.size(); ++i) row[i] = HalfValues()[a[i]];
  MultiplyRow(row.data(), weights, d);
}

void RunConvolution(const ConvolutionForm& form, const PanelMatrix& weights, const uint16_t* a,
                    uint16_t* d) {
  const size_t in_c = static_cast<size_t>(form.in_c);
  std::vector<float> input(static_cast<size_t>(form.in_h) * static_cast<size_t>(form.in_w) * in_c);
  for (size_t i = 0; i < input.size(); ++i) input[i] = HalfValues()[a[i]];
  std::vector<float> window(static_cast<size_t>(weights.rows));
  for (int oh = 0; oh < form.out_h; ++oh) {
    for (int ow = 0; ow < form.out_w; ++ow) {
      float* to = window.data();
      for (int kh = 0; kh < form.kernel_h; ++kh) {
        for (int kw = 0; kw < form.kernel_w; ++kw, to += in_c) {
          const int row = oh * form.stride_h + kh;
          const int column = ow * form.stride_w + kw - form.pad_left;
          if (column < 0 || column >= form.in_w) {
            std::fill_n(to, in_c, 0.0f);
          } else {
            const size_t pixel = static_cast<size_t>(row) * static_cast<size_t>(form.in_w) +
                                 static_cast<size_t>(column);
            std::copy_n(input.data() + pixel * in_c, in_c, to);
          }
        }
      }
      MultiplyRow(window.data(), weights, d);
      d += form.out_c;
    }
  }
}

void RunDepthwise(const DepthwiseForm& form, absl::Span<const float> weights, const uint16_t* a,
                  uint16_t* d) {
  const size_t plane = static_cast<size_t>(form.in_h) * static_cast<size_t>(form.in_w);
  std::vector<float> input(plane * static_cast<size_t>(form.channels));
  for (size_t i = 0; i < input.size(); ++i) input[i] = HalfValues()[a[i]];
  const size_t taps = static_cast<size_t>(form.kernel_h) * static_cast<size_t>(form.kernel_w);
  const float* kernel = weights.data();
  for (int channel = 0; channel < form.channels * form.multiplier; ++channel) {
    const float* in = input.data() + static_cast<size_t>(channel / form.multiplier) * plane;
    for (int oh = 0; oh < form.out_h; ++oh) {
      for (int ow = 0; ow < form.out_w; ++ow) {
        float sum = 0;
        for (int kh = 0; kh < form.kernel_h; ++kh) {
          const float* row =
              in + static_cast<size_t>(oh * form.stride_h + kh) * static_cast<size_t>(form.in_w) +
              static_cast<size_t>(ow * form.stride_w);
          for (int kw = 0; kw < form.kernel_w; ++kw) {
            sum += row[kw] * kernel[kh * form.kernel_w + kw];
          }
        }
        *d++ = FloatToHalf(form.bias ? sum + kernel[taps] : sum);
      }
    }
    kernel += taps + (form.bias ? 1 : 0);
  }
}

void RunTranspose(const TransposeForm& form, const uint16_t* a, uint16_t* d) {
  const size_t rows = static_cast<size_t>(form.rows);
  const size_t columns = static_cast<size_t>(form.columns);
  const std::vector<uint16_t> input(a, a + rows * columns);
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < rows; ++r) d[c * rows + r] = input[r * columns + c];
  }
}

}  // namespace npuc
