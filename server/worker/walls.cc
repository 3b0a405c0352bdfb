#include "server/worker/walls.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/worker/confine.h"

namespace npuc::worker {
namespace {

// The keeper is process 1 of the run's namespace, and the worker its first child.
constexpr pid_t kWorkerPidInside = 2;
// Beside the artifacts, so that one file too many can be seen and told.
constexpr uint64_t kMaxOutputFiles = 80;
// As much as the pool's own look allows for blocks that are not full.
constexpr uint64_t kOutputSlackBytes = uint64_t{8} << 20;

absl::Status WallFailed(absl::string_view call) {
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", strerror(errno)));
}

absl::Status SetNoNewPrivileges() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return WallFailed("PR_SET_NO_NEW_PRIVS");
  return absl::OkStatus();
}

// The attempts look at what the walls do, not only at what the calls return: there are kernels and
// emulators that say yes and do nothing.

absl::Status AttemptFileView() {
  RETURN_IF_ERROR(EnterEmptyRoot());
  if (access("/dev", F_OK) == 0 || access("/../../dev", F_OK) == 0) {
    return absl::FailedPreconditionError("chroot shows the host's files still");
  }
  return absl::OkStatus();
}

absl::Status AttemptOutputFolder(bool root) {
  const uid_t uid = root ? kWorkerUid : geteuid();
  const gid_t gid = root ? kWorkerGid : getegid();
  ASSIGN_OR_RETURN(const cache::UniqueFd folder, MakeOutputFolder(65536, 4, uid, gid));
  const cache::UniqueFd file(openat(folder.get(), "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return WallFailed("create a file in tmpfs");
  const std::string bytes(70000, 'x');
  if (write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    return absl::FailedPreconditionError("tmpfs takes more than its size");
  }
  return absl::OkStatus();
}

absl::Status AttemptSystemCalls() {
  RETURN_IF_ERROR(SetNoNewPrivileges());
  ASSIGN_OR_RETURN(const SystemCallFilter filter, MakeSystemCallFilter(getpid()));
  RETURN_IF_ERROR(EnterSystemCallFilter(filter));
  if (getpgid(0) >= 0 || errno != EPERM) {
    return absl::FailedPreconditionError("a call outside the list succeeds");
  }
  return absl::OkStatus();
}

absl::Status AttemptLandlock() {
  RETURN_IF_ERROR(SetNoNewPrivileges());
  const cache::UniqueFd folder(open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return WallFailed("open /dev");
  RETURN_IF_ERROR(EnterLandlock(folder.get()));
  const cache::UniqueFd root(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.valid()) return absl::FailedPreconditionError("a folder outside can be read still");
  return absl::OkStatus();
}

absl::Status Nothing() { return absl::OkStatus(); }

}  // namespace

void OfferToOomKiller(absl::string_view score) {
  // A namespace of users has made its files root's, who is nobody here. The worker, later, is not
  // dumpable for good.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  const char* const path = "/proc/self/oom_score_adj";
  const auto fd = cache::OpenFile(path, O_WRONLY);
  if (fd.ok()) cache::WriteAllAt(fd->get(), score, 0, path).IgnoreError();
}

Walls::Walls(uint32_t without, FilterFor what)
    : without_(without),
      what_(what),
      root_(geteuid() == 0),
      parent_(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))) {
  TryAll(without);
}

void Walls::Try(Mechanism mechanism, const std::function<absl::Status()>& attempt) {
  const absl::Status status = (without_ & Bit(mechanism)) != 0
                                  ? absl::FailedPreconditionError("left out on request")
                                  : attempt();
  if (status.ok()) {
    report_.in_force |= Bit(mechanism);
  } else {
    report_.missing.push_back({mechanism, std::string(status.message())});
  }
}

void Walls::TryAll(uint32_t without) {
  // First, since it gives those who are not root the rights for what follows.
  Try(Mechanism::kUserNamespace, [] {
    RETURN_IF_ERROR(TryInChild(0, EnterUserNamespace));
    return EnterUserNamespace();
  });
  Try(Mechanism::kPidNamespace, [] { return TryInChild(CLONE_NEWPID, Nothing); });
  // One for all runs: making one takes 1 ms and, on a busy host, 20; seccomp allows no socket by
  // which its workers could meet in it.
  Try(Mechanism::kNetworkNamespace, [] {
    if (unshare(CLONE_NEWNET) != 0) return WallFailed("unshare network namespace");
    return absl::OkStatus();
  });
  Try(Mechanism::kIpcNamespace, [] { return TryInChild(CLONE_NEWIPC | CLONE_NEWUTS, Nothing); });
  Try(Mechanism::kFileView, [] { return TryInChild(CLONE_NEWNS, AttemptFileView); });
  Try(Mechanism::kOutputFolder,
      [this] { return TryInChild(CLONE_NEWNS, [this] { return AttemptOutputFolder(root_); }); });
  if (root_) Try(Mechanism::kOwnUser, [] { return TryInChild(0, BecomeWorkerUser); });
  Try(Mechanism::kSystemCalls, [this] {
    RETURN_IF_ERROR(TryInChild(0, AttemptSystemCalls));
    ASSIGN_OR_RETURN(filter_, MakeSystemCallFilter(kWorkerPidInside, what_));
    return absl::OkStatus();
  });
  Try(Mechanism::kLandlock, [] { return TryInChild(0, AttemptLandlock); });
}

int Walls::clone_flags() const {
  int flags = 0;
  if (Has(Mechanism::kPidNamespace)) flags |= CLONE_NEWPID;
  if (Has(Mechanism::kIpcNamespace)) flags |= CLONE_NEWIPC | CLONE_NEWUTS;
  if (Has(Mechanism::kFileView) || Has(Mechanism::kOutputFolder)) flags |= CLONE_NEWNS;
  return flags;
}

bool Walls::ParentAlive() const {
  pollfd parent = {parent_.get(), POLLIN, 0};
  return poll(&parent, 1, 0) == 0;
}

absl::Status Walls::GiveOutputFolder(int folder_fd) const {
  if (Has(Mechanism::kOutputFolder) || !Has(Mechanism::kOwnUser)) return absl::OkStatus();
  if (fchown(folder_fd, kWorkerUid, kWorkerGid) != 0)
    return WallFailed("chown of the output folder");
  return absl::OkStatus();
}

absl::StatusOr<cache::UniqueFd> Walls::MakeMemoryFolder(uint64_t output_bytes) const {
  if (!Has(Mechanism::kOutputFolder)) return cache::UniqueFd();
  const bool own_user = Has(Mechanism::kOwnUser);
  return MakeOutputFolder(output_bytes + kOutputSlackBytes, kMaxOutputFiles,
                          own_user ? kWorkerUid : geteuid(), own_user ? kWorkerGid : getegid());
}

absl::Status Walls::EnterFileView() const {
  if (Has(Mechanism::kIpcNamespace)) {
    constexpr absl::string_view kName = "npuc-worker";
    if (sethostname(kName.data(), kName.size()) != 0) return WallFailed("sethostname");
  }
  return Has(Mechanism::kFileView) ? EnterEmptyRoot() : absl::OkStatus();
}

absl::Status Walls::GiveUpRights(pid_t keeper) const {
  RETURN_IF_ERROR(DropBoundingSet());
  if (Has(Mechanism::kOwnUser)) RETURN_IF_ERROR(BecomeWorkerUser());
  RETURN_IF_ERROR(DropCapabilities());
  // Not earlier: a change of user takes it away. Beside it, the keeper's death ends its namespace.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return WallFailed("PR_SET_PDEATHSIG");
  if (getppid() != keeper) return absl::AbortedError("the keeper has died");
  return SetNoNewPrivileges();
}

absl::Status Walls::ShutIn(int folder_fd) const {
  if (Has(Mechanism::kLandlock)) RETURN_IF_ERROR(EnterLandlock(folder_fd));
  if (!Has(Mechanism::kSystemCalls)) return absl::OkStatus();
  if (Has(Mechanism::kPidNamespace)) return EnterSystemCallFilter(filter_);
  ASSIGN_OR_RETURN(const SystemCallFilter filter, MakeSystemCallFilter(getpid(), what_));
  return EnterSystemCallFilter(filter);
}

}  // namespace npuc::worker
