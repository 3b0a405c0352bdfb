#ifndef NPUC_SERVER_PG_NODE_H_
#define NPUC_SERVER_PG_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/base/features.h"
#include "server/pg/sessions.h"
#include "server/scheduler/claim_planner.h"

namespace npuc::pg {

struct NodeOptions {
  std::string name;  // unlike that of any other node, and the same after a restart
  std::string build_id = {};
  std::string address = {};  // where clients reach it; shown to operators
  int slots = 1;
  // A node of which no beat was seen for so long is dead.
  absl::Duration ttl = absl::Seconds(10);
  absl::Duration beat_period = absl::Seconds(2);
  int64_t feature_level = base::kFeatureLevel;
  // The cluster's level rises when all live nodes have known a higher one for so long.
  absl::Duration feature_wait = absl::ZeroDuration();
  std::function<absl::Time()> steady_now;
};

// One daemon among those that share a database. Each of its lives has a number, the incarnation.
// Its heartbeat is a counter; the other nodes watch it by their own steady clocks, and declare the
// node dead when it stands still for `ttl` although they could read it all along. From that commit
// on nothing that the node writes succeeds. A node that finds itself dead joins again with a new
// incarnation; its runs are over.
//
// No node compares its clock with another's. ClusterNow is PostgreSQL's time, followed by the
// steady clock.
//
// Thread-safe.
class Node {
 public:
  // An earlier life of the name is over from then on. FAILED_PRECONDITION (NODE_TOO_OLD): the
  // cluster's feature level is above that of this build.
  static absl::StatusOr<std::unique_ptr<Node>> Join(Sessions* sessions, NodeOptions options);
  ~Node();

  const std::string& name() const { return options_.name; }
  int64_t incarnation() const;
  // False: it was not heard by the database for so long that others may have declared it dead, so
  // it starts nothing.
  bool IsHeard() const;
  absl::Time ClusterNow() const;
  // The cluster's, as of the last beat; it never falls.
  int64_t feature_level() const;
  // By the last look at the nodes (Observe); before it, this node alone.
  scheduler::ClusterSize size() const;

  // The thread that calls Beat and Observe, until the end.
  void StartBeating();
  // Joins anew where it was declared dead. Errors: the database is away; it has left.
  absl::Status Beat();
  // Looks at the other nodes, and declares those dead that are.
  absl::Status Observe();
  // It takes no more work. Its own runs go on.
  absl::Status Drain();
  // The end of this life, on purpose: others take over at once what it left. It beats no more.
  absl::Status Leave();
  // Forgets lives of nodes that ended long ago.
  absl::Status ForgetDead();

  struct Peer {
    int64_t incarnation = 0;
    std::string name;
    std::string build_id;
    std::string address;
    int slots = 0;
    int64_t feature_level = 0;
    bool draining = false;
  };
  // All that live, this one too, by name.
  absl::StatusOr<std::vector<Peer>> Peers() const;

 private:
  struct Seen {
    int64_t beat = 0;
    absl::Time since;
  };

  Node(Sessions* sessions, NodeOptions options)
      : sessions_(sessions), options_(std::move(options)), size_({.slots = options_.slots}) {}
  absl::Status JoinAnew();
  void SetTime(absl::Time before, absl::Time after, int64_t cluster_us) NPUC_REQUIRES(mutex_);
  void Loop();
  void StopBeating();

  Sessions* const sessions_;
  const NodeOptions options_;
  mutable Mutex mutex_;
  CondVar stop_;
  bool stopping_ NPUC_GUARDED_BY(mutex_) = false;
  int64_t incarnation_ NPUC_GUARDED_BY(mutex_) = 0;
  absl::Time heard_ NPUC_GUARDED_BY(mutex_) =
      absl::InfinitePast();                                     // when the last good beat began
  std::deque<absl::Duration> offsets_ NPUC_GUARDED_BY(mutex_);  // of the last beats
  int64_t feature_level_ NPUC_GUARDED_BY(mutex_) = 0;
  scheduler::ClusterSize size_ NPUC_GUARDED_BY(mutex_);
  mutable absl::Time last_now_ NPUC_GUARDED_BY(mutex_) = absl::InfinitePast();
  Mutex observe_mutex_;  // one look at a time
  std::map<int64_t, Seen> seen_ NPUC_GUARDED_BY(observe_mutex_);
  std::thread thread_;
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_NODE_H_
