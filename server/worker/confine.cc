#include "server/worker/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"

namespace npuc::worker {
namespace {

absl::Status Failed(absl::string_view call) {
  return absl::FailedPreconditionError(absl::StrCat(call, ": ", strerror(errno)));
}

absl::Status WriteProc(const std::string& path, absl::string_view text) {
  const cache::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid() || write(fd.get(), text.data(), text.size()) < 0) return Failed(path);
  return absl::OkStatus();
}

// The maps of a process that has just made its user namespace, written from outside by root.
absl::Status MapForRoot(pid_t pid) {
  RETURN_IF_ERROR(WriteProc(absl::StrCat("/proc/", pid, "/uid_map"),
                            absl::StrCat("0 0 1\n", kWorkerUid, " ", kWorkerUid, " 1\n")));
  return WriteProc(absl::StrCat("/proc/", pid, "/gid_map"),
                   absl::StrCat("0 0 1\n", kWorkerGid, " ", kWorkerGid, " 1\n"));
}

// Root's way: a helper that stays outside writes the maps, since who is inside may map itself only.
absl::Status EnterUserNamespaceAsRoot() {
  int go[2];
  if (pipe2(go, O_CLOEXEC) != 0) return Failed("pipe");
  const cache::UniqueFd wait_end(go[0]);
  cache::UniqueFd go_end(go[1]);
  const pid_t inside = getpid();
  const pid_t helper = CloneProcess(0);
  if (helper < 0) return Failed("clone");
  if (helper == 0) {
    go_end.Reset();
    char byte;
    const bool asked = read(wait_end.get(), &byte, 1) == 1;
    _exit(asked && MapForRoot(inside).ok() ? 0 : 1);
  }
  const int result = unshare(CLONE_NEWUSER);
  const absl::Status status = result == 0 ? absl::OkStatus() : Failed("unshare user namespace");
  if (status.ok() && write(go_end.get(), "x", 1) != 1) return Failed("write");
  go_end.Reset();
  int helper_status = 0;
  if (cache::RetryOnEintr([&] { return waitpid(helper, &helper_status, 0); }) != helper) {
    return Failed("waitpid");
  }
  if (status.ok() && helper_status != 0) {
    return absl::FailedPreconditionError("uid_map: this host's root may not map the user 65534");
  }
  return status;
}

absl::Status EnterUserNamespaceAsUser() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return Failed("unshare user namespace");
  RETURN_IF_ERROR(WriteProc("/proc/self/uid_map", absl::StrCat(kWorkerUid, " ", uid, " 1\n")));
  RETURN_IF_ERROR(WriteProc("/proc/self/setgroups", "deny"));
  return WriteProc("/proc/self/gid_map", absl::StrCat(kWorkerGid, " ", gid, " 1\n"));
}

// A tmpfs with these options; the descriptor of its root folder.
absl::StatusOr<cache::UniqueFd> MakeMemoryFolder(
    std::initializer_list<std::pair<const char*, std::string>> options, unsigned attributes) {
  const cache::UniqueFd context(fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context.valid()) return Failed("fsopen tmpfs");
  for (const auto& [name, value] : options) {
    if (fsconfig(context.get(), FSCONFIG_SET_STRING, name, value.c_str(), 0) != 0) {
      return Failed(absl::StrCat("tmpfs ", name));
    }
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return Failed("create tmpfs");
  }
  cache::UniqueFd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
  if (!mount.valid()) return Failed("fsmount");
  // What fsmount gives is a path only; folders are read through an open one.
  cache::UniqueFd folder(openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Failed("open tmpfs");
  return folder;
}

}  // namespace

pid_t CloneProcess(int clone_flags) {
  return static_cast<pid_t>(
      syscall(SYS_clone, static_cast<unsigned long>(clone_flags) | SIGCHLD, 0, 0, 0, 0));
}

absl::Status TryInChild(int clone_flags, const std::function<absl::Status()>& step) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Failed("pipe");
  const cache::UniqueFd told(ends[0]);
  cache::UniqueFd tell(ends[1]);
  const pid_t child = CloneProcess(clone_flags);
  if (child < 0) return Failed("clone");
  if (child == 0) {
    const absl::Status status = step();
    const std::string text = status.ok() ? "ok" : std::string(status.message());
    _exit(write(tell.get(), text.data(), text.size()) < 0 ? 1 : 0);
  }
  tell.Reset();
  char text[512];
  const ssize_t n = cache::RetryOnEintr([&] { return read(told.get(), text, sizeof(text)); });
  cache::RetryOnEintr([&] { return waitpid(child, nullptr, 0); });
  const absl::string_view said(text, n < 0 ? 0 : static_cast<size_t>(n));
  if (said == "ok") return absl::OkStatus();
  return absl::FailedPreconditionError(said.empty() ? "it ended the process that tried" : said);
}

