#ifndef NPUC_SERVER_LOG_AUDIT_STORE_H_
#define NPUC_SERVER_LOG_AUDIT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace npuc::log {

// An action of a caller, with its result. Never the content of a model or a config. Texts are
// printable UTF-8.
struct AuditEntry {
  absl::Time time = absl::UnixEpoch();  // to the microsecond
  std::string node = {};                // the daemon that was asked
  std::string action = {};              // "submit", "cancel", "admin.pause" ...
  std::string identity = {};            // empty: not known
  std::string tenant = {};
  std::string peer = {};    // the client's address
  std::string object = {};  // a job, a blob, a filter ...
  std::string result = {};  // "OK", or the reason of the refusal
  std::string detail = {};  // a count, a reason that was given ...
  uint64_t left_out = 0;    // refusals before this one that were only counted

  friend bool operator==(const AuditEntry&, const AuditEntry&) = default;
};

// Takes entries with these values; an empty text takes any.
struct AuditQuery {
  absl::Time from = absl::InfinitePast();  // included
  absl::Time to = absl::InfiniteFuture();  // not included
  std::string node = {};
  std::string action = {};
  std::string identity = {};
  std::string tenant = {};
  std::string object = {};
  std::string result = {};
  size_t limit = 100;           // entries of a page, from 1 on
  std::string page_token = {};  // next_page_token of the page before; empty: the newest entries

  bool Takes(const AuditEntry& entry) const;
};

struct AuditPage {
  std::vector<AuditEntry> entries;  // the newest first
  // Empty: there are no more. A page may have fewer entries than its limit and a token, since a
  // store looks at a bounded number of entries for one page.
  std::string next_page_token;
};

// Where entries are kept and found. Thread-safe.
class AuditStore {
 public:
  virtual ~AuditStore() = default;
  // `first_number`: of the first entry among all that this process wrote; the others follow. To
  // append the same entries twice is to append them once, where the store is shared.
  virtual absl::Status Append(uint64_t first_number, absl::Span<const AuditEntry> entries) = 0;
  // INVALID_ARGUMENT: the page token is none of this store.
  virtual absl::StatusOr<AuditPage> Find(const AuditQuery& query) = 0;
};

}  // namespace npuc::log

#endif  // NPUC_SERVER_LOG_AUDIT_STORE_H_
