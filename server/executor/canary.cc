#include "server/executor/canary.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {
namespace {

constexpr uint8_t kModel[] = {
#include "server/executor/canary_model.inc"
};
constexpr char kConfig[] =
    "CORENAME: GRUS\nNPU_UNIT: NPU32\nFRAMEWORK: TF\nOUTPUT_TYPE: c_code\n"
    "MODEL_FILE: canary.pb\nOUTPUT_FILE: canary.h\nCOMPRESS: true\n"
    "INPUT_OPS:\n  x: [1, 4]\nOUTPUT_OPS: [r]\n";
constexpr int32_t kPriority = kMaxPriority;
constexpr std::chrono::milliseconds kLook(50);

absl::string_view ModelBytes() { return {reinterpret_cast<const char*>(kModel), sizeof(kModel)}; }

}  // namespace

Canary::Canary(Options options, Submission* submission, cache::InputStore* inputs,
               jobs::JobService* jobs, observe::Metrics* metrics)
    : options_(std::move(options)),
      submission_(submission),
      inputs_(inputs),
      jobs_(jobs),
      metrics_(metrics),
      model_{Sha256Hex(ModelBytes()), sizeof(kModel)} {}

absl::Status Canary::Run() {
  const absl::Time begin = options_.steady_now();
  RETURN_IF_ERROR(Upload());
  ASSIGN_OR_RETURN(const std::string job_id, Submit());
  const absl::Status ended = Await(job_id);
  if (ended.ok()) {
    metrics_->Observe(observe::Metric::kCanarySeconds, {},
                      absl::ToDoubleSeconds(options_.steady_now() - begin));
  } else if (!absl::IsUnavailable(ended) && !absl::IsCancelled(ended)) {
    metrics_->Add(observe::Metric::kCanaryFailures, {}, 1);
  }
  return ended;
}

absl::Status Canary::Upload() {
  ASSIGN_OR_RETURN(const cache::UploadState state, inputs_->BeginUpload(kTenant, model_));
  if (state.complete) return absl::OkStatus();
  RETURN_IF_ERROR(inputs_
                      ->Append(kTenant, model_, state.committed_bytes,
                               ModelBytes().substr(static_cast<size_t>(state.committed_bytes)))
                      .status());
  return inputs_->Commit(kTenant, model_).status();
}

absl::StatusOr<std::string> Canary::Submit() {
  const auto submitted = submission_->SubmitAndWait(
      {.tenant = kTenant,
       .config_text = kConfig,
       .config_name = "canary.yaml",
       .model = {.sha256 = model_.sha256, .size_bytes = model_.size_bytes},
       .priority = kPriority,
       .timeout = options_.patience,
       .no_cache = true,
       .pinned_to = options_.owner});
  if (submitted.ok()) return submitted->job->id;
  if (absl::IsResourceExhausted(submitted.status())) {
    return absl::UnavailableError(submitted.status().message());
  }
  return submitted.status();
}

absl::Status Canary::Await(const std::string& job_id) {
  Mutex mutex;
  CondVar changed;
  const auto subscription = jobs_->hub().Subscribe(job_id, [&] {
    const MutexLock lock(mutex);
    changed.NotifyAll();
  });
  while (true) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const jobs::Job> job, jobs_->Get(job_id));
    if (job->state == jobs::JobState::kSucceeded) return absl::OkStatus();
    if (job->state == jobs::JobState::kExpired && job->expired_in == jobs::JobState::kQueued) {
      return absl::UnavailableError("the canary compile found no free worker in time");
    }
    if (jobs::IsTerminal(job->state)) {
      return absl::InternalError(absl::StrCat("the canary compile, job ", job_id, ", ended ",
                                              jobs::JobStateName(job->state), ": ", job->reason));
    }
    if (options_.is_stopping && options_.is_stopping()) return absl::CancelledError("stopping");
    const MutexLock lock(mutex);
    changed.WaitUntil(mutex, SteadyTimeAfter(kLook));
  }
}

}  // namespace npuc::executor
