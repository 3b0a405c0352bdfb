// A warm parent for worker_pool_test: its "compiler" does what the config's text says.
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"
#include "server/worker/child.h"
#include "server/worker/hostile_attacks.h"
#include "server/worker/protocol.h"
#include "server/worker/zygote.h"

namespace npuc::worker {
namespace {

using Act = std::function<absl::Status(const CompileRequest&, CompileObserver&, Diagnostics&)>;

// Waits for ever by a call that every compile may make.
[[noreturn]] void Hang() {
  uint32_t word = 0;
  while (true) syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
}

// Until the stack ends.
int Recurse(int depth) {
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : Recurse(depth + 1) + page[0];
}

// Sends bytes on the event channel as a worker that was taken over could.
void Inject(const std::string& bytes) { send(kEventsFd, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

void InjectArtifact(const std::string& name, uint64_t size) {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kArtifact;
  event.text = name;
  event.size_bytes = size;
  Inject(EncodeEvent(event));
}

void Ring() {
  if (write(kBellFd, "", 1) != 1) abort();
}

void InjectResult() {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kResult;
  Inject(EncodeEvent(event));
}

// A process that outlives its parents, in a session of its own if wished, and tells its pid.
void LeaveStray(CompileObserver& observer, bool new_session) {
  int fds[2];
  if (pipe(fds) != 0) abort();
  const pid_t child = fork();
  if (child < 0) {
    observer.OnLog("fork refused");
    return;
  }
  if (child == 0) {
    if (fork() != 0) _exit(0);
    if (new_session) setsid();
    signal(SIGTERM, SIG_IGN);
    const pid_t self = getpid();
    if (write(fds[1], &self, sizeof(self)) != sizeof(self)) abort();
    Hang();
  }
  pid_t stray = 0;
  if (read(fds[0], &stray, sizeof(stray)) != sizeof(stray)) abort();
  observer.OnLog(absl::StrCat("stray ", stray));
}

void TellSurroundings(CompileObserver& observer) {
  std::string open;
  for (int fd = 0; fd < 1024; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) absl::StrAppend(&open, open.empty() ? "" : " ", fd);
  }
  const mode_t mask = umask(0);
  char byte;
  const auto limit = [](__rlimit_resource which) {
    rlimit value = {};
    getrlimit(which, &value);
    return value.rlim_cur;
  };
  observer.OnLog(absl::StrCat("open ", open));
  observer.OnLog(absl::StrCat("umask ", mask));
  observer.OnLog(absl::StrCat("stdin ", read(0, &byte, 1)));
  observer.OnLog(absl::StrCat("leader ", getsid(0) == getpid() && getpgrp() == getpid()));
  observer.OnLog(absl::StrCat("no_new_privs ", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
  observer.OnLog(absl::StrCat("core ", limit(RLIMIT_CORE)));
  observer.OnLog(absl::StrCat("nofile ", limit(RLIMIT_NOFILE)));
  observer.OnLog(absl::StrCat("secret ", getenv("NPUC_TEST_SECRET") != nullptr));
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  observer.OnLog(absl::StrCat("blocked ", sigismember(&blocked, SIGCHLD)));
}

absl::Status CompileWell(const CompileRequest& request, CompileObserver& observer,
                         Diagnostics& diagnostics) {
  observer.OnStage("import", 0);
  observer.OnLog(absl::StrCat("model of ", request.model_bytes.size(), " bytes, time ",
                              request.timestamp_seconds));
  observer.OnLog("escape \x1b[31m and \xff");
  observer.OnStage("emit", 0.5);
  observer.OnStage("back", 0.25);
  diagnostics.Add(
      {DiagnosticKind::kInternalError, "told only", "model.pb", 3, 4, "n", "Op", "l", "do it"});
  observer.OnArtifact(
      {"model.h", WriterOf({request.model_bytes.rbegin(), request.model_bytes.rend()})});
  for (const auto& [role, side] : request.side_inputs) {
    observer.OnArtifact({absl::StrCat(role, ".txt"),
                         WriterOf(side.name + "=" + ReadAll(*side.bytes, 1 << 20).value())});
  }
  return absl::OkStatus();
}

using ActMap = std::map<std::string, Act>;

void Add(ActMap& acts, const std::string& name, std::function<void(CompileObserver&)> act) {
  acts[name] = [act = std::move(act)](const CompileRequest&, CompileObserver& observer,
                                      Diagnostics&) {
    observer.OnStage("act", 0.5);
    act(observer);
    return absl::OkStatus();
  };
}

// Ends that a compile may have.
void AddResults(ActMap& acts) {
  acts["ok"] = CompileWell;
  acts["fail"] = [](const CompileRequest&, CompileObserver&, Diagnostics& diagnostics) {
    diagnostics.Add({DiagnosticKind::kCompileCancelled, "one", "a.pb"});
    diagnostics.Add({DiagnosticKind::kInternalError, "two", "b.pb"});
    return diagnostics.ToStatus();
  };
  Add(acts, "early_hang", [](CompileObserver& observer) {
    observer.OnArtifact({"model.h", WriterOf("early bytes")});
    Hang();
  });
  acts["early_fail"] = [](const CompileRequest&, CompileObserver& observer,
                          Diagnostics& diagnostics) {
    observer.OnArtifact({"model.h", WriterOf("early bytes")});
    diagnostics.Add({DiagnosticKind::kInternalError, "after all", "a.pb"});
    return diagnostics.ToStatus();
  };
  Add(acts, "big_artifact", [](CompileObserver& observer) {
    observer.OnArtifact({"model.h", WriterOf(std::string(2 << 20, 'x'))});
  });
  Add(acts, "big_artifacts", [](CompileObserver& observer) {
    for (const char* name : {"model.h", "report.json", "report.html"}) {
      observer.OnArtifact({name, WriterOf(std::string(500 << 10, 'x'))});
    }
  });
  Add(acts, "bad_artifact_name", [](CompileObserver& observer) {
    observer.OnArtifact({"../model.h", WriterOf("x")});
  });
  Add(acts, "throw", [](CompileObserver&) { throw std::runtime_error("thrown"); });
}

// Ends of the process.
void AddCrashes(ActMap& acts) {
  Add(acts, "segv", [](CompileObserver&) { raise(SIGSEGV); });
  Add(acts, "abort", [](CompileObserver&) {
    std::fprintf(stderr, "internal invariant broken: x > 0\n");
    abort();
  });
  Add(acts, "exit", [](CompileObserver&) { _exit(7); });
  Add(acts, "exit0", [](CompileObserver&) { _exit(0); });
  Add(acts, "half_frame", [](CompileObserver&) {
    Inject(std::string("\x10\x00\x00\x00\x12xx", 7));
    _exit(0);
  });
  Add(acts, "result_then_segv", [](CompileObserver&) {
    InjectResult();
    raise(SIGSEGV);
  });
}

// Those that do not end.
void AddHangs(ActMap& acts) {
  Add(acts, "hang", [](CompileObserver&) { Hang(); });
  Add(acts, "hang_deaf", [](CompileObserver& observer) {
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    observer.OnStage("deaf", 0.6);
    Hang();
  });
  Add(acts, "hang_closed", [](CompileObserver& observer) {
    close(1);
    close(2);
    close(kEventsFd);
    Hang();
  });
  Add(acts, "spin", [](CompileObserver&) {
    volatile uint64_t n = 0;
    while (true) n = n + 1;
  });
  Add(acts, "spin_deaf", [](CompileObserver&) {
    signal(SIGXCPU, SIG_IGN);
    volatile uint64_t n = 0;
    while (true) n = n + 1;
  });
  Add(acts, "thread_hang", [](CompileObserver& observer) {
    std::thread other([] { Hang(); });
    Hang();
  });
  Add(acts, "stack", [](CompileObserver&) { Recurse(1); });
  Add(acts, "memory", [](CompileObserver&) {
    std::vector<std::string> all;
    while (true) all.emplace_back(1 << 20, 'x');
  });
}

// Too much of everything.
void AddOutput(ActMap& acts) {
  Add(acts, "print", [](CompileObserver&) {
    std::printf("hello\nno newline \x1b[2J");
    std::fprintf(stderr, "to stderr\n");
  });
  Add(acts, "print_flood", [](CompileObserver&) {
    for (int i = 0; i < 200000; ++i) std::printf("line %d\n", i);
  });
  Add(acts, "log_flood", [](CompileObserver& observer) {
    for (int i = 0; i < 50000; ++i) observer.OnLog(absl::StrCat("line ", i));
    observer.OnLog(std::string(100000, 'x'));
  });
  Add(acts, "write_big", [](CompileObserver&) {
    const int fd = open("big", O_WRONLY | O_CREAT, 0600);
    const std::string block(1 << 16, 'x');
    while (write(fd, block.data(), block.size()) > 0) {
    }
  });
  Add(acts, "sparse", [](CompileObserver&) {
    const int fd = open("sparse", O_WRONLY | O_CREAT, 0600);
    if (ftruncate(fd, int64_t{1} << 40) == 0) std::printf("it fits\n");
  });
  Add(acts, "fill_folder", [](CompileObserver&) {
    const std::string block(1 << 16, 'x');
    for (int i = 0; i < 60; ++i) {
      const int fd = open(std::to_string(i).c_str(), O_WRONLY | O_CREAT, 0600);
      for (int k = 0; k < 15; ++k) {
        if (write(fd, block.data(), block.size()) <= 0) break;
      }
      close(fd);
    }
    Hang();
  });
  Add(acts, "many_files", [](CompileObserver& observer) {
    for (int i = 0; i < 200; ++i) close(open(std::to_string(i).c_str(), O_WRONLY | O_CREAT, 0600));
    observer.OnStage("made", 0.7);
    Hang();
  });
  Add(acts, "folder", [](CompileObserver&) {
    if (mkdir("sub", 0700) != 0) abort();
    Hang();
  });
}

// Processes left behind.
void AddStrays(ActMap& acts) {
  Add(acts, "stray", [](CompileObserver& observer) { LeaveStray(observer, false); });
  Add(acts, "stray_session", [](CompileObserver& observer) { LeaveStray(observer, true); });
  Add(acts, "stray_segv", [](CompileObserver& observer) {
    LeaveStray(observer, true);
    raise(SIGSEGV);
  });
  Add(acts, "stray_hang", [](CompileObserver& observer) {
    LeaveStray(observer, true);
    observer.OnStage("left", 0.7);
    Hang();
  });
  Add(acts, "surroundings", TellSurroundings);
}

// Words that a taken-over worker could say.
void AddLies(ActMap& acts) {
  Add(acts, "nonsense", [](CompileObserver&) {
    Inject(std::string(1000, '\xee'));
    Hang();
  });
  Add(acts, "huge_frame", [](CompileObserver&) {
    Inject(std::string("\xff\xff\xff\x7f\x12", 5));
    Hang();
  });
  Add(acts, "event_after_result", [](CompileObserver& observer) {
    InjectResult();
    observer.OnLog("more");
    Hang();
  });
  Add(acts, "outside_artifact", [](CompileObserver&) {
    InjectArtifact("../secret", 1);
    Hang();
  });
  Add(acts, "missing_artifact", [](CompileObserver&) {
    InjectArtifact("model.h", 1);
    InjectResult();
    _exit(0);
  });
  Add(acts, "symlink_artifact", [](CompileObserver&) {
    if (symlink("/etc/hostname", "model.h") != 0) abort();
    InjectArtifact("model.h", 1);
    InjectResult();
    _exit(0);
  });
  Add(acts, "fifo_artifact", [](CompileObserver&) {
    if (mkfifo("model.h", 0600) != 0) abort();
    InjectArtifact("model.h", 0);
    InjectResult();
    _exit(0);
  });
  Add(acts, "twice_artifact", [](CompileObserver&) {
    close(open("model.h", O_WRONLY | O_CREAT, 0600));
    InjectArtifact("model.h", 0);
    InjectArtifact("model.h", 0);
    InjectResult();
    _exit(0);
  });
  Add(acts, "early_lie", [](CompileObserver&) {
    close(open("model.h", O_WRONLY | O_CREAT, 0600));
    InjectArtifact("model.h", 5);
    Ring();
    const int fd = open("model.h", O_WRONLY, 0600);
    if (write(fd, "later", 5) != 5) abort();
    InjectArtifact("model.h", 5);
    Ring();
    InjectResult();
    _exit(0);
  });
  Add(acts, "ring", [](CompileObserver&) {
    while (true) Ring();
  });
  Add(acts, "grown_artifact", [](CompileObserver&) {
    const int fd = open("model.h", O_WRONLY | O_CREAT, 0600);
    if (write(fd, "xx", 2) != 2) abort();
    InjectArtifact("model.h", 1);
    InjectResult();
    _exit(0);
  });
}

// By the first word of the config.
ActMap Acts() {
  ActMap acts;
  AddResults(acts);
  AddCrashes(acts);
  AddHangs(acts);
  AddOutput(acts);
  AddStrays(acts);
  AddLies(acts);
  return acts;
}

absl::StatusOr<ParsedConfig> ParseAct(absl::string_view text, absl::string_view name,
                                      Diagnostics& diagnostics) {
  if (text == "bad config") {
    diagnostics.Add({DiagnosticKind::kInternalError, "cannot read", std::string(name), 1, 2});
    return diagnostics.ToStatus();
  }
  ParsedConfig config;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  // The act and, for attacks, what they are to know.
  config.options.model_info = absl::StrCat(words[0], " ", name);
  config.options.output_file = "model.h";
  config.files.push_back({"MODEL_FILE", "model.pb", 1});
  for (size_t i = 1; i < words.size(); ++i) {
    config.files.push_back({std::string(words[i]), "side", 2});
  }
  return config;
}

// words: attack, canary, daemon, zygote, "deadly" or "safe".
absl::Status MakeAttack(const Attack& attack, const std::vector<std::string>& words,
                        CompileObserver& observer) {
  AttackFacts facts;
  if (words.size() != 5 || !absl::SimpleAtoi(words[2], &facts.daemon) ||
      !absl::SimpleAtoi(words[3], &facts.zygote)) {
    return absl::InvalidArgumentError("an attack needs facts");
  }
  facts.canary = words[1];
  facts.deadly = words[4] == "deadly";
  observer.OnStage("attack", 0.5);
  if (attack(facts)) {
    observer.OnLog("escaped");
  } else {
    observer.OnLog(absl::StrCat("refused ", errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<CompileResult> CompileAct(const CompileRequest& request, CompileObserver& observer,
                                         Diagnostics& diagnostics) {
  static const ActMap* acts = new ActMap(Acts());
  const std::vector<std::string> words = absl::StrSplit(request.options.model_info, ' ');
  const auto attack = AllAttacks().find(words[0]);
  if (attack != AllAttacks().end()) {
    RETURN_IF_ERROR(MakeAttack(attack->second, words, observer));
    RETURN_IF_ERROR(CompileWell(request, observer, diagnostics));
    return CompileResult();
  }
  const auto act = acts->find(words[0]);
  if (act == acts->end()) return absl::UnimplementedError("no such act");
  RETURN_IF_ERROR(act->second(request, observer, diagnostics));
  return CompileResult();
}

}  // namespace
}  // namespace npuc::worker

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "never_ready") {
    while (true) pause();
  }
  // Bits of Mechanism to leave out.
  npuc::worker::ZygoteOptions options;
  if (argc > 2 && std::string(argv[1]) == "without" &&
      !absl::SimpleAtoi(argv[2], &options.without)) {
    return 2;
  }
  return npuc::worker::RunZygote({npuc::worker::ParseAct, npuc::worker::CompileAct}, options);
}
