#include "server/jobs/job_index.h"

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/indexed_job_store.h"
#include "server/jobs/memory_job_store.h"

namespace npuc::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// "j" and the number.
std::string IdOf(int number) { return absl::StrFormat("j%026d", number); }

Job MakeJob(int number, const std::string& name = "net.h") {
  Job job;
  job.id = IdOf(number);
  job.tenant = "audio";
  job.revision = 1;
  job.output_file = name;
  job.spec.config_name = "config.yaml";
  job.spec.core = "GRUS";
  job.spec.framework = "TF";
  job.spec.submitter = "ci";
  job.spec.inputs = {{.role = "MODEL_FILE", .md5 = std::string(32, 'a')}};
  job.create_time = At(1000 + number);
  return job;
}

Job Ended(Job job, JobState state, int64_t took) {
  ++job.revision;
  job.state = state;
  job.end_time = job.create_time + absl::Seconds(took);
  return job;
}

class JobIndexTest : public ::testing::Test {
 protected:
  // "3 1 ": the numbers of the jobs found.
  std::string Find(JobIndex::Query query) {
    page_ = index_.Find(query);
    std::string numbers;
    for (const std::string& id : page_.ids) absl::StrAppend(&numbers, std::stoi(id.substr(1)), " ");
    return numbers;
  }
  std::string Find(JobFilter filter) { return Find(JobIndex::Query{.filter = std::move(filter)}); }

  JobIndex index_;
  JobIndex::Page page_;
};

TEST_F(JobIndexTest, EachFilterByItself) {
  Job other = MakeJob(2, "kws.h");
  other.tenant = "video";
  other.spec.core = "SCORPIO";
  other.spec.framework = "ONNX";
  other.spec.submitter = "ann";
  index_.Put(MakeJob(1));
  index_.Put(Ended(other, JobState::kFailed, 5));
  index_.Put(MakeJob(3));
  EXPECT_EQ(Find(JobFilter{}), "3 2 1 ");
  EXPECT_EQ(Find({.states = {JobState::kFailed}}), "2 ");
  EXPECT_EQ(Find({.states = {JobState::kFailed, JobState::kQueued}}), "3 2 1 ");
  EXPECT_EQ(Find({.cores = {"SCORPIO", "NONE"}}), "2 ");
  EXPECT_EQ(Find({.frameworks = {"TF"}}), "3 1 ");
  EXPECT_EQ(Find({.tenants = {"video"}}), "2 ");
  EXPECT_EQ(Find({.submitter = "ann"}), "2 ");
  EXPECT_EQ(Find({.created_from = At(1002)}), "3 2 ");
  EXPECT_EQ(Find({.created_before = At(1002)}), "1 ");
  EXPECT_EQ(Find({.only_tenant = "audio"}), "3 1 ");
  EXPECT_EQ(Find({.tenants = {"video"}, .only_tenant = "audio"}), "");
  EXPECT_EQ(Find({.hidden_tenant = "audio"}), "2 ");
  EXPECT_EQ(Find({.cores = {"none"}}), "");
}

TEST_F(JobIndexTest, TextAndLabels) {
  Job job = MakeJob(1, "Keyword.h");
  job.spec.labels = {{"branch", "main"}, {"run", "12"}};
  job.spec.inputs[0].md5 = "0123456789abcdef0123456789abcdef";
  index_.Put(job);
  job = MakeJob(2);
  job.spec.labels = {{"branch", "mainline"}};
  for (int i = 0; i < 20; ++i) job.spec.labels[absl::StrCat("long", i)] = std::string(40, 'x');
  job.spec.labels["zebra"] = "stripes";
  index_.Put(job);
  EXPECT_EQ(Find({.text = "KEYW"}), "1 ");
  EXPECT_EQ(Find({.text = "ONFIG.y"}), "2 1 ");
  EXPECT_EQ(Find({.text = "udi"}), "2 1 ");
  EXPECT_EQ(Find({.text = "run=12"}), "1 ");
  EXPECT_EQ(Find({.text = "branch=MAIN"}), "2 1 ");
  EXPECT_EQ(Find({.text = "0123456789ABC"}), "1 ");
  EXPECT_EQ(Find({.text = "123456789abc"}), "");
  EXPECT_EQ(Find({.text = IdOf(2)}), "2 ");
  EXPECT_EQ(Find({.text = "stripes"}), "");  // behind the first 256 bytes
  EXPECT_EQ(Find({.labels = {{"branch", "main"}}}), "1 ");
  EXPECT_EQ(Find({.labels = {{"branch", std::nullopt}}}), "2 1 ");
  EXPECT_EQ(Find({.labels = {{"zebra", "stripes"}}}), "2 ");
  EXPECT_EQ(Find({.labels = {{"branch", "main"}, {"run", std::nullopt}}}), "1 ");
  EXPECT_EQ(Find({.labels = {{"branch", "main"}, {"zebra", std::nullopt}}}), "");
}

