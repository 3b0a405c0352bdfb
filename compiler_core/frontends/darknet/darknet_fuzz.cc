// Fuzzes the Darknet reader and importer: the bytes are a .cfg, and behind a zero byte the
// .weights.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/darknet/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(bytes.find('\0'), size);
  const npuc::ViewSource weights(bytes.substr(std::min(end + 1, size)));
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.cfg";
  (void)npuc::OutlineDarknet(bytes.substr(0, end), options.model_name, diagnostics);
  const absl::StatusOr<npuc::Graph> graph =
      npuc::ImportDarknet(bytes.substr(0, end), &weights, options, diagnostics);
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
