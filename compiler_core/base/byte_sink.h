#ifndef NPUC_COMPILER_CORE_BASE_BYTE_SINK_H_
#define NPUC_COMPILER_CORE_BASE_BYTE_SINK_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace npuc {

// Takes the bytes of a file piece by piece, in order. The first error ends the file.
using ByteSink = std::function<absl::Status(absl::string_view piece)>;

// Passes a file's bytes to a sink while it makes them, so that a large file is never in memory as a
// whole. May be called any number of times, on any thread. Returns the sink's error.
using ByteWriter = std::function<absl::Status(const ByteSink& sink)>;

// A writer of bytes that exist already.
inline ByteWriter WriterOf(std::string bytes) {
  return [bytes = std::move(bytes)](const ByteSink& sink) { return sink(bytes); };
}

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_BYTE_SINK_H_
