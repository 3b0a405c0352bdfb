#include "server/pg/queue_places.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace npuc::pg {
namespace {

using jobs::BoardView;
using Counts = jobs::JobBoard::Counts;

constexpr double kFirstMeanSeconds = 2;  // of a tenant without runs, as tables.sql has it
// The counts are as old as this, or so old that to count takes a small part of the time.
constexpr std::chrono::seconds kCountsAge(1);
constexpr int kCountsPause = 50;  // times what the last count took
constexpr std::chrono::milliseconds kQuickCount(100);
constexpr std::chrono::seconds kPollersTime(5);  // for a count that is not quick
constexpr absl::Duration kCountLimit = absl::Minutes(1);

// Every slot ends a job of the mean time again and again.
absl::Duration WaitFor(int64_t ahead, int64_t running, int64_t slots, double mean_s) {
  const int64_t must_end = std::max<int64_t>(0, ahead + 1 + running - slots);
  return absl::Seconds(mean_s * static_cast<double>(must_end) / static_cast<double>(slots));
}

}  // namespace

std::optional<BoardView> QueuePlaces::Look(absl::string_view job_id) {
  MutexLock lock(look_mutex_);
  if (next_looks_ == nullptr) next_looks_ = std::make_shared<Looks>();
  const std::shared_ptr<Looks> looks = next_looks_;
  looks->jobs.insert(std::string(job_id));
  while (is_looking_ && !looks->is_done) looked_.Wait(look_mutex_);
  if (!looks->is_done) {
    is_looking_ = true;
    next_looks_ = nullptr;
    lock.Unlock();
    std::map<std::string, BoardView, std::less<>> views = LookAt(looks->jobs);
    lock.Lock();
    looks->views = std::move(views);
    looks->is_done = true;
    is_looking_ = false;
    looked_.NotifyAll();
  }
  const auto found = looks->views.find(job_id);
  if (found == looks->views.end()) return std::nullopt;
  return found->second;
}

std::map<std::string, BoardView, std::less<>> QueuePlaces::LookAt(
    const std::set<std::string>& jobs) {
  std::map<std::string, BoardView, std::less<>> views;
  const absl::StatusOr<Rows> rows = sessions_->Read(
      "SELECT job, place, ahead, limited, running, slots, mean_s, share, of_tenant "
      "FROM look_at_jobs($1)",
      {TextArray(jobs.begin(), jobs.end())});
  constexpr BoardView::Place kPlaces[] = {BoardView::Place::kQueue, BoardView::Place::kClaimed,
                                          BoardView::Place::kFollows, BoardView::Place::kRuns};
  for (size_t row = 0; rows.ok() && row < rows->size(); ++row) {
    BoardView& view = views[std::string(rows->Text(row, 0))];
    view.place = kPlaces[(rows->Int(row, 1) - 1) & 3];
    if (view.place != BoardView::Place::kQueue) continue;
    view.queue.position = rows->Int(row, 2);
    if (!rows->IsNull(row, 7)) {
      const absl::string_view tenant = rows->Text(row, 8);
      CountsByTenant();
      const MutexLock lock(mutex_);
      const auto own = counts_.find(std::string(tenant));
      const int64_t before = own == counts_.end()
                                 ? 0
                                 : static_cast<int64_t>(static_cast<double>(own->second.queued) *
                                                        rows->Double(row, 7));
      view.queue.position = std::max(view.queue.position, PositionBehind(tenant, before));
    }
    view.queue.tenant_limited = rows->Bool(row, 3);
    view.queue.estimated_wait =
        WaitFor(view.queue.position, rows->Int(row, 4), rows->Int(row, 5), rows->Double(row, 6));
  }
  return views;
}

// The position behind so many jobs of the same tenant, by the newest counts, as if all tenants had
// the same weight.
int64_t QueuePlaces::PositionBehind(absl::string_view tenant, int64_t before) {
  int64_t position = 0;
  for (const auto& [name, count] : counts_) {
    position += name == tenant ? before : std::min(count.queued, before + 1);
  }
  return position;
}

BoardView QueuePlaces::LookAtNew(absl::string_view tenant) {
  const MutexLock lock(mutex_);
  BoardView view{.place = BoardView::Place::kQueue};
  const auto own = counts_.find(std::string(tenant));
  view.queue.position = PositionBehind(tenant, own == counts_.end() ? 0 : own->second.queued);
  int64_t running = 0;
  for (const auto& [name, count] : counts_) running += count.running;
  const auto mean = means_.find(std::string(tenant));
  view.queue.estimated_wait = WaitFor(view.queue.position, running, slots_,
                                      mean == means_.end() ? kFirstMeanSeconds : mean->second);
  return view;
}

std::map<std::string, Counts> QueuePlaces::CountsByTenant() {
  {
    const MutexLock lock(mutex_);
    counts_asked_ = true;
    // A count that takes long is the poller's.
    const SteadyTime due =
        counts_due_ + (count_time_ < kQuickCount ? SteadyTime::duration::zero() : kPollersTime);
    if (is_counting_ || std::chrono::steady_clock::now() < due) return counts_;
    is_counting_ = true;
  }
  Count();
  const MutexLock lock(mutex_);
  return counts_;
}

void QueuePlaces::Count() {
  const SteadyTime begin = std::chrono::steady_clock::now();
  const absl::StatusOr<Rows> rows = sessions_->Run(
      Sessions::Repeat::kRepeatable,
      "SELECT c.tenant, c.queued, c.running, t.mean_s, "
      "(SELECT greatest(coalesce(sum(n.slots), 0), 1) FROM node n WHERE n.state = 1) FROM ("
      "SELECT tenant, sum(queued)::bigint AS queued, sum(running)::bigint AS running FROM ("
      "SELECT tenant, count(*) AS queued, 0 AS running FROM job_queue WHERE state <> 3 "
      "GROUP BY tenant UNION ALL "
      "SELECT tenant, 0, count(*) FROM claim WHERE fence <> 0 AND has_slot GROUP BY tenant"
      ") AS both_kinds GROUP BY tenant) AS c LEFT JOIN tenant_now t USING (tenant)",
      {}, kCountLimit);
  const SteadyTime end = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  is_counting_ = false;
  counts_asked_ = false;
  count_time_ = end - begin;
  counts_due_ = begin + std::max<SteadyTime::duration>(kCountsAge, kCountsPause * count_time_);
  if (!rows.ok()) return;
  counts_.clear();
  means_.clear();
  for (size_t row = 0; row < rows->size(); ++row) {
    const std::string tenant(rows->Text(row, 0));
    counts_[tenant] = {.queued = rows->Int(row, 1), .running = rows->Int(row, 2)};
    if (!rows->IsNull(row, 3)) means_[tenant] = rows->Double(row, 3);
    slots_ = rows->Int(row, 4);
  }
}

void QueuePlaces::CountWhereAsked() {
  {
    const MutexLock lock(mutex_);
    if (!counts_asked_ || is_counting_ || std::chrono::steady_clock::now() < counts_due_) return;
    is_counting_ = true;
  }
  Count();
}

}  // namespace npuc::pg
