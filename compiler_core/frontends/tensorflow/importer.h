#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/cut_advice.h"
#include "compiler_core/frontends/common/endpoints.h"
#include "compiler_core/frontends/common/plugins.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/common/subgraphs.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/frontends/tensorflow/loops.h"
#include "compiler_core/frontends/tensorflow/node_import.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::tf {

class Features;

frontend::RuleTable<ImportRule> AllRules();

// One import of a parsed file: finds the sub-graph that the outputs need, orders it, and runs the
// rule of each node; of a node in a while loop once for each turn whose value is asked for. A node
// that fails is reported once; what depends on it is skipped. Used once.
class Importer {
 public:
  Importer(const GraphFile& file, const CompileOptions& options, const frontend::Plugins& plugins,
           Graph* graph, Diagnostics* diagnostics);

  // Everything of note, and every error, is in the diagnostics afterwards.
  void Run();

 private:
  enum class Visit : uint8_t { kUnseen, kActive, kOrdered, kFailed };
  // What one evaluation of a node gave.
  struct Result {
    bool is_active = false;        // its operands are being evaluated
    bool is_settled = false;       // evaluated, or has failed
    bool is_done = false;          // its values are there
    bool is_dead = false;          // on the side of a Switch that is not taken
    size_t next_operand = 0;       // those before it are evaluated
    std::vector<ValueRef> values;  // by output
  };
  struct NodeState {
    Visit visit = Visit::kUnseen;
    bool has_failed = false;  // in some evaluation; it is not tried again
    int needed_by = 0;        // index of the output that first reached it
    std::vector<Edge> edges;  // data inputs
    Result result;            // of a node outside of all loops
  };
  // Where a node is evaluated: context 0 is outside of all loops, each other one a turn of a loop.
  struct Context {
    int run = -1;
    int iteration = 0;
    absl::flat_hash_map<int, Result> results;  // by node
  };
  // A while loop as entered from one context.
  struct LoopRun {
    int frame = 0;
    int outer = 0;              // the context that enters it
    std::vector<int> contexts;  // by iteration
    int next = 0;               // the first turn whose condition is not known yet
    int trip_count = -1;        // once it is known
    bool has_failed = false;
    // While a condition is evaluated, diagnostics are held back: where it depends on run-time data
    // one about the loop says more than one about each comparison.
    int holder = -1;  // the Exit node that waits for it
    std::unique_ptr<Diagnostics> held;
    Diagnostics* saved = nullptr;
  };
  struct Task {
    int node = -1;
    int context = 0;
  };
  struct Operand {
    Edge edge;
    int context = 0;
  };
  enum class Step : uint8_t { kReady, kWaiting, kFailed };
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
  void AddConstInput(const ConstInput& input);
  void ResolveInputs();
  void ResolveInput(const InputDecl& input);
  // In place of an input that feeds the extraction of features alone.
  void BeginBehind(const Features& features, const InputDecl& replaced);
  bool CheckInput(const InputDecl& input, int node, int output, TensorType* type);
  void ResolveOutputs();
  bool ResolveEndpoint(absl::string_view text, absl::string_view key, DiagnosticKind kind,
                       Edge* edge);
  void OrderFrom(int root, int output_index);
  void ReadEdges(int node);
  void ReportCycle(const std::vector<frontend::OrderingStep>& stack, int node);
  void AnalyseLoops();
  // Finds the nodes outside of loops that declared operators stand in the place of.
  void MatchSubgraphs();
  void ImportSubgraph(const frontend::SubgraphMatch& match);
  void ImportNode(const Task& task);
  // Evaluates a node by `import`, which sets the importer's outputs.
  using RunNode = absl::FunctionRef<absl::Status(NodeImporter& node)>;
  void RunRule(const Task& task, RunNode import, std::vector<ValueRef> inputs);
  void ReportNoRule(int node);
  // How the model can be cut, found where it is first asked for.
  const frontend::CutAdvice& Advice();
  std::string NameOf(const Edge& edge) const;
  // A Placeholder that the outputs need, and INPUT_OPS leaves out.
  void ReportUndeclared(int placeholder);
  bool ChargeConstants(NodeImporter& node, int64_t charged);
  bool CheckHandles(int node, absl::Span<const ValueRef> inputs);
  // The value of an operand; null where its producer failed (then it has been reported).
  ValueRef ValueOf(const Operand& operand, int consumer);
  void AddOutputs();
  std::string NearestNode(absl::string_view name) const;
  const std::string& LikelyEndpoints(bool inputs);

  // unroll.cc: the evaluation of nodes in their contexts.
  void Evaluate(const Task& first);
  // The first value of a variable of a loop outside of all others, given the model's own: an input
  // where KEEP_STATES keeps the loop's states.
  ValueRef FirstOf(const Task& merge, const ValueRef& first);
  // True where turns of a loop change the variable that a Merge holds.
  bool IsChanged(int merge) const;
  // The kept states' values behind the last turn.
  void EvaluateStates();
  Result& ResultOf(const Task& task);
  // Adds what the node waits for to the stack.
  Step PushOperand(const Task& task, std::vector<Task>* stack);
  size_t OperandCount(int node) const;
  // False where the operand lies in a loop that the node is outside of.
  bool OperandAt(const Task& task, size_t i, Operand* operand);
  // The context of a node of that level as seen from `context`; -1 where there is none.
  int Lift(int context, int level) const;
  bool ChargeUnrolled(int node, int64_t cost);
  int RunOf(int frame, int outer);
  int ContextOf(int run, int iteration);  // -1 where there may be no more
  // Evaluates the condition of the loop that an Exit leaves until it is false.
  Step CountTrips(const Task& exit, std::vector<Task>* stack);
  bool TakeCondition(LoopRun& run, const Task& condition);
  bool ReportCondition(const LoopRun& run, const Task& condition);
  // The model inputs that keep a condition from being known.
  std::vector<std::string> InputsBehind(const Task& condition, std::string* by_way_of);
  void AddGraphInputs(ValueId value, std::vector<std::string>* names) const;

  const GraphFile& file_;
  const CompileOptions& options_;
  Graph* graph_;
  Diagnostics* diagnostics_;
  ImportState state_;
  const frontend::RuleTable<ImportRule> rules_ = AllRules();
  absl::flat_hash_map<CutKey, Cut> cuts_;
  std::vector<CutKey> cut_order_;
  const frontend::Plugins& plugins_;
  frontend::Subgraphs subgraphs_;
  std::vector<Output> outputs_;
  std::array<std::string, 2> likely_endpoints_;  // inputs and outputs; empty: not looked up yet
  std::vector<NodeState> nodes_;
  std::vector<int> order_;
  std::vector<std::pair<int, int>> back_edges_;  // NextIteration node, output that needs it
  LoopFrames frames_;
  std::deque<Context> contexts_ = std::deque<Context>(1);
  std::deque<LoopRun> runs_;
  absl::flat_hash_map<std::pair<int, int>, int> run_by_key_;  // frame, outer context
  int64_t unrolled_left_ = kMaxUnrolledNodes;
  struct LoopState {
    int merge = 0;
    int run = 0;
    std::string what;  // in the state's name, behind the loop's
  };
  std::vector<LoopState> loop_states_;
  std::optional<frontend::CutAdvice> advice_;
  int shapes_to_propose_ = 16;  // each is a look at all nodes
};

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_IMPORTER_H_
