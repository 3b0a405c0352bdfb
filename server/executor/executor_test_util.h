#ifndef NPUC_SERVER_EXECUTOR_EXECUTOR_TEST_UTIL_H_
#define NPUC_SERVER_EXECUTOR_EXECUTOR_TEST_UTIL_H_

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "server/observe/tracer.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// Fakes of the stores and the workers, in memory. Thread-safe.

class FakeInputs : public cache::InputStore {
 public:
  cache::BlobDigest Put(const std::string& bytes, const std::string& scope = "default") {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::string sha256 = Sha256Hex(bytes);
    blobs_[{scope, sha256}] = bytes;
    return {sha256, bytes.size()};
  }
  // The same, as a request names it.
  base::InputFile PutFile(const std::string& bytes, const std::string& scope = "default") {
    const cache::BlobDigest digest = Put(bytes, scope);
    return {.sha256 = digest.sha256, .size_bytes = digest.size_bytes};
  }
  void Forget(const std::string& sha256, const std::string& scope = "default") {
    std::lock_guard<std::mutex> lock(mutex_);
    blobs_.erase({scope, sha256});
  }
  // So many calls of Acquire find the store away.
  void SetAway(int calls) {
    std::lock_guard<std::mutex> lock(mutex_);
    away_ = calls;
  }
  // Blobs that somebody holds.
  int held() const { return static_cast<int>(token_.use_count()) - 1; }

  absl::StatusOr<cache::BlobRef> Acquire(absl::string_view scope,
                                         absl::string_view sha256) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (away_ > 0) {
      --away_;
      return absl::UnavailableError("the store is away");
    }
    const auto found = blobs_.find(KeyOf(scope, sha256));
    if (found == blobs_.end()) return absl::NotFoundError("no such blob");
    return cache::BlobRef{.info = {.sha256 = found->first.second,
                                   .md5 = Md5Hex(found->second),
                                   .size_bytes = found->second.size()},
                          .path = "/blobs/" + found->first.second,
                          .hold = token_};
  }
  absl::StatusOr<std::vector<cache::BlobDigest>> FindMissing(
      absl::string_view scope, absl::Span<const cache::BlobDigest> digests) override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<cache::BlobDigest> missing;
    for (const cache::BlobDigest& digest : digests) {
      if (!blobs_.contains(KeyOf(scope, digest.sha256))) missing.push_back(digest);
    }
    return missing;
  }
  absl::Status Remove(absl::string_view scope, absl::string_view sha256) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blobs_.find(KeyOf(scope, sha256));
    if (found == blobs_.end()) return absl::NotFoundError("no such blob");
    if (held() > 0) return absl::FailedPreconditionError("in use");
    blobs_.erase(found);
    return absl::OkStatus();
  }
  absl::StatusOr<cache::UploadState> BeginUpload(absl::string_view scope,
                                                 const cache::BlobDigest& digest) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (full_) return absl::ResourceExhaustedError("disk full");
    if (blobs_.contains(KeyOf(scope, digest.sha256)))
      return cache::UploadState{digest.size_bytes, true};
    return cache::UploadState{uploads_[KeyOf(scope, digest.sha256)].size(), false};
  }
  absl::StatusOr<cache::UploadState> QueryUpload(absl::string_view scope,
                                                 const cache::BlobDigest& digest) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (blobs_.contains(KeyOf(scope, digest.sha256)))
      return cache::UploadState{digest.size_bytes, true};
    if (!uploads_.contains(KeyOf(scope, digest.sha256))) return absl::NotFoundError("not begun");
    return cache::UploadState{uploads_[KeyOf(scope, digest.sha256)].size(), false};
  }
  absl::StatusOr<cache::UploadState> Append(absl::string_view scope,
                                            const cache::BlobDigest& digest, uint64_t offset,
                                            absl::string_view bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!uploads_.contains(KeyOf(scope, digest.sha256))) return absl::NotFoundError("not begun");
    std::string& upload = uploads_[KeyOf(scope, digest.sha256)];
    if (offset > upload.size()) return absl::OutOfRangeError("gap");
    if (offset + bytes.size() > digest.size_bytes) return absl::InvalidArgumentError("too long");
    upload.resize(offset);
    upload.append(bytes.data(), bytes.size());
    return cache::UploadState{upload.size(), false};
  }
  absl::StatusOr<std::string> ReadUpload(absl::string_view scope, const cache::BlobDigest& digest,
                                         uint64_t offset, size_t max_bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto upload = uploads_.find(KeyOf(scope, digest.sha256));
    if (upload == uploads_.end()) return absl::NotFoundError("not begun");
    return upload->second.substr(std::min<uint64_t>(offset, upload->second.size()), max_bytes);
  }
  absl::StatusOr<cache::BlobInfo> Commit(absl::string_view scope,
                                         const cache::BlobDigest& digest) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::string bytes = uploads_[KeyOf(scope, digest.sha256)];
    uploads_.erase(KeyOf(scope, digest.sha256));
    if (Sha256Hex(bytes) != digest.sha256) return absl::InvalidArgumentError("other SHA-256");
    blobs_[KeyOf(scope, digest.sha256)] = bytes;
    return cache::BlobInfo{digest.sha256, Md5Hex(bytes), bytes.size()};
  }
  // Verify answers DATA_LOSS for the blob, and nobody gets it any more.
  void Damage(const std::string& sha256, const std::string& scope = "default") {
    std::lock_guard<std::mutex> lock(mutex_);
    damaged_.insert({scope, sha256});
  }
  absl::Status Verify(absl::string_view scope, absl::string_view sha256) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!damaged_.contains(KeyOf(scope, sha256))) return absl::OkStatus();
    blobs_.erase(KeyOf(scope, sha256));
    return absl::DataLossError("damaged");
  }
  void SetFull() {
    std::lock_guard<std::mutex> lock(mutex_);
    full_ = true;
  }

 private:
  using Key = std::pair<std::string, std::string>;  // scope, SHA-256
  static Key KeyOf(absl::string_view scope, absl::string_view sha256) {
    return {std::string(scope), std::string(sha256)};
  }

  mutable std::mutex mutex_;
  std::map<Key, std::string> blobs_;    // guarded by mutex_
  std::map<Key, std::string> uploads_;  // guarded by mutex_
  std::set<Key> damaged_;               // guarded by mutex_
  bool full_ = false;                   // guarded by mutex_
  int away_ = 0;                        // guarded by mutex_
  std::shared_ptr<const int> token_ = std::make_shared<const int>(0);
};

