// peak_rss COMMAND...: runs it and prints the largest resident set that it had, in KiB. A program
// of its own, since Linux counts what a process had before it became COMMAND: a Python that starts
// one would put its own memory into the figure, and this has next to none.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int kFailed = 127;
  if (argc < 2) {
    std::fprintf(stderr, "usage: peak_rss COMMAND...\n");
    return 2;
  }
  const pid_t child = fork();
  if (child < 0) return kFailed;
  if (child == 0) {
    // Its output is not the figure.
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(kFailed);
    execv(argv[1], argv + 1);
    _exit(kFailed);
  }
  int status = 0;
  rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child) return kFailed;
  std::printf("%ld\n", usage.ru_maxrss);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}
