// A mistake planted for ThreadSanitizer: the real job service on a queue that counts without a
// lock. The test demands the report; without one, TSan would not see our code.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"

namespace npuc {
namespace {

// JobService calls Reserve without a lock of its own, so the count needs one.
class UnlockedCount : public scheduler::FairQueue {
 public:
  using scheduler::FairQueue::FairQueue;
  absl::Status Reserve(absl::string_view tenant) override {
    ++reserved_;
    return scheduler::FairQueue::Reserve(tenant);
  }

 private:
  int reserved_ = 0;
};

int RunJobs() {
  jobs::MemoryJobStore store;
  UnlockedCount queue(scheduler::FairQueueOptions{});
  jobs::LocalBoard board(&queue, absl::Minutes(5));
  std::atomic<uint64_t> random = 0;
  jobs::JobService jobs(
      {.now = [] { return absl::Now(); }, .random = [&] { return ++random; }, .retry = {}}, &store,
      &board);
  std::atomic<int> accepted = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 200; ++n) {
        jobs::NewJob job;
        job.tenant = "tenant";
        job.request_id = absl::StrCat(i, "-", n);
        job.spec.inputs = {{.role = "MODEL_FILE"}};
        job.spec.timeout = absl::Hours(1);
        if (jobs.SubmitAndWait(std::move(job)).ok()) ++accepted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return accepted == 800 ? 0 : 1;
}

}  // namespace
}  // namespace npuc

int main() { return npuc::RunJobs(); }
