#include "server/jobs/rocksdb_job_store.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/db.h"
#include "server/jobs/transitions.h"

namespace npuc::jobs {
namespace {

using ::testing::HasSubstr;

class RocksDbJobStoreTest : public ::testing::Test {
 protected:
  RocksDbJobStoreTest() {
    std::string pattern = ::testing::TempDir() + "/rocksdb_job_store_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~RocksDbJobStoreTest() override { std::filesystem::remove_all(path_); }

  std::string path_;
};

NewJob Request(std::string request_id) {
  NewJob request;
  request.request_id = std::move(request_id);
  request.config_text = "CORENAME: GRUS";
  request.spec.inputs = {{.role = "MODEL_FILE", .name = "m.pb", .sha256 = "s", .md5 = "m"}};
  request.spec.timeout = absl::Minutes(10);
  return request;
}

// Writes jobs from four threads for ever, and reports each one that was acknowledged: one write of
// fixed length below PIPE_BUF, so lines of threads do not mix and none is half there.
[[noreturn]] void WriteJobsUntilKilled(const std::string& path, int round, int report_fd) {
  auto store = RocksDbJobStore::Open(path);
  if (!store.ok()) _exit(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0;; ++i) {
        const std::string id = absl::StrCat("j", 100 + round, "-", t, "-", 100000 + i);
        const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
        JobChange change = CreateJob(Request("req-" + id), id, 1, now);
        if (!(*store)->ApplyAndWait(change).ok()) _exit(4);
        const std::string line = id + "\n";
        if (write(report_fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
          _exit(5);
        }
        change = *LeaseJob(change.job, "d", now, now);
        if (!(*store)->ApplyAndWait(change).ok()) _exit(6);
      }
    });
  }
  while (true) pause();
}

TEST_F(RocksDbJobStoreTest, NothingAcknowledgedIsLostByKill9) {
  std::set<std::string> acknowledged;
  for (int round = 0; round < 4; ++round) {
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(report[0]);
      WriteJobsUntilKilled(path_, round, report[1]);
    }
    close(report[1]);
    // Kill it in the middle of its writes, after a number of answers that differs each time.
    std::string lines;
    char buffer[4096];
    const size_t enough = 2000 + 3000 * static_cast<size_t>(round);
    ssize_t got = 0;
    bool killed = false;
    while ((got = read(report[0], buffer, sizeof(buffer))) > 0) {
      lines.append(buffer, static_cast<size_t>(got));
      if (!killed && lines.size() >= enough) {
        kill(child, SIGKILL);
        killed = true;
      }
    }
    close(report[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);
    for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      acknowledged.insert(lines.substr(begin, end - begin));
    }
    auto store = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const std::string& id : acknowledged) {
      const auto job = (*store)->Read(id);
      ASSERT_TRUE(job.ok()) << id << ": " << job.status();
      EXPECT_EQ(*(*store)->FindRequest("", "req-" + id), id);
      EXPECT_EQ(*(*store)->ReadConfig(id), "CORENAME: GRUS");
      // The record and its events are of one batch.
      const auto events = *(*store)->ReadEvents(id, 1, 100, 1 << 20);
      EXPECT_EQ(static_cast<int64_t>(events.size()), job->last_seq);
    }
  }
  EXPECT_GT(acknowledged.size(), 500u);
}

// One would end the daemon where the disk is full (cache/rocksdb_log.h).
TEST_F(RocksDbJobStoreTest, NoTextLogIsWritten) {
  { ASSERT_TRUE(RocksDbJobStore::Open(path_).ok()); }
  { ASSERT_TRUE(RocksDbJobStore::Open(path_).ok()); }
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    EXPECT_NE(entry.path().filename().string().substr(0, 3), "LOG") << entry.path();
  }
}