TEST_F(JobIndexTest, Orders) {
  const auto add = [&](int number, const std::string& name, JobState state, int64_t took,
                       const std::string& core) {
    Job job = MakeJob(number, name);
    job.spec.core = core;
    index_.Put(state == JobState::kQueued ? job : Ended(job, state, took));
  };
  add(1, "abcdefghB.h", JobState::kSucceeded, 50, "V");
  add(2, "abcdefgha.h", JobState::kFailed, 5, "B");
  add(3, "Zoo.h", JobState::kQueued, 0, "B");
  add(4, "abcdefgha.h", JobState::kSucceeded, 7, "A");
  const auto by = [&](JobOrder order, bool reverse = false) {
    return Find({.order = order, .reverse = reverse});
  };
  EXPECT_EQ(by(JobOrder::kCreateTime), "4 3 2 1 ");
  EXPECT_EQ(by(JobOrder::kCreateTime, true), "1 2 3 4 ");
  EXPECT_EQ(by(JobOrder::kName), "4 2 1 3 ");
  EXPECT_EQ(by(JobOrder::kName, true), "3 1 4 2 ");
  EXPECT_EQ(by(JobOrder::kTook), "1 4 2 3 ");
  EXPECT_EQ(by(JobOrder::kEndTime), "3 1 4 2 ");
  EXPECT_EQ(by(JobOrder::kState), "3 4 1 2 ");
  EXPECT_EQ(by(JobOrder::kCore), "4 3 2 1 ");
  EXPECT_EQ(by(JobOrder::kCore, true), "1 3 2 4 ");
}

// Against a plain sort of all, for each order, page by page.
TEST_F(JobIndexTest, PagesOfEachOrderJoinWithoutGapOrRepeat) {
  std::mt19937 random(7);
  constexpr int kJobs = 500;
  for (int i = 0; i < kJobs; ++i) {
    Job job = MakeJob(i, absl::StrCat("name", random() % 20, ".h"));
    job.tenant = absl::StrCat("t", random() % 3);
    if (random() % 4 != 0) job = Ended(job, JobState::kSucceeded, random() % 50);
    index_.Put(job);
  }
  for (const JobOrder order :
       {JobOrder::kCreateTime, JobOrder::kEndTime, JobOrder::kName, JobOrder::kTook,
        JobOrder::kState, JobOrder::kCore, JobOrder::kFramework, JobOrder::kTenant}) {
    for (const bool reverse : {false, true}) {
      const std::string all = Find({.order = order, .reverse = reverse, .limit = kJobs});
      EXPECT_FALSE(page_.has_more);
      EXPECT_EQ(page_.ids.size(), kJobs);
      std::string joined;
      JobIndex::Query query{.order = order, .reverse = reverse, .limit = 7};
      do {
        joined += Find(query);
        query.after_id = page_.ids.back();
      } while (page_.has_more);
      EXPECT_EQ(joined, all) << static_cast<int>(order);
    }
  }
}

