#include "server/log/audit_log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/line_rate.h"

namespace npuc::log {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() : dir_(::testing::TempDir() + "/audit") { std::filesystem::remove_all(dir_); }

  std::unique_ptr<AuditLog> Open(AuditOptions options = {}) {
    options.file.dir = dir_;
    options.now = [this] { return now_; };
    auto log = AuditLog::Open(std::move(options));
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::vector<std::string> Lines(const std::string& name = "audit.log") {
    std::stringstream text;
    text << std::ifstream(dir_ + "/" + name).rdbuf();
    return absl::StrSplit(text.str(), '\n', absl::SkipEmpty());
  }

  const std::string dir_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(AuditLogTest, ALineSaysWhoDidWhatToWhat) {
  Open()->Write({.action = "cancel",
                 .identity = "ci",
                 .tenant = "audio",
                 .peer = "10.0.0.1",
                 .object = "j1",
                 .result = "OK",
                 .detail = "too \"slow\"\n"});
  EXPECT_THAT(Lines(), testing::ElementsAre(
                           R"({"time":"1970-01-01T00:00:00.000000Z","action":"cancel",)"
                           R"("identity":"ci","tenant":"audio","peer":"10.0.0.1","object":"j1",)"
                           R"("result":"OK","detail":"too \"slow\"\\x0a"})"));
  // The next process goes on behind it.
  Open()->Write({.action = "submit"});
  EXPECT_THAT(Lines(), SizeIs(2));
}

TEST_F(AuditLogTest, FilesArePutAsideAndTheOldestGoes) {
  const auto log = Open({.file = {.max_bytes = 200, .files = 3}});
  for (int i = 0; i < 20; ++i) {
    log->Write({.action = "submit", .object = absl::StrCat("job-", i, std::string(50, 'x'))});
  }
  EXPECT_THAT(Lines().back(), HasSubstr("job-19x"));
  EXPECT_THAT(Lines("audit.1.log").back(), HasSubstr("job-18x"));
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/audit.2.log"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/audit.3.log"));
  EXPECT_EQ(log->lost(), 0u);
}

TEST_F(AuditLogTest, RefusalsCannotPushOthersOut) {
  const auto log = Open({.refusals_per_second = 2});
  for (int i = 0; i < 10; ++i) log->Write({.action = "refused", .is_refusal = true});
  log->Write({.action = "submit"});
  EXPECT_THAT(Lines(), SizeIs(3));
  now_ += absl::Seconds(1);
  log->Write({.action = "refused", .is_refusal = true});
  EXPECT_THAT(Lines().back(), HasSubstr("\"left_out\":8"));
}

// The audit of all nodes, in memory.
class SharedAudit : public AuditStore {
 public:
  absl::Status Append(uint64_t first_number, absl::Span<const AuditEntry> entries) override {
    const MutexLock lock(mutex);
    if (!error.ok()) return error;
    for (const AuditEntry& entry : entries) kept.emplace(first_number++, entry);
    came.NotifyAll();
    return absl::OkStatus();
  }
  absl::StatusOr<AuditPage> Find(const AuditQuery&) override {
    const MutexLock lock(mutex);
    AuditPage page;
    for (const auto& [number, entry] : kept) page.entries.insert(page.entries.begin(), entry);
    return page;
  }
  Mutex mutex;
  CondVar came;
  absl::Status error NPUC_GUARDED_BY(mutex);
  std::map<uint64_t, AuditEntry> kept NPUC_GUARDED_BY(mutex);
};

