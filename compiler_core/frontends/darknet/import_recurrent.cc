// Recurrent layers: one step a frame, as Darknet runs them on sequences, with states that go from
// frame to frame and begin with 0.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/darknet/layer_import.h"

namespace npuc::darknet {
namespace {

// Fully connected layers inside of the layer, in the order of the file.
using Parts = std::vector<Connected>;

void PlanParts(LayerPlanner& planner, const Parts& parts, int64_t outputs) {
  for (const Connected& part : parts) planner.AddWeights({part.out, part.in});
  for (const Connected& part : parts) planner.AddWeights({part.batch_normalize ? 4 : 1, part.out});
  planner.SetOut(Size::Row(outputs));
}

// The parts of gates, by names in the file's order: u and a gate multiplies the operand, w and a
// gate the state.
Parts GateParts(LayerOptions& options, int64_t inputs,
                std::initializer_list<absl::string_view> names) {
  const int64_t outputs = options.Int("output", 1, 1);
  const bool normalize = options.Flag("batch_normalize");
  Parts parts;
  for (const absl::string_view name : names) {
    parts.push_back({name, name[0] == 'u' ? inputs : outputs, outputs, normalize, "linear"});
  }
  return parts;
}

// Gates with their weights.
class Gates {
 public:
  static absl::StatusOr<Gates> Take(LayerImporter& node, Parts parts) {
    Gates gates;
    for (const Connected& part : parts) {
      ASSIGN_OR_RETURN(gates.weights_.emplace_back(), TakeConnected(node, part));
    }
    gates.parts_ = std::move(parts);
    return gates;
  }
  int64_t size() const { return parts_[0].out; }
  // The sum that goes into a gate: the products of operand and state.
  Term Sum(LayerImporter& node, absl::string_view gate, const ValueRef& x,
           const Term& state) const {
    if (!state.value.ok()) return state;
    const Term from_state = Product(node, absl::StrCat("w", gate), *state.value);
    const Term from_operand = Product(node, absl::StrCat("u", gate), x);
    return from_state + from_operand;
  }

 private:
  Term Product(LayerImporter& node, absl::string_view name, const ValueRef& x) const {
    size_t i = 0;
    while (parts_[i].name != name) ++i;
    return Term(node, ApplyConnected(node, x, parts_[i], weights_[i]));
  }

