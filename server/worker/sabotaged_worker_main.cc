// A warm parent with the real compiler, for stage_test: where the config's name is "ACT@STAGE",
// that happens when the compile enters the stage.
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/pipeline/config.h"
#include "server/worker/zygote.h"

namespace npuc {
namespace {

void Act(absl::string_view act) {
  if (act == "segv") raise(SIGSEGV);
  if (act == "abort") abort();
  if (act == "exit") _exit(9);
  if (act == "throw") throw std::runtime_error("sabotage");
  if (act == "fork") fork();
  while (act == "hang") {
    uint32_t word = 0;
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  }
  std::vector<std::string> all;
  while (act == "memory") all.emplace_back(1 << 20, 'x');
}

class Saboteur : public CompileObserver {
 public:
  Saboteur(CompileObserver& inner, absl::string_view plan) : inner_(inner), plan_(plan) {}
  void OnLog(absl::string_view line) override { inner_.OnLog(line); }
  void OnStage(absl::string_view stage, double fraction) override {
    inner_.OnStage(stage, fraction);
    const std::vector<absl::string_view> words = absl::StrSplit(plan_, '@');
    if (words.size() == 2 && words[1] == stage) Act(words[0]);
  }
  bool IsCancelled() override { return inner_.IsCancelled(); }

 private:
  CompileObserver& inner_;
  const absl::string_view plan_;
};

int Main() {
  std::string plan;  // one compile a process
  return RunZygote(
      {[&](absl::string_view text, absl::string_view name, Diagnostics& diagnostics) {
         plan = std::string(name);
         return ParseConfig(text, name, diagnostics);
       },
       [&](const CompileRequest& request, CompileObserver& observer, Diagnostics& diagnostics) {
         Saboteur saboteur(observer, plan);
         return Compile(request, saboteur, diagnostics);
       }});
}

}  // namespace
}  // namespace npuc

int main() { return npuc::Main(); }