TEST_F(AuditLogTest, AnOperatorsActionIsSharedBeforeItsAnswer) {
  auto owned = std::make_unique<SharedAudit>();
  SharedAudit* const shared = owned.get();
  // Nobody waits for the others, so without the operator they would not be there yet.
  const auto log = Open({.file = {.node = "a"},
                         .shared = std::move(owned),
                         .max_waiting = 3,
                         .write_period = absl::Hours(1)});
  log->Write({.action = "submit"});
  EXPECT_EQ(log->waiting(), 1u);
  log->Write({.action = "admin.pause", .identity = "ops"});
  EXPECT_EQ(log->waiting(), 0u);
  const auto page = log->Find({});
  ASSERT_TRUE(page.ok());
  ASSERT_THAT(page->entries, SizeIs(2));
  EXPECT_EQ(page->entries[0].action, "admin.pause");
  EXPECT_EQ(page->entries[0].node, "a");
  EXPECT_THAT(Lines(), SizeIs(2)) << "this node's file has them, too";
  EXPECT_THAT(Lines()[0], HasSubstr(R"("action":"submit","node":"a"})"));
  // While the store is away, entries wait; beyond the bound the oldest go.
  {
    const MutexLock lock(shared->mutex);
    shared->error = absl::UnavailableError("away");
  }
  for (int i = 0; i < 5; ++i) log->Write({.action = absl::StrCat("submit", i)});
  EXPECT_EQ(log->waiting(), 3u);
  EXPECT_EQ(log->lost(), 2u);
  {
    const MutexLock lock(shared->mutex);
    shared->error = absl::OkStatus();
  }
  log->Flush(absl::Minutes(1));
  EXPECT_EQ(log->waiting(), 0u);
  const MutexLock lock(shared->mutex);
  EXPECT_THAT(shared->kept, SizeIs(5));
  EXPECT_EQ(shared->kept.rbegin()->second.action, "submit4");
}

TEST_F(AuditLogTest, ManyEntriesAreSharedBeforeTheirTime) {
  auto owned = std::make_unique<SharedAudit>();
  SharedAudit* const shared = owned.get();
  const auto log = Open({.shared = std::move(owned), .write_period = absl::Hours(1)});
  for (int i = 0; i < 3000; ++i) log->Write({.action = "submit"});
  const MutexLock lock(shared->mutex);
  while (shared->kept.size() < 2500) shared->came.Wait(shared->mutex);
  EXPECT_EQ(log->lost(), 0u);
}

TEST_F(AuditLogTest, AFolderThatCannotBeIsTold) {
  std::ofstream(dir_) << "a file";
  EXPECT_FALSE(
      AuditLog::Open({.file = {.dir = dir_}, .now = [] { return absl::UnixEpoch(); }}).ok());
  std::filesystem::remove_all(dir_);
}

TEST(LineRateTest, WritesSoManyAndCountsTheOthers) {
  LineRate rate(2);
  const absl::Time now = absl::FromUnixSeconds(100);
  EXPECT_TRUE(rate.Takes(now));
  EXPECT_TRUE(rate.Takes(now));
  EXPECT_FALSE(rate.Takes(now));
  EXPECT_FALSE(rate.Takes(now + absl::Milliseconds(900)));
  EXPECT_TRUE(rate.Takes(now + absl::Seconds(1)));
  EXPECT_EQ(rate.TakeLeftOut(), 2u);
  EXPECT_EQ(rate.TakeLeftOut(), 0u);
}

TEST(AuditSyslogTest, ASyslogGetsEachLineAndIsNotWaitedFor) {
  const std::string dir = absl::StrCat(::testing::TempDir(), "/audit_syslog.", getpid());
  std::filesystem::create_directories(dir);
  const std::string path = dir + "/log";
  const auto now = [] { return absl::FromUnixSeconds(1'700'000'000); };
  const auto log = AuditLog::Open({.file = {.dir = dir}, .syslog_socket = path, .now = now});
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Write({.action = "submit"});  // nobody is there yet
  EXPECT_EQ((*log)->lost(), 1u);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  (*log)->Write({.action = "cancel", .identity = "ci"});
  char buffer[1000] = {};
  const ssize_t count = recv(fd, buffer, sizeof(buffer), 0);
  ASSERT_GT(count, 0);
  EXPECT_EQ(absl::string_view(buffer, static_cast<size_t>(count)),
            absl::StrCat("<86>npucd[", getpid(),
                         "]: {\"time\":\"2023-11-14T22:13:20.000000Z\",\"action\":\"cancel\","
                         "\"identity\":\"ci\"}"));
  // It reads no more: the kernel's queue fills, and the log goes on.
  for (int i = 0; i < 10'000; ++i) (*log)->Write({.action = "submit"});
  EXPECT_GT((*log)->lost(), 1u);
  close(fd);
  EXPECT_FALSE(
      AuditLog::Open({.file = {.dir = dir}, .syslog_socket = std::string(200, 'x'), .now = now})
          .ok());
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace npuc::log
