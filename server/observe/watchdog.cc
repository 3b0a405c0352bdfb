#include "server/observe/watchdog.h"

#include <algorithm>

namespace npuc::observe {

Watchdog::Scope& Watchdog::Scope::operator=(Scope&& other) noexcept {
  if (this == &other) return *this;
  End();
  dog_ = std::exchange(other.dog_, nullptr);
  id_ = other.id_;
  return *this;
}

void Watchdog::Scope::End() {
  if (dog_ == nullptr) return;
  const MutexLock lock(dog_->mutex_);
  dog_->scopes_.erase(id_);
  dog_ = nullptr;
}

Watchdog::Scope Watchdog::Enter(absl::string_view part, absl::Duration patience) {
  const absl::Time now = now_();
  Scope scope;
  const MutexLock lock(mutex_);
  scope.dog_ = this;
  scope.id_ = next_id_++;
  scopes_[scope.id_] = {std::string(part), now, patience};
  return scope;
}

void Watchdog::Beat(absl::string_view part, absl::Duration patience) {
  const absl::Time now = now_();
  const MutexLock lock(mutex_);
  beats_[std::string(part)] = {std::string(part), now, patience};
}

void Watchdog::Retire(absl::string_view part) {
  const MutexLock lock(mutex_);
  const auto found = beats_.find(part);
  if (found != beats_.end()) beats_.erase(found);
}

std::vector<Watchdog::Stuck> Watchdog::Look() const {
  const absl::Time now = now_();
  std::map<std::string, absl::Duration> stuck;
  const auto judge = [&](const Watched& watched) {
    const absl::Duration age = now - watched.begin;
    if (age <= watched.patience) return;
    absl::Duration& longest = stuck[watched.part];
    longest = std::max(longest, age);
  };
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, watched] : scopes_) judge(watched);
    for (const auto& [part, watched] : beats_) judge(watched);
  }
  std::vector<Stuck> list;
  for (const auto& [part, since] : stuck) list.push_back({part, since});
  return list;
}

}  // namespace npuc::observe
