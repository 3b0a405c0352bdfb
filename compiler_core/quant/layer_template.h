#ifndef NPUC_COMPILER_CORE_QUANT_LAYER_TEMPLATE_H_
#define NPUC_COMPILER_CORE_QUANT_LAYER_TEMPLATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/quant/quantize.h"
#include "compiler_core/quant/settings.h"

namespace npuc {

// opt_template.json of integer cores: an object a layer, by the layer's name, in graph order, with
// Compass's keys. A quantizing run writes it; edited, it comes back through OPT_CONFIG, and changes
// the layers that it names alone. opt_template.schema.json describes it to editors.
//
// `fidelity` may be empty (no samples to compare on). Same input, same bytes.
std::string WriteLayerTemplate(const Graph& graph, const QuantPlan& plan,
                               absl::Span<const LayerSettings> settings,
                               absl::Span<const LayerFidelity> fidelity);

// Puts what a template says into `settings` (one a layer). Strict: unknown layers and keys, wrong
// types, values out of range, duplicates and contradictions are errors with line, column and the
// nearest known word, all at once; then `settings` are as they were. just_for_display is not looked
// at. `name` is the file's, for diagnostics.
absl::Status ReadLayerTemplate(absl::string_view text, absl::string_view name,
                               absl::Span<const Layer> layers, std::vector<LayerSettings>& settings,
                               Diagnostics& diagnostics);

// The keys of a layer, in the order that they are written in.
std::vector<absl::string_view> LayerTemplateKeys();

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_LAYER_TEMPLATE_H_
