#ifndef NPUC_SERVER_LOG_AUDIT_LOG_H_
#define NPUC_SERVER_LOG_AUDIT_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/log/line_rate.h"

namespace npuc::log {

struct AuditOptions {
  std::string dir = {};  // made where missing; audit.log is the newest, audit.1.log the one before
  uint64_t max_bytes = uint64_t{64} << 20;  // of a file; then it is put aside
  int files = 10;                           // the oldest goes
  // Refusals that are written a second; more are counted in the next line of one. Else whoever
  // cannot even sign in could push everything else out.
  int refusals_per_second = 20;
  // A datagram socket of a syslog, "/dev/log", which gets each line, too (RFC 3164, authpriv.info);
  // empty: none. It is never waited for.
  std::string syslog_socket = {};
  std::function<absl::Time()> now = nullptr;
};

// The audit log says who did what to what: one JSON object a line, appended. Never the content of a
// model or a config. Survives the process; a power cut may take the last lines. Thread-safe.
class AuditLog {
 public:
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(AuditOptions options);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  struct Entry {
    absl::string_view action;         // "submit", "cancel", "admin.pause" ...
    absl::string_view identity = {};  // empty: not known
    absl::string_view tenant = {};
    absl::string_view peer = {};    // the client's address
    absl::string_view object = {};  // a job, a blob, a filter ...
    absl::string_view result = {};  // "OK", or the reason of the refusal
    absl::string_view detail = {};  // a count, a reason that was given ...
    bool is_refusal = false;        // the caller lacks the right
  };
  // Lines that cannot be written, or not be sent to the syslog, are counted by lost().
  void Write(const Entry& entry);
  uint64_t lost();

 private:
  explicit AuditLog(AuditOptions options);
  absl::Status OpenNewest() NPUC_REQUIRES(mutex_);
  void Rotate() NPUC_REQUIRES(mutex_);
  std::string PathOf(int number) const;
  void SendToSyslog(absl::string_view line) NPUC_REQUIRES(mutex_);

  const AuditOptions options_;
  Mutex mutex_;
  int fd_ NPUC_GUARDED_BY(mutex_) = -1;
  uint64_t bytes_ NPUC_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ NPUC_GUARDED_BY(mutex_) = 0;
  LineRate refusals_ NPUC_GUARDED_BY(mutex_);
  int syslog_fd_ NPUC_GUARDED_BY(mutex_) = -1;  // not connected: a syslog may be started anew
};

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_AUDIT_LOG_H_
