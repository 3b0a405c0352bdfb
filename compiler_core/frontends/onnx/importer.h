#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/onnx/model_file.h"
#include "compiler_core/frontends/onnx/node_import.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::onnx {

frontend::RuleTable<ImportRule> AllRules();

// One import of a parsed file: finds the sub-graph that the outputs need, orders it, and runs the
// rule of each node once. A node that fails is reported once; what depends on it is skipped. Used
// once.
class Importer {
 public:
  Importer(const ModelFile& file, const CompileOptions& options, Graph* graph,
           Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  enum class Visit : uint8_t { kUnseen, kActive, kOrdered };
  using Endpoints = frontend::Endpoints;

  void AddError(DiagnosticKind kind, int node, std::string message, std::string fix);
  void ResolveInputs();
  void ResolveOutputs();
  bool Exists(absl::string_view name) const;
  std::string Suggestion(absl::string_view name, absl::string_view otherwise) const;
  // Makes a graph input of a tensor; `info` is what the file states of it, or null.
  void AddInput(const std::string& name, const TensorInfo* info, const Shape* declared);
  void NoteOneItem(const std::string& name, const std::vector<int64_t>& stated);
  bool InputType(const std::string& name, const TensorInfo* info, const Shape* declared,
                 TensorType* type);
  // Appends to order_ every node that the tensor needs, producers first.
  void OrderFrom(absl::string_view tensor);
  void ReportCycle(const std::vector<frontend::OrderingStep>& stack, int node);
  void AddNeededInputs();
  void ImportNode(int node);
  void ReportNoRule(int node);
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  // The value of a tensor; null where its producer failed (then it has been reported).
  ValueRef ValueOf(absl::string_view name, int consumer);
  ValueRef InitializerValue(absl::string_view name, const fe::onnx::TensorProto& tensor,
                            int consumer);
  void AddOutputs();
  void ReportUnusedInputs();

  const ModelFile& file_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  absl::flat_hash_map<std::string, ValueRef> values_;  // null: it failed
  absl::flat_hash_map<std::string, bool> cuts_;        // INPUT_OPS by name: whether it is used
  std::vector<Endpoints::Output> outputs_;
  std::vector<Visit> visits_;
  std::vector<int> order_;
  std::vector<bool> is_needed_;  // by input of the file
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_IMPORTER_H_
