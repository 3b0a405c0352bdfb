#ifndef NPUC_SERVER_PG_CONNECTION_H_
#define NPUC_SERVER_PG_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace npuc::pg {

// A connection to PostgreSQL by libpq; the types of libpq stay in the .cc. Nothing waits without a
// limit.

// The knowledge about a statement that failed. Its SQLSTATE decides, never its text.
enum class Fault : uint8_t {
  kNone,     // the status is OK, or not of a connection
  kRefused,  // the server refused the statement; sent again, it would be refused again
  kRetry,    // nothing was done; the same statement may succeed now (deadlock, serialization)
  kLost,     // nothing was done; the server is away, or does not take writes
  kUnknown,  // it was sent and no answer came: it was done or not
};

// Code UNAVAILABLE for kRetry, kLost and kUnknown, else INTERNAL; RESOURCE_EXHAUSTED for a full
// disk, of which nothing was done.
Fault FaultOf(const absl::Status& status);
// The five characters of the server's SQLSTATE; empty where there is none.
std::string SqlStateOf(const absl::Status& status);

// A parameter. Numbers are bigint or double precision, strings text (without NUL), Bytes bytea.
struct Bytes {
  absl::string_view bytes;
};
using TextArray = std::vector<std::string>;
using IntArray = std::vector<int64_t>;
using BytesArray = std::vector<Bytes>;
struct OptionalTextArray {
  std::vector<std::optional<std::string>> items;  // nullopt: NULL
};
using Value = std::variant<std::nullptr_t, bool, int64_t, double, absl::string_view, Bytes,
                           TextArray, OptionalTextArray, IntArray, BytesArray>;

// The rows that a statement gave. Columns are counted from 0. Asking for a column or row that is
// not there, or for a type other than the column's, is a defect of the statement's writer and ends
// the process.
class Rows {
 public:
  Rows();
  ~Rows();
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&& other) noexcept;

  size_t size() const;
  bool empty() const { return size() == 0; }
  // Rows that were returned, or changed by a statement that returns none.
  size_t affected() const;
  bool IsNull(size_t row, int column) const;
  bool Bool(size_t row, int column) const;
  int64_t Int(size_t row, int column) const;  // smallint, integer, bigint
  double Double(size_t row, int column) const;
  // Reads text and bytea; the view lives as long as the rows.
  absl::string_view Text(size_t row, int column) const;
  std::vector<int64_t> Ints(size_t row, int column) const;  // bigint[] without NULL

 private:
  friend class Connection;
  struct Impl;
  explicit Rows(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct ConnectionOptions {
  std::string url;            // postgres://user@host:port/database?..., or "key=value ..."
  std::string password = {};  // empty: as libpq finds one
  std::string application = "npucd";
  // False: a commit may be lost by a crash of the server, though never its order.
  bool synchronous_commit = true;
  // A pooler in transaction mode gives each statement any session of PostgreSQL. The role has the
  // settings that a session would get (Migrate), all commits are synchronous, nobody listens.
  bool is_pooled = false;
  absl::Duration connect_limit = absl::Seconds(3);
};

// INVALID_ARGUMENT: the URL is malformed, or has a password, which every user of the machine could
// read in the list of processes. No message has the URL's text.
absl::Status CheckUrl(const std::string& url);

struct Notification {
  std::string channel;
  std::string payload;
};

// One session. Not thread-safe. After a fault of kLost or kUnknown it is of no more use; make
// another one.
class Connection {
 public:
  // Connects to a server that takes writes. kLost; kRefused: wrong password, no such database.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One statement, which is a transaction of its own. A commit whose wait for the standby was cut
  // short is kUnknown.
  absl::StatusOr<Rows> Run(const char* sql, absl::Span<const Value> parameters,
                           absl::Duration limit);
  // Statements without parameters, separated by semicolons, in one transaction.
  absl::Status RunScript(const std::string& sql, absl::Duration limit);

  bool is_usable() const;
  // Waits for notifications (LISTEN) for at most so long.
  absl::StatusOr<std::vector<Notification>> WaitForNotifications(absl::Duration limit);
  // Warnings and notices since the last call, for tests of plans.
  std::vector<std::string> TakeNotices();

 private:
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_CONNECTION_H_
