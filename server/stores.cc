#include "server/stores.h"

#include "compiler_core/base/status.h"
#include "server/base/steady_clock.h"
#include "server/executor/canary.h"
#include "server/startup.h"

namespace npuc::daemon {
namespace {

// A share of --blob-mib: above it, uploads that nobody needs go, the least recently used first.
constexpr double kSoftCacheShare = 0.8;

cache::BlobStoreOptions BlobOptions(const DaemonContext& context) {
  const Flags& flags = context.flags;
  const uint64_t limit = static_cast<uint64_t>(flags.blob_mib) << 20;
  return {.root = context.data_dir + "/blobs",
          .soft_limit_bytes = static_cast<uint64_t>(kSoftCacheShare * static_cast<double>(limit)),
          .hard_limit_bytes = limit,
          .disk_reserve_bytes = context.DiskReserveBytes(),
          .max_open_uploads_of_scope = static_cast<size_t>(flags.tenant_uploads),
          .scope_limit = [rules = context.rules](
                             absl::string_view tenant) { return rules->StoredBytesOf(tenant); },
          .own_scope = executor::Canary::kTenant,
          .steady_now = base::SteadyNow};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stores>> Stores::Open(const DaemonContext& context) {
  auto stores = std::make_unique<Stores>();
  ASSIGN_OR_RETURN(stores->blobs, cache::BlobStore::Open(BlobOptions(context)));
  auto artifacts =
      cache::ArtifactCache::Open({.path = context.data_dir + "/artifacts",
                                  .scope_limit = [rules = context.rules](absl::string_view scope) {
                                    return rules->ResultBytesOf(scope);
                                  }});
  RETURN_IF_ERROR(WithAdvice(artifacts.status(), "delete it: jobs compile again"));
  stores->artifacts = *std::move(artifacts);
  return stores;
}

absl::Status Stores::Probe() const { return artifacts->Probe(); }

void Stores::Sample(observe::Metrics& metrics) const {
  const auto set = [&](observe::Metric metric, uint64_t value) {
    metrics.Set(metric, {}, static_cast<double>(value));
  };
  const cache::ArtifactCache::Stats cache = artifacts->GetStats();
  set(observe::Metric::kCacheHits, cache.hits);
  set(observe::Metric::kCacheMisses, cache.misses);
  set(observe::Metric::kCacheDamaged, cache.damaged);
  set(observe::Metric::kCacheEvicted, cache.evicted);
  set(observe::Metric::kCacheBytes, cache.bytes);
  const cache::BlobStore::Stats stats = blobs->GetStats();
  set(observe::Metric::kBlobBytes, stats.blob_bytes);
  set(observe::Metric::kBlobsDamaged, stats.damaged_blobs);
  set(observe::Metric::kUploadsOpen, stats.open_uploads);
  set(observe::Metric::kUploadBytes, stats.upload_bytes);
}

}  // namespace npuc::daemon
