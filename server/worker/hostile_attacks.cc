#include "server/worker/hostile_attacks.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/worker/child.h"

namespace npuc::worker {
namespace {

using Attacks = std::map<std::string, Attack>;

// A call that gives a descriptor or 0, or -1.
Attack Call(std::function<long()> call) {
  return [call = std::move(call)](const AttackFacts&) { return call() >= 0; };
}
// The same by number, with plain numbers as arguments.
Attack Raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return Call([=] { return syscall(number, a, b, c, d, e); });
}
Attack Opens(const std::string& path, int flags) {
  return Call([=] { return open(path.c_str(), flags); });
}

int Deadly(const AttackFacts& facts, int number) { return facts.deadly ? number : 0; }

bool ForkBomb(const AttackFacts&) {
  bool any = false;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) break;
    any = true;
    waitpid(child, nullptr, 0);
  }
  return any;
}

bool Execute(const AttackFacts&) {
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  execve(program, arguments, arguments + 1);
  return false;
}

bool Daemonise(const AttackFacts&) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (int i = 0; i < 600; ++i) poll(nullptr, 0, 100);
    _exit(0);
  }
  return child > 0;
}

void AddProcesses(Attacks& all) {
  all["fork_bomb"] = ForkBomb;
  all["daemonise"] = Daemonise;
  all["execute"] = Execute;
  all["vfork"] = [](const AttackFacts&) {
    const pid_t child = static_cast<pid_t>(syscall(SYS_vfork));
    if (child == 0) _exit(0);
    return child > 0;
  };
  all["clone_namespace"] = [](const AttackFacts&) {
    const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return child > 0;
  };
  all["clone3"] = Raw(SYS_clone3, 0, 0);
  all["ptrace_parent"] = [](const AttackFacts&) {
    return ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr) == 0;
  };
  all["read_parent_memory"] = [](const AttackFacts&) {
    char byte = 0, copy = 0;
    const iovec here = {&copy, 1}, there = {&byte, 1};
    return process_vm_readv(getppid(), &here, 1, &there, 1, 0) == 1;
  };
  all["set_session"] = Call([] { return setsid(); });
  all["reboot"] = [](const AttackFacts& facts) { return facts.deadly && reboot(RB_AUTOBOOT) == 0; };
  all["realtime"] = [](const AttackFacts&) {
    const sched_param parameters = {1};
    return sched_setscheduler(0, SCHED_FIFO, &parameters) == 0;
  };
}

void AddSignals(Attacks& all) {
  all["signal_parent"] = [](const AttackFacts& facts) {
    return kill(getppid(), Deadly(facts, SIGKILL)) == 0;
  };
  all["signal_zygote"] = [](const AttackFacts& facts) {
    return kill(facts.zygote, Deadly(facts, SIGKILL)) == 0;
  };
  all["signal_daemon"] = [](const AttackFacts& facts) {
    return kill(facts.daemon, Deadly(facts, SIGTERM)) == 0;
  };
  all["signal_init"] = [](const AttackFacts& facts) {
    return kill(1, Deadly(facts, SIGKILL)) == 0;
  };
  all["signal_all"] = [](const AttackFacts& facts) {
    return facts.deadly && kill(-1, SIGKILL) == 0;
  };
  all["signal_group"] = [](const AttackFacts& facts) {
    return kill(0, Deadly(facts, SIGKILL)) == 0;
  };
  all["tgkill_parent"] = [](const AttackFacts& facts) {
    return syscall(SYS_tgkill, getppid(), getppid(), Deadly(facts, SIGKILL)) == 0;
  };
  all["tkill_parent"] = [](const AttackFacts& facts) {
    return syscall(SYS_tkill, getppid(), Deadly(facts, SIGKILL)) == 0;
  };
  all["queue_signal"] = [](const AttackFacts& facts) {
    return sigqueue(facts.daemon, Deadly(facts, SIGUSR1), {}) == 0;
  };
  all["pidfd"] = [](const AttackFacts& facts) {
    return syscall(SYS_pidfd_open, facts.daemon, 0) >= 0;
  };
  all["signal_by_owner"] = [](const AttackFacts& facts) {
    return fcntl(kEventsFd, F_SETOWN, facts.daemon) == 0;
  };
}

bool WriteCanary(const AttackFacts& facts) {
  const int fd = open(facts.canary.c_str(), O_WRONLY);
  return fd >= 0 && write(fd, "dead", 4) == 4;
}

