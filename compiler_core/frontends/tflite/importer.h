#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/tflite/model_file.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "compiler_core/frontends/tflite/variables.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::tflite {

frontend::RuleTable<ImportRule> AllRules();

// One import of a parsed file: finds the operators that the outputs need and runs the rule of each
// once, in the file's order, which is that of execution. An operator that fails is reported once;
// what depends on it is skipped. Used once.
class Importer {
 public:
  Importer(const ModelFile& file, const CompileOptions& options, Graph* graph,
           Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  struct Output {
    std::string name;
    int tensor = -1;
    bool fp16 = false;
  };

  void AddError(DiagnosticKind kind, const OperatorView* op, std::string message, std::string fix);
  NodeSource SourceOf(const OperatorView& op) const;
  void ResolveInputs();
  void ResolveOutputs();
  std::string Suggestion(absl::string_view name) const;
  void AddInput(int tensor, const Shape& shape);
  // Marks what the outputs need, back to front.
  void MarkNeeded();
  void ImportOperator(const OperatorView& op);
  void ImportVariable(const OperatorView& op);
  void ReportNoRule(const OperatorView& op);
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  // Quantizes the results that the file stores as integers, and keeps them.
  absl::Status TakeResults(const OperatorView& op, NodeImporter& node);
  absl::Status CheckShapeOf(const OperatorView& op, NodeImporter& node, int result);
  // The value of an operand; null where its producer failed (then it has been reported).
  ValueRef ValueOf(int tensor, const OperatorView& consumer);
  ValueRef ConstantValue(int tensor);
  void AddOutputs();
  void ReportUnusedInputs();

  const ModelFile& file_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  Variables variables_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  std::map<int, ValueRef> values_;  // by tensor; null: it failed
  std::map<int, bool> cuts_;        // INPUT_OPS by tensor: whether an output depends on it
  bool shapes_are_the_files_ = true;
  std::vector<Output> outputs_;
  std::vector<bool> is_needed_;  // by operator
  std::vector<bool> is_wanted_;  // by tensor
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_IMPORTER_H_
