#ifndef NPUC_COMPILER_CORE_OPS_NUMERIC_H_
#define NPUC_COMPILER_CORE_OPS_NUMERIC_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc {

// What reference kernels share: reading elements as double (floats) or int64_t (integers), writing
// them with one rounding, and walking tensors by strides. Everything is pure.

// Element access for one dtype. Wide is what kernels compute in. A double goes to f32 in one
// rounding, to f16 by way of f32, as an f32 kernel's result would.
template <typename T>
struct Codec {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  static Wide Load(const uint8_t* bytes, int64_t i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<Wide>(value);
  }
  static void Store(uint8_t* bytes, int64_t i, Wide wide) {
    const T value = static_cast<T>(wide);  // integers wrap
    std::memcpy(bytes + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
};

struct HalfBits {};
template <>
struct Codec<HalfBits> {
  using Wide = double;
  static double Load(const uint8_t* bytes, int64_t i) {
    return HalfToFloat(static_cast<uint16_t>(Codec<uint16_t>::Load(bytes, i)));
  }
  static void Store(uint8_t* bytes, int64_t i, double wide) {
    Codec<uint16_t>::Store(bytes, i, FloatToHalf(static_cast<float>(wide)));
  }
};

// Calls f with the Codec of a floating-point dtype. UNIMPLEMENTED for all others.
template <typename F>
absl::Status WithFloatCodec(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat16:
      return f(Codec<HalfBits>());
    case DType::kFloat32:
      return f(Codec<float>());
    case DType::kFloat64:
      return f(Codec<double>());
    default:
      return absl::UnimplementedError(absl::StrCat("no kernel for ", NameOf(dtype)));
  }
}

// The same for any numeric dtype. UNIMPLEMENTED for bool.
template <typename F>
absl::Status WithCodec(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8:
      return f(Codec<int8_t>());
    case DType::kInt16:
      return f(Codec<int16_t>());
    case DType::kInt32:
      return f(Codec<int32_t>());
    case DType::kInt64:
      return f(Codec<int64_t>());
    case DType::kUint8:
      return f(Codec<uint8_t>());
    case DType::kUint16:
      return f(Codec<uint16_t>());
    case DType::kUint32:
      return f(Codec<uint32_t>());
    default:
      return WithFloatCodec(dtype, std::forward<F>(f));
  }
}

// Integer sums and products wrap, which signed arithmetic may not do.
inline double WrapAdd(double a, double b) { return a + b; }
inline double WrapMul(double a, double b) { return a * b; }
inline int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Calls f(offsets) for each index of `shape` in row-major order; offsets[n] is where operand n
// stands: its start plus the index times its strides.
template <size_t N, typename F>
void WalkStrided(absl::Span<const int64_t> shape, const std::array<Shape, N>& strides,
                 std::array<int64_t, N> offsets, F&& f) {
  if (ElementCount(shape) == 0) return;
  const int rank = static_cast<int>(shape.size());
  Shape index(shape.size(), 0);
  while (true) {
    f(offsets);
    int axis = rank - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
      for (size_t n = 0; n < N; ++n) offsets[n] -= (shape[axis] - 1) * strides[n][axis];
    }
    if (axis < 0) return;
    for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][axis];
  }
}

// Where a strided copy reads or writes.
struct StridedBlock {
  Shape strides;
  int64_t offset = 0;
};

// Copies a block of `shape` elements of element_size bytes.
void CopyStrided(absl::Span<const int64_t> shape, int64_t element_size, const uint8_t* from,
                 const StridedBlock& source, uint8_t* to, const StridedBlock& target);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_OPS_NUMERIC_H_
