#include "compiler_core/frontends/tensorflow/function_control.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

using fe::tf::AttrValue;
using fe::tf::DataType;
using fe::tf::NodeDef;
using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;

const AttrValue* AttrOf(const NodeDef& node, absl::string_view key) {
  for (const auto& attr : node.attr()) {
    if (absl::string_view(attr.key()) == key) return &attr.value();
  }
  return nullptr;
}

// The function that an attribute names; empty: none.
std::string FunctionOf(const NodeDef& node, absl::string_view key) {
  const AttrValue* value = AttrOf(node, key);
  return value == nullptr ? "" : value->func().name();
}

std::vector<DataType> TypesOf(const NodeDef& node, absl::string_view key) {
  std::vector<DataType> types;
  const AttrValue* value = AttrOf(node, key);
  if (value == nullptr) return types;
  for (const auto type : value->list().type()) types.push_back(static_cast<DataType>(type));
  return types;
}

bool IsControl(const std::string& input) { return !input.empty() && input[0] == '^'; }

std::vector<std::string> DataInputs(const NodeDef& node) {
  std::vector<std::string> inputs;
  for (const std::string& input : node.input()) {
    if (!IsControl(input)) inputs.push_back(input);
  }
  return inputs;
}

// The nodes of the graph or of one function.
class Lowering {
 public:
  explicit Lowering(Nodes& nodes) : nodes_(nodes) {}

  void Run() {
    const Nodes before = nodes_;
    nodes_.Clear();
    for (const NodeDef& node : before) {
      const bool is_while = node.op() == "While" || node.op() == "StatelessWhile";
      const bool is_if = node.op() == "If" || node.op() == "StatelessIf";
      if (is_while && LowerWhile(node)) continue;
      if (is_if && LowerIf(node)) continue;
      *nodes_.Add() = node;
    }
    for (NodeDef& node : nodes_) {
      for (std::string& input : *node.mutable_input()) input = Renamed(input);
    }
  }

  // The name now of a tensor of a node that was lowered.
  std::string Renamed(const std::string& tensor) const {
    const auto found = results_.find(tensor.substr(0, tensor.find(':')));
    if (found == results_.end()) return tensor;
    const size_t colon = tensor.rfind(':');
    size_t number = 0;
    if (colon != std::string::npos && !absl::SimpleAtoi(tensor.substr(colon + 1), &number)) {
      return tensor;
    }
    return number < found->second.size() ? found->second[number] : tensor;
  }

 private:
  NodeDef& Add(const std::string& name, const std::string& op,
               const std::vector<std::string>& inputs) {
    NodeDef& node = *nodes_.Add();
    node.set_name(name);
    node.set_op(op);
    for (const std::string& input : inputs) node.add_input(input);
    return node;
  }
  NodeDef& AddTyped(const std::string& name, const std::string& op,
                    const std::vector<std::string>& inputs, DataType type) {
    NodeDef& node = Add(name, op, inputs);
    Attr(node, "T").set_type(type);
    return node;
  }
  static AttrValue& Attr(NodeDef& node, const std::string& key) {
    fe::tf::AttrEntry& entry = *node.add_attr();
    entry.set_key(key);
    return *entry.mutable_value();
  }

  bool LowerWhile(const NodeDef& node) {
    const std::string condition = FunctionOf(node, "cond");
    const std::string body = FunctionOf(node, "body");
    const std::vector<DataType> types = TypesOf(node, "T");
    const std::vector<std::string> inputs = DataInputs(node);
    if (condition.empty() || body.empty() || types.size() != inputs.size()) return false;
    const std::string& name = node.name();
    const auto part = [&](const char* what, size_t i) {
      return absl::StrCat(name, "/", what, "_", i);
    };
    std::vector<std::string> at_test = inputs;
    std::vector<std::string> in_body = inputs;
    std::vector<std::string> results = inputs;
    const std::string loop_cond = absl::StrCat(name, "/loop_cond");
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (types[i] == fe::tf::DT_RESOURCE) continue;
      NodeDef& enter = AddTyped(part("enter", i), "Enter", {inputs[i]}, types[i]);
      Attr(enter, "frame_name").set_s(name);
      AddTyped(part("merge", i), "Merge", {part("enter", i), part("next", i)}, types[i]);
      AddTyped(part("switch", i), "Switch", {part("merge", i), loop_cond}, types[i]);
      AddTyped(part("next", i), "NextIteration", {absl::StrCat(name, "/body:", i)}, types[i]);
      AddTyped(part("exit", i), "Exit", {part("switch", i)}, types[i]);
      at_test[i] = part("merge", i);
      in_body[i] = absl::StrCat(part("switch", i), ":1");
      results[i] = part("exit", i);
    }
    Add(absl::StrCat(name, "/cond"), condition, at_test);
    Add(loop_cond, "LoopCond", {absl::StrCat(name, "/cond")});
    Add(absl::StrCat(name, "/body"), body, in_body);
    results_[name] = std::move(results);
    return true;
  }

  // Results are chosen once more: a branch that takes none of the inputs would not be dead.
  bool LowerIf(const NodeDef& node) {
    const std::string if_true = FunctionOf(node, "then_branch");
    const std::string if_false = FunctionOf(node, "else_branch");
    const std::vector<DataType> taken = TypesOf(node, "Tin");
    const std::vector<DataType> given = TypesOf(node, "Tout");
    std::vector<std::string> inputs = DataInputs(node);
    if (if_true.empty() || if_false.empty() || inputs.size() != taken.size() + 1) return false;
    const std::string predicate = inputs[0];
    inputs.erase(inputs.begin());
    const std::string& name = node.name();
    const auto part = [&](const char* what, size_t i) {
      return absl::StrCat(name, "/", what, "_", i);
    };
    std::vector<std::string> then_inputs = inputs;
    std::vector<std::string> else_inputs = inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (taken[i] == fe::tf::DT_RESOURCE) continue;
      AddTyped(part("switch", i), "Switch", {inputs[i], predicate}, taken[i]);
      then_inputs[i] = absl::StrCat(part("switch", i), ":1");
      else_inputs[i] = part("switch", i);
    }
    Add(absl::StrCat(name, "/then"), if_true, then_inputs);
    Add(absl::StrCat(name, "/else"), if_false, else_inputs);
    std::vector<std::string> results;
    for (size_t i = 0; i < given.size(); ++i) {
      AddTyped(part("false", i), "Switch", {absl::StrCat(name, "/else:", i), predicate}, given[i]);
      AddTyped(part("true", i), "Switch", {absl::StrCat(name, "/then:", i), predicate}, given[i]);
      AddTyped(part("result", i), "Merge", {part("false", i), absl::StrCat(part("true", i), ":1")},
               given[i]);
      results.push_back(part("result", i));
    }
    results_[name] = std::move(results);
    return true;
  }

  Nodes& nodes_;
  std::map<std::string, std::vector<std::string>> results_;  // of what was lowered, by name
};

}  // namespace

void LowerFunctionControl(fe::tf::GraphDef& graph) {
  Lowering(*graph.mutable_node()).Run();
  for (auto& function : *graph.mutable_library()->mutable_function()) {
    Lowering lowering(*function.mutable_node_def());
    lowering.Run();
    for (auto& result : *function.mutable_ret()) result.set_value(lowering.Renamed(result.value()));
  }
}

}  // namespace npuc::tf