bool AnyInheritedDescriptor(const AttackFacts&) {
  for (int fd = kFirstInputFd + 1; fd < 4096; ++fd) {  // behind the model's
    if (fcntl(fd, F_GETFD) >= 0) return true;
  }
  return false;
}

void AddFiles(Attacks& all) {
  all["write_canary"] = WriteCanary;
  all["read_canary"] = [](const AttackFacts& facts) {
    return open(facts.canary.c_str(), O_RDONLY) >= 0;
  };
  all["read_passwd"] = Opens("/etc/passwd", O_RDONLY);
  all["read_root_folder"] = Opens("/bin", O_RDONLY | O_DIRECTORY);
  all["dotdot"] = Opens("../blob", O_RDONLY);
  all["dotdot_far"] = Opens("../../../../../../../../etc/passwd", O_RDONLY);
  all["make_in_root"] = Opens("/made", O_WRONLY | O_CREAT);
  all["make_in_tmp"] = Opens("/tmp/npuc_hostile_made", O_WRONLY | O_CREAT | O_EXCL);
  all["device_memory"] = Opens("/dev/mem", O_RDWR);
  all["device_null"] = Opens("/dev/null", O_RDWR);
  all["proc_self_memory"] = Opens("/proc/self/mem", O_RDWR);
  all["proc_self_status"] = Opens("/proc/self/status", O_RDONLY);
  all["proc_zygote_environment"] = [](const AttackFacts& facts) {
    return open(absl::StrCat("/proc/", facts.zygote, "/environ").c_str(), O_RDONLY) >= 0;
  };
  all["proc_daemon_root"] = [](const AttackFacts& facts) {
    return open(absl::StrCat("/proc/", facts.daemon, "/root/etc/passwd").c_str(), O_RDONLY) >= 0;
  };
  all["proc_write"] = Opens("/proc/self/oom_score_adj", O_WRONLY);
  all["proc_sysrq"] = Opens("/proc/sysrq-trigger", O_WRONLY);
  all["reopen_input_for_writing"] = Opens(absl::StrCat("/proc/self/fd/", kFirstInputFd), O_WRONLY);
  all["write_input"] = Call([] { return write(kFirstInputFd, "dead", 4); });
  all["truncate_input"] = Call([] { return ftruncate(kFirstInputFd, 0); });
  all["write_job"] = Call([] { return pwrite(kJobFd, "dead", 4, 0); });
  all["inherited_descriptors"] = AnyInheritedDescriptor;
  all["symlink"] = [](const AttackFacts& facts) { return symlink(facts.canary.c_str(), "s") == 0; };
  all["hard_link"] = [](const AttackFacts& facts) { return link(facts.canary.c_str(), "h") == 0; };
  all["fifo"] = Call([] { return mkfifo("f", 0600); });
  all["device"] = Call([] { return mknod("d", S_IFBLK | 0600, 0x0800); });
  all["make_folder"] = Call([] { return mkdir("sub", 0700); });
  all["rename_folder"] = Call([] { return rename("../blob", "../away"); });
  all["set_mode"] = Call([] { return fchmod(kOutFd, 0); });
  all["set_owner"] = Call([] { return fchown(kOutFd, 0, 0); });
  all["set_attribute"] =
      Call([] { return static_cast<long>(syscall(SYS_fsetxattr, kOutFd, "user.x", "y", 1, 0)); });
}

void AddSockets(Attacks& all) {
  const auto add = [&](const std::string& name, int family, int type) {
    all["socket_" + name] = Call([=] { return socket(family, type, 0); });
  };
  add("unix", AF_UNIX, SOCK_STREAM);
  add("inet", AF_INET, SOCK_STREAM);
  add("inet_udp", AF_INET, SOCK_DGRAM);
  add("inet6", AF_INET6, SOCK_STREAM);
  add("raw", AF_INET, SOCK_RAW);
  add("netlink", AF_NETLINK, SOCK_RAW);
  add("packet", AF_PACKET, SOCK_RAW);
  add("vsock", AF_VSOCK, SOCK_STREAM);
  add("crypto", AF_ALG, SOCK_SEQPACKET);
  add("bluetooth", AF_BLUETOOTH, SOCK_RAW);
  all["socket_pair"] = Call([] {
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  });
  all["send_descriptor"] = Call([] {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec part = {&byte, 1};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    *c = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    return sendmsg(kEventsFd, &header, 0);
  });
}

