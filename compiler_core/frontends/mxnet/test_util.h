#ifndef NPUC_COMPILER_CORE_FRONTENDS_MXNET_TEST_UTIL_H_
#define NPUC_COMPILER_CORE_FRONTENDS_MXNET_TEST_UTIL_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::mxnet {

template <typename T>
void AppendNumber(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

// One array as version 0 to 3 of the format has it. `raw`: its values.
inline std::string ArrayBytes(int version, const Shape& shape, int32_t type_flag,
                              absl::string_view raw) {
  std::string bytes;
  if (version > 0) AppendNumber<uint32_t>(bytes, 0xF993FAC7 + static_cast<uint32_t>(version));
  if (version > 1) AppendNumber<int32_t>(bytes, 0);  // dense
  AppendNumber<uint32_t>(bytes, static_cast<uint32_t>(shape.size()));
  for (const int64_t dim : shape) {
    if (version > 0) {
      AppendNumber<int64_t>(bytes, dim);
    } else {
      AppendNumber<uint32_t>(bytes, static_cast<uint32_t>(dim));
    }
  }
  AppendNumber<int32_t>(bytes, 1);  // the processor
  AppendNumber<int32_t>(bytes, 0);
  AppendNumber<int32_t>(bytes, type_flag);
  bytes.append(raw.data(), raw.size());
  return bytes;
}

inline std::string ArrayBytes(int version, const Shape& shape, const std::vector<float>& values) {
  return ArrayBytes(version, shape, 0,
                    absl::string_view(reinterpret_cast<const char*>(values.data()),
                                      values.size() * sizeof(float)));
}

struct NamedArray {
  std::string name;
  std::string bytes;
};

inline std::string ParamsBytes(const std::vector<NamedArray>& arrays) {
  std::string bytes;
  AppendNumber<uint64_t>(bytes, 0x112);
  AppendNumber<uint64_t>(bytes, 0);
  AppendNumber<uint64_t>(bytes, arrays.size());
  for (const NamedArray& array : arrays) bytes += array.bytes;
  AppendNumber<uint64_t>(bytes, arrays.size());
  for (const NamedArray& array : arrays) {
    AppendNumber<uint64_t>(bytes, array.name.size());
    bytes += array.name;
  }
  return bytes;
}

}  // namespace npuc::mxnet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_MXNET_TEST_UTIL_H_
