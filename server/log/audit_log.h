#ifndef NPUC_SERVER_LOG_AUDIT_LOG_H_
#define NPUC_SERVER_LOG_AUDIT_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/log/audit_file.h"
#include "server/log/audit_store.h"
#include "server/log/line_rate.h"

namespace npuc::log {

struct AuditOptions {
  AuditFileOptions file = {};
  // Refusals that are written a second; more are counted in the next line of one. Else whoever
  // cannot even sign in could push everything else out.
  int refusals_per_second = 20;
  // A datagram socket of a syslog, "/dev/log", which gets each line, too (RFC 3164, authpriv.info);
  // empty: none. It is never waited for.
  std::string syslog_socket = {};
  // The store of all nodes of a cluster; null: the files are all there is.
  std::unique_ptr<AuditStore> shared = nullptr;
  size_t max_waiting = 10000;  // entries that it lacks yet; more are lost
  absl::Duration write_period = absl::Milliseconds(500);  // of the entries that nobody waits for
  std::function<absl::Time()> now = nullptr;
};

// Tells the audit of this daemon's calls. An entry is in a file of this machine when Write returns.
// The shared store of a cluster gets it, too: an operator's action before Write returns, for at
// most kPatience, others some moments later. Entries that the store could not take wait for it in
// memory. Thread-safe.
class AuditLog {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(2);

  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(AuditOptions options);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // As AuditEntry.
  struct Entry {
    absl::string_view action;
    absl::string_view identity = {};
    absl::string_view tenant = {};
    absl::string_view peer = {};
    absl::string_view object = {};
    absl::string_view result = {};
    absl::string_view detail = {};
    bool is_refusal = false;  // the caller lacks the right
  };
  void Write(const Entry& entry);
  // Finds entries of all nodes, where there is a shared store. UNAVAILABLE: it is away.
  absl::StatusOr<AuditPage> Find(const AuditQuery& query);
  // Waits, for at most so long, until the shared store has all entries.
  void Flush(absl::Duration limit);

  // Entries that were not written to the file, to the syslog or to the shared store.
  uint64_t lost();
  // Entries that wait for the shared store.
  uint64_t waiting();

 private:
  AuditLog(AuditOptions options, std::unique_ptr<AuditFile> file);
  void SendToSyslog(absl::string_view line) NPUC_REQUIRES(mutex_);
  void Share(AuditEntry entry) NPUC_REQUIRES(mutex_);
  void ShareLoop();

  const AuditOptions options_;
  const std::unique_ptr<AuditFile> file_;
  Mutex mutex_;
  uint64_t lost_ NPUC_GUARDED_BY(mutex_) = 0;
  LineRate refusals_ NPUC_GUARDED_BY(mutex_);
  int syslog_fd_ NPUC_GUARDED_BY(mutex_) = -1;  // not connected: a syslog may be started anew
  // Entries for the shared store, the first of which has the number.
  std::deque<AuditEntry> waiting_ NPUC_GUARDED_BY(mutex_);
  uint64_t first_number_ NPUC_GUARDED_BY(mutex_) = 1;
  int waiters_ NPUC_GUARDED_BY(mutex_) = 0;  // threads for which the loop must not wait
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  CondVar changed_;
  std::thread sharer_;
};

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_AUDIT_LOG_H_
