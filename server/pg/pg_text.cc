#include "server/pg/pg_text.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {

absl::StatusOr<std::string> PgText::Read() {
  ASSIGN_OR_RETURN(const Rows rows, sessions_.Read("SELECT body FROM kept_text WHERE name = $1",
                                                   {absl::string_view(name_)}));
  return rows.empty() ? std::string() : std::string(rows.Text(0, 0));
}

absl::Status PgText::Replace(absl::string_view before, absl::string_view after) {
  if (after.size() > kMaxBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, " would have ", after.size(), " bytes, at most ", kMaxBytes));
  }
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_.Run(Sessions::Repeat::kRepeatable, "SELECT replace_text($1, $2, $3)",
                                 {absl::string_view(name_), Bytes{before}, Bytes{after}}));
  if (rows.Bool(0, 0)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(name_, " was changed by another node meanwhile"));
}

}  // namespace npuc::pg
