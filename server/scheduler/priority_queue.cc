#include "server/scheduler/priority_queue.h"

#include <compare>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/jobs/service_error.h"

namespace npuc {
namespace {

// What jobs are ordered by, the first to run first.
struct Place {
  int32_t descending_priority = 0;
  uint64_t accept_order = 0;

  auto operator<=>(const Place&) const = default;
};

// A tree that knows how many keys are before a key.
using OrderedPlaces =
    __gnu_pbds::tree<Place, std::string, std::less<Place>, __gnu_pbds::rb_tree_tag,
                     __gnu_pbds::tree_order_statistics_node_update>;

class PriorityQueue : public JobQueue {
 public:
  explicit PriorityQueue(int64_t max_jobs) : max_jobs_(max_jobs) {}

  absl::Status Reserve() override {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t taken = static_cast<int64_t>(by_id_.size()) + reserved_;
    if (taken >= max_jobs_) {
      return ServiceError(absl::StatusCode::kResourceExhausted,
                          absl::StrCat("the queue is full: ", taken, " jobs wait, at most ",
                                       max_jobs_, " may; try again later"),
                          {.reason = "QUEUE_FULL", .retry_delay = absl::Seconds(5)});
    }
    ++reserved_;
    return absl::OkStatus();
  }

  void Release() override {
    std::lock_guard<std::mutex> lock(mutex_);
    --reserved_;
  }

  void Push(QueuedJob job, bool reserved) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reserved) --reserved_;
    const Place place{-job.priority, job.accept_order};
    if (by_id_.emplace(job.id, place).second) places_.insert({place, std::move(job.id)});
  }

  std::optional<QueuedJob> Pop() override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto first = places_.begin();
    if (first == places_.end()) return std::nullopt;
    QueuedJob job{first->second, -first->first.descending_priority, first->first.accept_order};
    by_id_.erase(job.id);
    places_.erase(first);
    return job;
  }

  bool Remove(absl::string_view id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_id_.find(std::string(id));
    if (found == by_id_.end()) return false;
    places_.erase(found->second);
    by_id_.erase(found);
    return true;
  }

  std::optional<int64_t> Position(absl::string_view id) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_id_.find(std::string(id));
    if (found == by_id_.end()) return std::nullopt;
    return static_cast<int64_t>(places_.order_of_key(found->second));
  }

  int64_t size() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(by_id_.size());
  }

 private:
  const int64_t max_jobs_;
  mutable std::mutex mutex_;
  int64_t reserved_ = 0;                          // guarded by mutex_
  OrderedPlaces places_;                          // guarded by mutex_
  std::unordered_map<std::string, Place> by_id_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<JobQueue> MakePriorityQueue(int64_t max_jobs) {
  return std::make_unique<PriorityQueue>(max_jobs);
}

}  // namespace npuc
