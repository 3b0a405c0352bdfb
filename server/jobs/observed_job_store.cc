#include "server/jobs/observed_job_store.h"

#include "server/jobs/service_error.h"

namespace npuc::jobs {
namespace {

// Longer than any disk that is worth writing to takes for one operation.
constexpr absl::Duration kPatience = absl::Seconds(15);

// What the store answers where nothing is wrong with it.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsAborted(status) ||
         absl::IsAlreadyExists(status) || IsRecordTooNew(status);
}

}  // namespace

void ObservedJobStore::Count(absl::string_view operation, absl::Time begin,
                             const absl::Status& status) const {
  metrics_->Observe(observe::Metric::kStoreSeconds, {operation},
                    absl::ToDoubleSeconds(now_() - begin));
  if (!IsAnswer(status)) metrics_->Add(observe::Metric::kStoreErrors, {operation}, 1);
}

template <typename Call>
auto ObservedJobStore::Observe(absl::string_view operation, Call call) const {
  const absl::Time begin = now_();
  const observe::Watchdog::Scope scope = watchdog_->Enter("job store", kPatience);
  auto result = call();
  Count(operation, begin, result.status());
  return result;
}

void ObservedJobStore::Apply(std::shared_ptr<const JobChange> change, Done done) {
  const absl::Time begin = now_();
  inner_->Apply(std::move(change),
                [this, begin, done = std::move(done),
                 scope = watchdog_->Enter("job store", kPatience)](absl::Status status) mutable {
                  scope = observe::Watchdog::Scope();  // `done` is no work of the store's
                  Count("apply", begin, status);
                  done(std::move(status));
                });
}

absl::StatusOr<Job> ObservedJobStore::Read(absl::string_view job_id) const {
  return Observe("read", [&] { return inner_->Read(job_id); });
}

absl::StatusOr<std::string> ObservedJobStore::ReadConfig(absl::string_view job_id) const {
  return Observe("read_config", [&] { return inner_->ReadConfig(job_id); });
}

absl::StatusOr<std::optional<std::string>> ObservedJobStore::FindRequest(
    absl::string_view tenant, absl::string_view request_id) const {
  return Observe("find_request", [&] { return inner_->FindRequest(tenant, request_id); });
}

absl::StatusOr<JobPage> ObservedJobStore::List(const JobListQuery& query) const {
  return Observe("list", [&] { return inner_->List(query); });
}

absl::StatusOr<std::vector<JobEvent>> ObservedJobStore::ReadEvents(absl::string_view job_id,
                                                                   int64_t from_seq,
                                                                   size_t max_count,
                                                                   size_t max_bytes) const {
  return Observe("read_events",
                 [&] { return inner_->ReadEvents(job_id, from_seq, max_count, max_bytes); });
}

// As long as there are jobs: a start, not a thing to watch.
absl::Status ObservedJobStore::ForEachLive(
    const std::function<absl::Status(LiveJob job)>& visit) const {
  return inner_->ForEachLive(visit);
}

absl::StatusOr<size_t> ObservedJobStore::Prune(absl::Time ended_before, size_t max_jobs) {
  return Observe("prune", [&] { return inner_->Prune(ended_before, max_jobs); });
}

}  // namespace npuc::jobs
