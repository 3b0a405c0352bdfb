// Any text as a C header or model file: diagnostics or a model, and a model that is written and
// read again is the same.
#include <cstddef>
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/written_test_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  const absl::StatusOr<npuc::CompiledModel> model = npuc::ReadArtifact(text, "fuzz.h", diagnostics);
  NPUC_CHECK(model.ok() != diagnostics.has_errors());
  if (!model.ok()) return 0;
  const std::string file = npuc::ModelFileBytes(*model);
  const absl::StatusOr<npuc::CompiledModel> back =
      npuc::ReadModelFile(file, "fuzz.npuc", diagnostics);
  NPUC_CHECK(back.ok() && npuc::ModelFileBytes(*back) == file);
  // Names of a header may collide once keywords are set apart; then writing is refused.
  (void)npuc::HeaderText(*model, diagnostics);
  return 0;
}
