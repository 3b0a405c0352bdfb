#ifndef NPUC_SERVER_EXECUTOR_RESULT_STORING_H_
#define NPUC_SERVER_EXECUTOR_RESULT_STORING_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/artifact_cache.h"
#include "compiler_core/base/helper_threads.h"
#include "compiler_core/base/mutex.h"
#include "server/executor/prepared_artifacts.h"
#include "server/jobs/transitions.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// Helper threads that one run after the other uses. Thread-safe.
class HelperPool {
 public:
  // begin: what each thread does first; may be null.
  explicit HelperPool(std::function<void()> begin) : begin_(std::move(begin)) {}

  std::unique_ptr<HelperThreads> Take();
  void Return(std::unique_ptr<HelperThreads> helpers);

 private:
  const std::function<void()> begin_;
  Mutex mutex_;
  std::vector<std::unique_ptr<HelperThreads>> idle_ NPUC_GUARDED_BY(mutex_);
};

// One run's result on its way into the cache. Helper threads pack and check each artifact as it
// comes. The store begins when the compile is complete, while the worker's processes still end,
// which takes as long. Should the worker end badly after that, the entry stays: it is what that
// input gives, whole and checked, and an earlier job with this key may refer to it.
//
// For one thread, which is the run's.
class ResultStoring {
 public:
  // `cache` and `pool` must outlive this. check: null where nothing is asked.
  ResultStoring(cache::ResultCache* cache, HelperPool* pool, cache::CacheKey key,
                std::string output_file, PreparedArtifacts::Check check);
  ~ResultStoring();
  ResultStoring(const ResultStoring&) = delete;
  ResultStoring& operator=(const ResultStoring&) = delete;

  void Add(const worker::WorkerArtifact& artifact) { prepared_->Add(artifact); }
  // The compile is complete, and this is the log so far: begins to store.
  void Begin(const std::string& log, std::vector<base::JobDiagnostic> diagnostics);
  // Waits until the result is stored with this log, and fills in its artifacts and key. After an
  // error it may be called again. UNAVAILABLE: the cache has no room.
  absl::Status Finish(const std::string& log, jobs::JobResult& result);

 private:
  absl::StatusOr<std::vector<cache::ArtifactInfo>> Store(const std::string& log,
                                                         const std::string& metadata);

  cache::ResultCache* const cache_;
  HelperPool* const pool_;
  const cache::CacheKey key_;
  const std::string output_file_;
  std::unique_ptr<HelperThreads> helpers_;
  std::optional<PreparedArtifacts> prepared_;
  std::string begun_log_;  // with which the store has begun
  absl::StatusOr<std::vector<cache::ArtifactInfo>> stored_ = absl::InternalError("not stored yet");
  std::optional<HelperThreads::Task> storing_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_RESULT_STORING_H_
