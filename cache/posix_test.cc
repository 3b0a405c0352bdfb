#include "cache/posix.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

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

}  // namespace
}  // namespace npuc
