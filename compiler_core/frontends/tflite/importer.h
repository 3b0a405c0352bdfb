#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/tflite/model_file.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "compiler_core/frontends/tflite/subgraph_import.h"
#include "compiler_core/frontends/tflite/variables.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::tflite {

// One import of a parsed file: its inputs and outputs around the import of its main graph. Used
// once.
class Importer {
 public:
  Importer(const ModelFile& file, const CompileOptions& options, const frontend::Plugins& plugins,
           Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards. `boxes`: null, or it
  // gets the settings of an operator that decodes boxes.
  void Run(std::optional<BoxSettings>* boxes);

 private:
  struct Output {
    std::string name;
    int tensor = -1;
    bool fp16 = false;
  };

  void ResolveInputs();
  void ResolveOutputs();
  void NoteDecoding(const OperatorView& decoder);
  std::string Suggestion(absl::string_view name) const;
  void AddInput(int tensor, const Shape& shape);
  void AddConstInput(const ConstInput& input);
  void MarkNeeded();
  // Finds the operators that declared ones stand in the place of.
  void MatchSubgraphs();
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  void AddOutputs();
  void ReportUnusedInputs();

  const ModelFile& file_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  Variables variables_;
  frontend::Subgraphs subgraphs_;
  FileImport shared_;
  SubgraphImport graph_;
  std::map<int, bool> cuts_;  // INPUT_OPS by tensor: whether an output depends on it
  bool shapes_are_the_files_ = true;
  std::vector<Output> outputs_;
  std::optional<BoxSettings> boxes_;
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_
