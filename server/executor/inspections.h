#ifndef NPUC_SERVER_EXECUTOR_INSPECTIONS_H_
#define NPUC_SERVER_EXECUTOR_INSPECTIONS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/blob_store.h"
#include "compiler_core/base/mutex.h"
#include "server/base/input_file.h"
#include "server/base/job_diagnostic.h"
#include "server/worker/worker_pool.h"

namespace npuc::executor {

// So many inspections run at once, of all tenants; a tenant has one.
inline constexpr size_t kMaxInspections = 2;
// The answer goes out as one message of at most so many bytes.
inline constexpr size_t kMaxInspectionBytes = 1 << 20;
// The facts stated of a model: how many texts of each sort, and their length.
inline constexpr size_t kMaxStatedTexts = 64;
inline constexpr size_t kMaxStatedBytes = 1024;

struct InspectionRequest {
  std::string tenant = {};  // the owner of the blobs
  base::InputFile model;    // its role is ours
  std::vector<base::InputFile> side_inputs = {};
  worker::StatedOfModel stated = {};
};

struct Inspection {
  bool is_model = false;  // else `diagnostics` say why not, and there are no texts
  std::string json = {};  // what `npuc inspect --json` prints, diagnostics aside
  std::string text = {};  // what `npuc inspect` prints
  std::vector<base::JobDiagnostic> diagnostics = {};
};

struct InspectionsOptions {
  std::string work_dir;  // absolute, existing; each run gets a folder in it
  worker::WorkerLimits limits = {
      .memory_bytes = uint64_t{1} << 30, .cpu_seconds = 60, .wall = absl::Seconds(60)};
  // Asked while one runs; true ends it. May be null.
  std::function<bool()> is_stopping = nullptr;
};

// Says what an uploaded model is and which cores take it. A worker reads it, within the walls and
// limits of every compile: no byte of a model is parsed here. Thread-safe.
class Inspections {
 public:
  // All must outlive this.
  Inspections(InspectionsOptions options, cache::InputStore* inputs, worker::WorkerRunner* workers)
      : options_(std::move(options)), inputs_(inputs), workers_(workers) {}

  // Blocks for as long as the worker runs, at most limits.wall. Errors: INVALID_ARGUMENT
  // (INVALID_FIELD), FAILED_PRECONDITION (BLOB_MISSING, each named; INSPECTION_LIMIT: the model
  // takes more than an inspection may), RESOURCE_EXHAUSTED (SERVER_BUSY: others, or the tenant's
  // own, are under way), UNAVAILABLE (no worker could be had, or the daemon stops), INTERNAL (the
  // worker crashed).
  absl::StatusOr<Inspection> Run(const InspectionRequest& request);

 private:
  class Place;

  absl::Status AcquireInputs(const InspectionRequest& request, worker::WorkerJob& job,
                             std::vector<cache::BlobRef>& held);
  absl::StatusOr<worker::WorkerOutcome> RunWorker(worker::WorkerJob job);

  const InspectionsOptions options_;
  cache::InputStore* const inputs_;
  worker::WorkerRunner* const workers_;
  Mutex mutex_;
  std::set<std::string> tenants_ NPUC_GUARDED_BY(mutex_);  // with one under way
  uint64_t next_ NPUC_GUARDED_BY(mutex_) = 1;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_INSPECTIONS_H_
