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
#include "server/base/byte_reader.h"
#include "server/objects/object_store.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// The name of an uploaded file's content.
std::string BlobName(absl::string_view scope, absl::string_view sha256);

// Bytes by name, so that what one node has taken in or made is there for the others. They are cut
// into pieces in PostgreSQL, or are objects in an ObjectStore; the row that names a content tells
// which, so contents in pieces stay readable where a store is turned on. The row is written last
// and removed first: where it is, all bytes are. Lives are leases in time: a user of a content
// keeps it for a while, and Sweep removes contents that nobody keeps.
//
// Thread-safe. UNAVAILABLE: PostgreSQL or the object store is away.
class Content {
 public:
  static constexpr size_t kPieceBytes = 256 << 10;
  // kPart: a part of an upload under way.
  enum class Kind : uint8_t { kBlob = 1, kResult = 2, kPart = 3 };

  // `objects`: where contents are put; null: into PostgreSQL. `keep`: for how long a content that
  // was put, found or kept stays at least.
  explicit Content(Sessions* sessions, objects::ObjectStore* objects = nullptr,
                   absl::Duration keep = absl::Hours(24 * 8))
      : sessions_(sessions), objects_(objects), keep_(keep) {}

  // Once, before all other calls. Tries the object store by an object, and finds or leaves the
  // cluster's marker in it; from then on nodes too old for objects do not start.
  // FAILED_PRECONDITION: contents lie in another store than this one, or there is none.
  absl::Status OpenObjects();
  // OK where the object store, if there is one, has the cluster's marker. After an error contents
  // in objects are UNAVAILABLE at once, until a later call finds the marker: callers do not wait
  // one after the other for a store that hangs.
  absl::Status ProbeObjects();

  struct Info {
    uint64_t bytes = 0;
    std::string facts;  // the owner's words about it
    int64_t piece_set = 0;
    std::string object;  // its name in the object store; empty: it is in pieces
  };
  using Writer = std::function<absl::Status(uint64_t offset, absl::string_view bytes)>;

  // A blob or part that has the name already stays; a result is replaced.
  absl::Status Put(Kind kind, absl::string_view scope, absl::string_view name, uint64_t bytes,
                   absl::string_view facts, const base::ByteReader& read);
  // A content that it finds is kept. nullopt: it is not there.
  absl::StatusOr<std::optional<Info>> Find(absl::string_view name);
  // Finds many at once, by name.
  absl::StatusOr<std::map<std::string, Info>> FindAll(const std::vector<std::string>& names);
  // DATA_LOSS: bytes are missing; the content was removed meanwhile, or is damaged.
  absl::Status Read(const Info& info, const Writer& write);
  absl::Status Remove(absl::string_view name);
  // Removes a content whose bytes are not those that were put; not one that replaced it meanwhile.
  absl::Status RemoveDamaged(absl::string_view name, const Info& info);
  // False: it was not there. FAILED_PRECONDITION: a live job needs it.
  absl::StatusOr<bool> RemoveUnneeded(absl::string_view name);

  // Removes at most so many contents that nobody keeps, the longest unused first, and pieces that a
  // broken Put left. Returns how many. The inputs of live jobs stay, here and below.
  absl::StatusOr<size_t> Sweep(size_t max_contents);
  // Removes the bytes of at most so many contents that have gone, and looks at one page of the
  // store's names for objects older than two days that nothing knows: a Put broke off, or
  // PostgreSQL was restored. Returns how many objects it removed. For one thread at a time.
  absl::StatusOr<size_t> SweepObjects(size_t max_objects);
  // Removes contents that were not used for kIdle, the longest unused first, until no more than so
  // many bytes are left of all contents, or of the blobs and parts of a scope. Uses are written
  // once an hour. Returns the bytes that are left.
  static constexpr absl::Duration kIdle = absl::Hours(1);
  absl::StatusOr<uint64_t> MakeRoom(uint64_t max_bytes);
  absl::StatusOr<uint64_t> MakeRoomIn(absl::string_view scope, uint64_t max_bytes);

 private:
  absl::StatusOr<int64_t> PutPieces(absl::string_view name, uint64_t bytes,
                                    const base::ByteReader& read);
  absl::Status ReadPieces(const Info& info, const Writer& write) const;
  absl::Status ReadObject(const Info& info, const Writer& write);
  absl::Status LastProbe() const;
  absl::StatusOr<size_t> RemoveUnknownObjects();
  absl::StatusOr<uint64_t> Evict(const Value& scope, uint64_t max_bytes);

  Sessions* const sessions_;
  objects::ObjectStore* const objects_;
  const absl::Duration keep_;
  mutable Mutex mutex_;
  absl::Status away_ NPUC_GUARDED_BY(mutex_) = absl::OkStatus();  // what the last probe found
  std::string folder_;  // of the cluster's objects; set by OpenObjects
  std::string listed_;  // SweepObjects goes on behind this name
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_CONTENT_H_
