#include "tests/bench/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler_core/base/status.h"

namespace npuc::bench {
namespace {

// Parent of a process, 0 where it is gone.
int ParentOf(int pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(in, text);
  const size_t end = text.rfind(')');
  return end == std::string::npos || text.size() < end + 4 ? 0 : std::atoi(&text[end + 4]);
}

}  // namespace

absl::StatusOr<Child> Child::Start(const std::vector<std::string>& command,
                                   const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const int pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "fork");
  if (pid == 0) {
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(pipe_fds[0], STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(pipe_fds[0]);
  return Child(pid, pipe_fds[1]);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), stdin_fd_(std::exchange(other.stdin_fd_, -1)) {}

Child::~Child() {
  if (pid_ < 0) return;
  for (const int pid : Descendants()) kill(pid, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(stdin_fd_);
}

absl::StatusOr<std::string> Child::WaitForAddress(const std::string& port_file) {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (absl::Now() < deadline) {
    std::ifstream in(port_file);
    for (std::string line; std::getline(in, line);) {
      if (absl::StartsWith(line, "grpc=")) return line.substr(5);
    }
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      close(stdin_fd_);
      return absl::InternalError("the server ended before it served; see its log");
    }
    poll(nullptr, 0, 2);
  }
  return absl::DeadlineExceededError("the server wrote no port file within 30 s");
}

double Child::CpuSeconds() const {
  clockid_t clock = 0;
  timespec time = {};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::vector<int> Child::Below(int min_depth) const {
  std::map<int, int> parents;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return {};
  while (const dirent* entry = readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid > 0) parents[pid] = ParentOf(pid);
  }
  closedir(proc);
  std::vector<int> found;
  for (const auto& [pid, parent] : parents) {
    int above = parent;
    int depth = 1;
    for (; depth < 16 && above > 1 && above != pid_; ++depth) {
      const auto entry = parents.find(above);
      above = entry == parents.end() ? 0 : entry->second;
    }
    if (above == pid_ && depth >= min_depth) found.push_back(pid);
  }
  return found;
}

absl::Status Child::HoldSlot(const std::function<absl::Status()>& submit) const {
  // Below the warm parent and the run's keeper.
  constexpr int kDepthOfRuns = 3;
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (absl::Now() < deadline) {
    RETURN_IF_ERROR(submit());
    for (int looks = 0; looks < 20; ++looks) {
      const std::vector<int> runs = Below(kDepthOfRuns);
      for (const int pid : runs) kill(pid, SIGSTOP);
      if (runs.empty()) continue;
      // One whose job had ended already is killed by its keeper; one that stays holds the slot.
      poll(nullptr, 0, 300);
      if (Below(kDepthOfRuns) == runs) return absl::OkStatus();
    }
  }
  return absl::DeadlineExceededError("no run was caught in a minute");
}

}  // namespace npuc::bench
