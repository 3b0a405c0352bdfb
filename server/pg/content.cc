#include "server/pg/content.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::pg {
namespace {

constexpr absl::Duration kPieceLimit = absl::Seconds(10);
constexpr int64_t kEvictedAtOnce = 100;
constexpr size_t kObjectReadBytes = size_t{4} << 20;
// name_object: too much time has passed, or an earlier call has dropped the object.
constexpr char kMayBeGone[] = "NP001";
constexpr char kMarkerText[] = "npucd";

// A store that refuses is one to wait for: an operator mends its rights, and no job is to fail.
absl::Status OfObjects(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status) && !absl::IsUnavailable(status)) return status;
  return absl::UnavailableError(absl::StrCat("shared content: ", status.message()));
}

std::string MarkerIn(absl::string_view folder) { return absl::StrCat(folder, "/marker"); }

}  // namespace

std::string BlobName(absl::string_view scope, absl::string_view sha256) {
  return absl::StrCat("blob/", scope, "/", sha256);
}

absl::Status Content::OpenObjects() {
  ASSIGN_OR_RETURN(
      const Rows rows,
      sessions_->Read("SELECT cluster_id::text, (SELECT count(*) FROM content WHERE object <> '') "
                      "FROM cluster",
                      {}));
  folder_ = std::string(rows.Text(0, 0));
  const int64_t count = rows.Int(0, 1);
  if (objects_ == nullptr) {
    if (count == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("shared content: ", count,
                     " contents lie in an object store; start with its --cluster-content again"));
  }
  const std::string marker = MarkerIn(folder_);
  const absl::Status found = objects_->Read(marker, 0, sizeof(kMarkerText)).status();
  if (absl::IsNotFound(found) && count != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "shared content: ", count, " contents lie in another store, since this one lacks ", marker,
        "; correct --cluster-content, mount the share, or copy the other store's ", folder_,
        " into it"));
  }
  if (!absl::IsNotFound(found)) RETURN_IF_ERROR(found);
  const auto text = [](uint64_t offset, size_t max_bytes) -> absl::StatusOr<std::string> {
    return std::string(kMarkerText).substr(offset, max_bytes);
  };
  constexpr uint64_t kTextBytes = sizeof(kMarkerText) - 1;
  ASSIGN_OR_RETURN(const Rows trial, sessions_->Read("SELECT new_object()", {}));
  RETURN_IF_ERROR(objects_->Put(trial.Text(0, 0), kTextBytes, text));
  ASSIGN_OR_RETURN(const std::string read, objects_->Read(trial.Text(0, 0), 0, kTextBytes));
  RETURN_IF_ERROR(objects_->Remove(trial.Text(0, 0)));
  if (read != kMarkerText) {
    return absl::FailedPreconditionError(
        "shared content: the store gives other bytes than were put into it");
  }
  RETURN_IF_ERROR(objects_->List(folder_, "").status());
  if (absl::IsNotFound(found)) RETURN_IF_ERROR(objects_->Put(marker, kTextBytes, text));
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable,
            "UPDATE cluster SET min_node_version = 6 WHERE min_node_version < 6", {})
      .status();
}

absl::Status Content::ProbeObjects() {
  if (objects_ == nullptr) return absl::OkStatus();
  absl::Status found =
      OfObjects(objects_->Read(MarkerIn(folder_), 0, sizeof(kMarkerText)).status());
  if (absl::IsNotFound(found)) {
    found = absl::UnavailableError(absl::StrCat("shared content: the store lacks ",
                                                MarkerIn(folder_), "; is the right one mounted?"));
  }
  const MutexLock lock(mutex_);
  away_ = found;
  return found;
}

absl::Status Content::LastProbe() const {
  const MutexLock lock(mutex_);
  return away_;
}

absl::StatusOr<int64_t> Content::PutPieces(absl::string_view name, uint64_t bytes,
                                           const base::ByteReader& read) {
  ASSIGN_OR_RETURN(const Rows set, sessions_->Read("SELECT begin_pieces()", {}));
  const int64_t piece_set = set.Int(0, 0);
  int64_t number = 0;
  for (uint64_t offset = 0; offset < bytes; ++number) {
    ASSIGN_OR_RETURN(const std::string piece,
                     base::ReadNext(read, offset, bytes, kPieceBytes, name));
    RETURN_IF_ERROR(sessions_
                        ->Run(Sessions::Repeat::kRepeatable,
                              "INSERT INTO piece (piece_set, no, body) VALUES ($1, $2, $3) "
                              "ON CONFLICT DO NOTHING",
                              {piece_set, number, Bytes{piece}}, kPieceLimit)
                        .status());
    offset += piece.size();
  }
  return piece_set;
}

