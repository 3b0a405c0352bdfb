#ifndef NPUC_TESTS_FAULT_SIM_STORE_H_
#define NPUC_TESTS_FAULT_SIM_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler_core/base/split_mix.h"
#include "server/jobs/memory_job_store.h"

namespace npuc {

// The numbers of one life, the same on every machine.
class SimRandom {
 public:
  explicit SimRandom(uint64_t seed) : numbers_(seed * SplitMix64::kStep + 0x1234567) {}

  uint64_t Next() { return numbers_.Next(); }
  // 0 .. n-1
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Percent(double percent) { return numbers_.NextUniform() * 100.0 < percent; }

 private:
  SplitMix64 numbers_;
};

// Mistakes that the simulation must find: each is made by test code around the state machine, in
// the way a wrong store, queue, executor or configuration would make it.
enum class Plant : uint8_t {
  kNone,
  kLostSyncedWrite,    // the store answers OK for a write that a crash then loses
  kEventGap,           // the store loses an event
  kEventRepeat,        // the store gives an event twice
  kEndTwice,           // the store gives a second end of a job
  kForgetRequestId,    // the store does not know request ids again
  kEarlyPrune,         // jobs and request ids are forgotten after an hour
  kIgnoreFence,        // the executor stores a stale result under the newest fence
  kCancelWholeFlight,  // a cancel also cancels an equal job
  kDropFromQueue,      // the queue loses a job
  kNoBounds,           // the queue has no bounds
  kNoSingleFlight,     // equal jobs do not look equal
  kMixResults,         // different jobs look equal
  kUnboundedRetries,   // a job that loses its worker is tried for ever
  kNoLeaseExpiry,      // the lease of a worker that vanished is never taken back
  kExpireEarly,        // the clock of the deadlines runs ahead
  kNoWeights,          // the scheduler does not look at weights
  kOneQueue,           // the scheduler does not look at tenants
  kCutLog,             // a restart finds the store's log cut, and says nothing
  kDamageIsDeath,      // the executor takes a damaged input for the death of a worker
  kFailUnstarted,      // the executor fails a job for which no worker could be started
  kCountHostDeaths,    // the death of the warm parent counts against the job
  kMixTries,           // a run is tried again within its lease, and keeps what the first try made
  // In lives with several daemons:
  kRecoverOthers,  // a daemon that starts takes back what the others run
  kNoTakeOver,     // nobody takes back what a dead daemon ran
  kKeepExpired,    // the board leaves an expired claim with its owner, which has it no more
  kClaimTwice,     // the board gives a job to two of them
  kTrustEntries,   // a daemon takes what it remembers of a job for what the store has
  kBlindWrites,    // the store does not compare revisions
};
inline constexpr int kPlants = 29;
inline constexpr bool IsOfSeveralDaemons(Plant plant) { return plant >= Plant::kRecoverOthers; }
const char* PlantName(Plant plant);

// The store of a simulated daemon. What a synced write left survives a crash; a write that failed
// may have left something that can be seen, or that only a restart brings to light, or nothing.
class SimStore : public jobs::JobStore {
 public:
  // How often a write fails, in percent, by the manner.
  struct Faults {
    double fail_clean = 0;    // nothing was written
    double fail_visible = 0;  // it can be read, but is not synced
    double fail_hidden = 0;   // it is in the log, and the store takes no writes until a restart
    double crash_before = 0;  // the daemon dies before the write ...
    double crash_after = 0;   // ... or after it, before the answer
    double slow = 0;          // the write takes its time
    double nested = 0;        // other calls come in between
  };

  SimStore(uint64_t seed, Plant plant) : random_(seed), plant_(plant) {}

  void SetFaults(const Faults& faults) { faults_ = faults; }
  // `wait` lets time pass; `between` makes other calls, given whether the write is that of a job
  // nobody knows yet; `unanswered` sees a change that is stored, but whose write failed.
  struct Hooks {
    std::function<void()> wait;
    std::function<void(bool is_new)> between;
    std::function<void(const jobs::JobChange& change)> unanswered;
  };
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  // The daemon died during a write; every call fails until Restart.
  bool dead() const { return dead_; }
  bool broken() const { return dead_ || broken_; }
  // What a new daemon finds.
  void Restart();
  // Several daemons write to it. One that dies in a write leaves the others be, and a write that
  // fails was made wholly and for ever, or not at all.
  void Share() { shared_ = true; }
  // The daemon that writes from now on.
  void SetWriter(int daemon) { writer_ = daemon; }
  // Whether a daemon died in a write, and was not started again.
  bool IsDead(int daemon) const { return dead_writers_.contains(daemon); }
  void Revive(int daemon) { dead_writers_.erase(daemon); }
  bool is_shared() const override { return shared_ && plant_ != Plant::kTrustEntries; }

  void Apply(std::shared_ptr<const jobs::JobChange> change, Done done) override {
    done(ApplyNow(*change));
  }
  absl::StatusOr<jobs::Job> Read(absl::string_view job_id) const override;
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override;
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override;
  absl::StatusOr<jobs::JobPage> List(const jobs::JobListQuery& query) const override;
  absl::StatusOr<std::vector<jobs::JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                         size_t max_count,
                                                         size_t max_bytes) const override;
  absl::Status ForEachLive(
      const std::function<absl::Status(jobs::LiveJob job)>& visit) const override;
  absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) override;

 private:
  absl::Status ApplyNow(const jobs::JobChange& change);
  absl::Status Dead() const;
  absl::Status Die();
  absl::Status ApplyShared(const jobs::JobChange& change);
  absl::Status Write(const jobs::JobChange& change);
  void KeepForCrash();

  SimRandom random_;
  const Plant plant_;
  Faults faults_;
  Hooks hooks_;
  std::unique_ptr<jobs::MemoryJobStore> base_ = std::make_unique<jobs::MemoryJobStore>();
  // What a crash may go back to, while there are writes that were not synced.
  std::unique_ptr<jobs::MemoryJobStore> synced_;
  std::unique_ptr<jobs::MemoryJobStore> cut_;  // with kCutLog: what the cut log has
  bool lose_for_certain_ = false;
  std::optional<jobs::JobChange> hidden_;
  bool broken_ = false;
  bool dead_ = false;
  bool shared_ = false;
  int writer_ = 0;
  std::set<int> dead_writers_;
};

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_SIM_STORE_H_
