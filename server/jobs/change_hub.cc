#include "server/jobs/change_hub.h"

#include <algorithm>
#include <utility>

namespace npuc::jobs {

ChangeHub::Subscription& ChangeHub::Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  hub_ = std::exchange(other.hub_, nullptr);
  topic_ = std::move(other.topic_);
  slot_ = std::move(other.slot_);
  return *this;
}

void ChangeHub::Subscription::Reset() {
  if (hub_ == nullptr) return;
  {
    // Waits for a callback that is running.
    const MutexLock lock(slot_->mutex);
    slot_->callback = nullptr;
  }
  {
    const MutexLock lock(hub_->mutex_);
    const auto found = hub_->topics_.find(topic_);
    if (found != hub_->topics_.end()) {
      std::erase(found->second, slot_);
      if (found->second.empty()) hub_->topics_.erase(found);
    }
  }
  hub_ = nullptr;
  slot_.reset();
}

ChangeHub::Subscription ChangeHub::Subscribe(absl::string_view topic,
                                             std::function<void()> callback) {
  Subscription subscription;
  subscription.hub_ = this;
  subscription.topic_ = std::string(topic);
  subscription.slot_ = std::make_shared<Subscription::Slot>(std::move(callback));
  const MutexLock lock(mutex_);
  topics_[subscription.topic_].push_back(subscription.slot_);
  return subscription;
}

void ChangeHub::Call(const Slots& slots) {
  for (const auto& slot : slots) {
    const MutexLock lock(slot->mutex);
    if (slot->callback) slot->callback();
  }
}

void ChangeHub::Notify(absl::string_view topic) {
  Slots slots;
  {
    const MutexLock lock(mutex_);
    const auto found = topics_.find(std::string(topic));
    if (found == topics_.end()) return;
    slots = found->second;
  }
  Call(slots);
}

void ChangeHub::NotifyAll() {
  Slots all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [topic, slots] : topics_) all.insert(all.end(), slots.begin(), slots.end());
  }
  Call(all);
}

size_t ChangeHub::subscription_count() const {
  const MutexLock lock(mutex_);
  size_t count = 0;
  for (const auto& [topic, slots] : topics_) count += slots.size();
  return count;
}

}  // namespace npuc::jobs
