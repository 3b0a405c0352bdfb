#ifndef NPUC_SERVER_JOBS_INDEX_LOADER_H_
#define NPUC_SERVER_JOBS_INDEX_LOADER_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/indexed_job_store.h"

namespace npuc::jobs {

struct IndexLoaderOptions {
  absl::Duration pause = absl::Seconds(5);  // after an error
  // Called after each try, on the loader's thread.
  std::function<void(const absl::Status& loaded)> on_try = [](const absl::Status&) {};
};

// Fills the index of a store beside everything else, and tries again until it could read all jobs.
// Thread-safe.
class IndexLoader {
 public:
  // `store` must outlive it.
  IndexLoader(IndexedJobStore* store, IndexLoaderOptions options);
  ~IndexLoader();
  IndexLoader(const IndexLoader&) = delete;
  IndexLoader& operator=(const IndexLoader&) = delete;

  // Fills it; once more, from its beginning, where it is being filled. Returns at once.
  void Start();

 private:
  void Loop();

  IndexedJobStore* const store_;
  const IndexLoaderOptions options_;
  Mutex mutex_;
  CondVar changed_;
  bool is_wanted_ NPUC_GUARDED_BY(mutex_) = false;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_INDEX_LOADER_H_
