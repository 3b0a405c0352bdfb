// Fuzzes the reader of integer cores' templates against three layers.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/quant/layer_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<npuc::Layer> layers(3);
  layers[0].name = "input";
  layers[1].name = "conv/1";
  layers[1].type = "Convolution";
  layers[2].name = "dense";
  npuc::QuantPlan plan;
  plan.layers = layers;
  std::vector<npuc::LayerSettings> settings(3);
  npuc::Diagnostics diagnostics;
  const absl::Status status =
      npuc::ReadLayerTemplate(absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz",
                              layers, settings, diagnostics);
  if (status.ok() == diagnostics.has_errors()) __builtin_trap();
  if (!status.ok()) return 0;
  // What was read is written and read again: the same settings, the same bytes.
  const std::string written = npuc::WriteLayerTemplate({}, plan, settings, {});
  std::vector<npuc::LayerSettings> again(3);
  if (!npuc::ReadLayerTemplate(written, "again", layers, again, diagnostics).ok()) {
    __builtin_trap();
  }
  if (again != settings) __builtin_trap();
  if (npuc::WriteLayerTemplate({}, plan, again, {}) != written) __builtin_trap();
  return 0;
}
