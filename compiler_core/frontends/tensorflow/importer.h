#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::tf {

// One import of a parsed file: finds the sub-graph that the outputs need, orders it, and runs the
// rule of each node. A node that fails is reported once; what depends on it is skipped. Used once.
class Importer {
 public:
  Importer(const GraphFile& file, const CompileOptions& options, Graph* graph,
           Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  struct Edge {
    int producer = -1;
    int output = 0;
  };
  enum class Visit : uint8_t { kUnseen, kActive, kOrdered, kFailed };
  struct NodeState {
    Visit visit = Visit::kUnseen;
    bool is_done = false;          // imported; else its values are not there
    bool is_dead = false;          // on the side of a Switch that is not taken
    int needed_by = 0;             // index of the output that first reached it
    std::vector<Edge> edges;       // data inputs
    std::vector<ValueRef> values;  // by output
  };
  struct Cut {
    ValueRef value;
    bool is_used = false;
  };
  struct Output {
    std::string name;
    Edge edge;
    bool fp16 = false;
  };
  using CutKey = std::pair<int, int>;  // node, output

  void AddError(DiagnosticKind kind, int node, std::string message, std::string fix);
  void ResolveInputs();
  void ResolveInput(const InputDecl& input);
  bool CheckInput(const InputDecl& input, int node, int output, TensorType* type);
  void ResolveOutputs();
  bool ResolveEndpoint(absl::string_view text, absl::string_view key, DiagnosticKind kind,
                       Edge* edge);
  void OrderFrom(int root, int output_index);
  void ReadEdges(int node);
  void ReportCycle(const std::vector<std::pair<int, size_t>>& stack, int node);
  void ImportNode(int node);
  void ReportNoRule(int node);
  bool ChargeConstants(NodeImporter& node);
  // The value on an edge; null where its producer failed (then it has been reported).
  ValueRef ValueOf(const Edge& edge, int consumer);
  void AddOutputs();
  std::string NearestNode(absl::string_view name) const;

  const GraphFile& file_;
  const CompileOptions& options_;
  Graph* graph_;
  Diagnostics* diagnostics_;
  ImportState state_;
  absl::flat_hash_map<absl::string_view, ImportFunction> rules_;
  absl::flat_hash_map<CutKey, Cut> cuts_;
  std::vector<CutKey> cut_order_;
  std::vector<Output> outputs_;
  std::vector<NodeState> nodes_;
  std::vector<int> order_;
  std::string loop_cycle_;  // a cycle through NextIteration, told only where nothing else is
};

absl::flat_hash_map<absl::string_view, ImportFunction> AllRules();

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_
