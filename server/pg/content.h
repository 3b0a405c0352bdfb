#ifndef NPUC_SERVER_PG_CONTENT_H_
#define NPUC_SERVER_PG_CONTENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "compiler_core/base/mutex.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// The name of an uploaded file's content.
std::string BlobName(absl::string_view scope, absl::string_view sha256);

// Bytes by name in PostgreSQL, cut into pieces, so that what one node has taken in or made is there
// for the others. The row that names a content is written last and removed first: where it is, all
// pieces are. Lives are leases in time: a user of a content keeps it for a while, and Sweep
// removes contents that nobody keeps.
//
// Thread-safe. UNAVAILABLE: PostgreSQL is away.
class Content {
 public:
  static constexpr size_t kPieceBytes = 256 << 10;
  // kPart: a part of an upload under way.
  enum class Kind : uint8_t { kBlob = 1, kResult = 2, kPart = 3 };

  // `keep`: for how long a content that was put, found or kept stays at least.
  explicit Content(Sessions* sessions, absl::Duration keep = absl::Hours(24 * 8))
      : sessions_(sessions), keep_(keep) {}

  struct Info {
    uint64_t bytes = 0;
    std::string facts;  // the owner's words about it
    int64_t piece_set = 0;
  };
  // Gives the bytes from offset on, at most so many.
  using Reader = std::function<absl::StatusOr<std::string>(uint64_t offset, size_t max_bytes)>;
  using Writer = std::function<absl::Status(uint64_t offset, absl::string_view bytes)>;

  // A blob or part that has the name already stays; a result is replaced.
  absl::Status Put(Kind kind, absl::string_view scope, absl::string_view name, uint64_t bytes,
                   absl::string_view facts, const Reader& read);
  // A content that it finds is kept. nullopt: it is not there.
  absl::StatusOr<std::optional<Info>> Find(absl::string_view name);
  // Finds many at once, by name.
  absl::StatusOr<std::map<std::string, Info>> FindAll(const std::vector<std::string>& names);
  // DATA_LOSS: a piece is missing; the content was removed meanwhile, or is damaged.
  absl::Status Read(const Info& info, const Writer& write) const;
  absl::Status Remove(absl::string_view name);
  // False: it was not there. FAILED_PRECONDITION: a live job needs it.
  absl::StatusOr<bool> RemoveUnneeded(absl::string_view name);

  // Removes at most so many contents that nobody keeps, the longest unused first, and pieces that a
  // broken Put left. Returns how many. The inputs of live jobs stay, here and below.
  absl::StatusOr<size_t> Sweep(size_t max_contents);
  // Removes contents that were not used for kIdle, the longest unused first, until no more than so
  // many bytes are left of all contents, or of the blobs and parts of a scope. Uses are written
  // once an hour. Returns the bytes that are left.
  static constexpr absl::Duration kIdle = absl::Hours(1);
  absl::StatusOr<uint64_t> MakeRoom(uint64_t max_bytes);
  absl::StatusOr<uint64_t> MakeRoomIn(absl::string_view scope, uint64_t max_bytes);

 private:
  absl::StatusOr<uint64_t> Evict(const Value& scope, uint64_t max_bytes);

  Sessions* const sessions_;
  const absl::Duration keep_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_CONTENT_H_
