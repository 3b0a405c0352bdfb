#ifndef NPUC_SERVER_BASE_KEPT_TEXT_H_
#define NPUC_SERVER_BASE_KEPT_TEXT_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::base {

// A text that outlives the process: what an operator decided by hand. Of a cluster all nodes have
// the same. Thread-safe.
class KeptText {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;

  virtual ~KeptText() = default;
  // Empty: there is none.
  virtual absl::StatusOr<std::string> Read() = 0;
  // Puts `after` in the place of `before`, durably; empty stands for none. ABORTED: another node
  // has changed it meanwhile. RESOURCE_EXHAUSTED: over kMaxBytes.
  virtual absl::Status Replace(absl::string_view before, absl::string_view after) = 0;
};

// In a file, which nobody else writes.
class FileText : public KeptText {
 public:
  explicit FileText(std::string path) : path_(std::move(path)) {}
  absl::StatusOr<std::string> Read() override;
  absl::Status Replace(absl::string_view before, absl::string_view after) override;

 private:
  const std::string path_;
};

}  // namespace npuc::base

#endif  // NPUC_SERVER_BASE_KEPT_TEXT_H_
