// Any bytes as a symbol of MXNet, up to the first NUL, and its .params behind it. Diagnostics, or a
// graph that is sound.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/mxnet/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const npuc::ViewSource params(end == absl::string_view::npos ? absl::string_view()
                                                               : all.substr(end + 1));
  npuc::Diagnostics outlined;
  (void)npuc::OutlineMxNet(all.substr(0, end), "fuzz-symbol.json", outlined);
  npuc::CompileOptions options;
  options.model_name = "fuzz-symbol.json";
  options.inputs = {{"data", {1, 2, 8, 8}}};
  npuc::Diagnostics diagnostics;
  const absl::StatusOr<npuc::Graph> graph =
      npuc::ImportMxNet(all.substr(0, end), "fuzz.params", &params, options, diagnostics);
  NPUC_CHECK(graph.ok() != diagnostics.has_errors());
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
