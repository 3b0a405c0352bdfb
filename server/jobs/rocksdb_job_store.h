#ifndef NPUC_SERVER_JOBS_ROCKSDB_JOB_STORE_H_
#define NPUC_SERVER_JOBS_ROCKSDB_JOB_STORE_H_

#include <memory>
#include <string>
#include <vector>

#include "server/jobs/job_store.h"

namespace npuc::jobs {

// A JobStore in one RocksDB database. RocksDB's types stay in the .cc.
//
// Column families and keys; a job id is 27 bytes, '/' is not in one:
//
//   default    "format"                            "4"
//   jobs       <job id>                            EncodeJobRecord
//   configs    <job id>                            the config's text; never rewritten
//   events     <job id> '/' <last, 8 bytes BE>     events of one change, up to number `last`, each
//                                                  EncodeEvent, one behind the other; in order,
//                                                  without a gap
//   requests   <tenant> NUL <request id>           <job id>
//   live       <job id>                            EncodeLiveJob while the job has not ended
//   ended      <end time, us, 8 bytes BE> <job id> ""
//
// So a start reads what has not ended, in one sweep, and nothing of what has.
//
// Changes that come while a write is under way become one WriteBatch, written with sync = true by
// the store's thread (committer.h). Log recovery is kTolerateCorruptedTailRecords: a torn
// record at the log's very end is a write that was never answered and is dropped; damage anywhere
// else refuses to open, since skipping it would lose accepted jobs in silence. So do logs that are
// missing or cut: the manifest knows the older ones, and the file `synced_sequence` how far the
// newest one must go.
class RocksDbJobStore : public JobStore {
 public:
  static constexpr char kFormatVersion[] = "4";

  // Opens or makes the database in `path`. FAILED_PRECONDITION: another process has it open, or it
  // is of another format version (the message names both). DATA_LOSS: it is damaged.
  // sync_changes: false is for a benchmark that fills a store, never for a daemon: what Apply has
  // accepted may then be lost by a power cut.
  static absl::StatusOr<std::unique_ptr<RocksDbJobStore>> Open(const std::string& path,
                                                               bool sync_changes = true);
  ~RocksDbJobStore() override;

  void Apply(std::shared_ptr<const JobChange> change, Done done) override;
  absl::StatusOr<Job> Read(absl::string_view job_id) const override;
  absl::StatusOr<std::string> ReadConfig(absl::string_view job_id) const override;
  absl::StatusOr<std::optional<std::string>> FindRequest(
      absl::string_view tenant, absl::string_view request_id) const override;
  absl::StatusOr<JobPage> List(const JobListQuery& query) const override;
  absl::StatusOr<std::vector<JobEvent>> ReadEvents(absl::string_view job_id, int64_t from_seq,
                                                   size_t max_count,
                                                   size_t max_bytes) const override;
  absl::Status ForEachLive(const std::function<absl::Status(LiveJob job)>& visit) const override;
  absl::StatusOr<size_t> Prune(absl::Time ended_before, size_t max_jobs) override;

  // Makes a database of the present state in `path`, which must not exist: hard links where the
  // file system allows. Whatever Apply had accepted before is in it. Writes wait meanwhile.
  absl::Status Checkpoint(const std::string& path);
  // A synced write of nothing that matters: whether the store can be written.
  absl::Status Probe();
  // Synced writes of the log since Open: fewer than the calls of Apply where some shared one.
  uint64_t log_syncs() const;

 private:
  struct Impl;
  explicit RocksDbJobStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_ROCKSDB_JOB_STORE_H_
