#include "server/jobs/job_store.h"

#include <algorithm>
#include <future>

#include "absl/strings/str_cat.h"

namespace npuc::jobs {
namespace {

constexpr size_t kMaxPackedEvents = 64;
constexpr size_t kMaxPackedBytes = 64 << 10;

}  // namespace

absl::Status CheckChange(const JobChange& change, const Job* stored) {
  const uint64_t stored_revision = stored == nullptr ? 0 : stored->revision;
  if (change.job.revision != stored_revision + 1) {
    return absl::AbortedError(absl::StrCat("job ", change.job.id, " is at revision ",
                                           stored_revision, ", the change makes ",
                                           change.job.revision));
  }
  int64_t seq = stored == nullptr ? 0 : stored->last_seq;
  for (const JobEvent& event : change.events) {
    if (event.seq != ++seq) {
      return absl::AbortedError(
          absl::StrCat("job ", change.job.id, ": event ", event.seq, " where ", seq, " is due"));
    }
  }
  if (seq != change.job.last_seq) {
    return absl::AbortedError(absl::StrCat("job ", change.job.id, ": last_seq ",
                                           change.job.last_seq, " where ", seq, " is due"));
  }
  return absl::OkStatus();
}

absl::Status JobStore::ApplyAndWait(std::shared_ptr<const JobChange> change) {
  std::promise<absl::Status> answer;
  std::future<absl::Status> answered = answer.get_future();
  Apply(std::move(change), [&answer](absl::Status status) { answer.set_value(std::move(status)); });
  return answered.get();
}

std::vector<EventRecord> PackEvents(const std::vector<JobEvent>& events) {
  std::vector<EventRecord> records;
  size_t in_record = 0;
  for (const JobEvent& event : events) {
    if (in_record == 0) records.emplace_back();
    EventRecord& record = records.back();
    record.body += EncodeEvent(event);
    record.last_seq = event.seq;
    const bool is_full = ++in_record == kMaxPackedEvents || record.body.size() >= kMaxPackedBytes;
    if (is_full) in_record = 0;
  }
  return records;
}

bool Matches(const JobListQuery& query, const Job& job) {
  if (query.tenant.has_value() && job.tenant != *query.tenant) return false;
  return query.states.empty() ||
         std::find(query.states.begin(), query.states.end(), job.state) != query.states.end();
}

}  // namespace npuc::jobs
