#include "compiler_core/ir/graph/types.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/fp16.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are little-endian and are read in place");

struct DTypeInfo {
  absl::string_view name;
  int64_t size_bytes;
};
// Indexed by DType.
constexpr std::array<DTypeInfo, 12> kDTypes = {{{"invalid", 0},
                                                {"f16", 2},
                                                {"f32", 4},
                                                {"f64", 8},
                                                {"i8", 1},
                                                {"i16", 2},
                                                {"i32", 4},
                                                {"i64", 8},
                                                {"u8", 1},
                                                {"u16", 2},
                                                {"u32", 4},
                                                {"bool", 1}}};

const DTypeInfo& InfoOf(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

template <typename T>
T Load(const uint8_t* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Calls f with a value of the C++ type that holds dtype's elements; f16 comes as uint16_t, so
// callers that care handle it first.
template <typename F>
auto Dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUint32:
      return f(uint32_t{});
    case DType::kFloat16:
    case DType::kUint16:
      return f(uint16_t{});
    case DType::kUint8:
    case DType::kBool:
    case DType::kInvalid:
      break;
  }
  return f(uint8_t{});
}

template <typename T>
bool Holds(DType dtype) {
  if constexpr (std::is_same_v<T, bool>) return dtype == DType::kBool;
  return Dispatch(dtype, [](auto sample) { return std::is_same_v<decltype(sample), T>; });
}

// value clamped to To's range and truncated; NaN gives 0.
template <typename To>
To ClampToInteger(double value) {
  constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
  // One more than the largest value: a power of two, so exact for every To.
  const double past_high = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (std::isnan(value)) return 0;
  if (value >= past_high) return std::numeric_limits<To>::max();
  if (value <= kLow) return std::numeric_limits<To>::min();
  return static_cast<To>(value);
}

// Element i of from, written as element i of to.
void CastElement(const Tensor& from, int64_t i, DType to, uint8_t* out) {
  const bool from_float = IsFloat(from.dtype());
  if (to == DType::kBool) {
    out[i] = from_float ? from.at(i) != 0 : from.int_at(i) != 0;
    return;
  }
  if (to == DType::kFloat16) {
    const uint16_t half = FloatToHalf(static_cast<float>(from.at(i)));
    std::memcpy(out + i * 2, &half, 2);
    return;
  }
  Dispatch(to, [&](auto sample) {
    using T = decltype(sample);
    T value;
    if constexpr (std::is_floating_point_v<T>) {
      value = from_float ? static_cast<T>(from.at(i)) : static_cast<T>(from.int_at(i));
    } else if (from_float) {
      value = ClampToInteger<T>(from.at(i));
    } else {
      value = static_cast<T>(from.int_at(i));  // wraps, as TensorFlow does
    }
    std::memcpy(out + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  });
}

}  // namespace

int64_t SizeOf(DType dtype) { return InfoOf(dtype).size_bytes; }

absl::string_view NameOf(DType dtype) { return InfoOf(dtype).name; }

DType DTypeFromName(absl::string_view name) {
  for (size_t i = 1; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool IsInteger(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kUint32; }

int64_t ElementCount(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (__builtin_mul_overflow(count, dim, &count)) return std::numeric_limits<int64_t>::max();
  }
  return count;
}

absl::Status CheckShape(absl::Span<const int64_t> shape) {
  if (shape.size() > static_cast<size_t>(kMaxRank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), " exceeds the limit of ", kMaxRank));
  }
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeToString(shape), " has a negative dimension"));
    }
    // A zero dimension counts as one here, so that strides never overflow either.
    if (dim > kMaxElements || count * std::max<int64_t>(dim, 1) > kMaxElements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeToString(shape), " exceeds the limit of ", kMaxElements, " elements"));
    }
    count *= std::max<int64_t>(dim, 1);
  }
  return absl::OkStatus();
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

std::string TypeToString(const TensorType& type) {
  return absl::StrCat(NameOf(type.dtype), ShapeToString(type.shape));
}

struct Tensor::Shared {
  explicit Shared(std::vector<uint8_t> its_bytes) : bytes(std::move(its_bytes)) {}
  const std::vector<uint8_t> bytes;
  mutable std::atomic<uint64_t> hash = 0;  // 0: not found yet
};

Tensor::Tensor(TensorType type, std::vector<uint8_t> bytes)
    : type_(std::move(type)), shared_(std::make_shared<const Shared>(std::move(bytes))) {
  NPUC_CHECK(static_cast<int64_t>(shared_->bytes.size()) == type_.size_bytes());
}

Tensor Tensor::FromFloats(Shape shape, absl::Span<const float> values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return Tensor({DType::kFloat32, std::move(shape)},
                {bytes, bytes + values.size() * sizeof(float)});
}

Tensor Tensor::FromInts(Shape shape, absl::Span<const int64_t> values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Tensor({DType::kInt64, std::move(shape)}, std::move(bytes));
}