absl::Status EnterUserNamespace() {
  return geteuid() == 0 ? EnterUserNamespaceAsRoot() : EnterUserNamespaceAsUser();
}

absl::StatusOr<cache::UniqueFd> MakeOutputFolder(uint64_t size_bytes, uint64_t max_files, uid_t uid,
                                                 gid_t gid) {
  // One more for the folder itself.
  return MakeMemoryFolder({{"size", absl::StrCat(size_bytes)},
                           {"nr_inodes", absl::StrCat(max_files + 1)},
                           {"mode", "0700"},
                           {"uid", absl::StrCat(uid)},
                           {"gid", absl::StrCat(gid)}},
                          MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

absl::StatusOr<cache::UniqueFd> MakeFolderOf(const std::string& name, absl::string_view bytes) {
  constexpr size_t kSlackBytes = size_t{1} << 16;  // pages that are not full
  ASSIGN_OR_RETURN(cache::UniqueFd folder,
                   MakeMemoryFolder({{"size", absl::StrCat(bytes.size() + kSlackBytes)},
                                     {"nr_inodes", "2"},
                                     {"mode", "0555"}},
                                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  const cache::UniqueFd file(
      openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file.valid()) return Failed("create a file in tmpfs");
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), bytes, 0, name));
  if (fchmod(file.get(), 0444) != 0) return Failed("fchmod");  // whatever the umask is
  return folder;
}

absl::Status EnterEmptyRoot() {
  ASSIGN_OR_RETURN(const cache::UniqueFd root,
                   MakeMemoryFolder({{"size", "4096"}, {"nr_inodes", "1"}, {"mode", "0555"}},
                                    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                        MOUNT_ATTR_NOEXEC));
  if (fchdir(root.get()) != 0) return Failed("fchdir");
  if (chroot(".") != 0) return Failed("chroot");
  return absl::OkStatus();
}

absl::Status LimitResource(__rlimit_resource which, uint64_t soft, uint64_t hard) {
  // An ordinary user cannot go above a hard limit that is there; lower is as good.
  rlimit now;
  if (getrlimit(which, &now) != 0) return Failed("getrlimit");
  const rlimit wanted = {std::min<rlim_t>(soft, now.rlim_max),
                         std::min<rlim_t>(hard, now.rlim_max)};
  if (setrlimit(which, &wanted) != 0) return Failed("setrlimit");
  return absl::OkStatus();
}

absl::Status BecomeWorkerUser() {
  if (setgroups(0, nullptr) != 0) return Failed("setgroups");
  if (setresgid(kWorkerGid, kWorkerGid, kWorkerGid) != 0) return Failed("setresgid");
  if (setresuid(kWorkerUid, kWorkerUid, kWorkerUid) != 0) return Failed("setresuid");
  return absl::OkStatus();
}

absl::Status DropBoundingSet() {
  // EINVAL at the first number that the kernel has no capability for. EPERM where we have no right
  // to change it: then no new privileges alone keeps the set from mattering.
  for (int capability = 0; capability < 64; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL || errno == EPERM) break;
    return Failed("bounding set");
  }
  return absl::OkStatus();
}

absl::Status DropCapabilities() {
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return Failed("ambient set");
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0) return Failed("capset");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return Failed("PR_SET_DUMPABLE");
  return absl::OkStatus();
}

absl::Status EnterLandlock(int folder_fd) {
  // The whole of the structure and of the bits, whose later ones Debian 12's headers do not have
  // yet: linux/landlock.h, ABI 1 (5.13), 2 (refer), 3 (truncate), 4 (network), 5 (ioctl), 6
  // (scope).
  struct {
    uint64_t files;
    uint64_t network;
    uint64_t scope;
  } rules = {(1 << 13) - 1, 0, 0};
  const long abi =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return Failed("landlock");
  size_t size = sizeof(rules.files);
  uint64_t allowed = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG;
  constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14, kIoctl = 1 << 15;
  if (abi >= 2) rules.files |= kRefer;
  if (abi >= 3) {
    rules.files |= kTruncate;
    allowed |= kTruncate;
  }
  if (abi >= 4) {
    rules.network = 3;  // bind and connect of TCP
    size = sizeof(rules.files) + sizeof(rules.network);
  }
  if (abi >= 5) rules.files |= kIoctl;
  if (abi >= 6) {
    rules.scope = 3;  // abstract unix sockets, signals
    size = sizeof(rules);
  }
  const cache::UniqueFd ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &rules, size, 0)));
  if (!ruleset.valid()) return Failed("landlock_create_ruleset");
  const landlock_path_beneath_attr beneath = {allowed, folder_fd};
  if (syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) {
    return Failed("landlock_add_rule");
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return Failed("landlock_restrict_self");
  }
  return absl::OkStatus();
}

}  // namespace npuc::worker
