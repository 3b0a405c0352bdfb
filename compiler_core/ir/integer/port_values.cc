#include "compiler_core/ir/integer/port_values.h"

#include <algorithm>
#include <cstring>

#include "compiler_core/base/fixed_point.h"
#include "compiler_core/ir/integer/access.h"

namespace npuc::integer {
namespace {

template <typename T>
T Load(const void* bytes, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

}  // namespace

int64_t StoredValue(const PortTensor& port, double real) {
  constexpr int64_t kLarge = int64_t{1} << 40;  // room for the zero point
  const int64_t rounded = std::clamp(RoundHalfEven(real / port.scale), -kLarge, kLarge);
  return std::clamp(rounded + port.zero_point, LowestValue(port.dtype), HighestValue(port.dtype));
}

float RealValue(const PortTensor& port, int64_t stored) {
  return static_cast<float>(static_cast<double>(stored - port.zero_point) * port.scale);
}

int64_t LoadInteger(DType type, const void* bytes, int64_t i) {
  switch (type) {
    case DType::kInt8:
      return Load<int8_t>(bytes, i);
    case DType::kUint8:
      return Load<uint8_t>(bytes, i);
    case DType::kInt16:
      return Load<int16_t>(bytes, i);
    case DType::kUint16:
      return Load<uint16_t>(bytes, i);
    case DType::kInt32:
      return Load<int32_t>(bytes, i);
    default:
      return Load<int64_t>(bytes, i);
  }
}

void StoreInteger(DType type, int64_t value, void* bytes, int64_t i) {
  const int64_t size = SizeOf(type);
  std::memcpy(static_cast<char*>(bytes) + i * size, &value, static_cast<size_t>(size));
}

}  // namespace npuc::integer
