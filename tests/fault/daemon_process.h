#ifndef NPUC_TESTS_FAULT_DAEMON_PROCESS_H_
#define NPUC_TESTS_FAULT_DAEMON_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace npuc::fault {

// An npucd of a test's own, which may be killed and started again on the same data and port. Not
// thread-safe, but for address() once it has been started.
class DaemonProcess {
 public:
  struct Options {
    std::string program;
    std::string folder;  // its data, its log and its port file are made here
    int workers = 4;
    std::vector<std::string> flags = {};        // more of npucd's
    std::vector<std::string> environment = {};  // "NAME=VALUE"
  };
  explicit DaemonProcess(Options options);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Starts the program; it does not serve yet.
  absl::Status Spawn();
  // Until it serves. INTERNAL: it ended; DEADLINE_EXCEEDED.
  absl::Status AwaitServing(absl::Duration patience);
  void Signal(int signal) const;
  // SIGKILL, and waits for its death.
  void Kill();
  // Waits for its end; its exit code, 256 + signal where one ended it; nullopt: it runs on.
  std::optional<int> AwaitEnd(absl::Duration patience);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  const std::string& address() const { return address_; }  // gRPC
  const std::string& http() const { return http_; }
  std::string data_dir() const { return options_.folder + "/data"; }
  std::string log() const { return options_.folder + "/npucd.log"; }

 private:
  const Options options_;
  pid_t pid_ = -1;
  std::string address_;
  std::string http_;
};

// Lets real time pass: what is tested here are processes at random moments.
void Pause(absl::Duration duration);

// Resident bytes of a process, 0 where it is gone.
int64_t ResidentBytes(pid_t pid);

// The end of a main(): runs `body` in the folder `keep`, or where that is empty in a new temporary
// one, which is removed where all went well; else says what failed and the ends of the logs. The
// exit code.
int RunInFolder(const std::string& program, const std::string& keep,
                const std::function<absl::Status(const std::string& folder)>& body);

}  // namespace npuc::fault

#endif  // NPUC_TESTS_FAULT_DAEMON_PROCESS_H_
