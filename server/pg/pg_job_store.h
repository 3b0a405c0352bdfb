#ifndef NPUC_SERVER_PG_PG_JOB_STORE_H_
#define NPUC_SERVER_PG_PG_JOB_STORE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler_core/base/mutex.h"
#include "server/jobs/committer.h"
#include "server/jobs/job_store.h"
#include "server/pg/node.h"
#include "server/pg/sessions.h"

namespace npuc::pg {

struct PgJobStoreOptions {
  // A job gains one point of priority with each such time that it waits. The same on all nodes.
  absl::Duration ageing = absl::Seconds(30);
  // A write that PostgreSQL does not answer fails after so long.
  absl::Duration write_limit = absl::Seconds(10);
  // Called with the jobs that a write has changed, on the store's thread; must be quick.
  std::function<void(const std::vector<std::string>& jobs)> on_change = nullptr;
  // Called with a job whose record or events this build is too old to read, on any thread.
  std::function<void(absl::string_view job_id, const absl::Status& status)> on_newer = nullptr;
};

// A JobStore in PostgreSQL, shared by nodes. Changes that arrive during a write share the next one:
// a call of apply_batch (functions.sql). The same transaction puts new jobs on the board and takes
// ended jobs off.
//
// A write passes the lane of the node. Its number grows by one with each. After a lost answer the
// number tells whether the write was made, also where the node was declared dead in between. A
// number less than one that was acknowledged says that PostgreSQL has lost commits: from then on
// every call fails with DATA_LOSS.
//
// Errors besides those of JobStore: UNAVAILABLE while PostgreSQL is away, and (RECORD_TOO_NEW) of a
// job that a newer node wrote so that this one cannot read it. Lists leave such a job out.
class PgJobStore : public jobs::JobStore {
 public:
  // `sessions` and `node` must outlive it.
  PgJobStore(Sessions* sessions, Node* node, PgJobStoreOptions options = {});
  ~PgJobStore() override;

  bool is_shared() const override { return true; }
  void Apply(std::shared_ptr<const jobs::JobChange> change, Done done) override;
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

  // Makes a beat of the node, which is a synchronous commit: can the store be written, and has it
  // all that it acknowledged?
  absl::Status Probe();

 private:
  struct Encoded;
  using Changes = jobs::Committer<Encoded>;
  struct Batch;
  // The lane of one incarnation, and the session that writes. Of the committer's thread alone.
  struct Lane {
    int64_t incarnation = 0;
    int64_t epoch = 0;
    int64_t commit_no = 0;  // of the newest write that was acknowledged
    std::unique_ptr<Connection> connection = nullptr;
    bool in_doubt = false;  // whether the next number was written is not known
  };

  size_t Commit(Changes::Group group);
  absl::StatusOr<std::vector<int64_t>> Write(const Batch& batch);
  absl::StatusOr<std::vector<int64_t>> WriteOnce(const Batch& batch, bool& sent);
  absl::Status Connect();
  absl::Status CompareNumbers(int64_t found, int64_t acknowledged);
  void SetNumber(int64_t commit_no);
  absl::StatusOr<std::optional<std::vector<int64_t>>> Settle(const Rows& rows);
  absl::StatusOr<std::optional<std::vector<int64_t>>> TakeLane();
  absl::StatusOr<std::optional<std::vector<int64_t>>> ChangeLane(int64_t incarnation);
  absl::Status CheckLoss() const;
  // True: the bytes could not be decoded since a newer build wrote them, which is reported.
  bool IsNewer(absl::string_view job_id, const absl::Status& status) const;

  Sessions* const sessions_;
  Node* const node_;
  const PgJobStoreOptions options_;
  Lane lane_;
  mutable Mutex mutex_;
  absl::Status loss_ NPUC_GUARDED_BY(mutex_) = absl::OkStatus();
  // The lane's incarnation and commit number.
  std::pair<int64_t, int64_t> acknowledged_ NPUC_GUARDED_BY(mutex_) = {0, 0};
  std::unique_ptr<Changes> changes_;  // the last: its thread uses the others
};

}  // namespace npuc::pg

#endif  // NPUC_SERVER_PG_PG_JOB_STORE_H_
