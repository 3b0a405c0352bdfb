#include "compiler_core/frontends/mxnet/import.h"

#include <memory>

#include "compiler_core/frontends/common/run_import.h"
#include "compiler_core/frontends/common/sniff.h"
#include "compiler_core/frontends/mxnet/importer.h"

namespace npuc {

absl::StatusOr<Graph> ImportMxNet(absl::string_view symbol, absl::string_view params_name,
                                  const ByteSource* params, const CompileOptions& options,
                                  Diagnostics& diagnostics, const frontend::Plugins& plugins) {
  return frontend::RunImport("MXNet", options, diagnostics, [&](Graph* graph, Diagnostics* found) {
    const std::unique_ptr<mxnet::Symbol> parsed =
        mxnet::Symbol::Parse(symbol, options.model_name, *found);
    if (params == nullptr) {
      RefuseFile(DiagnosticKind::kMxNetParams, options.model_name,
                 "the model's parameters are missing: a symbol holds none",
                 "name the .params file that was saved with it as WEIGHTS_FILE", *found);
      return;
    }
    const std::unique_ptr<mxnet::ParamsFile> weights =
        mxnet::ParamsFile::Parse(*params, params_name, *found);
    if (parsed == nullptr || weights == nullptr) return;
    mxnet::Importer(*parsed, *weights, params_name, options, plugins, graph, found).Run();
  });
}

std::vector<std::string> ImportedMxNetOps() { return mxnet::AllRules().Ops(); }

}  // namespace npuc
