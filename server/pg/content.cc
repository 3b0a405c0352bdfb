#include "server/pg/content.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

constexpr absl::Duration kPieceLimit = absl::Seconds(10);
constexpr int64_t kEvictedAtOnce = 100;

}  // namespace

std::string BlobName(absl::string_view scope, absl::string_view sha256) {
  return absl::StrCat("blob/", scope, "/", sha256);
}

absl::Status Content::Put(Kind kind, absl::string_view scope, absl::string_view name,
                          uint64_t bytes, absl::string_view facts, const Reader& read) {
  ASSIGN_OR_RETURN(const Rows set, sessions_->Read("SELECT begin_pieces()", {}));
  const int64_t piece_set = set.Int(0, 0);
  int64_t number = 0;
  for (uint64_t offset = 0; offset < bytes; ++number) {
    ASSIGN_OR_RETURN(const std::string piece,
                     read(offset, std::min<uint64_t>(kPieceBytes, bytes - offset)));
    if (piece.empty()) {
      return absl::DataLossError(
          absl::StrCat("content ", name, " ends at byte ", offset, " of ", bytes));
    }
    RETURN_IF_ERROR(sessions_
                        ->Run(Sessions::Repeat::kRepeatable,
                              "INSERT INTO piece (piece_set, no, body) VALUES ($1, $2, $3) "
                              "ON CONFLICT DO NOTHING",
                              {piece_set, number, Bytes{piece}}, kPieceLimit)
                        .status());
    offset += piece.size();
  }
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable, "SELECT name_content($1, $2, $3, $4, $5, $6, $7, $8)",
            {name, scope, static_cast<int64_t>(kind), static_cast<int64_t>(bytes), Bytes{facts},
             piece_set, absl::ToInt64Microseconds(keep_), kind == Kind::kResult})
      .status();
}

absl::StatusOr<std::map<std::string, Content::Info>> Content::FindAll(
    const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_->Run(Sessions::Repeat::kRepeatable,
                                  "SELECT name, bytes, facts, piece_set FROM find_content($1, $2)",
                                  {names, absl::ToInt64Microseconds(keep_)}));
  std::map<std::string, Info> found;
  for (size_t row = 0; row < rows.size(); ++row) {
    found[std::string(rows.Text(row, 0))] = {.bytes = static_cast<uint64_t>(rows.Int(row, 1)),
                                             .facts = std::string(rows.Text(row, 2)),
                                             .piece_set = rows.Int(row, 3)};
  }
  return found;
}

absl::StatusOr<std::optional<Content::Info>> Content::Find(absl::string_view name) {
  ASSIGN_OR_RETURN(auto found, FindAll({std::string(name)}));
  if (found.empty()) return std::nullopt;
  return std::move(found.begin()->second);
}

absl::Status Content::Read(const Info& info, const Writer& write) const {
  int64_t number = 0;
  for (uint64_t offset = 0; offset < info.bytes; ++number) {
    ASSIGN_OR_RETURN(const Rows rows,
                     sessions_->Run(Sessions::Repeat::kRepeatable,
                                    "SELECT body FROM piece WHERE piece_set = $1 AND no = $2",
                                    {info.piece_set, number}, kPieceLimit));
    const absl::string_view piece = rows.empty() ? absl::string_view() : rows.Text(0, 0);
    if (piece.empty() || piece.size() > info.bytes - offset) {
      return absl::DataLossError(
          absl::StrCat("piece ", number, " of content ", info.piece_set, " is missing or damaged"));
    }
    RETURN_IF_ERROR(write(offset, piece));
    offset += piece.size();
  }
  return absl::OkStatus();
}

absl::Status Content::Remove(absl::string_view name) {
  return sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT remove_content($1)", {name})
      .status();
}

absl::StatusOr<bool> Content::RemoveUnneeded(absl::string_view name) {
  ASSIGN_OR_RETURN(const Rows rows, sessions_->Run(Sessions::Repeat::kRepeatable,
                                                   "SELECT remove_unneeded_content($1)", {name}));
  const int64_t outcome = rows.Int(0, 0);
  if (outcome != 2) return outcome == 1;
  return absl::FailedPreconditionError(
      absl::StrCat(name, ": in use; remove it when its jobs have ended"));
}

absl::StatusOr<size_t> Content::Sweep(size_t max_contents) {
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_->Run(Sessions::Repeat::kRepeatable, "SELECT sweep_content($1)",
                                  {static_cast<int64_t>(max_contents)}, absl::Minutes(1)));
  return static_cast<size_t>(rows.Int(0, 0));
}

absl::StatusOr<uint64_t> Content::Evict(const Value& scope, uint64_t max_bytes) {
  const auto most = static_cast<int64_t>(std::min<uint64_t>(max_bytes, INT64_MAX));
  while (true) {
    ASSIGN_OR_RETURN(
        const Rows rows,
        sessions_->Run(Sessions::Repeat::kRepeatable,
                       "SELECT removed, left_bytes FROM evict_content($1, $2, $3, $4, $5)",
                       {scope, most, absl::ToInt64Microseconds(keep_),
                        absl::ToInt64Microseconds(kIdle), kEvictedAtOnce},
                       absl::Minutes(1)));
    // One that removed fewer had no more to remove, or has made enough room.
    if (rows.Int(0, 0) < kEvictedAtOnce) return static_cast<uint64_t>(rows.Int(0, 1));
  }
}

absl::StatusOr<uint64_t> Content::MakeRoom(uint64_t max_bytes) { return Evict(nullptr, max_bytes); }

absl::StatusOr<uint64_t> Content::MakeRoomIn(absl::string_view scope, uint64_t max_bytes) {
  return Evict(scope, max_bytes);
}

}  // namespace npuc::pg
