#include "server/jobs/job_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npuc {

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

void JobStore::ApplyThen(std::shared_ptr<const JobChange> change, const Later& later, Done done) {
  if (!later) return done(Apply(*change));
  later([this, change = std::move(change), shared = std::make_shared<Done>(std::move(done))] {
    (*shared)(Apply(*change));
  });
}

bool Matches(const JobListQuery& query, const Job& job) {
  if (query.tenant.has_value() && job.tenant != *query.tenant) return false;
  return query.states.empty() ||
         std::find(query.states.begin(), query.states.end(), job.state) != query.states.end();
}

}  // namespace npuc
