#include "compiler_core/frontends/common/front_end.h"

#include "compiler_core/frontends/common/saved_model_sniff.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/tensorflow/import.h"

namespace npuc {
namespace {

// A GraphDef has no mark: it is protobuf with nodes that nothing else claims.
bool IsTensorFlow(absl::string_view bytes) {
  constexpr int kNodes = 1;
  if (IsSavedModel(bytes)) return true;
  if (!GuessFileKind(bytes).what.empty()) return false;
  const WireOutline wire = OutlineWire(bytes);
  return wire.well_formed && wire.length_delimited[kNodes] > 0;
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportTensorFlow(files.model, options, diagnostics, files.plugins);
}

}  // namespace

const FrontEnd kTensorFlowFrontEnd = {.sniff = IsTensorFlow,
                                      .import = Import,
                                      .outline = OutlineOfModel<OutlineTensorFlow>,
                                      .operators = ImportedTensorFlowOps,
                                      .has_plugins = true};

}  // namespace npuc
