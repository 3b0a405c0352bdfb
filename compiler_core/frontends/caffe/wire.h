#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_WIRE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_WIRE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace npuc::caffe {

// One field of protobuf's binary form.
struct WireField {
  enum class Type : uint8_t { kVarint, kFixed64, kBytes, kFixed32 };
  uint32_t number = 0;
  Type type = Type::kVarint;
  uint64_t varint = 0;           // of kVarint
  absl::string_view bytes = {};  // of the others: 8, any and 4 bytes
};

// Walks the fields of one message without decoding what they hold.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : bytes_(bytes) {}

  bool AtEnd() const { return bytes_.empty(); }
  // The next field; false where the bytes are no field, or end inside of one.
  bool Next(WireField* field);
  // A number of seven bits a byte; false where the bytes end first or it is longer than ten bytes.
  bool Varint(uint64_t* value);

 private:
  bool Bytes(uint64_t size, absl::string_view* taken);

  absl::string_view bytes_;
};

float FloatAt(absl::string_view four_bytes);
double DoubleAt(absl::string_view eight_bytes);

}  // namespace npuc::caffe

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_WIRE_H_
