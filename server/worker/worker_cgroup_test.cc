#include "server/worker/worker_cgroup.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder with the files of cgroup v2, which take what is written but limit nothing.
class WorkerCgroupTest : public ::testing::Test {
 protected:
  WorkerCgroupTest() {
    std::string pattern = ::testing::TempDir() + "/cgroup_XXXXXX";
    root_ = mkdtemp(pattern.data());
    for (const char* name :
         {"own/cgroup.procs", "own/cgroup.subtree_control", "own/npucd/cgroup.procs",
          "own/workers/cgroup.procs", "own/workers/memory.max", "own/workers/pids.max"}) {
      Write(name, "");
    }
    Write("own/cgroup.controllers", "cpu memory pids\n");
    Write("self", "4:memory:/other\n0::/own\n");
  }
  ~WorkerCgroupTest() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::string Read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(root_ / name).rdbuf();
    return text.str();
  }
  WorkerCgroup::Host Host() const {
    return {.root = root_, .self = root_ / "self", .is_cgroup2 = [](const std::string&) {
              return true;
            }};
  }
  std::string Refusal(const WorkerCgroup::Host& host) const {
    const auto made = WorkerCgroup::Make({1 << 20, 5}, host);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(made.status().message());
  }

  fs::path root_;
};

TEST_F(WorkerCgroupTest, SetsLimitsAndMovesProcesses) {
  const auto made = WorkerCgroup::Make({1 << 20, 5}, Host());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(Read("own/npucd/cgroup.procs"), absl::StrCat(getpid()));
  EXPECT_EQ(Read("own/cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read("own/workers/memory.max"), "1048576");
  EXPECT_EQ(Read("own/workers/pids.max"), "5");
  ASSERT_TRUE((*made)->Add(4711).ok());
  EXPECT_EQ(Read("own/workers/cgroup.procs"), "4711");
}

TEST_F(WorkerCgroupTest, SaysWhatTheHostLacks) {
  WorkerCgroup::Host host = Host();
  host.is_cgroup2 = [](const std::string&) { return false; };
  EXPECT_THAT(Refusal(host), HasSubstr("is not cgroup v2"));
  // The real check is not taken in by a folder that looks alike.
  EXPECT_THAT(Refusal({.root = root_, .self = root_ / "self"}), HasSubstr("is not cgroup v2"));
  Write("own/cgroup.controllers", "cpu pids\n");
  EXPECT_THAT(Refusal(Host()), HasSubstr("no controller 'memory'; with systemd, set Delegate="));
  Write("own/cgroup.controllers", "memory pids\n");
  fs::remove(root_ / "own/cgroup.subtree_control");
  EXPECT_THAT(Refusal(Host()), HasSubstr("without other processes"));
  EXPECT_EQ(Read("own/cgroup.procs"), absl::StrCat(getpid())) << "back where it was";
  Write("self", "4:memory:/other\n");
  EXPECT_THAT(Refusal(Host()), HasSubstr("in no group"));
}

// The kernel's own, where this process may use it.
TEST(WorkerCgroupHostTest, TheKernelEndsWhatForksTooOften) {
  const auto made = WorkerCgroup::Make({64 << 20, 3}, {});
  if (!made.ok()) GTEST_SKIP() << made.status();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(ready[0], &byte, 1) != 1) _exit(100);
    int forked = 0;
    for (; forked < 10; ++forked) {
      const pid_t pid = fork();
      if (pid < 0) break;
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
      }
    }
    _exit(forked);
  }
  ASSERT_TRUE((*made)->Add(child).ok());
  ASSERT_EQ(write(ready[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 2) << "three processes, itself among them";
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace npuc::worker