void AddPrivileges(Attacks& all) {
  all["set_user"] = Raw(SYS_setuid, 0);
  all["set_users"] = Raw(SYS_setresuid, 0, 0, 0);
  all["set_group"] = Raw(SYS_setgid, 0);
  all["set_groups"] = Raw(SYS_setgroups, 0, 0);
  all["set_capabilities"] = Raw(SYS_capset, 0, 0);
  all["mount"] = Call([] { return mount("none", "/", "tmpfs", 0, nullptr); });
  all["new_mount"] = Call([] { return fsopen("tmpfs", 0); });
  all["clone_tree"] = Raw(SYS_open_tree, AT_FDCWD, 0, 1);
  all["unmount"] = Call([] { return umount2("/", MNT_DETACH); });
  all["chroot"] = Call([] { return chroot("."); });
  all["pivot_root"] = Raw(SYS_pivot_root, 0, 0);
  all["unshare_user"] = Call([] { return unshare(CLONE_NEWUSER); });
  all["join_namespace"] = Raw(SYS_setns, 4, 0);
  all["host_name"] = Call([] { return sethostname("x", 1); });
  all["handle"] = Raw(SYS_open_by_handle_at, 4, 0, 0);
  all["personality"] = Call([] { return personality(ADDR_NO_RANDOMIZE); });
  all["dumpable"] = Call([] { return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); });
  all["raise_limit"] = Call([] {
    const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_AS, &none);
  });
}

void AddKernel(Attacks& all) {
  all["io_uring"] = [](const AttackFacts&) {
    io_uring_params parameters = {};
    return syscall(SYS_io_uring_setup, 4, &parameters) >= 0;
  };
  all["bpf"] = [](const AttackFacts&) {
    bpf_attr attributes = {};
    return syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes)) >= 0;
  };
  all["perf_event"] = [](const AttackFacts&) {
    perf_event_attr attributes = {};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof(attributes);
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.exclude_kernel = 1;
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0;
  };
  all["userfaultfd"] = Raw(SYS_userfaultfd, 1);
  all["keyctl"] = Raw(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1);
  all["add_key"] = Raw(SYS_add_key, 0, 0, 0, 0, 0);
  all["memory_file"] = Call([] { return memfd_create("x", 0); });
  all["shared_memory"] = Call([] {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    if (id >= 0) shmctl(id, IPC_RMID, nullptr);
    return id;
  });
  all["message_queue"] = Call([] {
    const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (id >= 0) msgctl(id, IPC_RMID, nullptr);
    return id;
  });
  all["module"] = Raw(SYS_init_module, 0, 0, 0);
  all["another_filter"] = Raw(SYS_seccomp, 1, 0, 0);
  all["x32_call"] = Raw(0x40000000 | SYS_getpid);
#ifdef __x86_64__
  all["call_of_32_bits"] = [](const AttackFacts&) {
    long result = 20;  // getpid there; writev here
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result > 0;
  };
#endif
  all["code_at_run_time"] = [](const AttackFacts&) {
    return mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) != MAP_FAILED;
  };
}

void AddMemory(Attacks& all) {
  // Each stops at the first refusal; a limit that does not hold shows as success.
  all["memory_map"] = [](const AttackFacts&) {
    return mmap(nullptr, size_t{1} << 40, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  };
  all["memory_map_small"] = [](const AttackFacts&) {
    for (int i = 0; i < (1 << 16); ++i) {
      if (mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
          MAP_FAILED) {
        return false;
      }
    }
    return true;
  };
  all["memory_break"] = [](const AttackFacts&) {
    for (int i = 0; i < (1 << 16); ++i) {
      if (sbrk(1 << 20) == reinterpret_cast<void*>(-1)) return false;
    }
    return true;
  };
  all["memory_shared_map"] = [](const AttackFacts&) {
    return mmap(nullptr, size_t{1} << 40, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  };
  all["memory_lock"] = Call([] { return mlockall(MCL_CURRENT | MCL_FUTURE); });
}

}  // namespace

const std::map<std::string, Attack>& AllAttacks() {
  static const Attacks* all = [] {
    auto* made = new Attacks();
    AddProcesses(*made);
    AddSignals(*made);
    AddFiles(*made);
    AddSockets(*made);
    AddPrivileges(*made);
    AddKernel(*made);
    AddMemory(*made);
    return made;
  }();
  return *all;
}

}  // namespace npuc::worker
