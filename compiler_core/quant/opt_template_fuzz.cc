// Any bytes as a template: ReadOptTemplate must answer with settings or with diagnostics, never
// crash, and what it read must survive being written and read again.
#include <cstdint>

#include "compiler_core/base/status.h"
#include "compiler_core/quant/opt_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> known = {"a", "dense/kernel", "conv"};
  npuc::Diagnostics diagnostics;
  const absl::StatusOr<npuc::WeightSettings> settings =
      npuc::ReadOptTemplate(text, "fuzz.json", known, 8, diagnostics);
  NPUC_CHECK(settings.ok() != diagnostics.has_errors());
  for (const npuc::Diagnostic& diagnostic : diagnostics.list()) {
    NPUC_CHECK(!diagnostic.message.empty() && !diagnostic.fix.empty());
  }
  if (!settings.ok()) return 0;
  std::vector<npuc::TemplateWeight> weights;
  for (const auto& [name, setting] : *settings) {
    npuc::TemplateWeight weight;
    weight.name = name;
    weight.setting = setting;
    weights.push_back(weight);
  }
  npuc::Diagnostics again;
  const absl::StatusOr<npuc::WeightSettings> second =
      npuc::ReadOptTemplate(npuc::WriteOptTemplate(weights), "fuzz.json", known, 8, again);
  NPUC_CHECK(second.ok() && *second == *settings);
  return 0;
}
