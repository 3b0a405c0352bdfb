#ifndef NPUC_TESTS_BENCH_WATCHERS_H_
#define NPUC_TESTS_BENCH_WATCHERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "npuc/v1/compile.grpc.pb.h"

namespace npuc::bench {

// Streams of the events of jobs that get nowhere.
class Watchers {
 public:
  Watchers();
  ~Watchers();

  // `stub` must outlive this.
  void Add(v1::CompileService::Stub& stub, const std::string& job_id);
  // Waits until each has had an event, or has ended.
  absl::Status AwaitFirstEvents();
  int attached() const { return attached_; }  // those that have had an event
  int64_t heartbeats() const { return heartbeats_; }
  // Ends all. INTERNAL, with a reason: some had ended before.
  absl::Status End();

 private:
  class Watcher;

  std::atomic<int> attached_ = 0;
  std::atomic<int64_t> heartbeats_ = 0;
  std::vector<std::unique_ptr<Watcher>> all_;
};

}  // namespace npuc::bench

#endif  // NPUC_TESTS_BENCH_WATCHERS_H_
