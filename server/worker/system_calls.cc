#include "server/worker/system_calls.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/posix.h"
#include "compiler_core/base/sanitized.h"
#include "compiler_core/base/status.h"

namespace npuc::worker {
namespace {

// A process of bytes in, bytes out: reads what it was given, computes, writes into its folder and
// its channels, ends. By name, since libseccomp knows which of them a machine has.
constexpr const char* kAllowed[] = {
    // descriptors that it has, and files in its folder (the file view and landlock bound those)
    "read", "readv", "pread64", "write", "writev", "pwrite64", "lseek", "close", "fstat",
    "newfstatat",
    // memory; mapping code is told apart below
    "munmap", "mremap", "madvise", "brk",
    // itself
    "futex", "getrandom", "exit", "exit_group", "restart_syscall", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "sigaltstack", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid",
    "getegid", "umask", "uname", "sysinfo", "getrlimit", "getrusage", "times", "sched_yield",
    "sched_getaffinity", "set_robust_list", "rseq",
    // time
    "clock_gettime", "clock_getres", "gettimeofday", "time"};

// No compile and no library of ours makes these: whoever does was taken over.
constexpr const char* kDeadly[] = {
    // reaching other processes
    "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_getfd",
    "pidfd_send_signal", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
    // talking
    "socket", "bind", "connect", "listen", "accept", "accept4", "sendmsg", "sendmmsg", "shmget",
    "shmat", "msgget", "semget", "mq_open", "inotify_init1", "fanotify_init",
    // leaving, or becoming someone else
    "unshare", "setns", "chroot", "pivot_root", "mount", "umount2", "fsopen", "fspick", "fsmount",
    "open_tree", "move_mount", "mount_setattr", "setuid", "setgid", "setreuid", "setregid",
    "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups", "capset", "name_to_handle_at",
    "open_by_handle_at", "personality",
    // names in the folder that are no plain files
    "symlink", "symlinkat", "link", "linkat", "mknod", "mknodat",
    // the kernel's depths
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "io_setup", "keyctl", "add_key", "request_key", "memfd_create",
    "memfd_secret", "seccomp", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "swapon", "swapoff", "syslog", "acct", "quotactl", "iopl",
    "ioperm", "modify_ldt", "vmsplice", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "sethostname", "setdomainname"};

// Deadly, too; but a sanitizer that reports an error makes them, to run its symbolizer, and its
// report is worth more than a death. So they only fail in such a build.
[[maybe_unused]] constexpr const char* kDeadlyButForSanitizers[] = {
    "fork", "vfork", "clone", "clone3", "execve", "execveat", "ptrace", "socketpair"};

#ifdef NPUC_SANITIZED
// What the runtimes do behind our back: wait for each other, map with rights of their own, read
// about themselves, name their memory.
constexpr const char* kSanitizers[] = {
    "nanosleep", "clock_nanosleep", "readlink", "readlinkat", "prctl",     "mmap",
    "mprotect",  "prlimit64",       "pipe2",    "poll",       "getdents64"};
#endif

class Builder {
 public:
  Builder() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {}
  bool valid() const { return context_ != nullptr; }

  void Attribute(scmp_filter_attr attribute, uint32_t value) {
    Keep(seccomp_attr_set(context_.get(), attribute, value), "attribute");
  }
  void Add(uint32_t action, absl::Span<const char* const> names) {
    for (const char* name : names) Add(action, name, {});
  }
  void Add(uint32_t action, const char* name, absl::Span<const scmp_arg_cmp> conditions) {
    const int number = seccomp_syscall_resolve_name(name);
    // Not known to this libseccomp: it stays with the default, and fails.
    if (number == __NR_SCMP_ERROR) return;
    const int code =
        seccomp_rule_add_array(context_.get(), action, number,
                               static_cast<unsigned>(conditions.size()), conditions.data());
    // A call that this machine's ABI does not have (negative numbers) cannot be made either.
    if (number >= 0) Keep(code, name);
  }
  absl::StatusOr<SystemCallFilter> Export() const;

