#include "server/scheduler/claim_planner.h"

#include <utility>

namespace npuc::scheduler {
namespace {

// After so many claims that gave nothing the next one is not refused: its node knows the newest
// clocks of that many tenants, and the slot has waited.
constexpr int kGuardedTries = 4;
constexpr double kMinMeanSeconds = 0.001;

}  // namespace

double ClaimPlanner::SlackSeconds(absl::Time now) const {
  return others_rate_ > 0 ? others_rate_ * absl::ToDoubleSeconds(now - read_) : 0;
}

std::vector<ClaimPlanner::Entry>::iterator ClaimPlanner::PlaceOf(absl::string_view tenant) {
  return std::lower_bound(
      entries_.begin(), entries_.end(), tenant,
      [](const Entry& entry, absl::string_view name) { return entry.state.tenant < name; });
}

ClaimPlanner::Entry* ClaimPlanner::Find(absl::string_view tenant) {
  const auto place = PlaceOf(tenant);
  return place == entries_.end() || place->state.tenant != tenant ? nullptr : &*place;
}

ClaimPlanner::Entry& ClaimPlanner::FindOrAdd(absl::string_view tenant) {
  if (Entry* const found = Find(tenant)) return *found;
  return *entries_.insert(PlaceOf(tenant), {.state = {.tenant = std::string(tenant)}});
}

ClaimPlanner::Entry* ClaimPlanner::Choose(double slack_s) {
  double least = std::numeric_limits<double>::infinity();
  for (Entry& entry : entries_) {
    if (entry.state.room <= 0) continue;
    // No other node knows of it, or few do.
    if (entry.news == News::kFirstOwnWork) return &entry;
    least = std::min(least, entry.lag_s);
  }
  const auto may_be_next = [&](const Entry& entry) {
    return entry.state.room > 0 && entry.lag_s <= least + slack_s;
  };
  // Each gets its share of the time.
  const auto share = [](const Entry& entry) {
    return entry.state.weight / std::max(entry.state.mean_s, kMinMeanSeconds);
  };
  double shares = 0;
  for (const Entry& entry : entries_) {
    if (may_be_next(entry)) shares += share(entry);
  }
  double drawn = std::uniform_real_distribution<double>(0, shares)(random_);
  Entry* last = nullptr;
  for (Entry& entry : entries_) {
    if (!may_be_next(entry)) continue;
    last = &entry;
    drawn -= share(entry);
    if (drawn < 0) break;
  }
  return last;
}

ClaimPlanner::Plan ClaimPlanner::Next(int tries, int64_t free_slots, bool pinned_only,
                                      ClusterSize size, absl::Time now) {
  if (tries == 0 && now - read_ >= period_.Of(size.nodes)) {
    size_ = size;
    for (Entry& entry : entries_) entry.news = News::kNone;
    heard_of_pinned_ = false;
    is_outdated_ = false;
    return {.kind = Plan::Kind::kRead};
  }
  if (has_pinned_) {
    heard_of_pinned_ = false;
    return {.kind = Plan::Kind::kPinned, .jobs = free_slots};
  }
  const double slack = SlackSeconds(now);
  Entry* const chosen = pinned_only ? nullptr : Choose(slack);
  if (chosen == nullptr) {
    return {.ask_again = is_outdated_ ? read_ + period_.Of(size.nodes) : absl::InfiniteFuture()};
  }
  chosen->news = News::kNone;
  Plan plan{
      .kind = Plan::Kind::kTenant, .tenant = chosen->state.tenant, .floor_s = floor_s_, .jobs = 1};
  if (tries >= kGuardedTries) return plan;
  plan.jobs = free_slots;
  for (const Entry& other : entries_) {
    if (&other == chosen || other.state.room <= 0) continue;
    plan.until_s = std::min(plan.until_s, floor_s_ + other.lag_s + 2 * slack);
  }
  return plan;
}

void ClaimPlanner::SetView(View view, absl::Time now) {
  floor_s_ = std::numeric_limits<double>::infinity();
  double weight = 0;
  for (const ReadyTenant& tenant : view.tenants) {
    if (tenant.room <= 0) continue;
    floor_s_ = std::min(floor_s_, tenant.clock_s);
    weight += tenant.weight;
  }
  floor_s_ = weight > 0 ? std::max(floor_s_, view.newest_floor_s) : view.newest_floor_s;
  const auto others =
      static_cast<double>(size_.slots * (size_.nodes - 1)) / static_cast<double>(size_.nodes);
  others_rate_ = weight > 0 ? others / weight : 0;
  read_ = now;
  std::vector<Entry> heard;
  for (Entry& entry : entries_) {
    if (entry.news != News::kNone) heard.push_back(std::move(entry));
  }
  entries_.clear();
  for (ReadyTenant& tenant : view.tenants) {
    const double lag = std::max(tenant.clock_s, view.newest_floor_s) - floor_s_;
    entries_.push_back({.state = std::move(tenant), .lag_s = lag});
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.state.tenant < b.state.tenant; });
  for (const Entry& entry : heard) {
    const bool is_first = Find(entry.state.tenant) == nullptr;
    FindOrAdd(entry.state.tenant).news = is_first ? entry.news : News::kWork;
  }
  has_pinned_ = view.has_pinned || heard_of_pinned_;
}

void ClaimPlanner::Learn(const Answer& answer, absl::Time now) {
  Entry& entry = FindOrAdd(answer.tenant.tenant);
  if (!answer.has_more && entry.news == News::kNone) {
    entries_.erase(PlaceOf(answer.tenant.tenant));
    return;
  }
  entry.state = answer.tenant;
  entry.lag_s = answer.tenant.clock_s - VirtualNow(now);
}

void ClaimPlanner::HearOfWork(absl::string_view tenant, bool is_own) {
  const bool is_first = Find(tenant) == nullptr;
  Entry& entry = FindOrAdd(tenant);
  if (is_first && is_own) {
    entry.news = News::kFirstOwnWork;
  } else if (entry.news == News::kNone) {
    entry.news = News::kWork;
  }
}

void ClaimPlanner::HearOfRoom(absl::string_view tenant) {
  Entry* const entry = Find(tenant);
  if (entry == nullptr || entry->state.room > 0) return;
  entry->state.room = 1;
  entry->news = News::kWork;
}

}  // namespace npuc::scheduler
