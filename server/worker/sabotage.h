#ifndef NPUC_SERVER_WORKER_SABOTAGE_H_
#define NPUC_SERVER_WORKER_SABOTAGE_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "compiler_core/pipeline/compile.h"

namespace npuc::worker {

// Makes a compile fail, for tests: passes all on to `inner`, and where output_file is
// "ACT_at_STAGE.h", with - for the blanks of STAGE, does ACT when the compile enters STAGE. Acts:
// segv, abort, exit (with 9), throw, fork, hang, memory (takes all that there is). Any other
// output_file does nothing.
class Saboteur : public CompileObserver {
 public:
  Saboteur(CompileObserver& inner, absl::string_view output_file);

  void OnLog(absl::string_view line) override { inner_.OnLog(line); }
  void OnStage(absl::string_view stage, double fraction) override;
  void OnArtifact(Artifact artifact) override { inner_.OnArtifact(std::move(artifact)); }
  bool IsCancelled() override { return inner_.IsCancelled(); }

 private:
  CompileObserver& inner_;
  std::string act_;
  std::string stage_;
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_SABOTAGE_H_
