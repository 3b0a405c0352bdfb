#ifndef NPUC_COMPILER_CORE_TOOLS_DESCRIPTOR_H_
#define NPUC_COMPILER_CORE_TOOLS_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace npuc {

// Closes a file with the object; not the standard ones, which are the process's.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}  // negative: none
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) = delete;
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  void Close() {
    const int fd = std::exchange(fd_, -1);
    if (fd > STDERR_FILENO) ::close(fd);
  }

 private:
  int fd_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_DESCRIPTOR_H_
