#include "compiler_core/frontends/tensorflow/function_graph.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using fe::tf::AttrEntry;
using fe::tf::NodeDef;

constexpr int kMaxDepth = 64;
constexpr int kMaxScopes = 1 << 14;
constexpr int kMaxSteps = 1 << 12;  // from an input to its node
constexpr size_t kShownBytes = 200;

const AttrEntry* FindAttr(const NodeDef& node, absl::string_view key) {
  for (const AttrEntry& attr : node.attr()) {
    if (absl::string_view(attr.key()) == key) return &attr;
  }
  return nullptr;
}

// In a body a tensor is "node:result:number". The results of operators that have several, in their
// order; a result that is a list is the only one.
struct Results {
  absl::string_view op;
  std::vector<absl::string_view> names;
};
const std::vector<Results>& KnownResults() {
  static const auto* const known = new std::vector<Results>{
      {"FusedBatchNorm",
       {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
      {"FusedBatchNormV2",
       {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
      {"FusedBatchNormV3",
       {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2",
        "reserve_space_3"}},
      {"TopKV2", {"values", "indices"}},
      {"Switch", {"output_false", "output_true"}},
      {"Merge", {"output", "value_index"}},
      {"TensorArrayV3", {"handle", "flow"}},
      {"TensorListPopBack", {"output_handle", "tensor"}},
      {"Unique", {"y", "idx"}},
      {"MaxPoolWithArgmax", {"output", "argmax"}},
      {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
      {"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}}};
  return *known;
}

}  // namespace

absl::Status AtNode(const fe::tf::NodeDef& node, absl::string_view what) {
  constexpr size_t kShown = 200;  // no limit on names holds yet
  return absl::InvalidArgumentError(absl::StrCat("the SavedModel's node '",
                                                 Printable(node.name(), kShown), "' (",
                                                 Printable(node.op(), kShown), ") ", what));
}

FunctionGraph::FunctionGraph(const fe::tf::GraphDef& graph) {
  const auto add_nodes = [](const auto& nodes, Body& body) {
    for (const NodeDef& node : nodes) {
      body.nodes.emplace(node.name(), &node);
      body.node_list.push_back(&node);
    }
  };
  add_nodes(graph.node(), main_);
  for (const fe::tf::FunctionDef& function : graph.library().function()) {
    Body& body = functions_[function.signature().name()];
    body.function = &function;
    add_nodes(function.node_def(), body);
    for (int i = 0; i < function.signature().input_arg_size(); ++i) {
      body.arguments.emplace(function.signature().input_arg(i).name(), i);
    }
    for (const auto& entry : function.ret()) body.results.emplace(entry.key(), entry.value());
  }
  scopes_.push_back({.body = &main_});
}

const NodeDef* FunctionGraph::FindNode(int scope, absl::string_view name) const {
  const auto& nodes = scopes_[static_cast<size_t>(scope)].body->nodes;
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : found->second;
}

const std::vector<const NodeDef*>& FunctionGraph::NodesOf(int scope) const {
  return scopes_[static_cast<size_t>(scope)].body->node_list;
}

const FunctionGraph::Body* FunctionGraph::Callee(const NodeDef& node) const {
  std::string name = node.op();
  if (node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall") {
    const AttrEntry* function = FindAttr(node, "f");
    if (function == nullptr) return nullptr;
    name = function->value().func().name();
  }
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

absl::StatusOr<int> FunctionGraph::Enter(int scope, const NodeDef& call) {
  const auto [it, inserted] =
      entered_.try_emplace({scope, &call}, static_cast<int>(scopes_.size()));
  if (!inserted) return it->second;
  const Scope& outer = scopes_[static_cast<size_t>(scope)];
  if (outer.depth == kMaxDepth || scopes_.size() == kMaxScopes) {
    return AtNode(call, absl::StrCat("calls a function that calls others over ", kMaxDepth,
                                     " deep, or is one of over ", kMaxScopes, " calls"));
  }
  if (outer.prefix.size() + call.name().size() >= kMaxNameBytes) {
    return AtNode(call, absl::StrCat("has a name that makes names of over ", kMaxNameBytes,
                                     " bytes in its function"));
  }
  scopes_.push_back({.body = Callee(call),
                     .parent = scope,
                     .call = &call,
                     .depth = outer.depth + 1,
                     .prefix = absl::StrCat(outer.prefix, call.name(), "/")});
  return it->second;
}

absl::StatusOr<int> FunctionGraph::OutputNumber(const NodeDef& node,
                                                absl::string_view tensor) const {
  const std::vector<absl::string_view> parts = absl::StrSplit(tensor, ':');
  int number = 0;
  if (parts.size() > 3 || (parts.size() > 1 && (!absl::SimpleAtoi(parts.back(), &number) ||
                                                number < 0 || number > kMaxOutputIndex))) {
    return AtNode(
        node, absl::StrCat("is named '", Printable(tensor, kShownBytes), "', which is no tensor"));
  }
  if (parts.size() < 3) return number;
  std::vector<absl::string_view> names;
  for (const Results& known : KnownResults()) {
    if (known.op == absl::string_view(node.op())) names = known.names;
  }
  if (const auto function = functions_.find(node.op()); function != functions_.end()) {
    for (const auto& result : function->second.function->signature().output_arg()) {
      names.push_back(result.name());
    }
  }
  if (names.empty()) return number;
  const auto found = std::find(names.begin(), names.end(), parts[1]);
  if (found == names.end()) {
    return AtNode(node, absl::StrCat("has no result '", Printable(parts[1], kShownBytes), "'"));
  }
  return static_cast<int>(found - names.begin()) + number;
}

// A call's result is the tensor that its function returns; a variable that is read is the variable.
absl::StatusOr<bool> FunctionGraph::StepBehind(const Place& place, int& scope,
                                               std::string& tensor) {
  const NodeDef& node = *place.node;
  const AttrEntry* type = FindAttr(node, "T");
  const bool is_handle =
      node.op() == "Identity" && type != nullptr && type->value().type() == fe::tf::DT_RESOURCE;
  if (node.op() == "ReadVariableOp" || is_handle) {
    if (node.input_size() == 0) return AtNode(node, "has no input");
    tensor = node.input(0);
    return true;
  }
  const Body* callee = Callee(node);
  if (callee == nullptr) return false;
  ASSIGN_OR_RETURN(scope, Enter(scope, node));
  const auto& results = callee->function->signature().output_arg();
  if (place.output >= results.size()) {
    return AtNode(node, absl::StrCat("has no output ", place.output));
  }
  const auto found = callee->results.find(results[place.output].name());
  if (found == callee->results.end()) {
    return AtNode(node, "calls a function that does not say what it returns");
  }
  tensor = std::string(found->second);
  return true;
}

absl::StatusOr<Place> FunctionGraph::Resolve(int scope, absl::string_view from) {
  std::string tensor(from);
  for (int step = 0; step < kMaxSteps; ++step) {
    if (--steps_left_ < 0) {
      return absl::InvalidArgumentError("the SavedModel's functions take too long to inline");
    }
    const Scope& at = scopes_[static_cast<size_t>(scope)];
    const std::string name = tensor.substr(0, tensor.find(':'));
    const auto argument = at.body->arguments.find(name);
    if (argument != at.body->arguments.end()) {
      if (argument->second >= at.call->input_size()) {
        return AtNode(*at.call, "has fewer inputs than its function takes");
      }
      tensor = at.call->input(argument->second);
      scope = at.parent;
      continue;
    }
    Place place{scope, FindNode(scope, name), 0};
    if (place.node == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the SavedModel names a tensor '", Printable(tensor, kShownBytes),
                       "' of no node", at.call == nullptr ? "" : " in what '",
                       at.call == nullptr ? "" : Printable(at.call->name(), kShownBytes),
                       at.call == nullptr ? "" : "' calls"));
    }
    ASSIGN_OR_RETURN(place.output, OutputNumber(*place.node, tensor));
    ASSIGN_OR_RETURN(const bool is_behind, StepBehind(place, scope, tensor));
    if (!is_behind) return place;
  }
  return absl::InvalidArgumentError(absl::StrCat("the SavedModel's calls around the tensor '",
                                                 Printable(from, kShownBytes), "' go in a circle"));
}

absl::StatusOr<Place> FunctionGraph::ResolveThroughIdentity(int scope, absl::string_view tensor) {
  ASSIGN_OR_RETURN(Place place, Resolve(scope, tensor));
  for (int step = 0; step < kMaxSteps && place.node->op() == "Identity"; ++step) {
    if (place.node->input_size() == 0) return AtNode(*place.node, "has no input");
    ASSIGN_OR_RETURN(place, Resolve(place.scope, place.node->input(0)));
  }
  return place;
}

void FunctionGraph::CopyAttr(int scope, const AttrEntry& attr, AttrEntry& to) const {
  to = attr;
  const NodeDef* call = scopes_[static_cast<size_t>(scope)].call;
  if (attr.value().value_case() != fe::tf::AttrValue::kPlaceholder || call == nullptr) return;
  if (const AttrEntry* given = FindAttr(*call, attr.value().placeholder())) {
    *to.mutable_value() = given->value();
  }
}

}  // namespace npuc::tf
