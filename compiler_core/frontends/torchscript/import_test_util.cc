#include "compiler_core/frontends/torchscript/import_test_util.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/frontends/torchscript/archive_test_util.h"
#include "compiler_core/frontends/torchscript/import.h"
#include "compiler_core/ops/op.h"

namespace npuc::pt {

std::string ImportResult::Text() const {
  std::string text;
  for (const Diagnostic& d : diagnostics.list()) absl::StrAppend(&text, d.ToString(), "\n");
  return text;
}

bool ImportResult::Has(DiagnosticKind kind) const {
  for (const Diagnostic& d : diagnostics.list()) {
    if (d.kind == kind) return true;
  }
  return false;
}

std::vector<float> ImportResult::Run(size_t index) const {
  if (!graph.ok()) return {};
  std::vector<Tensor> inputs;
  for (const ValueId id : graph->inputs()) {
    std::vector<float> values(static_cast<size_t>(graph->type(id).element_count()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f - 1.0f;
    inputs.push_back(Tensor::FromFloats(graph->type(id).shape, values));
  }
  const absl::StatusOr<std::vector<Tensor>> results = RunReference(*graph, inputs);
  if (!results.ok() || index >= results->size()) return {};
  return (*results)[index].ToFloats();
}

ImportResult ImportCode(const std::string& source, const std::vector<std::vector<int64_t>>& shapes,
                        const CompileOptions& base, absl::string_view plugins) {
  PickleBuilder data;
  data.BeginObject("Net").String("w").Tensor("Float", "0", 6, 0, {2, 3}, {1, 2});
  data.String("n").Int(3).String("training").Raw("\x89").String("sizes").Raw("](");
  data.Int(2).Int(3).Raw("e").EndObject();
  ZipBuilder zip;
  zip.Stored("net/data.pkl", data.Bytes());
  zip.Stored("net/code/__torch__.py", source);
  zip.Stored("net/constants.pkl", NoConstants()).Stored("net/version", "3\n");
  zip.Stored("net/data/0", Floats(6));
  CompileOptions options = base;
  options.framework = Framework::kTorchScript;
  options.model_name = "net.pt";
  options.core = "GRUS";
  for (size_t i = 0; i < shapes.size(); ++i) options.inputs.push_back({absl::StrCat(i), shapes[i]});
  Diagnostics diagnostics;
  std::vector<std::shared_ptr<const frontend::PluginOp>> ops;
  if (!plugins.empty() && !frontend::ReadPluginFile(plugins, "ops.yaml", ops, diagnostics)) {
    return {diagnostics.ToStatus(), std::move(diagnostics)};
  }
  const auto declared =
      frontend::Plugins::For("PT", std::move(ops), ImportedTorchOps(), diagnostics);
  absl::StatusOr<Graph> graph = ImportTorchScript(zip.Bytes(), options, diagnostics, declared);
  return {std::move(graph), std::move(diagnostics)};
}

ImportResult ImportForward(const std::string& parameters, const std::string& body,
                           const std::vector<std::vector<int64_t>>& shapes,
                           const CompileOptions& base, absl::string_view plugins) {
  std::string source = absl::StrCat("class Net(Module):\n  w : Tensor\n  def forward(self",
                                    parameters.empty() ? "" : ", ", parameters, ") -> Tensor:\n");
  for (const absl::string_view line : absl::StrSplit(body, '\n')) {
    absl::StrAppend(&source, "    ", line, "\n");
  }
  return ImportCode(source, shapes, base, plugins);
}

}  // namespace npuc::pt
