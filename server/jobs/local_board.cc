#include "server/jobs/local_board.h"

#include <algorithm>

namespace npuc::jobs {

uint64_t LocalBoard::NextOrder() {
  const MutexLock lock(mutex_);
  return next_order_++;
}

void LocalBoard::Wake() const {
  for (const auto& [number, wake] : subscribers_) wake();
}

void LocalBoard::SetPaused(bool paused) {
  const MutexLock lock(mutex_);
  is_paused_ = paused;
  if (!paused) Wake();
}

JobBoard::Unsubscribe LocalBoard::Subscribe(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  const uint64_t number = next_subscriber_++;
  subscribers_[number] = std::move(wake);
  return [this, number] {
    const MutexLock again(mutex_);
    subscribers_.erase(number);
  };
}

// Into its place in the queue, or behind the run of an equal job.
void LocalBoard::Enqueue(Live& live, bool reserved) {
  const QueuedJob& place = live.job.place;
  queue_->Push(place, reserved);
  if (!live.job.pinned_to.empty()) {
    queue_->Park(place.id);
    pinned_[{live.job.pinned_to, place.accept_order}] = place.id;
  } else if (const auto flight = flights_.find(live.job.flight_key); flight != flights_.end()) {
    queue_->Park(place.id);
    live.follows = flight->second;
    claims_.at(flight->second).followers.emplace(place.accept_order, place.id);
    return;
  } else if (!live.job.flight_key.empty()) {
    waiting_[live.job.flight_key].emplace(place.accept_order, place.id);
  }
  Wake();
}

// A job that is nobody's goes back to its place; it may be there already.
void LocalBoard::Return(const std::string& job_id) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end() || found->second.held_by != 0 || found->second.follows != 0) return;
  Enqueue(found->second, /*reserved=*/false);
}

// Out of the lists that hold a waiting job beside the queue.
void LocalBoard::TakeOutOfOrder(const Live& live) {
  const QueuedJob& place = live.job.place;
  pinned_.erase({live.job.pinned_to, place.accept_order});
  const auto equal = waiting_.find(live.job.flight_key);
  if (equal == waiting_.end()) return;
  equal->second.erase(place.accept_order);
  if (equal->second.empty()) waiting_.erase(equal);
}

void LocalBoard::Accept(const BoardJob& job, bool reserved) {
  const MutexLock lock(mutex_);
  next_order_ = std::max(next_order_, job.place.accept_order + 1);
  const auto [it, is_new] = jobs_.try_emplace(job.place.id, Live{.job = job});
  if (is_new) {
    due_.emplace(job.due, job.place.id);
    return Enqueue(it->second, reserved);
  }
  if (reserved) queue_->Release(job.place.tenant);
  Return(job.place.id);
}

void LocalBoard::Forget(absl::string_view job_id) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(std::string(job_id));
  if (found == jobs_.end()) return;
  const Live& live = found->second;
  if (Held* run = Find(live.follows)) run->followers.erase(live.job.place.accept_order);
  if (Held* claim = Find(live.held_by)) claim->orphaned = true;
  TakeOutOfOrder(live);
  due_.erase({live.job.due, live.job.place.id});
  queue_->Remove(job_id);
  jobs_.erase(found);
}

bool LocalBoard::Has(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  return jobs_.contains(std::string(job_id));
}

LocalBoard::Held* LocalBoard::Find(ClaimId claim) {
  const auto found = claims_.find(claim);
  return found == claims_.end() ? nullptr : &found->second;
}

// A new claim on a job that is out of the queue.
LocalBoard::Held& LocalBoard::Hold(Live& live, absl::string_view owner) {
  const ClaimId id = next_claim_++;
  Held& held = claims_[id];
  held.claim = {.id = id, .owner = std::string(owner), .job_id = live.job.place.id};
  held.tenant = live.job.place.tenant;
  held.key = live.job.flight_key;
  live.held_by = id;
  TakeOutOfOrder(live);
  if (held.key.empty() || !flights_.emplace(held.key, id).second) return held;
  const auto equal = waiting_.find(held.key);
  if (equal == waiting_.end()) return held;
  held.followers = std::move(equal->second);
  waiting_.erase(equal);
  for (const auto& [order, follower] : held.followers) {
    queue_->Park(follower);
    jobs_.at(follower).follows = id;
  }
  return held;
}