class FakeArtifactReader : public cache::ArtifactReader {
 public:
  FakeArtifactReader(cache::ArtifactInfo info, std::string bytes)
      : info_(std::move(info)), bytes_(std::move(bytes)) {}
  const cache::ArtifactInfo& info() const override { return info_; }
  absl::StatusOr<std::string> Read(uint64_t offset, size_t max_bytes) override {
    if (offset > bytes_.size()) return absl::OutOfRangeError("past the end");
    return bytes_.substr(offset, max_bytes);
  }

 private:
  const cache::ArtifactInfo info_;
  const std::string bytes_;
};

class FakeCache : public cache::ResultCache {
 public:
  absl::StatusOr<std::optional<cache::CachedResult>> Lookup(const cache::CacheKey& key) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key.ToString());
    if (found == entries_.end()) return std::nullopt;
    return found->second.result;
  }
  absl::StatusOr<std::vector<cache::ArtifactInfo>> Store(
      const cache::CacheKey& key, absl::Span<const cache::ArtifactView> artifacts,
      absl::string_view metadata, const cache::ResultCache::Confirm& confirm) override {
    if (confirm) RETURN_IF_ERROR(confirm());
    std::lock_guard<std::mutex> lock(mutex_);
    if (too_small_) return absl::ResourceExhaustedError("the result is too large");
    if (full_for_ > 0 && full_for_-- > 0) return absl::UnavailableError("disk full");
    ++stores_;
    Entry entry;
    entry.result.metadata = std::string(metadata);
    for (const cache::ArtifactView& artifact : artifacts) {
      entry.result.artifacts.push_back(
          {std::string(artifact.name), artifact.bytes.size(), Sha256Hex(artifact.bytes)});
      entry.bytes[std::string(artifact.name)] = std::string(artifact.bytes);
    }
    entries_[key.ToString()] = entry;
    return entry.result.artifacts;
  }
  absl::StatusOr<std::unique_ptr<cache::ArtifactReader>> OpenArtifact(
      const cache::CacheKey& key, absl::string_view name) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_away_) return absl::UnavailableError("the store is away");
    const auto found = entries_.find(key.ToString());
    if (found == entries_.end()) return absl::NotFoundError("no entry");
    for (const cache::ArtifactInfo& info : found->second.result.artifacts) {
      if (info.name != name) continue;
      return std::make_unique<FakeArtifactReader>(info, found->second.bytes.at(info.name));
    }
    return absl::NotFoundError("no artifact");
  }
  absl::StatusOr<bool> Remove(const cache::CacheKey& key) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.erase(key.ToString()) > 0;
  }
  // From now on no result fits.
  void SetTooSmall() {
    std::lock_guard<std::mutex> lock(mutex_);
    too_small_ = true;
  }
  // From now on no artifact can be read.
  void SetAway() {
    std::lock_guard<std::mutex> lock(mutex_);
    is_away_ = true;
  }
  // The next so many stores find the disk full.
  void FillDisk(int stores) {
    std::lock_guard<std::mutex> lock(mutex_);
    full_for_ = stores;
  }
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    entries_.clear();
  }
  size_t size() {
    std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }
  // How often something was stored.
  int stores() {
    std::lock_guard<std::mutex> lock(mutex_);
    return stores_;
  }

 private:
  struct Entry {
    cache::CachedResult result;
    std::map<std::string, std::string> bytes;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // guarded by mutex_
  bool too_small_ = false;                // guarded by mutex_
  bool is_away_ = false;                  // guarded by mutex_
  int full_for_ = 0;                      // guarded by mutex_
  int stores_ = 0;                        // guarded by mutex_
};

