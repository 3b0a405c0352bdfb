// A warm parent with the real compiler, which fails where the config says so (sabotage.h).
#include "compiler_core/config/config.h"
#include "compiler_core/pipeline/compile.h"
#include "server/worker/sabotage.h"
#include "server/worker/zygote.h"

namespace npuc::worker {
namespace {

absl::StatusOr<CompileResult> SabotagedCompile(const CompileRequest& request,
                                               CompileObserver& observer,
                                               Diagnostics& diagnostics) {
  Saboteur saboteur(observer, request.options.output_file);
  return Compile(request, saboteur, diagnostics);
}

}  // namespace
}  // namespace npuc::worker

int main() {
  return npuc::worker::RunZygote({npuc::ParseConfig, npuc::worker::SabotagedCompile},
                                 {.build_id = npuc::CompilerBuildId()});
}
