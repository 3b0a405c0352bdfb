#include "server/jobs/memory_job_store.h"

#include <algorithm>

#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc::jobs {

absl::Status MemoryJobStore::ApplyNow(const JobChange& change) {
  const MutexLock lock(mutex_);
  if (failures_ > 0) {
    --failures_;
    return absl::InternalError("injected write failure");
  }
  const Job& job = change.job;
  const auto found = records_.find(job.id);
  RETURN_IF_ERROR(CheckChange(change, found == records_.end() ? nullptr : &found->second.key));
  if (found == records_.end() && !job.request_id.empty() &&
      !requests_.emplace(Request(job.tenant, job.request_id), job.id).second) {
    return absl::AlreadyExistsError("the request id is taken");
  }
  Record& record = records_[job.id];
  if (IsTerminal(record.key.state)) ended_.erase({record.key.end_time, job.id});
  record.job = EncodeJobRecord(job);
  record.live = IsTerminal(job.state) ? "" : EncodeLiveJob(ToLiveJob(job));
  record.key = {.id = job.id,
                .tenant = job.tenant,
                .revision = job.revision,
                .request_id = job.request_id,
                .state = job.state,
                .end_time = job.end_time,
                .last_seq = job.last_seq};
  if (IsTerminal(job.state)) ended_.emplace(job.end_time, job.id);
  if (change.config_text.has_value()) record.config_text = *change.config_text;
  for (const JobEvent& event : change.events) record.events.push_back(EncodeEvent(event));
  return absl::OkStatus();
}

absl::StatusOr<Job> MemoryJobStore::Read(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return JobNotFound(job_id);
  return DecodeJobRecord(found->second.job);
}

absl::StatusOr<std::string> MemoryJobStore::ReadConfig(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return JobNotFound(job_id);
  return found->second.config_text;
}

absl::StatusOr<std::optional<std::string>> MemoryJobStore::FindRequest(
    absl::string_view tenant, absl::string_view request_id) const {
  const MutexLock lock(mutex_);
  const auto found = requests_.find(Request(tenant, request_id));
  if (found == requests_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<JobPage> MemoryJobStore::List(const JobListQuery& query) const {
  const MutexLock lock(mutex_);
  JobPage page;
  auto end = query.before_id.empty() ? records_.end() : records_.lower_bound(query.before_id);
  while (end != records_.begin()) {
    --end;
    if (!Matches(query, end->second.key)) continue;
    ASSIGN_OR_RETURN(Job job, DecodeJobRecord(end->second.job));
    if (page.jobs.size() == query.limit) {
      page.next_before = page.jobs.back().id;
      break;
    }
    job.diagnostics.clear();
    page.jobs.push_back(std::move(job));
  }
  return page;
}

absl::StatusOr<std::vector<JobEvent>> MemoryJobStore::ReadEvents(absl::string_view job_id,
                                                                 int64_t from_seq, size_t max_count,
                                                                 size_t max_bytes) const {
  const MutexLock lock(mutex_);
  std::vector<JobEvent> events;
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return events;
  size_t bytes = 0;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(from_seq, 1) - 1);
       i < found->second.events.size() && events.size() < max_count; ++i) {
    bytes += found->second.events[i].size();
    if (!events.empty() && bytes > max_bytes) break;
    ASSIGN_OR_RETURN(std::vector<StoredEvent> stored, DecodeEvents(found->second.events[i]));
    events.push_back(std::move(stored.front().event));
  }
  return events;
}

absl::Status MemoryJobStore::ForEachLive(
    const std::function<absl::Status(LiveJob job)>& visit) const {
  std::vector<LiveJob> live;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, record] : records_) {
      if (record.live.empty()) continue;
      ASSIGN_OR_RETURN(LiveJob job, DecodeLiveJob(id, record.live));
      live.push_back(std::move(job));
    }
  }
  for (LiveJob& job : live) RETURN_IF_ERROR(visit(std::move(job)));
  return absl::OkStatus();
}

absl::StatusOr<size_t> MemoryJobStore::Prune(absl::Time ended_before, size_t max_jobs) {
  const MutexLock lock(mutex_);
  size_t pruned = 0;
  while (pruned < max_jobs && !ended_.empty() && ended_.begin()->first < ended_before) {
    const auto found = records_.find(ended_.begin()->second);
    const Job& key = found->second.key;
    if (!key.request_id.empty()) requests_.erase({key.tenant, key.request_id});
    records_.erase(found);
    ended_.erase(ended_.begin());
    ++pruned;
  }
  return pruned;
}

std::unique_ptr<MemoryJobStore> MemoryJobStore::Clone() const {
  const MutexLock lock(mutex_);
  auto copy = std::make_unique<MemoryJobStore>();
  const MutexLock lock_of_copy(copy->mutex_);
  copy->records_ = records_;
  copy->requests_ = requests_;
  copy->ended_ = ended_;
  return copy;
}

void MemoryJobStore::FailNextApplies(int count) {
  const MutexLock lock(mutex_);
  failures_ = count;
}

}  // namespace npuc::jobs