TEST_F(RocksDbJobStoreTest, ASecondOpenIsRefused) {
  auto first = RocksDbJobStore::Open(path_);
  ASSERT_TRUE(first.ok());
  const auto second = RocksDbJobStore::Open(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
}

// The database without the store's code in between.
class RawDatabase {
 public:
  explicit RawDatabase(const std::string& path) {
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::Options(), path, &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names) families.emplace_back(name, rocksdb::Options());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    EXPECT_TRUE(rocksdb::DB::Open(rocksdb::Options(), path, families, &handles, &db_).ok());
    for (size_t i = 0; i < names.size(); ++i) families_[names[i]] = handles[i];
  }
  ~RawDatabase() {
    for (const auto& [name, handle] : families_)
      EXPECT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
    delete db_;
  }
  void Put(const std::string& family, const std::string& key, const std::string& value) {
    EXPECT_TRUE(db_->Put(rocksdb::WriteOptions(), families_.at(family), key, value).ok());
  }
  void Make(const std::string& family) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    EXPECT_TRUE(db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), family, &handle).ok());
    families_[family] = handle;
  }

 private:
  rocksdb::DB* db_ = nullptr;
  std::map<std::string, rocksdb::ColumnFamilyHandle*> families_;
};

TEST_F(RocksDbJobStoreTest, AnotherFormatVersionIsRefused) {
  { ASSERT_TRUE(RocksDbJobStore::Open(path_).ok()); }
  const std::string other = absl::StrCat(RocksDbJobStore::kFormatVersion, "9");
  { RawDatabase(path_).Put("default", "format", other); }
  auto opened = RocksDbJobStore::Open(path_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("'" + other + "'"));
  { RawDatabase(path_).Make("families_of_the_future"); }
  opened = RocksDbJobStore::Open(path_);
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("newer"));
}