// Counts the artifacts.
class CountingEvents : public worker::ForwardingWorkerEvents {
 public:
  using worker::ForwardingWorkerEvents::ForwardingWorkerEvents;
  void OnArtifact(const worker::WorkerArtifact& artifact) override {
    ++artifacts;
    worker::ForwardingWorkerEvents::OnArtifact(artifact);
  }

  size_t artifacts = 0;
};

// Runs a function in place of a worker. Artifacts of its outcome that it did not tell of are told.
class FakeWorkers : public worker::WorkerRunner {
 public:
  using Behaviour = std::function<absl::StatusOr<worker::WorkerOutcome>(
      const worker::WorkerJob& job, worker::WorkerEvents& events)>;

  void Set(Behaviour behaviour) {
    std::lock_guard<std::mutex> lock(mutex_);
    behaviour_ = std::move(behaviour);
  }
  absl::StatusOr<worker::WorkerOutcome> Run(const worker::WorkerJob& job,
                                            worker::WorkerEvents& events) override {
    Behaviour behaviour;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++runs_;
      behaviour = behaviour_;
    }
    CountingEvents told(events);
    absl::StatusOr<worker::WorkerOutcome> outcome = behaviour(job, told);
    if (!outcome.ok() || outcome->kind != worker::WorkerOutcome::Kind::kSucceeded) return outcome;
    while (told.artifacts < outcome->artifacts.size()) {
      told.OnArtifact(outcome->artifacts[told.artifacts]);
    }
    return outcome;
  }
  bool Cancel(absl::string_view run_id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_.insert(std::string(run_id));
    return true;
  }
  int runs() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return runs_;
  }
  bool WasCancelled(const std::string& run_id) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_.contains(run_id);
  }

 private:
  mutable std::mutex mutex_;
  Behaviour behaviour_;              // guarded by mutex_
  int runs_ = 0;                     // guarded by mutex_
  std::set<std::string> cancelled_;  // guarded by mutex_
};

// Keeps the spans; its clock goes on by a millisecond with each look.
class FakeTracer : public observe::Tracer {
 public:
  base::TraceContext Begin(const base::TraceContext& client) override { return client; }
  void Record(observe::Span span) override {
    std::lock_guard<std::mutex> lock(mutex_);
    spans_.push_back(std::move(span));
  }
  absl::Time Now() const override {
    return absl::FromUnixSeconds(100) + absl::Milliseconds(++looks_);
  }

  std::vector<observe::Span> spans() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return spans_;
  }
  // The first of this name.
  observe::Span Named(absl::string_view name) const {
    for (const observe::Span& span : spans()) {
      if (span.name == name) return span;
    }
    return {};
  }
  // "PARENT > NAME" of each span; "?" where the parent is none of them.
  std::vector<std::string> Tree() const {
    std::vector<std::string> tree;
    for (const observe::Span& span : spans()) {
      std::string parent = "?";
      for (const observe::Span& other : spans()) {
        if (other.span_id == span.parent_id) parent = other.name;
      }
      tree.push_back(absl::StrCat(parent, " > ", span.name));
    }
    return tree;
  }

 private:
  mutable std::atomic<int> looks_ = 0;
  mutable std::mutex mutex_;
  std::vector<observe::Span> spans_;  // guarded by mutex_
};

// A run that makes these artifacts, names and bytes.
inline worker::WorkerOutcome SucceedWith(
    const std::vector<std::pair<std::string, std::string>>& files) {
  worker::WorkerOutcome outcome;
  outcome.kind = worker::WorkerOutcome::Kind::kSucceeded;
  for (const auto& [name, bytes] : files) {
    outcome.artifacts.push_back({name, std::make_shared<const std::string>(bytes)});
  }
  return outcome;
}

// Takes any text as a config for GRUS, "opt" in it naming a side input, "bad" making two errors.
inline absl::StatusOr<ParsedConfig> FakeParseConfig(absl::string_view text, absl::string_view name,
                                                    Diagnostics& diagnostics) {
  if (absl::StrContains(text, "bad")) {
    for (int line = 1; line <= 2; ++line) {
      diagnostics.Add({.kind = DiagnosticKind::kInternalError,
                       .message = absl::StrCat("problem ", line),
                       .file = std::string(name),
                       .line = line});
    }
    return diagnostics.ToStatus();
  }
  ParsedConfig config;
  config.options.core = "GRUS";
  config.options.model_name = "model.pb";
  config.options.model_info = std::string(text);
  config.options.output_file = "model.h";
  config.files = {{.role = "MODEL_FILE", .path = "model.pb", .line = 1}};
  if (absl::StrContains(text, "opt")) {
    config.files.push_back({.role = "OPT_CONFIG", .path = "t.json", .line = 2});
  }
  return config;
}

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_EXECUTOR_TEST_UTIL_H_
