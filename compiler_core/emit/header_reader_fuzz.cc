// Any text as a C header, model file or raw file: diagnostics or a model, and a model that is
// written and read again is the same.
#include <cstddef>
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/emit/raw_file.h"
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
  if (npuc::IsRawFile(text)) {
    for (const auto write : {npuc::WriteRawFile, npuc::WriteRawJson}) {
      std::string raw;
      NPUC_CHECK(write(*model, npuc::AppendTo(raw)).ok());
      const absl::StatusOr<npuc::CompiledModel> again =
          npuc::ReadRawFile(raw, "fuzz.npu", diagnostics);
      NPUC_CHECK(again.ok() && npuc::ModelFileBytes(*again) == file);
    }
  }
  // Names of a header may collide once keywords are set apart; then writing is refused.
  (void)npuc::HeaderText(*model, diagnostics);
  return 0;
}
