#include "compiler_core/frontends/tflite/import.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/finish_import.h"
#include "compiler_core/frontends/tflite/importer.h"
#include "compiler_core/frontends/tflite/model_file.h"

namespace npuc {

absl::StatusOr<Graph> ImportTfLite(absl::string_view model_bytes, const CompileOptions& options,
                                   Diagnostics& diagnostics) {
  Diagnostics found;
  Graph graph;
  graph.set_name(options.model_name);
  const std::unique_ptr<tflite::ModelFile> file =
      tflite::ModelFile::Parse(model_bytes, options.model_name, found);
  if (file != nullptr) {
    tflite::Importer importer(*file, options, &graph, &found);
    importer.Run();
  }
  return frontend::FinishImport(std::move(graph), "TFLite", std::move(found), diagnostics);
}

std::vector<std::string> ImportedTfLiteOps() {
  std::vector<std::string> names;
  for (const auto& [op, import] : tflite::AllRules()) names.emplace_back(op);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace npuc
