#include "cache/posix.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::cache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

int NiceOf(pid_t pid) { return getpriority(PRIO_PROCESS, static_cast<id_t>(pid)); }

TEST(GiveWayTest, ChangesOneThreadAndWhatItStarts) {
  const int own = NiceOf(0);
  int given = -1;
  int inherited = -1;
  std::thread([&] {
    ASSERT_TRUE(GiveWay(0, 3).ok());
    given = NiceOf(0);
    std::thread([&] { inherited = NiceOf(0); }).join();
    // By the process's value, not by the thread's own.
    EXPECT_TRUE(GiveWay(0, 3).ok());
    EXPECT_EQ(NiceOf(0), given);
  }).join();
  EXPECT_EQ(given, std::min(own + 3, 19));
  EXPECT_EQ(inherited, given);
  EXPECT_EQ(NiceOf(0), own);
}

TEST(GiveWayTest, ChangesAnotherProcessAndItsSession) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (write(ready[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(GiveWay(child, 40).ok());
  EXPECT_EQ(NiceOf(child), 19);
  std::ifstream autogroup(absl::StrCat("/proc/", child, "/autogroup"));
  std::string line;
  if (std::getline(autogroup, line)) {
    EXPECT_TRUE(absl::EndsWith(line, " nice 19")) << line;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_FALSE(GiveWay(child, 1).ok());
}

TEST(ErrnoStatusTest, SaysWhatTheOwnerOfTheMachineCanDo) {
  const absl::Status full = ErrnoStatus(ENOSPC, "cannot write", "/data/work");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "cannot write '/data/work': No space left on device; free some space on its disk");
  EXPECT_EQ(ErrnoStatus(EACCES, "cannot open", "x").message(),
            absl::StrCat("cannot open 'x': Permission denied; it must belong to the user of this "
                         "process, user id ",
                         geteuid()));
  EXPECT_EQ(ErrnoStatus(EIO, "cannot open", "x").message(), "cannot open 'x': Input/output error");
}

TEST(CheckUsableTest, NamesTheFileOfAnotherUser) {
  std::string folder = ::testing::TempDir() + "/usableXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/LOCK";
  std::ofstream(file) << "x";
  EXPECT_EQ(CheckUsable(folder), absl::OkStatus());
  EXPECT_EQ(CheckUsable(folder + "/none"), absl::OkStatus());
  if (geteuid() == 0) {
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    ASSERT_EQ(chmod(file.c_str(), 0600), 0);
    ASSERT_EQ(seteuid(65534), 0);
  } else {
    ASSERT_EQ(chmod(file.c_str(), 0), 0);
  }
  const absl::Status status = CheckUsable(folder);
  ASSERT_EQ(seteuid(getuid()), 0);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(absl::StrCat("cannot use '", file, "': Permission denied; ")),
                    HasSubstr("must belong to the user of this process")));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace npuc::cache
