#ifndef NPUC_TESTS_FAULT_SIM_BOARD_H_
#define NPUC_TESTS_FAULT_SIM_BOARD_H_

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/local_board.h"
#include "server/scheduler/fair_queue.h"
#include "tests/fault/sim_store.h"

namespace npuc {

inline constexpr int kMaxDaemons = 5;
inline constexpr std::array<const char*, kMaxDaemons> kDaemonNames = {"a", "b", "c", "d", "e"};

// A queue that loses what it is given now and then.
class LeakyQueue : public scheduler::FairQueue {
 public:
  LeakyQueue(scheduler::FairQueueOptions options, SimRandom* random)
      : scheduler::FairQueue(std::move(options)), random_(random) {}
  void Push(jobs::QueuedJob job, bool reserved) override {
    const std::string id = job.id;
    scheduler::FairQueue::Push(std::move(job), reserved);
    if (random_->Percent(5)) Remove(id);
  }

 private:
  SimRandom* const random_;
};

// A board as one of its daemons sees it: a daemon that died changes nothing any more. Plants go in
// here.
class SimBoard : public jobs::JobBoard {
 public:
  SimBoard(jobs::LocalBoard* board, const SimStore* store, Plant plant, int daemon)
      : board_(board), store_(store), plant_(plant), daemon_(daemon) {}
  // The daemon is no more, in the middle of whatever it does.
  void Die() { dead_ = true; }

  bool NeedsFill() const override { return board_->NeedsFill(); }
  uint64_t NextOrder() override { return board_->NextOrder(); }
  absl::Status Reserve(absl::string_view tenant) override { return board_->Reserve(tenant); }
  void Release(absl::string_view tenant) override { board_->Release(tenant); }
  void Accept(const jobs::BoardJob& job, bool reserved) override {
    if (!dead()) return board_->Accept(job, reserved);
    if (reserved) board_->Release(job.place.tenant);
  }
  void Forget(absl::string_view job_id) override {
    if (!dead()) board_->Forget(job_id);
  }
  bool Has(absl::string_view job_id) const override { return board_->Has(job_id); }
  std::optional<jobs::BoardClaim> Claim(absl::string_view owner, absl::Time now) override {
    if (dead()) return std::nullopt;
    if (plant_ == Plant::kClaimTwice) {
      for (const char* other : kDaemonNames) {
        for (jobs::BoardClaim claim : board_->Expired(other, absl::InfiniteFuture())) {
          if (claim.owner == owner || claim.fence != 0) continue;
          claim.owner = std::string(owner);
          return claim;
        }
      }
    }
    return board_->Claim(owner, now);
  }
  void Restore(const jobs::BoardJob& job, absl::string_view owner, uint64_t fence,
               absl::Time held_until) override {
    if (!dead()) board_->Restore(job, owner, fence, held_until);
  }
  bool Start(jobs::ClaimId claim, uint64_t fence, absl::Time now) override {
    return !dead() && board_->Start(claim, fence, now);
  }
  bool Renew(jobs::ClaimId claim, absl::Time now) override {
    if (dead()) return false;
    return board_->Renew(claim, now) || plant_ == Plant::kKeepExpired;
  }
  std::optional<jobs::BoardClaim> PassOn(jobs::ClaimId claim, absl::Time now) override {
    return dead() ? std::nullopt : board_->PassOn(claim, now);
  }
  std::vector<std::string> Close(jobs::ClaimId claim, absl::Time now) override {
    return dead() ? std::vector<std::string>() : board_->Close(claim, now);
  }
  void End(jobs::ClaimId claim, absl::Time now) override {
    if (!dead()) board_->End(claim, now);
  }
  std::vector<jobs::BoardClaim> Expired(absl::string_view owner, absl::Time now) const override {
    return board_->Expired(owner, now);
  }
  std::vector<jobs::BoardClaim> TakeExpired(absl::string_view owner, absl::Time now) override {
    if (dead() || plant_ == Plant::kNoTakeOver) return {};
    return board_->TakeExpired(owner, now);
  }
  std::vector<jobs::BoardClaim> TakeOwn(absl::string_view owner, absl::Time now) override {
    std::vector<jobs::BoardClaim> taken = board_->TakeOwn(owner, now);
    if (plant_ != Plant::kRecoverOthers) return taken;
    for (const char* other : kDaemonNames) {
      if (owner == other) continue;
      for (jobs::BoardClaim& claim : board_->TakeOwn(other, now)) taken.push_back(std::move(claim));
    }
    return taken;
  }
  std::vector<jobs::BoardClaim> Orphaned(absl::string_view owner) const override {
    return board_->Orphaned(owner);
  }
  std::vector<std::string> Due(absl::Time now) const override { return board_->Due(now); }
  std::optional<jobs::BoardView> Look(absl::string_view job_id) const override {
    return board_->Look(job_id);
  }
  Counts GetCounts() const override { return board_->GetCounts(); }
  Unsubscribe Subscribe(std::function<void()> wake) override {
    return board_->Subscribe(std::move(wake));
  }

 private:
  bool dead() const { return dead_ || store_->IsDead(daemon_); }

  jobs::LocalBoard* const board_;
  const SimStore* const store_;
  const Plant plant_;
  const int daemon_;
  bool dead_ = false;
};

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_SIM_BOARD_H_
