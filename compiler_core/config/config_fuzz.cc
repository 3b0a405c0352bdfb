// Any bytes as a config: ParseConfig must answer with a config or with diagnostics, never crash,
// and two readings of the same bytes must give the same options.
#include <cstdint>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  npuc::Diagnostics diagnostics;
  const absl::StatusOr<npuc::ParsedConfig> config =
      npuc::ParseConfig(text, "fuzz.yaml", diagnostics);
  NPUC_CHECK(config.ok() != diagnostics.has_errors());
  for (const npuc::Diagnostic& diagnostic : diagnostics.list()) {
    NPUC_CHECK(!diagnostic.message.empty() && !diagnostic.fix.empty());
    NPUC_CHECK(!diagnostic.ToString().empty());
  }
  if (!config.ok()) return 0;
  npuc::Diagnostics again;
  const absl::StatusOr<npuc::ParsedConfig> second = npuc::ParseConfig(text, "fuzz.yaml", again);
  NPUC_CHECK(second.ok());
  NPUC_CHECK(npuc::CanonicalOptions(config->options) == npuc::CanonicalOptions(second->options));
  NPUC_CHECK(!config->files.empty() && !config->options.output_file.empty());
  return 0;
}