TEST_F(RocksDbJobStoreTest, ADamagedRecordOfEventsIsDataLoss) {
  const JobChange made = CreateJob(Request("r"), "j1", 1, absl::FromUnixSeconds(1'700'000'000));
  {
    auto store = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE((*store)->ApplyAndWait(made).ok());
    EXPECT_EQ(*(*store)->ReadEvents("j1", 1, 100, 1 << 20), made.events);
  }
  for (const std::string& bytes : {std::string("\x0a\x7f"), std::string("\x0a\x00", 2)}) {
    RawDatabase(path_).Put("events", absl::StrCat("j1/", std::string(7, '\0'), "\x01"), bytes);
    auto store = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->ReadEvents("j1", 1, 100, 1 << 20).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

// The log of a stopped store is removed, cut at some places, or has a byte flipped. Either the
// store is refused, or nothing is missing.
TEST_F(RocksDbJobStoreTest, ALogThatIsMissingCutOrDamagedIsRefused) {
  namespace fs = std::filesystem;
  constexpr int kJobs = 20;
  const auto id_of = [](int i) { return absl::StrCat("j", 100 + i); };
  {
    auto store = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(store.ok());
    for (int i = 0; i < kJobs; ++i) {
      const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
      ASSERT_TRUE((*store)->ApplyAndWait(CreateJob(Request(""), id_of(i), 1, now)).ok());
    }
  }
  const std::string saved = path_ + "-saved";
  fs::copy(path_, saved, fs::copy_options::recursive);
  int refused = 0;
  // Puts the store back as it was, spoils its log, and opens it.
  const auto open_spoilt = [&](const std::function<void(const fs::path& log)>& spoil) {
    fs::remove_all(path_);
    fs::copy(saved, path_, fs::copy_options::recursive);
    for (const auto& file : fs::directory_iterator(path_)) {
      if (file.path().extension() == ".log" && file.file_size() > 0) spoil(file.path());
    }
    auto store = RocksDbJobStore::Open(path_);
    if (!store.ok()) {
      ++refused;
      EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
      return store.status();
    }
    for (int i = 0; i < kJobs; ++i) EXPECT_TRUE((*store)->Read(id_of(i)).ok()) << i;
    return absl::OkStatus();
  };
  EXPECT_TRUE(open_spoilt([](const fs::path&) {}).ok());
  const absl::Status missing = open_spoilt([](const fs::path& log) { fs::remove(log); });
  EXPECT_THAT(std::string(missing.message()), HasSubstr("put that log back"));
  // The advice works: the refusal has changed nothing, and the log can come back.
  for (const auto& file : fs::directory_iterator(saved)) {
    if (file.path().extension() != ".log") continue;
    fs::copy(file.path(), fs::path(path_) / file.path().filename(),
             fs::copy_options::overwrite_existing);
  }
  EXPECT_TRUE((*RocksDbJobStore::Open(path_))->Read(id_of(kJobs - 1)).ok());
  for (int part = 0; part < 10; ++part) {
    EXPECT_FALSE(open_spoilt([&](const fs::path& log) {
                   fs::resize_file(log, fs::file_size(log) * static_cast<uint64_t>(part) / 10);
                 }).ok());
    open_spoilt([&](const fs::path& log) {
      const auto at = static_cast<std::streamoff>(fs::file_size(log)) * part / 10;
      std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      const char flipped = static_cast<char>(file.get() ^ 0x10);
      file.seekp(at).put(flipped);
    }).IgnoreError();
  }
  EXPECT_GE(refused, 11);
  // Or one goes on with what is there, and says so.
  EXPECT_FALSE(open_spoilt([](const fs::path& log) { fs::remove(log); }).ok());
  fs::remove(path_ + "/synced_sequence");
  EXPECT_EQ((*RocksDbJobStore::Open(path_))->Read(id_of(0)).status().code(),
            absl::StatusCode::kNotFound);
  fs::remove_all(saved);
}

TEST_F(RocksDbJobStoreTest, WritesOfManyThreadsShareSyncs) {
  auto store = RocksDbJobStore::Open(path_);
  ASSERT_TRUE(store.ok());
  const uint64_t before = (*store)->log_syncs();
  constexpr int kThreads = 32;
  constexpr int kJobs = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kJobs; ++i) {
        ASSERT_TRUE(
            (*store)
                ->ApplyAndWait(CreateJob(Request(""), absl::StrCat("j", 100 + t, "-", 100 + i), 1,
                                         absl::FromUnixSeconds(1'700'000'000)))
                .ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t syncs = (*store)->log_syncs() - before;
  RecordProperty("syncs", static_cast<int>(syncs));
  EXPECT_GT(syncs, 0u);
  EXPECT_LT(syncs, kThreads * kJobs / 2u) << "of " << kThreads * kJobs << " writes";
}

TEST_F(RocksDbJobStoreTest, ATornTailIsDroppedAndDamageBeforeItIsRefused) {
  // The later ones as writes that were under way when the power went.
  for (const bool synced : {true, false}) {
    auto store = RocksDbJobStore::Open(path_, synced);
    ASSERT_TRUE(store.ok());
    for (int i = synced ? 0 : 10; i < (synced ? 10 : 20); ++i) {
      ASSERT_TRUE(
          (*store)
              ->ApplyAndWait(CreateJob(Request(""), absl::StrCat("j", 100 + i), 1, absl::Now()))
              .ok());
    }
  }
  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) log = entry.path();
  }
  ASSERT_FALSE(log.empty());
  const auto size = std::filesystem::file_size(log);
  std::filesystem::copy(path_, path_ + "_damaged", std::filesystem::copy_options::recursive);

  std::filesystem::resize_file(log, size - 20);
  {
    auto store = RocksDbJobStore::Open(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->Read("j118").ok());
    EXPECT_FALSE((*store)->Read("j119").ok());
  }
  {
    const auto damaged = std::filesystem::path(path_ + "_damaged") / log.filename();
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.write("\xff\xfe\xfd\xfc", 4);
  }
  EXPECT_FALSE(RocksDbJobStore::Open(path_ + "_damaged").ok());
  std::filesystem::remove_all(path_ + "_damaged");
}

}  // namespace
}  // namespace npuc::jobs
