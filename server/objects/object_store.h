#ifndef NPUC_SERVER_OBJECTS_OBJECT_STORE_H_
#define NPUC_SERVER_OBJECTS_OBJECT_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/byte_reader.h"

namespace npuc::objects {

// Bytes by name, where several machines reach them. A store decides nothing: it does not know which
// objects are in use, and its caller gives each object a name that no other object has had. So
// every call may be made again, and a late one harms nothing.
//
// Thread-safe. UNAVAILABLE: the store is away, or answers as none should. PERMISSION_DENIED: it
// refuses these credentials. RESOURCE_EXHAUSTED: it has no room.
class ObjectStore {
 public:
  static constexpr size_t kMaxReadBytes = size_t{8} << 20;
  static constexpr size_t kMaxNameBytes = 200;
  // Names of a List.
  static constexpr size_t kMaxListed = 1000;

  virtual ~ObjectStore() = default;

  // Where it returns OK the object is there whole, and outlasts a crash of the store. Errors of
  // `read` come back as they are. DATA_LOSS: `read` has fewer bytes.
  virtual absl::Status Put(absl::string_view name, uint64_t bytes,
                           const base::ByteReader& read) = 0;
  // Returns up to max_bytes (at most kMaxReadBytes) from offset; fewer only at the object's end.
  // NOT_FOUND: the store answers that it has no such object.
  virtual absl::StatusOr<std::string> Read(absl::string_view name, uint64_t offset,
                                           size_t max_bytes) = 0;
  // OK where there is no such object.
  virtual absl::Status Remove(absl::string_view name) = 0;

  struct Listing {
    std::vector<std::string> names;
    bool is_end = true;  // no names follow
  };
  // Returns names below `folder` ("a/b"), and also those of objects whose Put broke off. The order
  // is the store's own; `after` is the last name of the Listing before, or empty.
  virtual absl::StatusOr<Listing> List(absl::string_view folder, absl::string_view after) = 0;
};

// True for parts of lower-case letters, digits, '-', '_' and '.' between single slashes, of which
// none begins with '.': a name that every store takes as it is.
bool IsObjectName(absl::string_view name);

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_OBJECT_STORE_H_