TEST_F(JobIndexTest, TotalsCountWhatMatchesWhateverThePage) {
  for (int i = 0; i < 9; ++i) index_.Put(MakeJob(i));
  index_.Put(Ended(MakeJob(9), JobState::kFailed, 1));
  Job other = MakeJob(10);
  other.tenant = "video";
  index_.Put(other);
  for (const JobOrder order : {JobOrder::kCreateTime, JobOrder::kName}) {
    Find({.filter = {.only_tenant = "audio"},
          .order = order,
          .after_id = IdOf(5),
          .limit = 1,
          .with_totals = true});
    EXPECT_EQ(page_.totals.jobs, 10);
    EXPECT_THAT(page_.totals.states,
                UnorderedElementsAre(Pair(JobState::kQueued, 9), Pair(JobState::kFailed, 1)));
    EXPECT_THAT(page_.totals.cores, ElementsAre(Pair("GRUS", 10)));
    EXPECT_THAT(page_.totals.tenants, ElementsAre(Pair("audio", 10)));
  }
  Find({.filter = {.states = {JobState::kExpired}}, .with_totals = true});
  EXPECT_THAT(page_.totals.states, IsEmpty());
  for (size_t i = 0; i < kMaxTenantTotals; ++i) {
    Job job = MakeJob(static_cast<int>(100 + i));
    job.tenant = absl::StrCat("many", i);
    index_.Put(job);
  }
  Find({.with_totals = true});
  EXPECT_EQ(page_.totals.tenants.size(), kMaxTenantTotals);
  EXPECT_EQ(page_.totals.tenants.at("audio"), 10);
}

TEST_F(JobIndexTest, OlderRevisionsAndUnknownPlaces) {
  const Job queued = MakeJob(1);
  index_.Put(Ended(queued, JobState::kFailed, 1));
  index_.Put(queued);
  EXPECT_EQ(Find({.states = {JobState::kQueued}}), "");
  EXPECT_EQ(Find({.order = JobOrder::kName, .after_id = IdOf(77)}), "");
  EXPECT_FALSE(page_.knows_after);
  EXPECT_EQ(Find({.after_id = IdOf(77)}), "1 ");  // by time the job itself may be gone
}

// A look at one job with a filter.
bool HasAll(const JobFilter& filter, const Job& job) {
  const auto among = [](const auto& all, const auto& one) {
    return all.empty() || std::find(all.begin(), all.end(), one) != all.end();
  };
  std::string labels;
  for (const auto& [key, value] : job.spec.labels) absl::StrAppend(&labels, key, "=", value, "\n");
  const bool has_labels =
      std::all_of(filter.labels.begin(), filter.labels.end(), [&](auto& wanted) {
        const auto found = job.spec.labels.find(wanted.first);
        return found != job.spec.labels.end() &&
               found->second == wanted.second.value_or(found->second);
      });
  const bool has_text = [&] {
    for (const std::string& text : {job.tenant, job.output_file, labels, job.spec.submitter}) {
      if (absl::StrContains(text, filter.text)) return true;
    }
    return absl::StartsWith(job.id, filter.text);
  }();
  return among(filter.states, job.state) && among(filter.tenants, job.tenant) &&
         among(filter.cores, job.spec.core) && has_labels && has_text;
}

