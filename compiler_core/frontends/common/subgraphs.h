#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_SUBGRAPHS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_SUBGRAPHS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/common/plugins.h"

namespace npuc::frontend {

// Operand K of a node of the model, both by number.
struct OperandPlace {
  int node = 0;
  int operand = 0;
};

// Nodes that one operator of the user's stands in the place of.
struct SubgraphMatch {
  const PluginOp* op = nullptr;
  int end = 0;                         // the node whose results the operator gives
  std::vector<OperandPlace> operands;  // where each operand of the formula is read
  std::vector<int> attribute_nodes;    // the node of each attribute
};

// Finds the subgraphs that Plugins declare, before the nodes of a model are imported. A front end
// adds the nodes of its main graph that the outputs need, producers first, by its own numbers. A
// match takes the place of its nodes where nothing else reads what they compute but for the end
// node's results, and where every operand of them is one of the formula's, a result of them, or, of
// nodes that are named, a constant. No node is in two matches; patterns are tried in the order in
// which they are declared, from the model's end.
class Subgraphs {
 public:
  explicit Subgraphs(const Plugins& plugins) : plugins_(plugins) {}

  bool is_empty() const { return plugins_.subgraphs().empty(); }
  // Tensors are by name; "" is an operand that is left out. Results are by number; those that
  // nothing reads may be left out.
  void AddInput(absl::string_view tensor) { inputs_.emplace(tensor); }
  void AddNode(int number, absl::string_view name, absl::string_view op,
               std::vector<std::string> operands, std::map<int, std::string> results);
  void AddOutput(absl::string_view tensor) { outputs_.emplace(tensor); }

  // To call once, behind the others. Subgraphs by name that are not there, or that other nodes read
  // inside, are errors.
  void Match(Diagnostics& diagnostics);

  // The match that the node is the end of; null where it is none.
  const SubgraphMatch* FindEnd(int number) const;
  // True: another node stands for this one, which is not to be imported.
  bool IsInside(int number) const { return inside_.contains(number); }

 private:
  struct Node {
    int number = 0;
    std::string name;
    std::string op;
    std::vector<std::string> operands;
    std::map<int, std::string> results;
    bool is_run_time = false;  // depends on an input
    bool is_taken = false;
  };
  struct Source {
    int node = -1;
    int result = 0;
  };

  Source SourceOf(const std::string& tensor) const;
  int FindNode(absl::string_view name) const;
  bool ReadsRunTime(const std::string& tensor) const;
  void MatchNamed(const PluginOp& op, Diagnostics& diagnostics);
  void MatchPattern(const PluginOp& op, int end);
  // The pattern's nodes as positions, or empty where it does not end in this one.
  std::vector<int> Bind(const PluginSubgraph& graph, int end) const;
  std::vector<int> Between(const PluginSubgraph& graph) const;
  // Why the nodes cannot be replaced; empty where they can, and then it is done.
  std::string Replace(const PluginOp& op, const std::vector<int>& nodes, int end,
                      const absl::flat_hash_map<std::string, int>& by_name);
  // Positions of the nodes of a subgraph, and for each of them which operands are the formula's.
  using Members = absl::flat_hash_map<int, std::vector<bool>>;
  std::string TakePlaces(const PluginOp& op, const absl::flat_hash_map<std::string, int>& by_name,
                         Members& members, SubgraphMatch& match) const;
  std::string CheckReaders(const Members& members, int end) const;
  std::string CheckOperands(const PluginSubgraph& graph, const std::vector<int>& nodes,
                            const Members& members) const;

  const Plugins& plugins_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<std::string, Source> sources_;
  absl::flat_hash_map<std::string, int> names_;  // the first node of each name
  absl::flat_hash_map<std::string, std::vector<int>> readers_;
  absl::flat_hash_set<std::string> inputs_;
  absl::flat_hash_set<std::string> outputs_;
  absl::flat_hash_map<int, SubgraphMatch> matches_;
  absl::flat_hash_set<int> inside_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_SUBGRAPHS_H_
