#ifndef NPUC_SERVER_JOBS_CHANGE_HUB_H_
#define NPUC_SERVER_JOBS_CHANGE_HUB_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/mutex.h"

namespace npuc::jobs {

// Tells those who watch a job that it has changed; what changed they read from the store, so a slow
// watcher costs one entry here and no buffer. Thread-safe.
class ChangeHub {
 public:
  // Ends the subscription when destroyed: from then on the callback is not running and will not
  // run. Must not outlive the hub.
  class Subscription {
   public:
    Subscription() = default;
    ~Subscription() { Reset(); }
    Subscription(Subscription&& other) noexcept { *this = std::move(other); }
    Subscription& operator=(Subscription&& other) noexcept;
    void Reset();

   private:
    friend class ChangeHub;
    struct Slot {
      explicit Slot(std::function<void()> call) : callback(std::move(call)) {}
      Mutex mutex;
      std::function<void()> callback NPUC_GUARDED_BY(mutex);  // empty: ended
    };
    ChangeHub* hub_ = nullptr;
    std::string topic_;
    std::shared_ptr<Slot> slot_;
  };

  // `callback` runs on the thread that made a change: it must be quick, must not block and must not
  // end its own subscription.
  Subscription Subscribe(absl::string_view topic, std::function<void()> callback);

  void Notify(absl::string_view topic);
  void NotifyAll();

  size_t subscription_count() const;

 private:
  using Slots = std::vector<std::shared_ptr<Subscription::Slot>>;
  static void Call(const Slots& slots);

  mutable Mutex mutex_;
  std::map<std::string, Slots, std::less<>> topics_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_CHANGE_HUB_H_
