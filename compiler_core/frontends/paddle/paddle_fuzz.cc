// Fuzzes the reader of programs, that of parameters and the importer: four bytes that say how long
// the program is, the program, and behind it the parameters.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/paddle/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t length = 0;
  if (size < sizeof(length)) return 0;
  std::memcpy(&length, data, sizeof(length));
  absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  bytes.remove_prefix(sizeof(length));
  const absl::string_view program = bytes.substr(0, std::min<size_t>(length, bytes.size()));
  const npuc::ViewSource parameters(bytes.substr(program.size()));
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.pdmodel";
  (void)npuc::OutlinePaddle(program, options.model_name, diagnostics);
  const absl::StatusOr<npuc::Graph> graph =
      npuc::ImportPaddle(program, &parameters, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
