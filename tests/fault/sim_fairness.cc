// The scheduler under tenants that always have more work than they get done.
#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/scheduler/fair_queue.h"
#include "tests/fault/simulation.h"

namespace npuc {
namespace {

constexpr double kMaxRunSeconds = 3.0;

struct End {
  double at = 0;
  size_t tenant = 0;
  double ran = 0;
  bool operator>(const End& other) const { return at > other.at; }
};

class FairWorld {
 public:
  FairWorld(uint64_t seed, const SimulationOptions& options)
      : options_(options), random_(seed ^ 0xfa12) {
    const auto tenants = static_cast<size_t>(random_.Between(2, 6));
    const bool equal = random_.Percent(40);
    for (size_t i = 0; i < tenants; ++i) {
      weights_.push_back(equal ? 1.0 : static_cast<double>(int64_t{1} << random_.Below(3)));
    }
    weights_.push_back(1.0);  // who comes late
    slots_ = static_cast<size_t>(random_.Between(1, 4));
    served_.resize(weights_.size());
    scheduler::FairQueueOptions queue_options{.max_queued = 1 << 20,
                                              .slots = static_cast<int>(slots_)};
    queue_options.policy = [this](absl::string_view tenant) {
      scheduler::TenantPolicy policy;
      for (size_t i = 0; i < weights_.size(); ++i) {
        if (Name(i) == tenant && options_.plant != Plant::kNoWeights) policy.weight = weights_[i];
      }
      return policy;
    };
    queue_ = std::make_unique<scheduler::FairQueue>(queue_options);
  }

  std::optional<std::string> Run() {
    const size_t late = weights_.size() - 1;
    for (size_t i = 0; i < late; ++i) {
      for (int job = 0; job < 5; ++job) Add(i);
    }
    const auto starts = static_cast<int>(random_.Between(150, 250));
    const int late_at = starts / 2;
    int others_first = -1;  // starts since the late one came; -1: not there, or served
    for (int start = 0; start < starts; ++start) {
      if (start == late_at) {
        Add(late);
        others_first = 0;
      }
      const size_t tenant = StartOne();
      if (tenant == late) {
        others_first = -1;
      } else {
        if (others_first >= 0) ++others_first;
        Add(tenant);  // always as many wait as before
      }
      // Each of the others may have a refund of one mean run that lets it go first.
      if (others_first > static_cast<int>(weights_.size() + slots_) + 4) {
        return absl::StrCat("no starvation: ", others_first,
                            " jobs were started before the one of a tenant that came late");
      }
    }
    return CheckShares(late);
  }

 private:
  std::string Name(size_t tenant) const { return absl::StrCat("t", tenant); }

  void Add(size_t tenant) {
    const std::string id = absl::StrCat(tenant, "-", ++order_);
    // One queue for all is what a scheduler without tenants is.
    queue_->Push({.id = id,
                  .accept_order = order_,
                  .tenant = options_.plant == Plant::kOneQueue ? "all" : Name(tenant),
                  .create_time = absl::UnixEpoch() + absl::Seconds(now_)},
                 /*reserved=*/false);
  }

  size_t StartOne() {
    if (running_.size() == slots_) {
      const End end = running_.top();
      running_.pop();
      now_ = end.at;
      queue_->Done(options_.plant == Plant::kOneQueue ? "all" : Name(end.tenant),
                   absl::Seconds(end.ran));
    }
    const auto job = queue_->Pop();
    const auto tenant = static_cast<size_t>(std::stoi(job->id));
    const double ran = static_cast<double>(random_.Between(100, 3000)) / 1000.0;
    served_[tenant] += ran;
    running_.push({now_ + ran, tenant, ran});
    return tenant;
  }

  // What each got for its weight differs by no more than what may run at once, and the last
  // correction.
  std::optional<std::string> CheckShares(size_t late) const {
    for (size_t i = 0; i < late; ++i) {
      for (size_t j = 0; j < late; ++j) {
        const double gap = served_[i] / weights_[i] - served_[j] / weights_[j];
        const double bound = (static_cast<double>(slots_) + 1.0) * kMaxRunSeconds *
                             (1.0 / weights_[i] + 1.0 / weights_[j]);
        if (gap > bound) {
          return absl::StrCat("shares are fair: tenant ", i, " of weight ", weights_[i], " got ",
                              served_[i], " s, tenant ", j, " of weight ", weights_[j], " got ",
                              served_[j], " s");
        }
      }
    }
    return std::nullopt;
  }

  const SimulationOptions& options_;
  SimRandom random_;
  std::vector<double> weights_;
  std::vector<double> served_;
  size_t slots_ = 1;
  double now_ = 0;
  uint64_t order_ = 0;
  std::unique_ptr<scheduler::FairQueue> queue_;
  std::priority_queue<End, std::vector<End>, std::greater<>> running_;
};

}  // namespace

std::optional<std::string> SimulateFairness(uint64_t seed, const SimulationOptions& options) {
  return FairWorld(seed, options).Run();
}

}  // namespace npuc
