// A warm parent for worker_pool_test: its "compiler" does what the config's text says.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/worker/protocol.h"
#include "server/worker/zygote.h"

namespace npuc {
namespace {

using Act = std::function<absl::Status(const CompileRequest&, CompileObserver&, Diagnostics&,
                                       CompileResult&)>;

[[noreturn]] void Hang() {
  while (true) pause();
}

// Sends bytes on the event channel as a worker that was taken over could.
void Inject(const std::string& bytes) { send(3, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

void InjectArtifact(const std::string& name, uint64_t size) {
  WorkerEvent event;
  event.type = WorkerEvent::Type::kArtifact;
  event.text = name;
  event.size_bytes = size;
  Inject(EncodeEvent(event));
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
                         Diagnostics& diagnostics, CompileResult& result) {
  observer.OnStage("import", 0);
  observer.OnLog(absl::StrCat("model of ", request.model_bytes.size(), " bytes, time ",
                              request.timestamp_seconds));
  observer.OnLog("escape \x1b[31m and \xff");
  observer.OnStage("emit", 0.5);
  observer.OnStage("back", 0.25);
  diagnostics.Add(
      {DiagnosticKind::kInternalError, "told only", "model.pb", 3, 4, "n", "Op", "l", "do it"});
  result.artifacts.push_back(
      {"model.h", std::string(request.model_bytes.rbegin(), request.model_bytes.rend())});
  for (const auto& [role, side] : request.side_inputs) {
    result.artifacts.push_back({absl::StrCat(role, ".txt"), side.name + "=" + side.bytes});
  }
  result.listings = {"ops", std::string(200000, 'm'), ""};
  return absl::OkStatus();
}

// By the first word of the config.
std::map<std::string, Act> Acts() {
  std::map<std::string, Act> acts;
  const auto add = [&](const std::string& name, std::function<void(CompileObserver&)> act) {
    acts[name] = [act](const CompileRequest&, CompileObserver& observer, Diagnostics&,
                       CompileResult&) {
      observer.OnStage("act", 0.5);
      act(observer);
      return absl::OkStatus();
    };
  };
  acts["ok"] = CompileWell;
  acts["fail"] = [](const CompileRequest&, CompileObserver&, Diagnostics& diagnostics,
                    CompileResult&) {
    diagnostics.Add({DiagnosticKind::kCompileCancelled, "one", "a.pb"});
    diagnostics.Add({DiagnosticKind::kInternalError, "two", "b.pb"});
    return diagnostics.ToStatus();
  };
  acts["big_artifact"] = [](const CompileRequest&, CompileObserver&, Diagnostics&,
                            CompileResult& result) {
    result.artifacts.push_back({"model.h", std::string(2 << 20, 'x')});
    return absl::OkStatus();
  };
  acts["bad_artifact_name"] = [](const CompileRequest&, CompileObserver&, Diagnostics&,
                                 CompileResult& result) {
    result.artifacts.push_back({"../model.h", "x"});
    return absl::OkStatus();
  };
  add("segv", [](CompileObserver&) { raise(SIGSEGV); });
  add("abort", [](CompileObserver&) {
    std::fprintf(stderr, "internal invariant broken: x > 0\n");
    abort();
  });
  add("throw", [](CompileObserver&) { throw std::runtime_error("thrown"); });
  add("exit", [](CompileObserver&) { _exit(7); });
  add("exit0", [](CompileObserver&) { _exit(0); });
  add("hang", [](CompileObserver&) { Hang(); });
  add("hang_deaf", [](CompileObserver& observer) {
    for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    observer.OnStage("deaf", 0.6);
    Hang();
  });
  add("hang_closed", [](CompileObserver& observer) {
    close(1);
    close(2);
    close(3);
    Hang();
  });
  add("spin", [](CompileObserver&) {
    volatile uint64_t n = 0;
    while (true) n = n + 1;
  });
  add("spin_deaf", [](CompileObserver&) {
    signal(SIGXCPU, SIG_IGN);
    volatile uint64_t n = 0;
    while (true) n = n + 1;
  });
  add("memory", [](CompileObserver&) {
    std::vector<std::string> all;
    while (true) all.emplace_back(1 << 20, 'x');
  });
  add("print", [](CompileObserver&) {
    std::printf("hello\nno newline \x1b[2J");
    std::fprintf(stderr, "to stderr\n");
  });
  add("print_flood", [](CompileObserver&) {
    for (int i = 0; i < 200000; ++i) std::printf("line %d\n", i);
  });
  add("log_flood", [](CompileObserver& observer) {
    for (int i = 0; i < 50000; ++i) observer.OnLog(absl::StrCat("line ", i));
    observer.OnLog(std::string(100000, 'x'));
  });
  add("write_big", [](CompileObserver&) {
    const int fd = open("big", O_WRONLY | O_CREAT, 0600);
    const std::string block(1 << 16, 'x');
    while (write(fd, block.data(), block.size()) > 0) {
    }
  });
  add("many_files", [](CompileObserver& observer) {
    for (int i = 0; i < 200; ++i) close(open(std::to_string(i).c_str(), O_WRONLY | O_CREAT, 0600));
    observer.OnStage("made", 0.7);
    Hang();
  });
  add("folder", [](CompileObserver&) {
    mkdir("sub", 0700);
    Hang();
  });
  add("stray", [](CompileObserver& observer) { LeaveStray(observer, false); });
  add("stray_session", [](CompileObserver& observer) { LeaveStray(observer, true); });
  add("stray_segv", [](CompileObserver& observer) {
    LeaveStray(observer, true);
    raise(SIGSEGV);
  });
  add("stray_hang", [](CompileObserver& observer) {
    LeaveStray(observer, true);
    observer.OnStage("left", 0.7);
    Hang();
  });
  add("thread_hang", [](CompileObserver& observer) {
    std::thread other([] { Hang(); });
    Hang();
  });
  add("surroundings", TellSurroundings);
  add("nonsense", [](CompileObserver&) {
    Inject(std::string(1000, '\xee'));
    Hang();
  });
  add("huge_frame", [](CompileObserver&) {
    Inject(std::string("\xff\xff\xff\x7f\x02", 5));
    Hang();
  });
  add("half_frame", [](CompileObserver&) {
    Inject(std::string("\x10\x00\x00\x00\x02xx", 7));
    _exit(0);
  });
  add("result_then_segv", [](CompileObserver&) {
    InjectResult();
    raise(SIGSEGV);
  });
  add("event_after_result", [](CompileObserver& observer) {
    InjectResult();
    observer.OnLog("more");
    Hang();
  });
  add("outside_artifact", [](CompileObserver&) {
    InjectArtifact("../secret", 1);
    Hang();
  });
  add("missing_artifact", [](CompileObserver&) {
    InjectArtifact("model.h", 1);
    InjectResult();
    _exit(0);
  });
  add("symlink_artifact", [](CompileObserver&) {
    if (symlink("/etc/hostname", "model.h") != 0) abort();
    struct stat info;
    if (stat("model.h", &info) != 0) abort();
    InjectArtifact("model.h", static_cast<uint64_t>(info.st_size));
    InjectResult();
    _exit(0);
  });
  add("fifo_artifact", [](CompileObserver&) {
    if (mkfifo("model.h", 0600) != 0) abort();
    InjectArtifact("model.h", 0);
    InjectResult();
    _exit(0);
  });
  add("twice_artifact", [](CompileObserver&) {
    close(open("model.h", O_WRONLY | O_CREAT, 0600));
    InjectArtifact("model.h", 0);
    InjectArtifact("model.h", 0);
    InjectResult();
    _exit(0);
  });
  add("grown_artifact", [](CompileObserver&) {
    const int fd = open("model.h", O_WRONLY | O_CREAT, 0600);
    if (write(fd, "xx", 2) != 2) abort();
    InjectArtifact("model.h", 1);
    InjectResult();
    _exit(0);
  });
  add("kill_parent", [](CompileObserver&) {
    kill(getppid(), SIGKILL);
    Hang();
  });
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
  config.options.model_info = std::string(words[0]);
  config.files.push_back({"MODEL_FILE", "model.pb", 1});
  for (size_t i = 1; i < words.size(); ++i) {
    config.files.push_back({std::string(words[i]), "side", 2});
  }
  return config;
}

absl::StatusOr<CompileResult> CompileAct(const CompileRequest& request, CompileObserver& observer,
                                         Diagnostics& diagnostics) {
  static const std::map<std::string, Act>* acts = new std::map<std::string, Act>(Acts());
  const auto act = acts->find(request.options.model_info);
  if (act == acts->end()) return absl::UnimplementedError("no such act");
  CompileResult result;
  const absl::Status status = act->second(request, observer, diagnostics, result);
  if (!status.ok()) return status;
  return result;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "never_ready") {
    while (true) pause();
  }
  return npuc::RunZygote({npuc::ParseAct, npuc::CompileAct});
}
