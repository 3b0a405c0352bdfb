#include "server/jobs/indexed_job_store.h"

#include <algorithm>

#include "compiler_core/base/status.h"

namespace npuc::jobs {
namespace {

constexpr size_t kLoadPage = 5000;

// Log lines and progress do not show in lists.
bool ShowsInLists(const JobChange& change) {
  return std::any_of(change.events.begin(), change.events.end(), [](const JobEvent& event) {
    return std::holds_alternative<StateChangedEvent>(event.body);
  });
}

}  // namespace

void IndexedJobStore::Apply(std::shared_ptr<const JobChange> change, Done done) {
  if (!ShowsInLists(*change)) return inner_->Apply(std::move(change), std::move(done));
  inner_->Apply(change, [this, change, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      index_->Put(change->job);
    } else {
      const MutexLock lock(mutex_);
      unsure_.push_back(change->job.id);
    }
    done(std::move(status));
  });
}

absl::Status IndexedJobStore::Load(const std::function<bool()>& is_stopping) {
  JobListQuery query{.limit = kLoadPage};
  do {
    if (is_stopping != nullptr && is_stopping()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const JobPage page, inner_->List(query));
    for (const Job& job : page.jobs) index_->Put(job);
    query.before_id = page.next_before;
  } while (!query.before_id.empty());
  index_->SetComplete();
  return absl::OkStatus();
}

void IndexedJobStore::Settle() {
  std::vector<std::string> unsure;
  {
    const MutexLock lock(mutex_);
    unsure.swap(unsure_);
  }
  for (const std::string& id : unsure) {
    const absl::StatusOr<Job> job = inner_->Read(id);
    if (job.ok()) index_->Put(*job);
  }
}

absl::StatusOr<size_t> IndexedJobStore::Prune(absl::Time ended_before, size_t max_jobs) {
  ASSIGN_OR_RETURN(const size_t pruned, inner_->Prune(ended_before, max_jobs));
  if (pruned > 0) index_->DropEnded(ended_before, pruned);
  // Other daemons prune, too: nothing that old is left then.
  if (is_shared() && pruned < max_jobs) index_->DropEnded(ended_before, SIZE_MAX);
  Settle();
  return pruned;
}

}  // namespace npuc::jobs
