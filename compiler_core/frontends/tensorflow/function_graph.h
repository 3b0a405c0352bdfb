#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_GRAPH_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_GRAPH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace npuc::fe::tf {
class AttrEntry;
class FunctionDef;
class GraphDef;
class NodeDef;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// A node seen from a scope, and the number of one of its outputs.
struct Place {
  int scope = 0;
  const fe::tf::NodeDef* node = nullptr;
  int output = 0;
};

// INVALID_ARGUMENT with the name and operator of a SavedModel's node.
absl::Status AtNode(const fe::tf::NodeDef& node, absl::string_view what);

// A GraphDef whose functions are looked through: a scope is the main graph, or the body of a
// function as one call of it runs it. Views of the graph, which must outlive it. Nothing here
// recurses; scopes, depth and steps are bounded. Errors are INVALID_ARGUMENT with the node.
class FunctionGraph {
 public:
  static constexpr int kMainScope = 0;

  explicit FunctionGraph(const fe::tf::GraphDef& graph);

  // Null where the scope has no such node.
  const fe::tf::NodeDef* FindNode(int scope, absl::string_view name) const;
  const std::vector<const fe::tf::NodeDef*>& NodesOf(int scope) const;
  // "a/b/" in the body of what `b` calls in the body of what `a` calls.
  const std::string& PrefixOf(int scope) const { return scopes_[scope].prefix; }

  bool IsCall(const fe::tf::NodeDef& node) const { return Callee(node) != nullptr; }
  // The scope of what a call of `scope` runs.
  absl::StatusOr<int> Enter(int scope, const fe::tf::NodeDef& call);

  // The node behind an input or a name of a tensor: calls, arguments, and what reads a variable
  // (ReadVariableOp, Identity of a handle) are looked through.
  absl::StatusOr<Place> Resolve(int scope, absl::string_view tensor);
  // The same, Identity nodes looked through as well.
  absl::StatusOr<Place> ResolveThroughIdentity(int scope, absl::string_view tensor);

  // An attribute of a node, or what the call says where the function leaves it open.
  void CopyAttr(int scope, const fe::tf::AttrEntry& attr, fe::tf::AttrEntry& to) const;

 private:
  struct Body {
    std::vector<const fe::tf::NodeDef*> node_list;
    const fe::tf::FunctionDef* function = nullptr;  // null: the main graph
    absl::flat_hash_map<absl::string_view, const fe::tf::NodeDef*> nodes;
    absl::flat_hash_map<absl::string_view, int> arguments;
    absl::flat_hash_map<absl::string_view, absl::string_view> results;
  };
  struct Scope {
    const Body* body = nullptr;
    int parent = -1;
    const fe::tf::NodeDef* call = nullptr;
    int depth = 0;
    std::string prefix = {};
  };

  // The function that a node calls; null where it calls none that the file has.
  const Body* Callee(const fe::tf::NodeDef& node) const;
  absl::StatusOr<int> OutputNumber(const fe::tf::NodeDef& node, absl::string_view tensor) const;
  // Goes one step behind a place that is no node of its own; false: it is one.
  absl::StatusOr<bool> StepBehind(const Place& place, int& scope, std::string& tensor);

  Body main_;
  std::map<std::string, Body, std::less<>> functions_;
  std::deque<Scope> scopes_;
  std::map<std::pair<int, const fe::tf::NodeDef*>, int> entered_;
  int64_t steps_left_ = int64_t{1} << 24;  // of all calls of Resolve
};

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_FUNCTION_GRAPH_H_
