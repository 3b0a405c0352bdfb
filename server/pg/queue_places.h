#ifndef NPUC_SERVER_PG_QUEUE_PLACES_H_
#define NPUC_SERVER_PG_QUEUE_PLACES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job_board.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

// Where jobs stand in the queue of all nodes, and how many wait and run. It changes nothing.
// Thread-safe; calls wait for PostgreSQL.
class QueuePlaces {
 public:
  // `sessions` must outlive it.
  explicit QueuePlaces(Sessions* sessions) : sessions_(sessions) {}

  // By JobBoard::Look. Calls of one time share a statement.
  std::optional<jobs::BoardView> Look(absl::string_view job_id);
  // The place of a job that comes now, by the newest counts. Asks nobody.
  jobs::BoardView LookAtNew(absl::string_view tenant);
  // Waiting and running jobs of each tenant, about a second old; older where to count takes long.
  std::map<std::string, jobs::JobBoard::Counts> CountsByTenant();
  // Counts for later calls, where some asked since the last count and that is old.
  void CountWhereAsked();

 private:
  // Looks that one statement answers.
  struct Looks {
    std::set<std::string> jobs;
    std::map<std::string, jobs::BoardView, std::less<>> views;
    bool is_done = false;
  };

  std::map<std::string, jobs::BoardView, std::less<>> LookAt(const std::set<std::string>& jobs);
  void Count();  // is_counting_ is the caller's
  int64_t PositionBehind(absl::string_view tenant, int64_t before) NPUC_REQUIRES(mutex_);

  Sessions* const sessions_;

  Mutex mutex_;
  std::map<std::string, jobs::JobBoard::Counts> counts_ NPUC_GUARDED_BY(mutex_);
  std::map<std::string, double> means_ NPUC_GUARDED_BY(mutex_);   // seconds of a job
  int64_t slots_ NPUC_GUARDED_BY(mutex_) = 1;                     // of all nodes
  SteadyTime counts_due_ NPUC_GUARDED_BY(mutex_) = {};            // of the next count
  SteadyTime::duration count_time_ NPUC_GUARDED_BY(mutex_) = {};  // of the last one
  bool is_counting_ NPUC_GUARDED_BY(mutex_) = false;
  bool counts_asked_ NPUC_GUARDED_BY(mutex_) = false;  // since the last count

  // Watchers ask at one time. While a statement looks, the next one's jobs gather.
  Mutex look_mutex_;
  CondVar looked_;
  std::shared_ptr<Looks> next_looks_ NPUC_GUARDED_BY(look_mutex_);
  bool is_looking_ NPUC_GUARDED_BY(look_mutex_) = false;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_QUEUE_PLACES_H_
