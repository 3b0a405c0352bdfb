// Any text that parses prints to a text that parses and prints the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "compiler_core/ir/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  npuc::ParseOptions options;
  options.max_constant_bytes = 1 << 20;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<npuc::Graph> graph = npuc::ParseGraph(text, options);
  if (!graph.ok()) return 0;
  const std::string printed = npuc::PrintGraph(*graph);
  const absl::StatusOr<npuc::Graph> again = npuc::ParseGraph(printed, options);
  NPUC_CHECK(again.ok());
  NPUC_CHECK(npuc::PrintGraph(*again) == printed);
  return 0;
}
