#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a Compass IR (NAME.txt in `text`, NAME.bin) and imports what options.outputs need (empty:
// the head's output_tensors), cut at options.inputs, whose names are those of tensors. A quantized
// IR becomes the QDQ form of ops/quantize.h with the IR's own scales, and its factors where they
// are not those that follow from the scales; graph inputs and outputs are float. The checker of
// ir/compass comes first. Every problem goes to `diagnostics`, with options.model_name as file and
// the line. text and bin are read during the call only. Thread-safe.
absl::StatusOr<Graph> ImportCompass(absl::string_view text, const ByteSource& bin,
                                    const CompileOptions& options, Diagnostics& diagnostics);

// The layer types that ImportCompass has a rule for, sorted.
std::vector<std::string> ImportedCompassLayers();

// Reads what the file states of itself; no operator is imported. Errors go to `diagnostics`, `file`
// names the model there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineCompass(absl::string_view text, absl::string_view file,
                                            Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMPASS_IMPORT_H_
