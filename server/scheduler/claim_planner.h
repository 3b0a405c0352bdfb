#ifndef NPUC_SERVER_SCHEDULER_CLAIM_PLANNER_H_
#define NPUC_SERVER_SCHEDULER_CLAIM_PLANNER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::scheduler {

// The least time between two questions of a node to the database. It grows with the nodes, so that
// all of them together ask no more often than some of them. Zero: it asks each time.
struct QuestionPeriod {
  absl::Duration least;
  absl::Duration per_node;

  absl::Duration Of(int64_t nodes) const { return std::max(least, nodes * per_node); }
};

// The nodes that live, this one too.
struct ClusterSize {
  int64_t nodes = 1;
  int64_t slots = 1;  // of all of them
};

// A tenant with a job that any node may start, as the database has it. Start-time fair queueing
// serves the tenant with the least clock: the time that its jobs ran, divided by its weight.
struct ReadyTenant {
  std::string tenant;
  double clock_s = 0;
  double mean_s = 2;  // of a run
  double weight = 1;
  int64_t room = std::numeric_limits<int64_t>::max();  // runs that its bound leaves
};

// Decides for one node of a cluster which tenant's jobs it claims, and how many, and when it asks
// the database which tenants have work.
//
// A claim touches the rows of one tenant, so the node chooses the tenant by what it knows: a view
// of all tenants with work, which it reads now and then (QuestionPeriod), what the answers to its
// claims said since, and news of tenants that got work. The charge of the clock and the bound on
// runs are exact in any case: the claim's statement has the tenant's lock.
//
// The other nodes go on claiming after the view was read. How far they move a clock meanwhile is
// the slack: the seconds of all their slots, divided by the weights of the tenants with work. The
// planner draws, by weight, among the tenants within the slack of the least clock, so that nodes
// with equally old views do not all take the same one. Where no other node claims, or the view is
// read each time, the slack is zero, and the order is that of FairQueue.
//
// A tenant that came back from having no work gets the clock `floor_s`, the least of those with
// work, so that it brings no old credit; a view that is too old gives it the slack as credit.
//
// Not thread-safe.
class ClaimPlanner {
 public:
  ClaimPlanner(QuestionPeriod period, uint64_t seed) : period_(period), random_(seed) {}

  struct Plan {
    enum class Kind : uint8_t {
      kNothing,  // no job may be there
      kRead,     // read the view, call SetView, and ask again
      kPinned,   // claim jobs that are pinned to this node
      kTenant,   // claim jobs of `tenant`
    };
    Kind kind = Kind::kNothing;
    std::string tenant = {};
    double floor_s = 0;
    // A job starts where its tenant's clock is at most this. The next job is one mean run later.
    double until_s = std::numeric_limits<double>::infinity();
    int64_t jobs = 0;  // at most
    // kNothing: something was heard of since the view was read, so it is worth to ask again then.
    absl::Time ask_again = absl::InfiniteFuture();
  };
  // `tries` counts the calls for one claim, from 0; `free_slots` is positive; with `pinned_only`
  // no tenant is planned. `now` never falls.
  Plan Next(int tries, int64_t free_slots, bool pinned_only, ClusterSize size, absl::Time now);

  struct View {
    std::vector<ReadyTenant> tenants;
    double newest_floor_s = 0;  // the greatest floor that any claim has had
    bool has_pinned = false;    // to this node
  };
  void SetView(View view, absl::Time now);

  // The answer to a claim of the plan's tenant.
  struct Answer {
    ReadyTenant tenant;
    bool has_more = false;  // it may have more jobs
  };
  void Learn(const Answer& answer, absl::Time now);
  // The answer to a claim of pinned jobs.
  void LearnPinned(bool has_more) { has_pinned_ = has_more || heard_of_pinned_; }

  // A job of the tenant waits now. At its own node: this node accepted it.
  void HearOfWork(absl::string_view tenant, bool is_own);
  // A run of the tenant ended, so it may be below its bound again.
  void HearOfRoom(absl::string_view tenant);
  // A job that is pinned to this node waits now.
  void HearOfPinned() { has_pinned_ = heard_of_pinned_ = true; }
  // There may be work of any tenant.
  void HearOfAnything() { is_outdated_ = true; }

 private:
  // News of a tenant since the node last asked the database about it.
  enum class News : uint8_t { kNone, kWork, kFirstOwnWork };
  struct Entry {
    ReadyTenant state;
    // Its clock less the virtual time when it was read.
    double lag_s = 0;
    News news = News::kNone;
  };

  // The other nodes have moved the clocks by so much since the view was read.
  double SlackSeconds(absl::Time now) const;
  double VirtualNow(absl::Time now) const { return floor_s_ + SlackSeconds(now); }
  std::vector<Entry>::iterator PlaceOf(absl::string_view tenant);
  // nullptr: the tenant is not among the entries.
  Entry* Find(absl::string_view tenant);
  Entry& FindOrAdd(absl::string_view tenant);
  // nullptr: no tenant has a job that may start.
  Entry* Choose(double slack_s);

  const QuestionPeriod period_;
  std::mt19937_64 random_;
  std::vector<Entry> entries_;  // by name
  ClusterSize size_;            // when the view was asked for
  absl::Time read_ = absl::InfinitePast();
  double floor_s_ = 0;      // of the view
  double others_rate_ = 0;  // virtual seconds that the other nodes make in a second
  bool has_pinned_ = false;
  bool heard_of_pinned_ = false;  // since the question about them was asked
  bool is_outdated_ = false;
};

}  // namespace npuc::scheduler

#endif  // NPUC_SERVER_SCHEDULER_CLAIM_PLANNER_H_
