#ifndef NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORTER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/paddle/op_import.h"
#include "compiler_core/frontends/paddle/parameters.h"
#include "compiler_core/frontends/paddle/program_file.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::paddle {

// The outputs of a program for one that cannot decode boxes: those that the file states, and in the
// place of what depends on operators that decode boxes the tensors that these read.
struct ProgramEnds {
  std::vector<std::string> outputs;
  std::vector<int> decoders;  // operators that are left out, of those that decode boxes
};
ProgramEnds EndsOf(const ProgramFile& program);

// One import of a program: its operators in the order of the file, where a name stands for what its
// latest operator made. An operator that fails is reported once; what depends on it is skipped.
// Used once.
class Importer {
 public:
  // `parameters`: the file of them, or null.
  Importer(const ProgramFile& program, const ByteSource* parameters, const CompileOptions& options,
           const frontend::Plugins& plugins, Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  bool Exists(absl::string_view name) const;
  std::string Suggestion(absl::string_view name) const;
  void ResolveInputs();
  void ResolveOutputs();
  // Finds the operators that the outputs need, and the names that nothing makes.
  void MarkNeeded();
  bool OpenParameters();
  void AddInput(const std::string& name, const Shape* declared);
  // A name's value before any operator: a parameter. Null: it was reported.
  ValueRef ParameterOf(const std::string& name, const NodeSource& reader);
  ValueRef ValueOf(const std::string& name, const NodeSource& reader);
  void MatchSubgraphs();
  // Keeps what the operands of an operator inside of a subgraph are now: later operators may make
  // other values of the same names.
  void KeepOperands(int index);
  void ImportSubgraph(const frontend::SubgraphMatch& match);
  void ImportOp(const OpView& op);
  // A report where a result has another shape than the program states. Paddle's own arithmetic is
  // wrong where dimensions behind the batch are unknown, and a name that is made twice has one
  // statement for two values.
  absl::Status CheckShapes(const OpView& op, OpImporter& node) const;
  void SetResult(const std::string& name, ValueRef value);
  void FailResults(const OpView& op);
  // The results of a plugin's formula, in the order of the file.
  void TakePluginResults(const OpView& op, OpImporter& node, const absl::Status& status);
  bool Succeeded(const OpView& op, OpImporter& node, const absl::Status& status);
  const frontend::CutAdvice& Advice();
  void NoteDecoders();
  void AddOutputs();

  const ProgramFile& program_;
  const ByteSource* const file_;
  const CompileOptions& options_;
  ImportState state_;
  frontend::Endpoints endpoints_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  const frontend::Plugins& plugins_;
  frontend::Subgraphs subgraphs_;
  std::map<int, std::vector<ValueRef>> kept_;  // by operator; null: a parameter, or not made
  const ProgramEnds ends_;
  std::optional<Parameters> parameters_;
  std::map<std::string, ValueRef, std::less<>> values_;  // null: it failed
  std::set<std::string, std::less<>> known_;             // every name of the program
  std::map<std::string, int, std::less<>> made_;         // by name: how many operators give it
  bool states_shapes_ = true;                            // of results, as far as batches are known
  std::set<std::string, std::less<>> cuts_;              // those of INPUT_OPS
  std::set<std::string, std::less<>> unmade_;            // needed, and no operator gives them
  std::vector<bool> is_needed_;                          // by operator
  std::vector<frontend::Endpoints::Output> outputs_;
  std::optional<frontend::CutAdvice> advice_;
};

}  // namespace npuc::paddle

#endif  // NPUC_COMPILER_CORE_FRONTENDS_PADDLE_IMPORTER_H_