// Any jobs, in any order, many of them gone again: each filter finds what a look at each job finds.
TEST_F(JobIndexTest, FindsWhatALookAtEachJobFinds) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::map<int, Job> jobs;
  const auto put_one = [&] {
    const int number = below(3000);
    const auto known = jobs.find(number);
    Job job = known != jobs.end() ? known->second : MakeJob(number, absl::StrCat("net", below(9)));
    if (known == jobs.end()) {
      job.tenant = absl::StrCat("t", below(3));
      job.spec.core = below(2) == 0 ? "GRUS" : "V150";
      job.spec.labels = {{"run", absl::StrCat(number)}, {"half", absl::StrCat(below(2))}};
    } else {
      job = Ended(job, below(2) == 0 ? JobState::kFailed : JobState::kSucceeded, below(100));
    }
    jobs[number] = job;
    index_.Put(job);
  };
  for (int round = 0; round < 60; ++round) {
    if (round == 10) index_.SetComplete();
    for (int i = 0; i < 200; ++i) put_one();
    // Most of those that have ended are forgotten, so that their texts are used again.
    const absl::Time before = At(1000 + below(3100));
    index_.DropEnded(before, SIZE_MAX);
    std::erase_if(jobs, [&](const auto& one) {
      return one.second.end_time != absl::InfinitePast() && one.second.end_time < before;
    });
    JobFilter filter;
    if (below(2) == 0) filter.states = {JobState::kFailed, JobState::kQueued};
    if (below(3) == 0) filter.tenants = {"t1", "t2"};
    if (below(3) == 0) filter.cores = {"V150"};
    if (below(3) == 0) filter.labels = {{"half", "1"}};
    if (below(4) == 0) filter.labels = {{"run", absl::StrCat(below(3000))}, {"half", std::nullopt}};
    const char* const kTexts[] = {"", "net3", "run=1", "=2\nh", "ci", "t1n", "j0000", "1\nrun"};
    filter.text = kTexts[below(8)];
    std::vector<std::string> wanted;
    for (auto one = jobs.rbegin(); one != jobs.rend(); ++one) {
      if (HasAll(filter, one->second)) wanted.push_back(one->second.id);
    }
    const JobIndex::Page page =
        index_.Find({.filter = filter, .limit = SIZE_MAX, .with_totals = true});
    ASSERT_EQ(page.ids, wanted) << "round " << round << ", text " << filter.text;
    EXPECT_EQ(page.totals.jobs, static_cast<int64_t>(wanted.size()));
    EXPECT_EQ(index_.size(), jobs.size());
    // In another order the same jobs, and a short page has the first of them.
    const auto by_took = [&](size_t limit) {
      return index_.Find({.filter = filter, .order = JobOrder::kTook, .limit = limit}).ids;
    };
    std::vector<std::string> sorted = by_took(SIZE_MAX - 1);
    EXPECT_THAT(sorted, ::testing::UnorderedElementsAreArray(wanted));
    sorted.resize(std::min<size_t>(sorted.size(), 7));
    EXPECT_EQ(by_took(7), sorted);
  }
  EXPECT_GT(jobs.size(), 500u);
}

TEST(IndexedJobStoreTest, FollowsWhatIsStoredAndPruned) {
  MemoryJobStore inner;
  JobIndex before, index;
  IndexedJobStore earlier(&inner, &before);
  const auto change = [](Job job, JobState state) {
    JobChange change{.job = std::move(job)};
    change.events = {{.seq = ++change.job.last_seq, .body = StateChangedEvent{state}}};
    change.job.state = state;
    if (change.job.revision == 1) change.config_text = "config";
    return change;
  };
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(earlier.ApplyAndWait(change(MakeJob(i), JobState::kQueued)).ok());
  }
  IndexedJobStore store(&inner, &index);
  EXPECT_FALSE(index.is_complete());
  ASSERT_TRUE(store.Load(nullptr).ok());
  EXPECT_TRUE(index.is_complete());
  EXPECT_EQ(index.size(), 3u);
  for (int i = 1; i <= 2; ++i) {
    Job job = *inner.Read(IdOf(i));
    ++job.revision;
    job.end_time = At(2000 + i);
    ASSERT_TRUE(store.ApplyAndWait(change(job, JobState::kFailed)).ok());
  }
  EXPECT_EQ(index.Find({.filter = {.states = {JobState::kFailed}}}).ids.size(), 2u);
  EXPECT_EQ(*store.Prune(At(2002), 10), 1u);
  EXPECT_THAT(index.Find({}).ids, ElementsAre(IdOf(3), IdOf(2)));
  // The write failed, and the job is there all the same.
  ASSERT_TRUE(inner.ApplyAndWait(change(MakeJob(4), JobState::kQueued)).ok());
  EXPECT_FALSE(store.ApplyAndWait(change(MakeJob(4), JobState::kQueued)).ok());
  EXPECT_EQ(index.size(), 2u);
  store.Settle();
  EXPECT_EQ(index.size(), 3u);
}

}  // namespace
}  // namespace npuc::jobs
