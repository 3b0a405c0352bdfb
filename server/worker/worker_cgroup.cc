#include "server/worker/worker_cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cache/posix.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::worker {
namespace {

constexpr size_t kMaxFileBytes = 4096;

absl::Status Missing(absl::string_view what) { return absl::FailedPreconditionError(what); }

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const cache::UniqueFd fd, cache::OpenFile(path, O_RDONLY));
  return cache::ReadUpToAt(fd.get(), 0, kMaxFileBytes, path);
}

// One write, as the kernel's files want it.
absl::Status WriteFile(const std::string& path, const std::string& text) {
  const auto fd = cache::OpenFile(path, O_WRONLY | O_TRUNC);
  if (!fd.ok()) return Missing(fd.status().message());
  if (cache::RetryOnEintr([&] { return write(fd->get(), text.data(), text.size()); }) ==
      static_cast<ssize_t>(text.size())) {
    return absl::OkStatus();
  }
  return Missing(
      cache::ErrnoStatus(errno, absl::StrCat("cannot write '", text, "' to"), path).message());
}

absl::Status MakeGroup(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return Missing(cache::ErrnoStatus(errno, "cannot make", path).message());
}

// The folder of this process's own group, with the controllers that are needed.
absl::StatusOr<std::string> OwnGroup(const WorkerCgroup::Host& host) {
  if (!host.is_cgroup2(host.root)) {
    return Missing(absl::StrCat(host.root, " is not cgroup v2 (an older layout, or none)"));
  }
  ASSIGN_OR_RETURN(const std::string self, ReadFile(host.self));
  std::string own;
  for (absl::string_view line : absl::StrSplit(self, '\n')) {
    if (absl::ConsumePrefix(&line, "0::/")) own = absl::StrCat(host.root, "/", line);
  }
  if (own.empty()) return Missing("this process is in no group of cgroup v2");
  const auto listed = ReadFile(own + "/cgroup.controllers");
  if (!listed.ok()) return Missing(listed.status().message());
  const std::vector<std::string> controllers =
      absl::StrSplit(absl::StripAsciiWhitespace(*listed), ' ');
  for (const char* wanted : {"memory", "pids"}) {
    if (std::find(controllers.begin(), controllers.end(), wanted) == controllers.end()) {
      return Missing(absl::StrCat(own, " has no controller '", wanted,
                                  "'; with systemd, set Delegate=memory pids"));
    }
  }
  return own;
}

}  // namespace

bool WorkerCgroup::IsCgroup2(const std::string& folder) {
  struct statfs info = {};
  return statfs(folder.c_str(), &info) == 0 &&
         static_cast<uint64_t>(info.f_type) == CGROUP2_SUPER_MAGIC;
}

absl::StatusOr<std::unique_ptr<WorkerCgroup>> WorkerCgroup::Make(const Limits& limits,
                                                                 const Host& host) {
  ASSIGN_OR_RETURN(const std::string own, OwnGroup(host));
  const std::string pid = absl::StrCat(getpid());
  RETURN_IF_ERROR(MakeGroup(own + "/npucd"));
  RETURN_IF_ERROR(WriteFile(own + "/npucd/cgroup.procs", pid));
  const absl::Status handed_on = WriteFile(own + "/cgroup.subtree_control", "+memory +pids");
  if (!handed_on.ok()) {
    // Mostly since others are in the group, too. Back to where it was.
    WriteFile(own + "/cgroup.procs", pid).IgnoreError();
    return Missing(
        absl::StrCat(handed_on.message(), "; npucd needs a group without other processes"));
  }
  auto group = std::unique_ptr<WorkerCgroup>(new WorkerCgroup(own + "/workers"));
  RETURN_IF_ERROR(MakeGroup(group->folder_));
  RETURN_IF_ERROR(WriteFile(group->folder_ + "/memory.max", absl::StrCat(limits.memory_bytes)));
  RETURN_IF_ERROR(WriteFile(group->folder_ + "/pids.max", absl::StrCat(limits.processes)));
  // Not on hosts without swap accounting; memory.max holds all the same.
  WriteFile(group->folder_ + "/memory.swap.max", "0").IgnoreError();
  ASSIGN_OR_RETURN(const std::string kept, ReadFile(group->folder_ + "/pids.max"));
  if (absl::StripAsciiWhitespace(kept) != absl::StrCat(limits.processes)) {
    return Missing(absl::StrCat(group->folder_, "/pids.max does not keep what is written"));
  }
  return group;
}

WorkerCgroup::~WorkerCgroup() { rmdir(folder_.c_str()); }

absl::Status WorkerCgroup::Add(pid_t pid) const {
  return WriteFile(folder_ + "/cgroup.procs", absl::StrCat(pid));
}

}  // namespace npuc::worker
