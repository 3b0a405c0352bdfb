#ifndef NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_
#define NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cache/artifact_cache.h"
#include "compiler_core/base/helper_threads.h"
#include "server/worker/worker_pool.h"

namespace npuc {

// What a worker made, on its way into the cache: packed and checked by helpers, and by the owner's
// thread where that waits. So it is done while the worker ends, which mostly wants the processor of
// the thread that follows it.
class PreparedArtifacts {
 public:
  // Whether an artifact is whole.
  using Check = std::function<absl::Status(absl::string_view name, absl::string_view bytes)>;

  // Begins. check: null where nothing is asked. The helpers must outlive this.
  PreparedArtifacts(std::vector<WorkerArtifact> artifacts, const Check& check,
                    HelperThreads& helpers);
  PreparedArtifacts(const PreparedArtifacts&) = delete;
  PreparedArtifacts& operator=(const PreparedArtifacts&) = delete;

  // Waits. In the worker's order; views of what this owns.
  const std::vector<ArtifactView>& Packed();
  // Waits. What the first artifact that is not whole lacks.
  absl::Status Checked();

 private:
  const std::vector<WorkerArtifact> artifacts_;
  std::vector<ArtifactView> views_;
  absl::Status checked_;
  std::vector<HelperThreads::Task> packing_;
  std::optional<HelperThreads::Task> checking_;
};

}  // namespace npuc

#endif  // NPUC_SERVER_EXECUTOR_PREPARED_ARTIFACTS_H_
