#ifndef NPUC_SERVER_PG_PG_TEXT_H_
#define NPUC_SERVER_PG_PG_TEXT_H_

#include <string>
#include <utility>

#include "server/base/kept_text.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// A text by name in PostgreSQL, which all nodes have. Thread-safe. UNAVAILABLE: PostgreSQL is away.
class PgText : public base::KeptText {
 public:
  // `sessions` must outlive it.
  PgText(Sessions* sessions, std::string name) : sessions_(*sessions), name_(std::move(name)) {}
  absl::StatusOr<std::string> Read() override;
  absl::Status Replace(absl::string_view before, absl::string_view after) override;

 private:
  Sessions& sessions_;
  const std::string name_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_TEXT_H_
