#ifndef NPUC_SERVER_EXECUTOR_SUBMISSION_H_
#define NPUC_SERVER_EXECUTOR_SUBMISSION_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/artifact_cache.h"
#include "cache/blob_store.h"
#include "compiler_core/config/config.h"
#include "server/executor/input_holds.h"
#include "server/executor/job_trace.h"
#include "server/jobs/job_service.h"

namespace npuc::executor {

inline constexpr size_t kMaxNameBytes = 255;
inline constexpr size_t kMaxLabels = 32;
inline constexpr size_t kMaxLabelKeyBytes = 63;
inline constexpr size_t kMaxLabelValueBytes = 255;
inline constexpr size_t kMaxRequestIdBytes = 64;
inline constexpr size_t kMaxSideInputs = 15;  // the worker pool takes 16 inputs in all
inline constexpr int32_t kMaxPriority = 100;  // and -100 the lowest
inline constexpr absl::Duration kMinTimeout = absl::Seconds(1);
inline constexpr absl::Duration kMaxTimeout = absl::Hours(24 * 7);

// A job as a client asks for it, before anything was checked.
struct SubmitRequest {
  std::string tenant = {};     // whose job it will be
  std::string submitter = {};  // the identity; not part of what tells two requests apart
  std::string request_id = {};
  std::string config_text = {};
  std::string config_name = {};
  base::InputFile model;  // its role and name are the config's
  std::vector<base::InputFile> side_inputs = {};
  int64_t priority = 0;
  std::map<std::string, std::string> labels = {};
  std::optional<absl::Duration> timeout = {};
  bool no_cache = false;
  std::optional<int64_t> model_info_time_seconds = {};
  base::TraceContext trace = {};  // not part of what tells two requests apart
  std::string pinned_to = {};     // the only daemon that may run it, not for clients; empty: any
};

// The scope in which the results of a tenant's compiles are kept (TenantRules::ResultScopeOf).
using ResultScope = std::function<std::string(absl::string_view tenant)>;

using ConfigParser = std::function<absl::StatusOr<ParsedConfig>(
    absl::string_view text, absl::string_view name, Diagnostics& diagnostics)>;

struct SubmissionOptions {
  ConfigParser parse_config;  // ParseConfig of compiler_core/pipeline
  std::string compiler_build_id = {};
  absl::Duration default_timeout = absl::Hours(1);
  // The bytes that the model and side inputs of one job of a tenant may have in all; null, or
  // nullopt: no bound.
  std::function<std::optional<int64_t>(absl::string_view tenant)> max_job_bytes = nullptr;
  // The scope of a tenant's results; null: its own name.
  ResultScope result_scope = nullptr;
  observe::Tracer* tracer = nullptr;  // gets the spans of submits; may be null
};

// Decides whether a job can be accepted, and looks whether its result is there already. The only
// part of the user's bytes that is parsed here is the config's text.
//
// Thread-safe.
class Submission {
 public:
  // All must outlive this. holds: null where `inputs` itself keeps the inputs of live jobs.
  Submission(SubmissionOptions options, jobs::JobService* jobs, cache::InputStore* inputs,
             cache::ResultCache* cache, InputHolds* holds);

  // Errors: INVALID_ARGUMENT (INVALID_FIELD or INVALID_CONFIG, every problem named),
  // FAILED_PRECONDITION (BLOB_MISSING, every blob named), RESOURCE_EXHAUSTED (QUOTA_EXCEEDED), and
  // those of JobService::Submit.
  // `done` is called as JobService::Submit does.
  void Submit(const SubmitRequest& request, jobs::JobService::Done done);
  // The same, and waits.
  absl::StatusOr<jobs::JobService::Submitted> SubmitAndWait(const SubmitRequest& request);

 private:
  // What is submitted, and the blobs that it needs.
  struct Prepared {
    jobs::NewJob job;
    InputHolds::Holds holds;
    SubmitTimes times = {};  // where it is traced
  };
  absl::StatusOr<Prepared> Prepare(const SubmitRequest& request);
  void LookUp(const cache::CacheKey& key, Prepared& prepared) const;
  absl::StatusOr<jobs::JobService::Submitted> AnswerUnprepared(const SubmitRequest& request,
                                                               const absl::Status& why);
  void HoldInputs(const jobs::Job& job, InputHolds::Holds holds);
  absl::Status CheckQuota(const SubmitRequest& request) const;
  absl::StatusOr<ParsedConfig> ReadConfig(const SubmitRequest& request) const;
  absl::Status AcquireInputs(const SubmitRequest& request, const ParsedConfig& config,
                             jobs::JobSpec& spec, InputHolds::Holds& holds);
  static void TakeResult(const cache::CachedResult& result, jobs::NewJob& job);

  const SubmissionOptions options_;
  jobs::JobService* const jobs_;
  cache::InputStore* const inputs_;
  cache::ResultCache* const cache_;
  InputHolds* const holds_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_SUBMISSION_H_
