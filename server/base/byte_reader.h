#ifndef NPUC_SERVER_BASE_BYTE_READER_H_
#define NPUC_SERVER_BASE_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::base {

// Gives the bytes of a content from offset on, at most so many; it may be asked for the same ones
// again.
using ByteReader = std::function<absl::StatusOr<std::string>(uint64_t offset, size_t max_bytes)>;

// Returns what comes at `offset` of a content of `bytes` bytes, at least one byte and at most
// max_bytes; offset < bytes. DATA_LOSS, which names `content`: the reader has none there, or more
// than it was asked for. Other errors are the reader's.
absl::StatusOr<std::string> ReadNext(const ByteReader& read, uint64_t offset, uint64_t bytes,
                                     size_t max_bytes, absl::string_view content);

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_BYTE_READER_H_
