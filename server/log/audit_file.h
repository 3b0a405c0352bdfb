#ifndef NPUC_SERVER_LOG_AUDIT_FILE_H_
#define NPUC_SERVER_LOG_AUDIT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler_core/base/mutex.h"
#include "server/log/audit_store.h"

namespace npuc::log {

struct AuditFileOptions {
  std::string dir = {};   // made where missing; audit.log is the newest, audit.1.log the one before
  std::string node = {};  // of entries whose line has none
  uint64_t max_bytes = uint64_t{64} << 20;       // of a file; then it is put aside
  int files = 10;                                // the oldest goes
  uint64_t max_look_bytes = uint64_t{32} << 20;  // that one call of Find reads
};

// The audit in files of this machine: one JSON object a line, appended. Survives the process; a
// power cut may take the last lines. Thread-safe.
class AuditFile : public AuditStore {
 public:
  static absl::StatusOr<std::unique_ptr<AuditFile>> Open(AuditFileOptions options);
  ~AuditFile() override;
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

  // An entry as a line, without its end.
  static std::string ToLine(const AuditEntry& entry);

  absl::Status Append(uint64_t first_number, absl::Span<const AuditEntry> entries) override;
  // Reads from the newest line back, so that it takes the clock's steps of up to an hour.
  absl::StatusOr<AuditPage> Find(const AuditQuery& query) override;

 private:
  explicit AuditFile(AuditFileOptions options) : options_(std::move(options)) {}
  absl::Status OpenNewest() NPUC_REQUIRES(mutex_);
  void Rotate() NPUC_REQUIRES(mutex_);
  std::string PathOf(int number) const;

  const AuditFileOptions options_;
  Mutex mutex_;
  int fd_ NPUC_GUARDED_BY(mutex_) = -1;
  uint64_t bytes_ NPUC_GUARDED_BY(mutex_) = 0;
};

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_AUDIT_FILE_H_
