#ifndef NPUC_SERVER_OBJECTS_BOUNDED_CALLS_H_
#define NPUC_SERVER_OBJECTS_BOUNDED_CALLS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace npuc::objects {

// Calls of the operating system that may never return, as those of a network file system whose
// server is away: each is made on a thread of its own, and its caller waits for a time only.
// Threads that hang are left behind, a bounded number of them. Thread-safe.
class BoundedCalls {
 public:
  static constexpr size_t kMaxThreads = 16;

  explicit BoundedCalls(absl::Duration limit);

  // UNAVAILABLE: `work` did not return in time, or found no thread. It may still be running then,
  // so it must own all that it uses.
  absl::Status Run(std::function<absl::Status()> work);

 private:
  struct Shared;

  const absl::Duration limit_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace npuc::objects

#endif  // NPUC_SERVER_OBJECTS_BOUNDED_CALLS_H_
