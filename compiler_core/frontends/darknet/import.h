#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a Darknet net, a .cfg and its .weights, and imports what options.outputs need, cut at
// options.inputs. The input is 'input', a layer's result TYPE_NUMBER, 'convolutional_0'. Without
// options.outputs the outputs are what layers that decode boxes read, and the last layer's. Images
// are [batch, channels, height, width]. The result has been through VerifyGraph. Every problem goes
// to `diagnostics`, with options.model_name as file; the status is that of the first error.
// `weights`: null where there is no such file; read during the call only. `boxes`, where it is not
// null, gets the settings of the layers that decode boxes. Thread-safe.
absl::StatusOr<Graph> ImportDarknet(absl::string_view cfg, const ByteSource* weights,
                                    const CompileOptions& options, Diagnostics& diagnostics,
                                    std::optional<BoxSettings>* boxes = nullptr);

// The sections that ImportDarknet has a rule for, sorted. Whether a rule succeeds also depends on
// the layer.
std::vector<std::string> ImportedDarknetLayers();

// Reads what the .cfg states; no layer is imported. Errors go to `diagnostics`, `file` names the
// .cfg there. Thread-safe.
absl::StatusOr<ModelOutline> OutlineDarknet(absl::string_view cfg, absl::string_view file,
                                            Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_IMPORT_H_
