#include "compiler_core/pipeline/import.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/config/config.h"
#include "compiler_core/config/config_keys.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/preprocess.h"

namespace npuc {
namespace {

constexpr const FrontEnd* kFrontEnds[] = {
#define NPUC_FRONT_END(constant, ...) &k##constant##FrontEnd,
#include "compiler_core/base/frameworks.inc"
};

// The operators that the files of PLUGINS declare for the model's framework.
absl::StatusOr<frontend::Plugins> ReadPlugins(const CompileRequest& request,
                                              Diagnostics& diagnostics) {
  const FrontEnd& front_end = FrontEndOf(request.options.framework);
  const absl::string_view framework = FrameworkName(request.options.framework);
  std::vector<std::shared_ptr<const frontend::PluginOp>> ops;
  Diagnostics found;
  for (size_t i = 0; i < kMaxPaths; ++i) {
    const auto input = request.side_inputs.find(PluginsRole(i));
    if (input == request.side_inputs.end()) break;
    ASSIGN_OR_RETURN(const std::string text,
                     ReadAll(*input->second.bytes, static_cast<int64_t>(kMaxYamlBytes)));
    (void)frontend::ReadPluginFile(text, input->second.name, ops, found, request.native_operators);
    if (front_end.has_plugins) continue;
    found.Add({.kind = DiagnosticKind::kConfigNotForTarget,
               .message = absl::StrCat("models of ", framework,
                                       " have no operators that PLUGINS could declare"),
               .file = input->second.name,
               .fix = "remove PLUGINS, or export the model as ONNX"});
    break;
  }
  frontend::Plugins plugins;
  if (!found.has_errors() && !ops.empty()) {
    plugins = frontend::Plugins::For(framework, std::move(ops), front_end.operators(), found);
  }
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  return plugins;
}

// Says so where resize_degrade_to_nearest met no interpolation.
void NoteNoResize(const CompileOptions& options, Diagnostics& diagnostics) {
  const bool is_asked = options.quant.has_value() && options.quant->resize_degrade_to_nearest;
  const bool is_done =
      std::any_of(diagnostics.list().begin(), diagnostics.list().end(),
                  [](const Diagnostic& d) { return d.kind == DiagnosticKind::kResizeDegraded; });
  if (!is_asked || is_done) return;
  diagnostics.Add({.kind = DiagnosticKind::kConfigNoEffect,
                   .message = "resize_degrade_to_nearest in QUANT changes nothing: neither the "
                              "model nor PREPROCESS interpolates an image",
                   .file = options.model_name,
                   .fix = "remove the line"});
}

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

void SetDataFile(const std::map<std::string, CompileRequest::SideInput>& side_inputs,
                 Framework framework, ModelFiles& files) {
  const auto data = side_inputs.find(std::string(InfoOf(framework).data_key));
  if (data == side_inputs.end()) return;
  const std::string& path = data->second.name;
  files.data_name = path.substr(path.rfind('/') + 1);
  files.data = data->second.bytes.get();
}

absl::StatusOr<Graph> ImportModel(const CompileRequest& request, Diagnostics& diagnostics,
                                  std::optional<BoxSettings>* boxes) {
  ModelFiles files{.model = request.model_bytes, .boxes = boxes};
  ASSIGN_OR_RETURN(files.plugins, ReadPlugins(request, diagnostics));
  SetDataFile(request.side_inputs, request.options.framework, files);
  absl::StatusOr<Graph> graph =
      FrontEndOf(request.options.framework).import(files, request.options, diagnostics);
  if (graph.ok() && !request.options.preprocess.empty()) {
    graph = frontend::Preprocessed(*graph, request.options, diagnostics);
  }
  if (graph.ok()) NoteNoResize(request.options, diagnostics);
  return graph;
}

}  // namespace npuc
