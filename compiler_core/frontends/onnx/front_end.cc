#include "compiler_core/frontends/common/front_end.h"

#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/onnx/import.h"

namespace npuc {
namespace {

// By the outermost fields of a ModelProto.
bool IsModelProto(absl::string_view bytes) {
  constexpr int kGraph = 7;
  constexpr int kOpsets = 8;
  if (IsMostlyText(bytes)) return false;
  const WireOutline wire = OutlineWire(bytes);
  return wire.well_formed && wire.length_delimited[kGraph] == 1 &&
         (wire.starts_with_varint_1 || wire.length_delimited[kOpsets] > 0);
}

absl::StatusOr<Graph> Import(const ModelFiles& files, const CompileOptions& options,
                             Diagnostics& diagnostics) {
  return ImportOnnx(files.model, options, diagnostics, {files.data_name, files.data},
                    files.plugins);
}

}  // namespace

const FrontEnd kOnnxFrontEnd = {.sniff = IsModelProto,
                                .import = Import,
                                .outline = OutlineOfModel<OutlineOnnx>,
                                .operators = ImportedOnnxOps,
                                .has_plugins = true};

}  // namespace npuc
