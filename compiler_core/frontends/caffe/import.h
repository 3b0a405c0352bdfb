#ifndef NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/caffe/net.h"
#include "compiler_core/frontends/common/outline.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc {

// Reads a Caffe model and imports the layers that options.outputs need (empty: every top without a
// reader), cut at options.inputs, which name blobs. The net is the one at inference.
// An input without an entry in options.inputs is as the net states it. Channels-first layers become
// channels-last operators between transposes. The result has been through VerifyGraph. Every
// problem goes to `diagnostics`; the status is that of the first error. Files are read during the
// call only. `boxes`, where it is not null, gets the settings of a layer that decodes boxes, which
// is left out. Thread-safe.
absl::StatusOr<Graph> ImportCaffe(const caffe::CaffeFiles& files, const CompileOptions& options,
                                  Diagnostics& diagnostics, const frontend::Plugins& plugins = {},
                                  std::optional<BoxSettings>* boxes = nullptr);

// The layer types that ImportCaffe has a rule for, sorted. Whether a rule succeeds also depends on
// the layer.
std::vector<std::string> ImportedCaffeLayers();

// Reads what the files state of the net; no layer is imported. Errors go to `diagnostics`.
// Thread-safe.
absl::StatusOr<ModelOutline> OutlineCaffe(const caffe::CaffeFiles& files, Diagnostics& diagnostics);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_FRONTENDS_CAFFE_IMPORT_H_