std::optional<std::string> LocalBoard::PopPinned(absl::string_view owner) {
  const auto first = pinned_.lower_bound({std::string(owner), 0});
  if (first == pinned_.end() || first->first.first != owner) return std::nullopt;
  std::string id = first->second;
  queue_->Take(id);
  return id;
}

std::optional<BoardClaim> LocalBoard::Claim(absl::string_view owner, absl::Time now) {
  const MutexLock lock(mutex_);
  std::optional<std::string> id = PopPinned(owner);
  if (!id.has_value()) {
    if (is_paused_) return std::nullopt;
    const std::optional<QueuedJob> next = queue_->Pop();
    if (!next.has_value()) return std::nullopt;
    id = next->id;
  }
  Held& held = Hold(jobs_.at(*id), owner);
  held.renewed = now;
  return held.claim;
}

void LocalBoard::Restore(const BoardJob& job, absl::string_view owner, uint64_t fence,
                         absl::Time held_until) {
  const MutexLock lock(mutex_);
  next_order_ = std::max(next_order_, job.place.accept_order + 1);
  const auto [it, is_new] = jobs_.try_emplace(job.place.id, Live{.job = job});
  if (it->second.held_by != 0 || it->second.follows != 0) return;
  if (is_new) due_.emplace(job.due, job.place.id);
  queue_->Push(job.place, /*reserved=*/false);
  const bool has_slot = queue_->Take(job.place.id);
  Held& held = Hold(it->second, owner);
  held.has_slot = has_slot;
  held.claim.fence = fence;
  held.started = held.renewed = held_until - ttl_;
}

bool LocalBoard::Start(ClaimId claim, uint64_t fence, absl::Time now) {
  const MutexLock lock(mutex_);
  Held* const held = Find(claim);
  if (held == nullptr) return false;
  held->claim.fence = fence;
  // A run that goes on for another job is as old as its worker's last word.
  if (held->started == absl::InfinitePast()) held->renewed = now;
  held->started = now;
  for (const std::string& id : std::exchange(held->passed_over, {})) Return(id);
  return true;
}

bool LocalBoard::Renew(ClaimId claim, absl::Time now) {
  const MutexLock lock(mutex_);
  Held* const held = Find(claim);
  if (held == nullptr) return false;
  held->renewed = now;
  return true;
}

void LocalBoard::FreeSlot(Held& held, absl::Time now) {
  if (!std::exchange(held.has_slot, false)) return;
  queue_->Done(held.tenant, held.claim.fence == 0 ? absl::ZeroDuration() : now - held.started);
}

void LocalBoard::LetJobGo(Held& held) {
  const auto job = jobs_.find(held.claim.job_id);
  if (job != jobs_.end() && job->second.held_by == held.claim.id) job->second.held_by = 0;
}

// Equal jobs that come now have a run of their own.
void LocalBoard::CloseFlight(const Held& held) {
  const auto flight = flights_.find(held.key);
  if (flight != flights_.end() && flight->second == held.claim.id) flights_.erase(flight);
}

std::optional<BoardClaim> LocalBoard::PassOn(ClaimId claim, absl::Time now) {
  const MutexLock lock(mutex_);
  Held* const held = Find(claim);
  if (held == nullptr) return std::nullopt;
  FreeSlot(*held, now);
  LetJobGo(*held);
  held->passed_over.push_back(held->claim.job_id);
  held->claim.fence = 0;
  held->orphaned = false;
  while (!held->followers.empty()) {
    const std::string next = held->followers.begin()->second;
    held->followers.erase(held->followers.begin());
    Live& live = jobs_.at(next);
    live.follows = 0;
    if (!queue_->Take(next)) continue;
    live.held_by = claim;
    held->claim.job_id = next;
    held->tenant = live.job.place.tenant;
    held->has_slot = true;
    return held->claim;
  }
  return std::nullopt;
}

std::vector<std::string> LocalBoard::Close(ClaimId claim, absl::Time now) {
  const MutexLock lock(mutex_);
  Held* const held = Find(claim);
  std::vector<std::string> followers;
  if (held == nullptr) return followers;
  FreeSlot(*held, now);
  CloseFlight(*held);
  for (const auto& [order, id] : held->followers) followers.push_back(id);
  Wake();
  return followers;
}

