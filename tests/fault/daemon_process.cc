#include "tests/fault/daemon_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace npuc::fault {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(2);
constexpr size_t kLogLines = 40;

// An address that nobody listens on, below the ports that the kernel gives to outgoing connections:
// a client that tries again while the daemon is away could be given the daemon's own port, and keep
// it.
std::string FreeAddress() {
  constexpr int kFirst = 20000;
  constexpr int kPorts = 10000;
  static int next = static_cast<int>(getpid() % kPorts);
  for (int tries = 0; tries < kPorts; ++tries) {
    const int port = kFirst + next++ % kPorts;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_free =
        bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    close(fd);
    if (is_free) return absl::StrCat("127.0.0.1:", port);
  }
  return "127.0.0.1:0";
}

// Prints the last lines of each log in `folder`: a reader of CI output cannot open the files.
void PrintEndsOfLogs(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.path().filename() != "npucd.log") continue;
    std::ifstream in(entry.path());
    std::deque<std::string> last;
    for (std::string line; std::getline(in, line);) {
      last.push_back(line);
      if (last.size() > kLogLines) last.pop_front();
    }
    std::fprintf(stderr, "--- the end of %s\n", entry.path().c_str());
    for (const std::string& line : last) std::fprintf(stderr, "%s\n", line.c_str());
  }
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

DaemonProcess::DaemonProcess(Options options)
    : options_(std::move(options)), address_(FreeAddress()), http_(FreeAddress()) {
  std::filesystem::create_directories(options_.folder);
}

DaemonProcess::~DaemonProcess() {
  if (pid_ > 0) Kill();
}

absl::Status DaemonProcess::Spawn() {
  const std::string port_file = options_.folder + "/port";
  std::filesystem::remove(port_file);
  std::vector<std::string> arguments = {
      options_.program, "--data-dir", data_dir(),  "--listen",
      address_,         "--http",     http_,       "--port-file",
      port_file,        "--insecure", "--workers", absl::StrCat(options_.workers)};
  arguments.insert(arguments.end(), options_.flags.begin(), options_.flags.end());
  std::vector<std::string> environment = options_.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log().c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int error = posix_spawn(&pid_, options_.program.c_str(), &actions, nullptr,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return absl::OkStatus();
  pid_ = -1;
  return absl::ErrnoToStatus(error, options_.program);
}

absl::Status DaemonProcess::AwaitServing(absl::Duration patience) {
  const absl::Time limit = absl::Now() + patience;
  while (absl::Now() < limit) {
    std::ifstream in(options_.folder + "/port");
    bool found = false;
    for (std::string line; std::getline(in, line);) {
      if (absl::StartsWith(line, "grpc=")) address_ = line.substr(5);
      if (absl::StartsWith(line, "http=")) http_ = line.substr(5);
      found = true;
    }
    if (found) return absl::OkStatus();
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return absl::InternalError(absl::StrCat("npucd ended before it served; see ", log()));
    }
    Pause(kLook);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("npucd does not serve after ", absl::FormatDuration(patience)));
}

void DaemonProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void DaemonProcess::Kill() {
  Signal(SIGKILL);
  AwaitEnd(absl::InfiniteDuration());
}

std::optional<int> DaemonProcess::AwaitEnd(absl::Duration patience) {
  const absl::Time limit = absl::Now() + patience;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
    }
    if (absl::Now() >= limit) return std::nullopt;
    Pause(kLook);
  }
  return std::nullopt;
}

void Pause(absl::Duration duration) {
  // A moment that has passed is no time: poll waits for ever where it is negative.
  poll(nullptr, 0, static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(duration))));
}

int64_t ResidentBytes(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0;
  int64_t resident = 0;
  in >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int RunInFolder(const std::string& program, const std::string& keep,
                const std::function<absl::Status(const std::string& folder)>& body) {
  namespace fs = std::filesystem;
  std::string folder = keep;
  if (folder.empty()) {
    folder = (fs::temp_directory_path() / absl::StrCat("npuc-", program, "-XXXXXX")).string();
    if (mkdtemp(folder.data()) == nullptr) return 1;
  }
  const absl::Status status = body(folder);
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\nlogs are in %s\n", program.c_str(), status.ToString().c_str(),
                 folder.c_str());
    PrintEndsOfLogs(folder);
    return 1;
  }
  if (keep.empty()) fs::remove_all(folder);
  return 0;
}

}  // namespace npuc::fault
