#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/onnx/graph_import.h"
#include "compiler_core/frontends/onnx/model_file.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::onnx {

// One import of a parsed file: its inputs and outputs around the import of its main graph. Used
// once.
class Importer {
 public:
  Importer(const ModelFile& file, const CompileOptions& options, ExternalFile external,
           const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  using Endpoints = frontend::Endpoints;

  void AddError(DiagnosticKind kind, NodeSource source, std::string message, std::string fix);
  void ResolveInputs();
  void ResolveOutputs();
  std::string Suggestion(absl::string_view name, absl::string_view otherwise) const;
  // Makes a graph input of a tensor; `info` is what the file states of it, or null. Null: reported.
  ValueRef NewInput(const std::string& name, const TensorInfo* info, const Shape* declared);
  // The dimensions that the file states of an input, those that DIMS names filled in.
  std::optional<std::vector<int64_t>> DimsOf(const TensorInfo* info);
  void ReportOpenShape(const std::string& name, const TensorInfo* info,
                       const std::optional<std::vector<int64_t>>& dims);
  void AddConstInputs();
  void ReportUnusedDims();
  void NoteOneItem(const std::string& name, const std::vector<int64_t>& stated);
  bool InputType(const std::string& name, const TensorInfo* info, const Shape* declared,
                 TensorType* type);
  void AddNeededInputs();
  // Finds the nodes that declared operators stand in the place of.
  void MatchSubgraphs();
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  void AddOutputs();
  void ReportUnusedInputs();

  const ModelFile& file_;
  const GraphView& main_;
  const CompileOptions& options_;
  ImportState state_;
  Endpoints endpoints_;
  frontend::Subgraphs subgraphs_;
  FileImport shared_;
  GraphImport graph_;
  std::vector<std::string> cuts_;     // those of INPUT_OPS
  std::set<std::string> dims_taken_;  // those of DIMS
  std::vector<Endpoints::Output> outputs_;
  std::vector<int> order_;
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_
