#include "server/worker/sabotage.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace npuc::worker {
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

}  // namespace

Saboteur::Saboteur(CompileObserver& inner, absl::string_view output_file) : inner_(inner) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripSuffix(output_file, ".h"), "_at_");
  if (words.size() != 2) return;
  act_ = words[0];
  stage_ = absl::StrReplaceAll(words[1], {{"-", " "}});
}

void Saboteur::OnStage(absl::string_view stage, double fraction) {
  inner_.OnStage(stage, fraction);
  if (stage == stage_) Act(act_);
}

}  // namespace npuc::worker
