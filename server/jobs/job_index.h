#ifndef NPUC_SERVER_JOBS_JOB_INDEX_H_
#define NPUC_SERVER_JOBS_JOB_INDEX_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/mutex.h"
#include "server/jobs/job.h"

namespace npuc::jobs {

// So many bytes of a job's labels can be found by text; a label is always found by its whole key
// and value.
inline constexpr size_t kIndexedLabelBytes = 256;
// JobTotals has at most so many tenants.
inline constexpr size_t kMaxTenantTotals = 1000;

enum class JobOrder : uint8_t {
  kCreateTime,  // newest first
  kEndTime,     // newest first; before them the jobs that run or wait
  kName,
  kTook,  // longest first; behind them the jobs that run or wait
  kState,
  kCore,
  kFramework,
  kTenant,
};

struct JobFilter {
  std::vector<JobState> states = {};  // empty: all; so with the others
  std::vector<std::string> cores = {};
  std::vector<std::string> frameworks = {};
  std::vector<std::string> tenants = {};
  // Key, and value where it counts. All must be there.
  std::vector<std::pair<std::string, std::optional<std::string>>> labels = {};
  std::string text = {};
  absl::Time created_from = absl::InfinitePast();
  absl::Time created_before = absl::InfiniteFuture();
  std::string submitter = {};  // empty: anybody
  // The caller may see this tenant's jobs alone; unset: all but those of `hidden_tenant`.
  std::optional<std::string> only_tenant = {};
  std::string hidden_tenant = {};
};

struct JobTotals {
  int64_t jobs = 0;
  std::map<JobState, int64_t> states = {};
  std::map<std::string, int64_t> cores = {};
  std::map<std::string, int64_t> frameworks = {};
  std::map<std::string, int64_t> tenants = {};
};

// The index has all jobs in memory: a row of about 120 bytes a job and each distinct text once, so
// that any filter and order over a million jobs takes some tens of milliseconds. It follows the
// store and may be a moment behind: a caller that shows a job reads its record. Thread-safe; Put
// never waits for a Find.
class JobIndex {
 public:
  struct Query {
    JobFilter filter = {};
    JobOrder order = JobOrder::kCreateTime;
    bool reverse = false;
    std::string after_id = {};  // the last job of the page before; empty: from the beginning
    size_t limit = 50;
    bool with_totals = false;
  };
  struct Page {
    std::vector<std::string> ids = {};
    bool has_more = false;
    bool knows_after = true;  // false: after_id names no job (any more)
    JobTotals totals = {};
  };

  // The job as it is stored now. An older revision than the known one changes nothing.
  void Put(const Job& job);
  // Forgets the jobs that JobStore::Prune has: `count` that ended before a time, the oldest first.
  void DropEnded(absl::Time before, size_t count);
  Page Find(const Query& query);
  size_t size();

  // The index has all that the store has.
  bool is_complete() const { return is_complete_.load(); }
  void SetComplete() { is_complete_.store(true); }

 private:
  static constexpr size_t kIdBytes = 27;

  // A text that many jobs share, in lower case, and how many have it.
  struct Text {
    std::string text;
    std::string shown;             // as it is written
    std::vector<uint64_t> hashes;  // of labels: each key, each key and value; sorted
    uint32_t uses = 0;
  };
  class Texts {
   public:
    // `make` is called where no job has it yet.
    uint32_t Take(const std::string& key, const std::function<Text()>& make);
    void Drop(uint32_t index);
    // Those without uses have no meaning.
    const std::vector<Text>& all() const { return all_; }

   private:
    std::vector<Text> all_;
    std::vector<std::string> keys_;
    std::vector<uint32_t> free_;
    std::unordered_map<std::string, uint32_t> by_key_;
  };
  enum Kind : size_t { kTenants, kCores, kFrameworks, kNames, kLabels, kSubmitters, kKinds };

  struct Row {
    std::array<char, kIdBytes> id = {};
    JobState state = JobState::kQueued;
    std::array<uint32_t, kKinds> texts = {};
    uint64_t name_begin = 0;  // the first bytes of its name, for sorting
    uint64_t revision = 0;
    int64_t create_micros = 0;
    int64_t end_micros = 0;  // 0: not ended
    std::array<uint8_t, 16> md5 = {};

    absl::string_view id_view() const { return {id.data(), id.size()}; }
  };
  // A filter as numbers, made once a query.
  struct Wanted;
  // Where a row stands in an order: `key`, then the name, then the newer one.
  struct Place {
    uint64_t key = 0;
    uint32_t row = 0;
  };
  struct Counts {
    int64_t jobs = 0;
    std::array<int64_t, 8> states = {};
    std::array<std::vector<int64_t>, kKinds> texts = {};
  };

  void Drain() NPUC_REQUIRES(mutex_);
  void Insert(const Job& job) NPUC_REQUIRES(mutex_);
  Row MakeRow(const Job& job) NPUC_REQUIRES(mutex_);
  void DropTexts(const Row& row) NPUC_REQUIRES(mutex_);
  std::deque<Row>::iterator LowerBound(absl::string_view id) NPUC_REQUIRES(mutex_);
  Wanted Prepare(const JobFilter& filter) const NPUC_REQUIRES(mutex_);
  void FindByTime(const Query& query, const Wanted& wanted, Counts& counts, Page& page)
      NPUC_REQUIRES(mutex_);
  void FindSorted(const Query& query, const Wanted& wanted, Counts& counts, Page& page)
      NPUC_REQUIRES(mutex_);
  uint64_t KeyOf(JobOrder order, const std::vector<uint64_t>& ranks, const Row& row) const
      NPUC_REQUIRES(mutex_);
  std::vector<uint64_t> RanksOf(JobOrder order) const NPUC_REQUIRES(mutex_);
  void Add(const Row& row, Counts& counts) const NPUC_REQUIRES(mutex_);
  JobTotals TotalsOf(const Counts& counts) const NPUC_REQUIRES(mutex_);

  std::atomic<bool> is_complete_ = false;
  Mutex pending_mutex_;  // nobody waits for anything with it held
  std::vector<Job> pending_ NPUC_GUARDED_BY(pending_mutex_);
  Mutex mutex_;
  // By id, ascending. A deque: Load comes from the newest on, so that each row goes to the front.
  std::deque<Row> rows_ NPUC_GUARDED_BY(mutex_);
  std::array<Texts, kKinds> texts_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_INDEX_H_
