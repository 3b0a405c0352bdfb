#ifndef NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_
#define NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

// Bytes that a source owns.
class OwnedSource : public ByteSource {
 public:
  explicit OwnedSource(std::string bytes) : bytes_(std::move(bytes)), view_(bytes_) {}
  OwnedSource(const OwnedSource&) = delete;
  int64_t size() const override { return view_.size(); }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    return view_.Read(offset, to);
  }

 private:
  std::string bytes_;
  ViewSource view_;
};

// All of a source whose bytes are looked at whole. RESOURCE_EXHAUSTED beyond max_bytes.
inline absl::StatusOr<std::string> ReadAll(const ByteSource& source, int64_t max_bytes) {
  if (source.size() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("has ", source.size(), " bytes, more than ", max_bytes));
  }
  std::string bytes(static_cast<size_t>(source.size()), '\0');
  const absl::Status read = source.Read(0, absl::MakeSpan(bytes.data(), bytes.size()));
  if (!read.ok()) return read;
  return bytes;
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_BYTE_SOURCE_H_
