#include "compiler_core/pipeline/import.h"

#include <cstddef>
#include <iterator>

#include "compiler_core/base/status.h"
#include "compiler_core/config/config.h"
#include "compiler_core/frontends/common/preprocess.h"

namespace npuc {
namespace {

constexpr const FrontEnd* kFrontEnds[] = {
#define NPUC_FRONT_END(constant, ...) &k##constant##FrontEnd,
#define NPUC_FORMAT_NOT_READ(...)
#include "compiler_core/base/frameworks.inc"
};

}  // namespace

const FrontEnd& FrontEndOf(Framework framework) {
  const auto row = static_cast<size_t>(framework);
  NPUC_CHECK(row < std::size(kFrontEnds));
  return *kFrontEnds[row];
}

std::optional<Framework> SniffFramework(absl::string_view bytes) {
  // From the last row to the first: a GraphDef has no mark, so the others are asked before it.
  for (size_t row = std::size(kFrontEnds); row-- > 0;) {
    if (kFrontEnds[row]->sniff(bytes)) return static_cast<Framework>(row);
  }
  return std::nullopt;
}

absl::StatusOr<Graph> ImportModel(const CompileRequest& request, Diagnostics& diagnostics) {
  ModelFiles files{.model = request.model_bytes};
  const auto data =
      request.side_inputs.find(std::string(InfoOf(request.options.framework).data_key));
  if (data != request.side_inputs.end()) {
    const std::string& path = data->second.name;
    files.data_name = path.substr(path.rfind('/') + 1);
    files.data = data->second.bytes.get();
  }
  absl::StatusOr<Graph> graph =
      FrontEndOf(request.options.framework).import(files, request.options, diagnostics);
  if (!graph.ok() || request.options.preprocess.empty()) return graph;
  return frontend::Preprocessed(*graph, request.options, diagnostics);
}

}  // namespace npuc
