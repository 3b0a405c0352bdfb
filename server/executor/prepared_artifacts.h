#ifndef NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_
#define NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cache/artifact_cache.h"
#include "compiler_core/base/helper_threads.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// What a worker made, on its way into the cache: packed and checked by helpers, and by the owner's
// thread where that waits. So it is done while the worker ends, which mostly wants the processor of
// the thread that follows it.
class PreparedArtifacts {
 public:
  // Whether an artifact is whole.
  using Check = std::function<absl::Status(absl::string_view name, absl::string_view bytes)>;

  // check: null where nothing is asked. The helpers must outlive this.
  PreparedArtifacts(Check check, HelperThreads& helpers)
      : check_(std::move(check)), helpers_(helpers) {}
  PreparedArtifacts(const PreparedArtifacts&) = delete;
  PreparedArtifacts& operator=(const PreparedArtifacts&) = delete;

  // Begins with one.
  void Add(const worker::WorkerArtifact& artifact);
  // Waits. In the order of Add; views of what this owns.
  const std::vector<cache::ArtifactView>& Packed();
  // Waits. What the first artifact that is not whole lacks.
  absl::Status Checked();

 private:
  struct Item {
    worker::WorkerArtifact artifact;
    absl::Status found;  // by the check
  };

  const Check check_;
  HelperThreads& helpers_;
  std::deque<Item> items_;  // which stay where they are
  std::vector<cache::ArtifactView> views_;
  std::vector<HelperThreads::Task> packing_;
  std::vector<HelperThreads::Task> checking_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_