Tensor Tensor::ScalarFloat(float value) { return FromFloats({}, {value}); }

Tensor Tensor::Zeros(const TensorType& type) {
  return Tensor(type, std::vector<uint8_t>(type.size_bytes()));
}

Tensor Tensor::WithShape(Shape shape) const {
  NPUC_CHECK(ElementCount(shape) == element_count());
  Tensor result = *this;
  result.type_.shape = std::move(shape);
  return result;
}

absl::Span<const uint8_t> Tensor::bytes() const {
  return shared_ == nullptr ? absl::Span<const uint8_t>() : absl::MakeConstSpan(shared_->bytes);
}

template <typename T>
absl::Span<const T> Tensor::as() const {
  NPUC_CHECK(Holds<T>(type_.dtype));
  if (shared_ == nullptr) return {};
  // The vector's storage comes from operator new, so it is aligned for every T.
  return absl::MakeConstSpan(reinterpret_cast<const T*>(shared_->bytes.data()),
                             shared_->bytes.size() / sizeof(T));
}
template absl::Span<const float> Tensor::as<float>() const;
template absl::Span<const double> Tensor::as<double>() const;
template absl::Span<const int8_t> Tensor::as<int8_t>() const;
template absl::Span<const int16_t> Tensor::as<int16_t>() const;
template absl::Span<const int32_t> Tensor::as<int32_t>() const;
template absl::Span<const int64_t> Tensor::as<int64_t>() const;
template absl::Span<const uint8_t> Tensor::as<uint8_t>() const;
template absl::Span<const uint16_t> Tensor::as<uint16_t>() const;
template absl::Span<const uint32_t> Tensor::as<uint32_t>() const;
template absl::Span<const bool> Tensor::as<bool>() const;

double Tensor::at(int64_t i) const {
  NPUC_CHECK(shared_ != nullptr && i >= 0 && i < element_count());
  if (dtype() == DType::kFloat16) return HalfToFloat(Load<uint16_t>(shared_->bytes.data(), i));
  return Dispatch(dtype(), [&](auto sample) {
    return static_cast<double>(Load<decltype(sample)>(shared_->bytes.data(), i));
  });
}

int64_t Tensor::int_at(int64_t i) const {
  NPUC_CHECK(shared_ != nullptr && i >= 0 && i < element_count());
  if (IsFloat(dtype())) return ClampToInteger<int64_t>(at(i));
  return Dispatch(dtype(), [&](auto sample) {
    if constexpr (std::is_floating_point_v<decltype(sample)>) {
      return int64_t{0};  // handled above
    } else {
      return static_cast<int64_t>(Load<decltype(sample)>(shared_->bytes.data(), i));
    }
  });
}

std::vector<float> Tensor::ToFloats() const {
  std::vector<float> values(element_count());
  if (values.empty()) return values;
  NPUC_CHECK(shared_ != nullptr);
  const uint8_t* from = shared_->bytes.data();
  const int64_t count = static_cast<int64_t>(values.size());
  if (dtype() == DType::kFloat16) {
    for (int64_t i = 0; i < count; ++i) values[i] = HalfToFloat(Load<uint16_t>(from, i));
    return values;
  }
  Dispatch(dtype(), [&](auto sample) {  // straight from a 64-bit integer: not rounded twice
    for (int64_t i = 0; i < count; ++i) {
      values[i] = static_cast<float>(Load<decltype(sample)>(from, i));
    }
  });
  return values;
}

uint64_t Tensor::ContentHash() const {
  if (shared_ == nullptr) return 0;
  uint64_t hash = shared_->hash.load(std::memory_order_relaxed);
  if (hash == 0) {
    const auto* data = reinterpret_cast<const char*>(shared_->bytes.data());
    hash = absl::HashOf(absl::string_view(data, shared_->bytes.size()));
    shared_->hash.store(hash, std::memory_order_relaxed);
  }
  return hash;
}

bool Tensor::operator==(const Tensor& other) const {
  if (type_ != other.type_) return false;
  if (shared_ == other.shared_) return true;
  const absl::Span<const uint8_t> a = bytes();
  const absl::Span<const uint8_t> b = other.bytes();
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

Tensor CastTensor(const Tensor& tensor, DType to) {
  NPUC_CHECK(to != DType::kInvalid);
  if (tensor.dtype() == to) return tensor;
  if (to == DType::kFloat32) return Tensor::FromFloats(tensor.shape(), tensor.ToFloats());
  const TensorType type{to, tensor.shape()};
  std::vector<uint8_t> bytes(type.size_bytes());
  const int64_t count = type.element_count();
  for (int64_t i = 0; i < count; ++i) CastElement(tensor, i, to, bytes.data());
  return Tensor(type, std::move(bytes));
}

}  // namespace npuc
