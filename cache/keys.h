#ifndef NPUC_CACHE_KEYS_H_
#define NPUC_CACHE_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc::cache {

// The key space of the two stores.
//
// Artifact cache: one RocksDB database, <data>/artifacts. <key> is <scope> '/' <64 hex digits>.
//
//   column family   key                                        value
//   default         "format"                                   "1"
//   entries         <key>                                      manifest record (artifact_cache.cc)
//   chunks (blobs)  <key> '/' <name> '\0' <chunk, 8 hex>       artifact bytes, 256 KiB a chunk
//                   <key> '/' '\0' <chunk, 8 hex>              result metadata, the empty name
//   access          <key>                                      last use, microseconds since 1970,
//                                                              8 bytes big endian; a hint
//
//   The 64 digits are SHA-256 over every part of CacheKeyParts, each with its length before it, so
//   that no two different lists of parts give equal bytes. All keys of a scope share a prefix.
//
// Blob store: files, <data>/blobs (blob_store.h says why files).
//
//   format                                            "1"
//   blobs/<scope>/<2 hex>/<SHA-256>-<MD5>             a committed blob, mode 0444; <2 hex>: its
//   first uploads/<scope>/<SHA-256>-<size>                  what has arrived of an upload
//
// A scope is a tenant's name ("default" while there is one tenant), or later the shared scope.

inline constexpr size_t kMaxScopeBytes = 64;

// 1..64 of A-Z a-z 0-9 '_' '-' '.', not beginning with '.'.
bool IsValidScope(absl::string_view scope);

// 64 lower-case hex digits; 32 of them for MD5.
bool IsValidSha256(absl::string_view hex);
bool IsValidMd5(absl::string_view hex);

// SHA-256 over the parts, each with its length before it: no two lists of parts give equal bytes.
std::string Sha256OfParts(absl::Span<const std::string> parts);

// Everything that decides what a compile's output is, and who may see it.
struct CacheKeyParts {
  std::string scope;
  std::string model_md5;       // what the users' headers carry
  uint64_t model_bytes = 0;    // length
  std::string model_sha256;    // what decides: two files of equal MD5 have two keys
  std::string options_sha256;  // SHA-256 of CanonicalOptions()
  struct SideInput {
    std::string role;  // "OPT_CONFIG"
    std::string sha256;
  };
  std::vector<SideInput> side_inputs;  // any order; a role at most once
  std::string compiler_build_id;       // CompilerBuildId()
};

// The name of a result in the artifact cache. Immutable; cheap to copy.
class CacheKey {
 public:
  // INVALID_ARGUMENT where a scope or digest is not well formed, a role is given twice, or the
  // build id is empty: a key that leaves something out must never be made.
  static absl::StatusOr<CacheKey> Make(const CacheKeyParts& parts);
  // The inverse of ToString(): for keys that were stored with a job.
  static absl::StatusOr<CacheKey> Parse(absl::string_view text);

  const std::string& scope() const { return scope_; }
  const std::string& sha256() const { return sha256_; }
  std::string ToString() const { return scope_ + "/" + sha256_; }

  friend bool operator==(const CacheKey&, const CacheKey&) = default;

 private:
  CacheKey(std::string scope, std::string sha256)
      : scope_(std::move(scope)), sha256_(std::move(sha256)) {}
  std::string scope_;
  std::string sha256_;
};

}  // namespace npuc::cache

#endif  // NPUC_CACHE_KEYS_H_
