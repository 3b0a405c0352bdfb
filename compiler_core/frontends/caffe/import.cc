#include "compiler_core/frontends/caffe/import.h"

#include <memory>

#include "compiler_core/frontends/caffe/importer.h"
#include "compiler_core/frontends/common/run_import.h"

namespace npuc {

absl::StatusOr<Graph> ImportCaffe(const caffe::CaffeFiles& files, const CompileOptions& options,
                                  Diagnostics& diagnostics, const frontend::Plugins& plugins,
                                  std::optional<BoxSettings>* boxes) {
  return frontend::RunImport("Caffe", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    const std::unique_ptr<caffe::Net> net = caffe::Net::Parse(files, *found);
    if (net != nullptr) caffe::Importer(*net, options, plugins, graph, found).Run(boxes);
  });
}

std::vector<std::string> ImportedCaffeLayers() { return caffe::AllRules().Ops(); }

}  // namespace npuc
