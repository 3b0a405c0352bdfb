#ifndef NPUC_SERVER_PG_SHARED_RESULTS_H_
#define NPUC_SERVER_PG_SHARED_RESULTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/artifact_cache.h"
#include "server/base/features.h"
#include "server/pg/content.h"

namespace npuc::pg {

// Results that every node can use: the ArtifactCache of a node, and a copy of its results in
// Content, packed by Zstandard where the cluster allows it. A result that this node lacks is
// fetched when it is asked for; one that arrives damaged is removed, and a miss.
//
// Thread-safe.
class SharedResults : public cache::ResultCache {
 public:
  // All must outlive it.
  SharedResults(cache::ResultCache* local, Content* content, const base::Features* features)
      : local_(local), content_(content), features_(features) {}

  absl::StatusOr<std::optional<cache::CachedResult>> Lookup(const cache::CacheKey& key) override;
  absl::StatusOr<std::vector<cache::ArtifactInfo>> Store(
      const cache::CacheKey& key, absl::Span<const cache::ArtifactView> artifacts,
      absl::string_view metadata, const Confirm& confirm) override;
  absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> OpenArtifact(
      const cache::CacheKey& key, absl::string_view name) override;
  // From this node and the shared store. Another node's copy stays until that node removes it.
  absl::StatusOr<bool> Remove(const cache::CacheKey& key) override;

 private:
  struct Result;

  absl::StatusOr<bool> Fetch(const cache::CacheKey& key);
  absl::Status Share(const cache::CacheKey& key, const cache::CachedResult& stored);
  absl::Status Put(const cache::CacheKey& key, const Result& result);

  cache::ResultCache* const local_;
  Content* const content_;
  const base::Features* const features_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_SHARED_RESULTS_H_
