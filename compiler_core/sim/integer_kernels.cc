#include "compiler_core/sim/integer_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compiler_core/ir/integer/access.h"

namespace npuc::integer {
namespace {

template <typename T>
T LoadAs(const uint8_t* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Calls f with a value of the C type that the stored type has.
template <typename F>
void WithType(DType type, const F& f) {
  switch (type) {
    case DType::kUint8:
      return f(uint8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kUint16:
      return f(uint16_t{});
    default:
      return f(int8_t{});
  }
}

int64_t Load(const uint8_t* bytes, DType type, int64_t index) {
  int64_t value = 0;
  WithType(type, [&](auto zero) { value = LoadAs<decltype(zero)>(bytes, index); });
  return value;
}

void Store(const Result& result, uint8_t* d, int64_t index, int64_t value) {
  // No value reaches 2^62, so that the zero point can be added.
  constexpr int64_t kLarge = int64_t{1} << 62;
  const int64_t clamped =
      std::clamp<int64_t>(std::clamp(value, -kLarge, kLarge) + result.zero, result.min, result.max);
  WithType(result.type, [&](auto zero) {
    const auto stored = static_cast<decltype(zero)>(clamped);
    std::memcpy(d + index * static_cast<int64_t>(sizeof(stored)), &stored, sizeof(stored));
  });
}

struct Taps {
  int64_t first;
  int64_t last;   // behind the last one inside
  int64_t start;  // position of tap 0; negative in the padding
};

Taps TapsInside(int64_t out, int64_t stride, int64_t pad, int64_t kernel, int64_t dilation,
                int64_t size) {
  const int64_t start = out * stride - pad;
  const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
  const int64_t room = size - start;  // taps with tap * dilation < room are inside
  const int64_t last = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  return {std::min(first, kernel), std::clamp<int64_t>(last, std::min(first, kernel), kernel),
          start};
}

Taps TapsH(const Window& w, int64_t out, int64_t size) {
  return TapsInside(out, w.stride_h, w.pad_top, w.kernel_h, w.dilation_h, size);
}

Taps TapsW(const Window& w, int64_t out, int64_t size) {
  return TapsInside(out, w.stride_w, w.pad_left, w.kernel_w, w.dilation_w, size);
}

// Sums modulo 2^32 or, in 64 bits, modulo 2^48.
int64_t Wrapped(uint32_t sum) { return static_cast<int32_t>(sum); }
int64_t Wrapped(uint64_t sum) { return static_cast<int64_t>(sum << 16) >> 16; }

// Calls f(row) for 0..count-1 in the command's order.
template <typename F>
void ForEachRow(int64_t count, bool descending, const F& f) {
  for (int64_t i = 0; i < count; ++i) f(descending ? count - 1 - i : i);
}

template <typename U>
class Convolution {
 public:
  Convolution(const Convolve& c, const ConvolveConstants& constants)
      : c_(c), constants_(constants), group_c_(c.in_c / c.groups), group_o_(c.out_c / c.groups) {}

  void Run(const uint8_t* a, uint8_t* d, bool descending) {
    ForEachRow(int64_t{c_.n} * c_.out_h, descending, [&](int64_t row) {
      const Taps h = TapsH(c_.window, row % c_.out_h, c_.in_h);
      LoadRows(a, row / c_.out_h * c_.in_h, h);
      for (int64_t ow = 0; ow < c_.out_w; ++ow) {
        int64_t at = (row * c_.out_w + ow) * PixelElements(c_);
        const Taps w = TapsW(c_.window, ow, c_.in_w);
        for (int64_t o = 0; o < c_.out_c; ++o) {
          const size_t factor = c_.factor_count == 1 ? 0 : static_cast<size_t>(o);
          Store(c_.result, d, at++,
                Multiply(Wrapped(Sum(o, h, w)), constants_.factors[factor], c_.rounding));
        }
      }
    });
  }

 private:
  // Reads the operand's rows at the taps of a result row, `base` rows from its begin.
  void LoadRows(const uint8_t* a, int64_t base, const Taps& h) {
    const int64_t row_values = int64_t{c_.in_w} * c_.in_c;
    values_.resize(static_cast<size_t>(std::max<int64_t>(h.last - h.first, 0) * row_values));
    WithType(c_.a_type, [&](auto zero) {
      int32_t* to = values_.data();
      for (int64_t kh = h.first; kh < h.last; ++kh) {
        const int64_t from = (base + h.start + kh * c_.window.dilation_h) * row_values;
        for (int64_t i = 0; i < row_values; ++i) {
          *to++ = LoadAs<decltype(zero)>(a, from + i) - c_.pad_value;
        }
      }
    });
  }

  U Sum(int64_t o, const Taps& h, const Taps& w) const {
    U sum = static_cast<U>(constants_.offsets[static_cast<size_t>(o)]);
    const int64_t group = o / group_o_ * group_c_;
    for (int64_t kh = h.first; kh < h.last; ++kh) {
      const int64_t row = (kh - h.first) * c_.in_w;
      for (int64_t kw = w.first; kw < w.last; ++kw) {
        const int32_t* x =
            values_.data() + (row + w.start + kw * c_.window.dilation_w) * c_.in_c + group;
        const int16_t* y = constants_.weights.data() +
                           ((o * c_.window.kernel_h + kh) * c_.window.kernel_w + kw) * group_c_;
        for (int64_t i = 0; i < group_c_; ++i) sum += static_cast<U>(x[i]) * static_cast<U>(y[i]);
      }
    }
    return sum;
  }

  const Convolve& c_;
  const ConvolveConstants& constants_;
  const int64_t group_c_;
  const int64_t group_o_;
  std::vector<int32_t> values_;  // rows of the operand, less what padding holds
};

// Calls f(offsets...) for each element of a walk over N operands, in the command's order.
template <size_t N, typename F>
void Walk(const Extents& extents, const std::array<const Extents*, N>& strides, bool descending,
          const F& f) {
  std::array<int64_t, N> at = {};
  std::array<int32_t, kMaxExtents> index = {};  // how often each axis has moved
  const int64_t sign = descending ? -1 : 1;
  if (descending) {
    for (int axis = 0; axis < kMaxExtents; ++axis) {
      for (size_t i = 0; i < N; ++i) at[i] += int64_t{extents[axis] - 1} * (*strides[i])[axis];
    }
  }
  while (true) {
    f(at);
    int axis = kMaxExtents - 1;
    for (; axis >= 0; --axis) {
      for (size_t i = 0; i < N; ++i) at[i] += sign * (*strides[i])[axis];
      if (++index[axis] < extents[axis]) break;
      for (size_t i = 0; i < N; ++i) at[i] -= sign * int64_t{extents[axis]} * (*strides[i])[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// x / y to the nearest integer, ties away from zero; y is not 0.
int64_t Quotient(int64_t x, int64_t y) {
  const int64_t dividend = std::abs(x);
  const int64_t divisor = std::abs(y);
  const int64_t size = (dividend + divisor / 2) / divisor;
  return (x < 0) == (y < 0) ? size : -size;
}

int64_t CombineOne(const Combine& c, const std::vector<Factor>& factors, int64_t x, int64_t y) {
  constexpr int64_t kLarge = int64_t{1} << 61;  // the sum of two fits
  if (c.kind == Combine::Kind::kMul) return Multiply(x * y, factors[2], c.rounding);
  if (c.kind == Combine::Kind::kDiv) {
    if (y == 0) return x == 0 ? 0 : x > 0 ? kLarge : -kLarge;
    return Multiply(Quotient(x, y), factors[2], c.rounding);
  }
  const int64_t p = std::clamp(Multiply(x, factors[0], c.rounding), -kLarge, kLarge);
  const int64_t q = std::clamp(Multiply(y, factors[1], c.rounding), -kLarge, kLarge);
  switch (c.kind) {
    case Combine::Kind::kSub:
      return Multiply(p - q, factors[2], c.rounding);
    case Combine::Kind::kMax:
      return Multiply(std::max(p, q), factors[2], c.rounding);
    case Combine::Kind::kMin:
      return Multiply(std::min(p, q), factors[2], c.rounding);
    default:
      return Multiply(p + q, factors[2], c.rounding);
  }
}

// A, B: the stored types of the operands.
template <typename A, typename B>
void SumProducts(const Product& c, const Factor& factor, const uint8_t* a, const uint8_t* b,
                 uint8_t* d, bool descending) {
  using Sum = std::conditional_t<sizeof(A) == 1 && sizeof(B) == 1, uint32_t, uint64_t>;
  const int32_t inner = c.extents.back();
  const int64_t a_step = c.a_strides.back();
  const int64_t b_step = c.b_strides.back();
  Extents results = c.extents;
  results.back() = 1;
  Extents d_strides = {};
  int32_t count = 1;
  for (int axis = kMaxExtents - 1; axis >= 0; --axis) {
    d_strides[axis] = count;
    count *= results[axis];  // at most the bytes of a slot
  }
  Walk<3>(results, {&c.a_strides, &c.b_strides, &d_strides}, descending,
          [&](const std::array<int64_t, 3>& at) {
            Sum sum = 0;
            for (int64_t i = 0; i < inner; ++i) {
              const int32_t x = LoadAs<A>(a, at[0] + i * a_step) - c.a_zero;
              const int32_t y = LoadAs<B>(b, at[1] + i * b_step) - c.b_zero;
              sum += static_cast<Sum>(x) * static_cast<Sum>(y);
            }
            Store(c.result, d, at[2], Multiply(Wrapped(sum), factor, c.rounding));
          });
}

// A table of T at `place`, 0..65535 of a 16-bit operand.
template <typename T>
int64_t LookUp(const uint8_t* table, int64_t place, int index_bits) {
  const int shift = 16 - index_bits;
  const int64_t index = place >> shift;
  const int64_t low = LoadAs<T>(table, index);
  if (shift == 0) return low;
  const int64_t rest = place & ((int64_t{1} << shift) - 1);
  return Interpolate(low, LoadAs<T>(table, index + 1), rest, shift);
}

// Multiplying by 2^left modulo 2^32, then by a factor of 31 fraction bits.
int32_t ScaledDifference(int64_t difference, const Softmax& c) {
  const uint32_t shifted = static_cast<uint32_t>(difference) << c.left;
  return DoublingHighMultiply(static_cast<int32_t>(shifted), c.multiplier);
}

// TFLite's published fixed-point softmax of one row. The sum has 12 integer bits.
void SoftmaxFixed(const Softmax& c, const uint8_t* a, int64_t row, int64_t largest, uint8_t* d) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < c.length; ++i) {
    const int64_t difference = Load(a, c.a_type, row + i) - largest;
    if (difference < c.diff_min) continue;
    const int32_t scaled = std::min(ScaledDifference(difference, c), 0);
    sum += static_cast<uint32_t>(DivideByPowerOfTwo(ExpOnNegative(scaled), 12));
  }
  sum = std::max<uint32_t>(sum, 1);
  const int headroom = std::countl_zero(sum);
  const int bits_over_unit = 12 - headroom;
  const int32_t share = OneOverOnePlus(static_cast<int32_t>((sum << headroom) - (1u << 31)));
  const int bits = SizeOf(c.result.type) == 1 ? 8 : 16;
  const int shift = std::max(bits_over_unit + 31 - bits, 0);
  for (int64_t i = 0; i < c.length; ++i) {
    const int64_t difference = Load(a, c.a_type, row + i) - largest;
    int64_t value = 0;
    if (difference >= c.diff_min) {
      const int32_t scaled = std::min(ScaledDifference(difference, c), 0);
      value = DivideByPowerOfTwo(DoublingHighMultiply(share, ExpOnNegative(scaled)), shift);
    }
    Store(c.result, d, row + i, value);
  }
}

void SoftmaxTable(const Softmax& c, const Factor& factor, const uint8_t* a, const uint8_t* table,
                  int64_t row, int64_t largest, uint8_t* d) {
  constexpr int kShareBits = 24;
  const bool wide = SizeOf(c.a_type) == 2;
  const auto exponential = [&](int64_t i) -> uint64_t {
    const int64_t place = Load(a, c.a_type, row + i) - largest + (wide ? 65535 : 255);
    return static_cast<uint64_t>(wide ? LookUp<uint32_t>(table, place, c.index_bits)
                                      : int64_t{LoadAs<uint32_t>(table, place)});
  };
  uint64_t sum = 0;
  for (int64_t i = 0; i < c.length; ++i) sum += exponential(i);
  sum = std::max<uint64_t>(sum, 1);
  for (int64_t i = 0; i < c.length; ++i) {
    const uint64_t share = ((exponential(i) << kShareBits) + sum / 2) / sum;
    Store(c.result, d, row + i, Multiply(static_cast<int64_t>(share), factor, c.rounding));
  }
}

}  // namespace

std::vector<Factor> ReadFactors(const uint8_t* bytes, int64_t count) {
  std::vector<Factor> factors(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    uint64_t record = 0;
    std::memcpy(&record, bytes + i * kFactorBytes, kFactorBytes);  // little-endian
    factors[static_cast<size_t>(i)] = {static_cast<int32_t>(record & INT32_MAX),
                                       static_cast<int32_t>(record >> 31)};
  }
  return factors;
}

ConvolveConstants ReadConstants(const Convolve& c, const uint8_t* weights, const uint8_t* bias,
                                const uint8_t* factors) {
  ConvolveConstants constants;
  constants.factors = ReadFactors(factors, c.factor_count);
  const int64_t each = int64_t{c.window.kernel_h} * c.window.kernel_w * (c.in_c / c.groups);
  constants.weights.resize(static_cast<size_t>(each * c.out_c));
  constants.offsets.resize(static_cast<size_t>(c.out_c));
  for (int64_t o = 0; o < c.out_c; ++o) {
    int64_t sum = 0;
    for (int64_t i = o * each; i < (o + 1) * each; ++i) {
      const int64_t weight = Load(weights, c.weight_type, i);
      constants.weights[static_cast<size_t>(i)] = static_cast<int16_t>(weight);
      sum += weight;
    }
    uint64_t start = 0;
    std::memcpy(&start, bias + o * BiasBytes(c), static_cast<size_t>(BiasBytes(c)));
    // Modulo 2^64 is right for sums modulo 2^32 and 2^48, whatever stands above their bits.
    constants.offsets[static_cast<size_t>(o)] = static_cast<int64_t>(
        start + static_cast<uint64_t>(c.pad_value) * static_cast<uint64_t>(sum));
  }
  return constants;
}

void Run(const Convolve& c, const ConvolveConstants& constants, const uint8_t* a, uint8_t* d,
         bool descending) {
  if (HasWideSums(c)) {
    Convolution<uint64_t>(c, constants).Run(a, d, descending);
  } else {
    Convolution<uint32_t>(c, constants).Run(a, d, descending);
  }
}

void Run(const Pool& c, const std::vector<Factor>& factors, const uint8_t* a, uint8_t* d,
         bool descending) {
  const auto pool = [&](int64_t n, int64_t channel, const Taps& h, const Taps& w) {
    int64_t largest = LowestValue(c.a_type);
    int64_t sum = 0;
    for (int64_t kh = h.first; kh < h.last; ++kh) {
      const int64_t row = (n * c.in_h + h.start + kh * c.window.dilation_h) * c.in_w;
      for (int64_t kw = w.first; kw < w.last; ++kw) {
        const int64_t x =
            Load(a, c.a_type, (row + w.start + kw * c.window.dilation_w) * c.c + channel);
        largest = std::max(largest, x);
        sum += x;
      }
    }
    const int64_t count = std::max<int64_t>((h.last - h.first) * (w.last - w.first), 1);
    if (c.kind == Pool::Kind::kMax) return largest;
    if (c.kind == Pool::Kind::kMean) {
      return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
    }
    const size_t factor = factors.size() == 1 ? 0 : static_cast<size_t>(count - 1);
    return Multiply(sum - count * c.a_zero, factors[factor], c.rounding);
  };
  ForEachRow(int64_t{c.n} * c.out_h, descending, [&](int64_t row) {
    const Taps h = TapsH(c.window, row % c.out_h, c.in_h);
    int64_t at = row * c.out_w * c.c;
    for (int64_t ow = 0; ow < c.out_w; ++ow) {
      const Taps w = TapsW(c.window, ow, c.in_w);
      for (int64_t channel = 0; channel < c.c; ++channel) {
        Store(c.result, d, at++, pool(row / c.out_h, channel, h, w));
      }
    }
  });
}

void Run(const Combine& c, const std::vector<Factor>& factors, const uint8_t* a, const uint8_t* b,
         uint8_t* d, bool descending) {
  const int64_t scale = int64_t{1} << c.left;
  const int64_t b_scale = c.kind == Combine::Kind::kDiv ? 1 : scale;
  Walk<3>(c.extents, {&c.a_strides, &c.b_strides, &c.d_strides}, descending,
          [&](const std::array<int64_t, 3>& at) {
            const int64_t x = (Load(a, c.a_type, at[0]) - c.a_zero) * scale;
            const int64_t y = (Load(b, c.b_type, at[1]) - c.b_zero) * b_scale;
            Store(c.result, d, at[2], CombineOne(c, factors, x, y));
          });
}

void Run(const Product& c, const std::vector<Factor>& factors, const uint8_t* a, const uint8_t* b,
         uint8_t* d, bool descending) {
  WithType(c.a_type, [&](auto of_a) {
    WithType(c.b_type, [&](auto of_b) {
      SumProducts<decltype(of_a), decltype(of_b)>(c, factors[0], a, b, d, descending);
    });
  });
}

void Run(const Move& c, const std::vector<Factor>& factors, const uint8_t* a, uint8_t* d,
         bool descending) {
  const int64_t size = SizeOf(c.a_type);
  Walk<2>(c.extents, {&c.a_strides, &c.d_strides}, descending,
          [&](const std::array<int64_t, 2>& at) {
            if (factors.empty()) {
              std::memcpy(d + at[1] * size, a + at[0] * size, static_cast<size_t>(size));
            } else {
              Store(c.result, d, at[1],
                    Multiply(Load(a, c.a_type, at[0]) - c.a_zero, factors[0], c.rounding));
            }
          });
}

void Run(const Fill& c, uint8_t* d) {
  for (int64_t i = 0; i < c.count; ++i) Store(c.result, d, i, 0);
}

void Run(const Lookup& c, const uint8_t* a, const uint8_t* table, uint8_t* d, bool descending) {
  const int64_t lowest = LowestValue(c.a_type);
  WithType(c.result.type, [&](auto zero) {
    using T = decltype(zero);
    ForEachRow(c.count, descending, [&](int64_t i) {
      const int64_t place = Load(a, c.a_type, i) - lowest;
      const int64_t value = SizeOf(c.a_type) == 1 ? int64_t{LoadAs<T>(table, place)}
                                                  : LookUp<T>(table, place, c.index_bits);
      Store(c.result, d, i, value - c.result.zero);
    });
  });
}

void Run(const Softmax& c, const std::vector<Factor>& factors, const uint8_t* a,
         const uint8_t* table, uint8_t* d, bool descending) {
  ForEachRow(c.rows, descending, [&](int64_t r) {
    const int64_t row = r * c.length;
    int64_t largest = LowestValue(c.a_type);
    for (int64_t i = 0; i < c.length; ++i) {
      largest = std::max(largest, Load(a, c.a_type, row + i));
    }
    if (c.kind == Softmax::Kind::kFixed) {
      SoftmaxFixed(c, a, row, largest, d);
    } else {
      SoftmaxTable(c, factors[0], a, table, row, largest, d);
    }
  });
}

}  // namespace npuc::integer
