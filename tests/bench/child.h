#ifndef NPUC_TESTS_BENCH_CHILD_H_
#define NPUC_TESTS_BENCH_CHILD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace npuc::bench {

// A server process of the benchmark's own. Killed, with its children stopped or not, at the end.
class Child {
 public:
  // Starts a program whose standard output and error go to `log` and whose standard input is a pipe
  // held open here.
  static absl::StatusOr<Child> Start(const std::vector<std::string>& command,
                                     const std::string& log);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  // Waits for the port file and gives its grpc address. Fails where the process ends before.
  absl::StatusOr<std::string> WaitForAddress(const std::string& port_file);
  int pid() const { return pid_; }
  // Processor time of the process so far, of its threads and not of its children; -1 once it is
  // gone.
  double CpuSeconds() const;
  // Processes below this one, at any depth.
  std::vector<int> Descendants() const { return Below(1); }
  // Holds npucd's only slot, until a run's limit of ten minutes: `submit` makes a job that
  // compiles, again and again until the process of a run was caught and stopped. The warm parent
  // lives on and answers, so npucd sees a compile that takes its time.
  absl::Status HoldSlot(const std::function<absl::Status()>& submit) const;

 private:
  std::vector<int> Below(int min_depth) const;  // 1: its children
  Child(int pid, int stdin_fd) : pid_(pid), stdin_fd_(stdin_fd) {}
  int pid_ = -1;
  int stdin_fd_ = -1;
};

}  // namespace npuc::bench

#endif  // NPUC_TESTS_BENCH_CHILD_H_