absl::Status Content::Put(Kind kind, absl::string_view scope, absl::string_view name,
                          uint64_t bytes, absl::string_view facts, const base::ByteReader& read) {
  const auto kind_number = static_cast<int64_t>(kind);
  const auto size = static_cast<int64_t>(bytes);
  const int64_t keep_us = absl::ToInt64Microseconds(keep_);
  const bool replaces = kind == Kind::kResult;
  if (objects_ == nullptr) {
    ASSIGN_OR_RETURN(const int64_t piece_set, PutPieces(name, bytes, read));
    return sessions_
        ->Run(Sessions::Repeat::kRepeatable, "SELECT name_content($1, $2, $3, $4, $5, $6, $7, $8)",
              {name, scope, kind_number, size, Bytes{facts}, piece_set, keep_us, replaces})
        .status();
  }
  RETURN_IF_ERROR(LastProbe());
  ASSIGN_OR_RETURN(const Rows made, sessions_->Read("SELECT new_object()", {}));
  const absl::string_view object = made.Text(0, 0);
  RETURN_IF_ERROR(OfObjects(objects_->Put(object, bytes, read)));
  const absl::Status named =
      sessions_
          ->Run(Sessions::Repeat::kRepeatable, "SELECT name_object($1, $2, $3, $4, $5, $6, $7, $8)",
                {name, scope, kind_number, size, Bytes{facts}, object, keep_us, replaces})
          .status();
  if (SqlStateOf(named) != kMayBeGone) return named;
  return absl::UnavailableError(
      absl::StrCat("content ", name, " came too late to be named; put it again"));
}

absl::StatusOr<std::map<std::string, Content::Info>> Content::FindAll(
    const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const Rows rows,
                   sessions_->Run(Sessions::Repeat::kRepeatable,
                                  "SELECT name, bytes, facts, piece_set, object FROM "
                                  "find_content($1, $2)",
                                  {names, absl::ToInt64Microseconds(keep_)}));
  std::map<std::string, Info> found;
  for (size_t row = 0; row < rows.size(); ++row) {
    found[std::string(rows.Text(row, 0))] = {.bytes = static_cast<uint64_t>(rows.Int(row, 1)),
                                             .facts = std::string(rows.Text(row, 2)),
                                             .piece_set = rows.Int(row, 3),
                                             .object = std::string(rows.Text(row, 4))};
  }
  return found;
}

absl::StatusOr<std::optional<Content::Info>> Content::Find(absl::string_view name) {
  ASSIGN_OR_RETURN(auto found, FindAll({std::string(name)}));
  if (found.empty()) return std::nullopt;
  return std::move(found.begin()->second);
}

absl::Status Content::Read(const Info& info, const Writer& write) {
  return info.object.empty() ? ReadPieces(info, write) : ReadObject(info, write);
}

absl::Status Content::ReadObject(const Info& info, const Writer& write) {
  if (objects_ == nullptr) {
    return absl::UnavailableError(
        "shared content: it lies in an object store, and this node has none; start it with the "
        "--cluster-content of the others");
  }
  RETURN_IF_ERROR(LastProbe());
  for (uint64_t offset = 0; offset < info.bytes;) {
    const size_t wanted = std::min<uint64_t>(kObjectReadBytes, info.bytes - offset);
    const absl::StatusOr<std::string> bytes = objects_->Read(info.object, offset, wanted);
    if (absl::IsNotFound(bytes.status())) {
      // A store without the marker is another one, or empty because it is not mounted.
      RETURN_IF_ERROR(ProbeObjects());
      return absl::DataLossError(absl::StrCat("object ", info.object, " is missing"));
    }
    RETURN_IF_ERROR(OfObjects(bytes.status()));
    if (bytes->empty()) {
      return absl::DataLossError(
          absl::StrCat("object ", info.object, " ends at byte ", offset, " of ", info.bytes));
    }
    RETURN_IF_ERROR(write(offset, *bytes));
    offset += bytes->size();
  }
  return absl::OkStatus();
}

absl::Status Content::ReadPieces(const Info& info, const Writer& write) const {
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

absl::Status Content::RemoveDamaged(absl::string_view name, const Info& info) {
  return sessions_
      ->Run(Sessions::Repeat::kRepeatable, "SELECT remove_damaged_content($1, $2)",
            {name, info.piece_set})
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

absl::StatusOr<size_t> Content::SweepObjects(size_t max_objects) {
  if (objects_ == nullptr) return 0;
  ASSIGN_OR_RETURN(const Rows doomed, sessions_->Read("SELECT id, object FROM doomed_objects($1)",
                                                      {static_cast<int64_t>(max_objects)}));
  std::vector<int64_t> ids;
  for (size_t row = 0; row < doomed.size(); ++row) {
    RETURN_IF_ERROR(OfObjects(objects_->Remove(doomed.Text(row, 1))));
    ids.push_back(doomed.Int(row, 0));
  }
  RETURN_IF_ERROR(sessions_
                      ->Run(Sessions::Repeat::kRepeatable,
                            "DELETE FROM piece_set WHERE id = ANY ($1) AND object <> ''", {ids})
                      .status());
  ASSIGN_OR_RETURN(const size_t unknown, RemoveUnknownObjects());
  return ids.size() + unknown;
}

absl::StatusOr<size_t> Content::RemoveUnknownObjects() {
  const auto listing = objects_->List(folder_, listed_);
  RETURN_IF_ERROR(OfObjects(listing.status()));
  listed_ = listing->is_end ? "" : listing->names.back();
  if (listing->names.empty()) return 0;
  ASSIGN_OR_RETURN(const Rows unknown,
                   sessions_->Read("SELECT n FROM unknown_objects($1) AS n", {listing->names}));
  for (size_t row = 0; row < unknown.size(); ++row) {
    RETURN_IF_ERROR(OfObjects(objects_->Remove(unknown.Text(row, 0))));
  }
  return unknown.size();
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
