#ifndef NPUC_SERVER_BASE_KEPT_TEXT_TEST_UTIL_H_
#define NPUC_SERVER_BASE_KEPT_TEXT_TEST_UTIL_H_

#include <string>

#include "server/base/kept_text.h"

namespace npuc::base {

// A text in memory, which several may share as the nodes of a cluster do. Not thread-safe.
struct MemoryText : KeptText {
  absl::StatusOr<std::string> Read() override {
    if (!error.ok()) return error;
    return text;
  }
  absl::Status Replace(absl::string_view before, absl::string_view after) override {
    if (!error.ok()) return error;
    if (text != before) return absl::AbortedError("another text");
    text = std::string(after);
    return absl::OkStatus();
  }

  std::string text;
  absl::Status error = absl::OkStatus();
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_KEPT_TEXT_TEST_UTIL_H_
