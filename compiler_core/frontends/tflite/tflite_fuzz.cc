// Fuzzes the TFLite reader and the importer: the bytes are a model, compiled as its file states it.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tflite/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.tflite";
  (void)npuc::OutlineTfLite(bytes, options.model_name, diagnostics);
  const absl::StatusOr<npuc::Graph> graph = npuc::ImportTfLite(bytes, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
