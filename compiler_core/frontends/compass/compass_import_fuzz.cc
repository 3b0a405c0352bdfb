// Any bytes as a Compass IR: the text up to the first NUL, the .bin behind it. Diagnostics, or a
// graph that is sound and whose scales can be kept.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/compass/import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = all.find('\0');
  const npuc::ViewSource bin(end == absl::string_view::npos ? absl::string_view()
                                                            : all.substr(end + 1));
  npuc::Diagnostics outlined;
  (void)npuc::OutlineCompass(all.substr(0, end), "fuzz.txt", outlined);
  npuc::Diagnostics diagnostics;
  npuc::CompileOptions options;
  options.model_name = "fuzz.txt";
  const absl::StatusOr<npuc::Graph> graph =
      npuc::ImportCompass(all.substr(0, end), bin, options, diagnostics);
  NPUC_CHECK(graph.ok() != diagnostics.has_errors());
  if (!graph.ok() && absl::IsInternal(graph.status())) __builtin_trap();
  return 0;
}