 private:
  void Keep(int code, absl::string_view what) {
    if (code != 0 && status_.ok()) {
      status_ = absl::UnimplementedError(absl::StrCat("libseccomp: ", what, ": ", strerror(-code)));
    }
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  absl::Status status_;
};

absl::StatusOr<SystemCallFilter> Builder::Export() const {
  RETURN_IF_ERROR(status_);
  const cache::UniqueFd file(memfd_create("npuc-seccomp", MFD_CLOEXEC));
  if (!file.valid()) return cache::ErrnoStatus(errno, "cannot make", "memory file");
  const int code = seccomp_export_bpf(context_.get(), file.get());
  if (code != 0) {
    return absl::UnimplementedError(absl::StrCat("seccomp_export_bpf: ", strerror(-code)));
  }
  ASSIGN_OR_RETURN(const uint64_t size, cache::FileSize(file.get(), "seccomp program"));
  ASSIGN_OR_RETURN(const std::string bytes,
                   cache::ReadUpToAt(file.get(), 0, static_cast<size_t>(size), "seccomp program"));
  SystemCallFilter filter(bytes.size() / sizeof(sock_filter));
  std::memcpy(filter.data(), bytes.data(), filter.size() * sizeof(sock_filter));
  return filter;
}

// libseccomp's own macros leave a field to chance, which clang does not like.
scmp_arg_cmp Equals(unsigned argument, uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }

// Files and code of a compile: it writes its output folder, and no code comes into being.
void AddForCompile(Builder& builder) {
  constexpr uint32_t kAllow = SCMP_ACT_ALLOW;
  builder.Add(kAllow, {"openat", "ftruncate"});
  // The event channel is connected: no addresses.
  builder.Add(kAllow, "sendto", {Equals(4, 0)});
#ifndef NPUC_SANITIZED
  for (const char* name : {"mmap", "mprotect"}) {
    builder.Add(kAllow, name, {{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}});
  }
#endif
}

// Files and code of a user's library, which the dynamic loader maps behind the filter.
void AddForLibrary(Builder& builder) {
  constexpr uint64_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  builder.Add(SCMP_ACT_ALLOW, "openat", {{2, SCMP_CMP_MASKED_EQ, kWrites, 0}});
  for (const uint64_t flag : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC}) {
    builder.Add(SCMP_ACT_KILL_PROCESS, "openat", {{2, SCMP_CMP_MASKED_EQ, flag, flag}});
  }
  builder.Add(SCMP_ACT_KILL_PROCESS, {"open", "creat", "unlink", "unlinkat", "rename", "renameat",
                                      "renameat2", "mkdir", "mkdirat", "truncate"});
#ifndef NPUC_SANITIZED
  builder.Add(SCMP_ACT_ALLOW, {"mmap", "mprotect"});
#endif
}

void AddConditional(Builder& builder, pid_t self) {
  constexpr uint32_t kAllow = SCMP_ACT_ALLOW;
  // abort and raise, of oneself.
  builder.Add(kAllow, "tgkill", {Equals(0, static_cast<uint64_t>(self))});
  for (const int command : {F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC}) {
    builder.Add(kAllow, "fcntl", {Equals(1, static_cast<uint64_t>(command))});
  }
#ifndef NPUC_SANITIZED
  // Limits may be read.
  builder.Add(kAllow, "prlimit64", {Equals(0, 0), Equals(2, 0)});
#endif
}

}  // namespace

absl::StatusOr<SystemCallFilter> MakeSystemCallFilter(pid_t self, FilterFor what) {
  Builder builder;
  if (!builder.valid()) return absl::UnimplementedError("libseccomp does not know this machine");
  // The numbers of another ABI (32 bits, x32) would be other calls.
  builder.Attribute(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  builder.Attribute(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // a binary tree: most calls are late in a list
  builder.Add(SCMP_ACT_ALLOW, kAllowed);
  builder.Add(SCMP_ACT_KILL_PROCESS, kDeadly);
#ifdef NPUC_SANITIZED
  builder.Add(SCMP_ACT_ALLOW, kSanitizers);
#else
  builder.Add(SCMP_ACT_KILL_PROCESS, kDeadlyButForSanitizers);
#endif
  AddConditional(builder, self);
  if (what == FilterFor::kCompile) {
    AddForCompile(builder);
  } else {
    AddForLibrary(builder);
  }
  return builder.Export();
}

absl::Status EnterSystemCallFilter(const SystemCallFilter& filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              const_cast<sock_filter*>(filter.data())};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    return cache::ErrnoStatus(errno, "cannot enter", "seccomp filter");
  }
  return absl::OkStatus();
}

}  // namespace npuc::worker
