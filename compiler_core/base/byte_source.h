#ifndef NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_
#define NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc {

// A file that is read in parts: calibration data of any size must not fill memory. The bytes do not
// change while it lives. Thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual int64_t size() const = 0;
  // Exactly to.size() bytes from `offset` on. OUT_OF_RANGE beyond the end.
  virtual absl::Status Read(int64_t offset, absl::Span<char> to) const = 0;
};

// Bytes in memory, or mapped.
class ViewSource : public ByteSource {
 public:
  explicit ViewSource(absl::string_view bytes) : bytes_(bytes) {}  // must outlive this
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    if (offset < 0 || offset > size() || static_cast<int64_t>(to.size()) > size() - offset) {
      return absl::OutOfRangeError("a read beyond the end of the data");
    }
    std::copy_n(bytes_.data() + offset, to.size(), to.data());
    return absl::OkStatus();
  }

 private:
  absl::string_view bytes_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_