  Parts parts_;
  std::vector<ConnectedWeights> weights_;
};

Parts RnnParts(LayerOptions& options, int64_t inputs) {
  const int64_t outputs = options.Int("output", 1, 1);
  const int64_t hidden = options.Int("hidden", outputs, 1);  // the fork's key
  const bool normalize = options.Flag("batch_normalize");
  const std::string activation = ReadActivation(options, "logistic");
  return {{"input", inputs, hidden, normalize, activation},
          {"self", hidden, hidden, normalize, activation},
          {"output", hidden, outputs, normalize, activation}};
}

void PlanRnn(LayerPlanner& planner) {
  const Parts parts = RnnParts(planner.options(), planner.in().count);
  planner.options().Flag("shortcut");
  planner.options().Refuse("logistic", "another activation inside of the layer");
  PlanParts(planner, parts, parts.back().out);
}

absl::Status ImportRnn(LayerImporter& node) {
  const Parts parts = RnnParts(node.options(), node.in().count);
  const bool keeps_state = node.options().Flag("shortcut");
  ASSIGN_OR_RETURN(const ValueRef x, node.Row(node.input(0)));
  const ValueRef state = node.State("state", parts[1].in);
  std::vector<ConnectedWeights> weights;
  for (const Connected& part : parts) {
    ASSIGN_OR_RETURN(weights.emplace_back(), TakeConnected(node, part));
  }
  ASSIGN_OR_RETURN(const ValueRef from_input, ApplyConnected(node, x, parts[0], weights[0]));
  ASSIGN_OR_RETURN(const ValueRef from_state, ApplyConnected(node, state, parts[1], weights[1]));
  ASSIGN_OR_RETURN(ValueRef next, node.Emit("Add", {from_input, from_state}));
  if (keeps_state) {
    ASSIGN_OR_RETURN(next, node.Emit("Add", {next, state}));
  }
  node.SetState("state", next);
  return node.SetOutput(ApplyConnected(node, next, parts[2], weights[2]));
}

// The two programs store the gates in different orders.
Parts GruParts(LayerOptions& options, int64_t inputs, Dialect dialect) {
  return dialect == Dialect::kFork
             ? GateParts(options, inputs, {"uz", "ur", "uh", "wz", "wr", "wh"})
             : GateParts(options, inputs, {"wz", "wr", "wh", "uz", "ur", "uh"});
}

void PlanGru(LayerPlanner& planner) {
  const Parts parts = GruParts(planner.options(), planner.in().count, planner.dialect());
  planner.options().Flag("tanh");
  PlanParts(planner, parts, parts[0].out);
}

absl::Status ImportGru(LayerImporter& node) {
  const bool with_tanh = node.options().Flag("tanh");
  ASSIGN_OR_RETURN(const Gates gates,
                   Gates::Take(node, GruParts(node.options(), node.in().count, node.dialect())));
  ASSIGN_OR_RETURN(const ValueRef x, node.Row(node.input(0)));
  const Term state(node, node.State("state", gates.size()));
  const Term update = Sigmoid(gates.Sum(node, "z", x, state));
  const Term reset = Sigmoid(gates.Sum(node, "r", x, state));
  const Term sum = gates.Sum(node, "h", x, state * reset);
  const Term fresh = with_tanh ? Tanh(sum) : Sigmoid(sum);
  const Term held = update * state;
  const Term replaced = (1.0 - update) * fresh;
  const Term next = held + replaced;
  RETURN_IF_ERROR(next.value.status());
  node.SetState("state", *next.value);
  return node.SetOutput(*next.value);
}

Parts LstmParts(LayerOptions& options, int64_t inputs, Dialect dialect) {
  return dialect == Dialect::kFork
             ? GateParts(options, inputs, {"wf", "wi", "wg", "wo", "uf", "ui", "ug", "uo"})
             : GateParts(options, inputs, {"wi", "wf", "wo", "wg", "ui", "uf", "uo", "ug"});
}

void PlanLstm(LayerPlanner& planner) {
  const Parts parts = LstmParts(planner.options(), planner.in().count, planner.dialect());
  PlanParts(planner, parts, parts[0].out);
}

absl::Status ImportLstm(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Gates gates,
                   Gates::Take(node, LstmParts(node.options(), node.in().count, node.dialect())));
  ASSIGN_OR_RETURN(const ValueRef x, node.Row(node.input(0)));
  const Term hidden(node, node.State("hidden", gates.size()));
  const Term cell(node, node.State("cell", gates.size()));
  const Term forget = Sigmoid(gates.Sum(node, "f", x, hidden));
  const Term input = Sigmoid(gates.Sum(node, "i", x, hidden));
  const Term candidate = Tanh(gates.Sum(node, "g", x, hidden));
  const Term output = Sigmoid(gates.Sum(node, "o", x, hidden));
  const Term kept = forget * cell;
  const Term added = input * candidate;
  const Term next_cell = kept + added;
  const Term next_hidden = output * Tanh(next_cell);
  RETURN_IF_ERROR(next_hidden.value.status());
  node.SetState("hidden", *next_hidden.value);
  node.SetState("cell", *next_cell.value);
  return node.SetOutput(*next_hidden.value);
}

constexpr LayerType kRecurrentTypes[] = {
    {"gru", PlanGru, ImportGru, LayerRole::kComputes, true},
    {"lstm", PlanLstm, ImportLstm, LayerRole::kComputes, true},
    {"rnn", PlanRnn, ImportRnn},
};

}  // namespace

absl::Span<const LayerType> RecurrentTypes() { return kRecurrentTypes; }

}  // namespace npuc::darknet