void LocalBoard::End(ClaimId claim, absl::Time now) {
  const MutexLock lock(mutex_);
  if (Held* const held = Find(claim)) EndClaim(*held, /*job_returns=*/true, now);
}

void LocalBoard::EndClaim(Held& held, bool job_returns, absl::Time now) {
  FreeSlot(held, now);
  LetJobGo(held);
  CloseFlight(held);
  const Held ended = std::move(held);
  claims_.erase(ended.claim.id);
  for (const auto& [order, id] : ended.followers) {
    jobs_.at(id).follows = 0;
    Return(id);
  }
  for (const std::string& id : ended.passed_over) Return(id);
  if (job_returns) Return(ended.claim.job_id);
  Wake();
}

std::vector<BoardClaim> LocalBoard::Select(const Predicate& predicate) const {
  std::vector<BoardClaim> claims;
  for (const auto& [id, held] : claims_) {
    if (predicate(held)) claims.push_back(held.claim);
  }
  return claims;
}

std::vector<BoardClaim> LocalBoard::Take(absl::string_view owner, const Predicate& predicate,
                                         absl::Time now) {
  std::vector<BoardClaim> taken;
  for (const BoardClaim& claim : Select(predicate)) {
    const auto job = jobs_.find(claim.job_id);
    const bool runs = claim.fence != 0 && job != jobs_.end() && job->second.held_by == claim.id;
    EndClaim(claims_.at(claim.id), /*job_returns=*/!runs, now);
    if (!runs) continue;
    Held& held = Hold(job->second, owner);
    held.claim.fence = claim.fence;
    held.has_slot = false;
    held.started = held.renewed = now - 2 * ttl_;
    taken.push_back(held.claim);
  }
  return taken;
}

std::vector<BoardClaim> LocalBoard::Expired(absl::string_view owner, absl::Time now) const {
  const MutexLock lock(mutex_);
  return Select(
      [&](const Held& held) { return held.claim.owner == owner && now - held.renewed >= ttl_; });
}

std::vector<BoardClaim> LocalBoard::TakeExpired(absl::string_view owner, absl::Time now) {
  const MutexLock lock(mutex_);
  const auto is_left = [&](const Held& held) {
    return held.claim.owner != owner && now - held.renewed >= 2 * ttl_;
  };
  return Take(owner, is_left, now);
}

std::vector<BoardClaim> LocalBoard::TakeOwn(absl::string_view owner, absl::Time now) {
  const MutexLock lock(mutex_);
  return Take(
      owner, [&](const Held& held) { return held.claim.owner == owner; }, now);
}

std::vector<BoardClaim> LocalBoard::Orphaned(absl::string_view owner) const {
  const MutexLock lock(mutex_);
  return Select([&](const Held& held) { return held.orphaned && held.claim.owner == owner; });
}

std::vector<std::string> LocalBoard::Due(absl::Time now) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> due;
  for (const auto& [when, id] : due_) {
    if (when > now) break;
    due.push_back(id);
  }
  return due;
}

std::optional<BoardView> LocalBoard::Look(absl::string_view job_id) const {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(std::string(job_id));
  if (found == jobs_.end()) return std::nullopt;
  const Live& live = found->second;
  if (const std::optional<QueueView> view = queue_->Look(job_id)) {
    return BoardView{.place = BoardView::Place::kQueue, .queue = *view};
  }
  if (live.held_by != 0) {
    return BoardView{.place = claims_.at(live.held_by).claim.fence == 0 ? BoardView::Place::kClaimed
                                                                        : BoardView::Place::kRuns};
  }
  if (live.follows != 0) return BoardView{.place = BoardView::Place::kFollows};
  return BoardView{.place = BoardView::Place::kClaimed};  // pinned: nothing is before it
}

JobBoard::Counts LocalBoard::GetCounts() const {
  const MutexLock lock(mutex_);
  Counts counts{.queued = queue_->size(), .running = 0};
  for (const auto& [id, held] : claims_) {
    if (held.claim.fence != 0 && held.has_slot) ++counts.running;
  }
  return counts;
}

}  // namespace npuc::jobs
