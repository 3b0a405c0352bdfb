#ifndef NPUC_SERVER_JOBS_JOB_INDEX_H_
#define NPUC_SERVER_JOBS_JOB_INDEX_H_

#include <array>
#include <atomic>
#include <cstdint>
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

// The index has all jobs in memory: columns of about 110 bytes a job and each distinct text once,
// so that any filter and order over a million jobs takes some tens of milliseconds. It follows the
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
  // When the job was accepted that waits longest; nullopt: none waits.
  std::optional<absl::Time> OldestQueued();

  // The index has all that the store has.
  bool is_complete() const { return is_complete_.load(); }
  void SetComplete();

 private:
  static constexpr size_t kIdBytes = 27;

  // A text that many jobs share.
  struct Text {
    std::string text;              // in lower case
    std::string shown;             // as it is written
    std::vector<uint64_t> hashes;  // of labels: each key, each key and value
  };
  // All distinct texts of a kind. What a search reads stands in memory one behind the other, so
  // that a million of them are read in milliseconds.
  class Texts {
   public:
    // `make` is called where no job has it yet.
    uint32_t Take(const std::string& key, const std::function<Text()>& make);
    void Drop(uint32_t index);
    size_t size() const { return all_.size(); }
    absl::string_view text(uint32_t index) const {
      return absl::string_view(texts_).substr(all_[index].text_at, all_[index].text_bytes);
    }
    const std::string& shown(uint32_t index) const { return all_[index].shown; }
    // By index: 1 for those that match; those that no job has match as they like.
    std::vector<char> WithText(absl::string_view part) const;
    std::vector<char> WithHashes(const std::vector<uint64_t>& hashes) const;
    std::vector<char> Where(const std::function<bool(const std::string& shown)>& has) const;

   private:
    struct Entry {
      std::string key;
      std::string shown;
      uint32_t uses = 0;
      uint32_t text_bytes = 0;
      uint32_t hash_count = 0;
      size_t text_at = 0;
      size_t hash_at = 0;
    };
    // Where the bytes of an entry begin, unless it has others by now; ascending.
    struct Place {
      size_t text_at = 0;
      uint32_t index = 0;
    };
    void Append(uint32_t index, absl::string_view text, const uint64_t* hashes, size_t hash_count);
    bool IsThere(const Place& place) const {
      return all_[place.index].uses > 0 && all_[place.index].text_at == place.text_at;
    }
    void Compact();

    std::vector<Entry> all_;
    std::vector<uint32_t> free_;
    std::unordered_map<std::string, uint32_t> by_key_;
    std::string texts_;
    std::vector<uint64_t> hashes_;
    std::vector<Place> places_;
    size_t dropped_ = 0;  // of places_
  };
  enum Kind : size_t { kTenants, kCores, kFrameworks, kNames, kLabels, kSubmitters, kKinds };

  using Id = std::array<char, kIdBytes>;
  using Md5 = std::array<uint8_t, 16>;
  struct Row {
    Id id = {};
    JobState state = JobState::kQueued;
    std::array<uint32_t, kKinds> texts = {};
    uint64_t name_begin = 0;  // the first bytes of its name, for sorting
    uint64_t revision = 0;
    int64_t create_micros = 0;
    int64_t end_micros = 0;  // 0: not ended
    Md5 md5 = {};
  };
  // The rows by column: a look at all of them reads only what it asks for.
  class Rows {
   public:
    size_t size() const { return ids.size(); }
    absl::string_view id(size_t row) const { return {ids[row].data(), kIdBytes}; }
    // The first row whose id is not less. The rows must be in order.
    size_t LowerBound(absl::string_view id) const;
    void Insert(size_t at, const Row& row);
    void Set(size_t at, const Row& row);
    // Row i becomes what row from[i] was.
    void Gather(const std::vector<uint32_t>& from);

    std::vector<Id> ids;
    std::vector<JobState> states;
    std::array<std::vector<uint32_t>, kKinds> texts;
    std::vector<uint64_t> name_begins;
    std::vector<uint64_t> revisions;
    std::vector<int64_t> create_micros;
    std::vector<int64_t> end_micros;
    std::vector<Md5> md5s;

   private:
    template <typename Visit>
    void ForEachColumn(Visit visit);
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
  void Sort() NPUC_REQUIRES(mutex_);
  Row MakeRow(const Job& job) NPUC_REQUIRES(mutex_);
  void DropTexts(size_t row) NPUC_REQUIRES(mutex_);
  Wanted Prepare(const JobFilter& filter) const NPUC_REQUIRES(mutex_);
  void FindByTime(const Query& query, const Wanted& wanted, Counts& counts, Page& page)
      NPUC_REQUIRES(mutex_);
  void FindSorted(const Query& query, const Wanted& wanted, Counts& counts, Page& page)
      NPUC_REQUIRES(mutex_);
  std::vector<uint64_t> KeysOf(JobOrder order) const NPUC_REQUIRES(mutex_);
  std::vector<uint64_t> RanksOf(Kind kind) const NPUC_REQUIRES(mutex_);
  void Add(size_t row, Counts& counts) const NPUC_REQUIRES(mutex_);
  JobTotals TotalsOf(const Counts& counts) const NPUC_REQUIRES(mutex_);

  std::atomic<bool> is_complete_ = false;
  Mutex pending_mutex_;  // nobody waits for anything with it held
  std::vector<Job> pending_ NPUC_GUARDED_BY(pending_mutex_);
  Mutex mutex_;
  Rows rows_ NPUC_GUARDED_BY(mutex_);
  // By id, ascending, each once. While the index is filled, the newest first, they are not.
  bool is_sorted_ NPUC_GUARDED_BY(mutex_) = true;
  std::array<Texts, kKinds> texts_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::jobs

#endif  // NPUC_SERVER_JOBS_JOB_INDEX_H_
