// The figures of fairness, by the real job service and scheduler in virtual time, with the store in
// memory: README.md says what must hold.
#include <cmath>
#include <cstdio>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/jobs/job_service.h"
#include "server/jobs/local_board.h"
#include "server/jobs/memory_job_store.h"
#include "server/scheduler/fair_queue.h"
#include "tests/fault/jain_index.h"

namespace npuc {
namespace {

constexpr double kMeanSeconds = 2.0;
constexpr int kSlots = 4;

struct End {
  double at = 0;
  jobs::JobService::Leased leased;
  double ran = 0;
  bool operator>(const End& other) const { return at > other.at; }
};

// A daemon's jobs without a daemon: runs take virtual time.
class World {
 public:
  explicit World(std::map<std::string, double> weights)
      : weights_(std::move(weights)),
        queue_({.max_queued = 1 << 20,
                .slots = kSlots,
                .policy =
                    [this](absl::string_view tenant) {
                      const auto found = weights_.find(std::string(tenant));
                      return scheduler::TenantPolicy{
                          .weight = found == weights_.end() ? 1.0 : found->second};
                    }}),
        jobs_({.now = [this] { return absl::UnixEpoch() + absl::Seconds(now_); },
               .random = [this] { return random_(); },
               .retry = {}},
              &store_, &board_) {}

  std::string Submit(const std::string& tenant) {
    jobs::NewJob job;
    job.tenant = tenant;
    job.config_text = "config";
    job.cache_key = absl::StrCat(tenant, "/", ++number_);
    job.spec.inputs = {{.role = "MODEL_FILE"}};
    job.spec.timeout = absl::Hours(24 * 7);
    const auto submitted = jobs_.SubmitAndWait(std::move(job));
    return submitted.ok() ? submitted->job->id : "";
  }

  // Starts what may start now.
  void Start() {
    while (running_.size() < kSlots) {
      const auto leased = jobs_.TryLease();
      if (!leased.ok() || !leased->has_value()) break;
      started_at_[(*leased)->job->id] = now_;
      const double ran =
          std::uniform_real_distribution<double>(0.2, 2 * kMeanSeconds - 0.2)(random_);
      running_.push({now_ + ran, **leased, ran});
    }
  }

  // Starts what may start, then goes on to the next end. False: nothing runs.
  bool Step() {
    Start();
    if (running_.empty()) return false;
    const End end = running_.top();
    running_.pop();
    now_ = end.at;
    served_[end.leased.job->tenant] += end.ran;
    return jobs_.Finish(end.leased.lease, {}, {.failure_kind = jobs::FailureKind::kInvalidInput})
        .ok();
  }

  double now() const { return now_; }
  const std::map<std::string, double>& served() const { return served_; }
  // Negative: not yet.
  double started_at(const std::string& id) const {
    const auto found = started_at_.find(id);
    return found == started_at_.end() ? -1 : found->second;
  }

 private:
  const std::map<std::string, double> weights_;
  double now_ = 0;
  std::mt19937_64 random_{7};
  jobs::MemoryJobStore store_;
  scheduler::FairQueue queue_;
  jobs::LocalBoard board_{&queue_, absl::Minutes(5)};
  jobs::JobService jobs_;
  int number_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
  std::map<std::string, double> served_;
  std::map<std::string, double> started_at_;
};

// One tenant queues 10,000 jobs, another then one.
bool LateComer() {
  World world({});
  for (int i = 0; i < 10000; ++i) world.Submit("many");
  double longest = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) world.Step();
    world.Start();  // no worker is free as it comes
    const std::string id = world.Submit("one");
    const double submitted = world.now();
    while (world.started_at(id) < 0 && world.Step()) {
    }
    longest = std::max(longest, world.started_at(id) - submitted);
  }
  std::printf(
      "FIGURE: beside a tenant with 10,000 jobs, 50 single jobs of another started at most "
      "%.2f s after they came; mean job time %.1f s, bound %.1f s\n",
      longest, kMeanSeconds, kMeanSeconds + 1);
  return longest <= kMeanSeconds + 1;
}

bool EqualTenants() {
  World world({});
  for (int i = 0; i < 10; ++i) {
    for (int job = 0; job < 400 + 100 * i; ++job) world.Submit(absl::StrCat("tenant", i));
  }
  for (int i = 0; i < 3000; ++i) world.Step();
  std::vector<double> served;
  for (const auto& [tenant, seconds] : world.served()) served.push_back(seconds);
  const double jain = JainIndex(served);
  std::printf(
      "FIGURE: ten equal tenants with 400 to 1300 jobs each, 3000 jobs later: Jain index "
      "%.5f\n",
      jain);
  return served.size() == 10 && jain >= 0.95;
}

bool Weights() {
  World world({{"a", 1.0}, {"b", 2.0}, {"c", 4.0}});
  for (const char* tenant : {"a", "b", "c"}) {
    for (int job = 0; job < 3000; ++job) world.Submit(tenant);
  }
  for (int i = 0; i < 3500; ++i) world.Step();
  const double unit =
      (world.served().at("a") + world.served().at("b") + world.served().at("c")) / 7;
  double worst = 0;
  for (const auto& [tenant, weight] : std::map<std::string, double>{{"a", 1}, {"b", 2}, {"c", 4}}) {
    worst = std::max(worst, std::abs(world.served().at(tenant) / (unit * weight) - 1));
  }
  std::printf("FIGURE: weights 1:2:4 got %.3f:%.3f:%.3f of the time, off by %.2f %% at most\n",
              world.served().at("a") / unit, world.served().at("b") / unit,
              world.served().at("c") / unit, 100 * worst);
  return worst <= 0.05;
}

}  // namespace
}  // namespace npuc

int main() {
  const bool late = npuc::LateComer();
  const bool equal = npuc::EqualTenants();
  const bool weights = npuc::Weights();
  return late && equal && weights ? 0 : 1;
}
