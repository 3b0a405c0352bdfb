#include "server/jobs/memory_job_store.h"

#include <algorithm>

#include "compiler_core/base/status.h"
#include "server/jobs/service_error.h"

namespace npuc {

absl::Status MemoryJobStore::Apply(const JobChange& change) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failures_ > 0) {
    --failures_;
    return absl::InternalError("injected write failure");
  }
  const auto found = records_.find(change.job.id);
  if (found == records_.end()) {
    RETURN_IF_ERROR(CheckChange(change, nullptr));
  } else {
    ASSIGN_OR_RETURN(const Job stored, DecodeJobRecord(found->second.job));
    RETURN_IF_ERROR(CheckChange(change, &stored));
  }
  if (found == records_.end() && !change.job.request_id.empty()) {
    if (requests_.contains(change.job.request_id)) {
      return absl::AlreadyExistsError("the request id is taken");
    }
    requests_[change.job.request_id] = change.job.id;
  }
  Record& record = records_[change.job.id];
  record.job = EncodeJobRecord(change.job);
  if (change.config_text.has_value()) record.config_text = *change.config_text;
  for (const JobEvent& event : change.events) record.events.push_back(EncodeEvent(event));
  return absl::OkStatus();
}

absl::StatusOr<Job> MemoryJobStore::Read(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return JobNotFound(job_id);
  return DecodeJobRecord(found->second.job);
}

absl::StatusOr<std::string> MemoryJobStore::ReadConfig(absl::string_view job_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return JobNotFound(job_id);
  return found->second.config_text;
}

absl::StatusOr<std::optional<std::string>> MemoryJobStore::FindRequest(
    absl::string_view request_id) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = requests_.find(std::string(request_id));
  if (found == requests_.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<JobPage> MemoryJobStore::List(const JobListQuery& query) const {
  std::lock_guard<std::mutex> lock(mutex_);
  JobPage page;
  auto end = query.before_id.empty() ? records_.end() : records_.lower_bound(query.before_id);
  while (end != records_.begin()) {
    --end;
    ASSIGN_OR_RETURN(Job job, DecodeJobRecord(end->second.job));
    if (!query.states.empty() &&
        std::find(query.states.begin(), query.states.end(), job.state) == query.states.end()) {
      continue;
    }
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
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<JobEvent> events;
  const auto found = records_.find(std::string(job_id));
  if (found == records_.end()) return events;
  size_t bytes = 0;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(from_seq, 1) - 1);
       i < found->second.events.size() && events.size() < max_count; ++i) {
    bytes += found->second.events[i].size();
    if (!events.empty() && bytes > max_bytes) break;
    ASSIGN_OR_RETURN(JobEvent event, DecodeEvent(found->second.events[i]));
    events.push_back(std::move(event));
  }
  return events;
}

absl::Status MemoryJobStore::ForEachLive(const std::function<absl::Status(Job job)>& visit) const {
  std::vector<Job> live;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, record] : records_) {
      ASSIGN_OR_RETURN(Job job, DecodeJobRecord(record.job));
      if (!IsTerminal(job.state)) live.push_back(std::move(job));
    }
  }
  for (Job& job : live) RETURN_IF_ERROR(visit(std::move(job)));
  return absl::OkStatus();
}

void MemoryJobStore::FailNextApplies(int count) {
  std::lock_guard<std::mutex> lock(mutex_);
  failures_ = count;
}

}  // namespace npuc
