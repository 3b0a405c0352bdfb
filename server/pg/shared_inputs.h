#ifndef NPUC_SERVER_PG_SHARED_INPUTS_H_
#define NPUC_SERVER_PG_SHARED_INPUTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cache/blob_store.h"
#include "compiler_core/base/mutex.h"
#include "server/pg/content.h"

namespace npuc::pg {

struct SharedInputsOptions {
  // The bound of all contents, results among them; what would exceed it is refused, as on a full
  // disk.
  uint64_t max_bytes = UINT64_MAX;
  // The most that a scope may hold; null: no limit. Nothing is asked for `own_scope`, which is the
  // program's own.
  std::function<uint64_t(absl::string_view scope)> scope_limit = nullptr;
  std::string own_scope = {};
};

// Uploads that every node can use: the BlobStore of a node, and a copy of its committed blobs in
// Content. A blob that this node lacks is fetched when it is asked for, and its digests are
// computed on the way in. Each whole part of an upload is shared as it arrives, so that the upload
// goes on at another node, behind the last of them. An upload that no node ended leaves its parts
// for as long as unused blobs.
//
// Thread-safe.
class SharedInputs : public cache::InputStore {
 public:
  // At most this much is sent again where an upload goes on at another node.
  static constexpr uint64_t kPartBytes = 8 << 20;

  // Both must outlive it.
  SharedInputs(cache::InputStore* local, Content* content, SharedInputsOptions options = {})
      : local_(local), content_(content), options_(std::move(options)) {}

  absl::StatusOr<cache::BlobRef> Acquire(absl::string_view scope,
                                         absl::string_view sha256) override;
  absl::StatusOr<std::vector<cache::BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const cache::BlobDigest> digests) override;
  absl::StatusOr<cache::UploadState> BeginUpload(absl::string_view scope,
                                                 const cache::BlobDigest& digest) override;
  absl::StatusOr<cache::UploadState> QueryUpload(absl::string_view scope,
                                                 const cache::BlobDigest& digest) override;
  absl::StatusOr<cache::UploadState> Append(absl::string_view scope,
                                            const cache::BlobDigest& digest, uint64_t offset,
                                            absl::string_view bytes) override;
  absl::StatusOr<std::string> ReadUpload(absl::string_view scope, const cache::BlobDigest& digest,
                                         uint64_t offset, size_t max_bytes) override {
    return local_->ReadUpload(scope, digest, offset, max_bytes);
  }
  absl::StatusOr<cache::BlobInfo> Commit(absl::string_view scope,
                                         const cache::BlobDigest& digest) override;
  // A blob that is damaged here is fetched anew.
  absl::Status Verify(absl::string_view scope, absl::string_view sha256) override;
  // From this node and the shared store. Another node's copy stays until that node removes it.
  absl::Status Remove(absl::string_view scope, absl::string_view sha256) override;

 private:
  absl::Status Share(absl::string_view scope, const cache::BlobRef& blob);
  absl::Status MakeRoom(absl::string_view scope, uint64_t size);
  absl::Status Fetch(absl::string_view scope, absl::string_view sha256, const Content::Info& info);
  // True: its shared copy was there less than a minute ago, and so is kept for hours.
  bool IsKept(const std::string& name);
  void SetKept(const std::string& name);
  absl::StatusOr<bool> IsShared(absl::string_view scope, const cache::BlobDigest& digest);
  // The parts from this one on, without a gap.
  absl::StatusOr<std::vector<Content::Info>> FindParts(absl::string_view scope,
                                                       const cache::BlobDigest& digest,
                                                       uint64_t first);
  absl::Status SharePart(absl::string_view scope, const cache::BlobDigest& digest, uint64_t number);
  // Appends to the upload here what it lacks of `parts`, which begin with the first one.
  absl::Status FetchParts(absl::string_view scope, const cache::BlobDigest& digest,
                          const std::vector<Content::Info>& parts, cache::UploadState* state);
  absl::Status RemoveParts(absl::string_view scope, const cache::BlobDigest& digest);

  cache::InputStore* const local_;
  Content* const content_;
  const SharedInputsOptions options_;
  Mutex fetch_mutex_;  // one fetch at a time
  Mutex kept_mutex_;
  std::map<std::string, SteadyTime> kept_ NPUC_GUARDED_BY(kept_mutex_);
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SHARED_INPUTS_H_
