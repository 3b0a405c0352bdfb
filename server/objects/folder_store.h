#ifndef NPUC_SERVER_OBJECTS_FOLDER_STORE_H_
#define NPUC_SERVER_OBJECTS_FOLDER_STORE_H_

#include <string>

#include "absl/time/time.h"
#include "server/objects/bounded_calls.h"
#include "server/objects/object_store.h"

namespace npuc::objects {

// Objects as files of a folder that all machines mount (NFS). A file gets its name when it is whole
// and synced; until then it has the name and kUnfinished behind it. Every call of the file system
// is a BoundedCalls::Run, so a share whose server is away costs threads and time, never a caller.
class FolderStore : public ObjectStore {
 public:
  static constexpr char kUnfinished[] = ".part";

  // `root` must be there. `limit`: the time for one call of the file system.
  explicit FolderStore(std::string root, absl::Duration limit = absl::Seconds(30))
      : root_(std::move(root)), calls_(limit) {}

  absl::Status Put(absl::string_view name, uint64_t bytes, const base::ByteReader& read) override;
  absl::StatusOr<std::string> Read(absl::string_view name, uint64_t offset,
                                   size_t max_bytes) override;
  absl::Status Remove(absl::string_view name) override;
  absl::StatusOr<Listing> List(absl::string_view folder, absl::string_view after) override;

 private:
  std::string PathOf(absl::string_view name) const;

  const std::string root_;
  BoundedCalls calls_;
};

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_FOLDER_STORE_H_
