// BasicLSTM, GRUv1 and GRUv3, step by step in operators of the IR. Source of the attributes and
// formulas: the operators of Arm-China/Compass_Optimizer, since Compass does not publish its IR
// definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/compass/layer_import.h"

namespace npuc::compass {
namespace {

using frontend::Term;

constexpr int64_t kMaxSteps = 4096;

// A layer over a sequence: bottom 0 is [batch, steps, input], the others are the first states,
// [batch, cells].
struct Sequence {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t inputs = 0;
  int64_t cells = 0;
  bool is_reverse = false;
  double threshold = 0;  // of what the gates' functions see
  std::vector<std::string> functions;
  std::vector<std::string> results;  // Y or H: all states; H or Hn: the last one; C or Cn
  ValueRef weight;                   // [gates * cells, input + cells]
  ValueRef bias;                     // [gates * cells], or more
};

absl::StatusOr<std::vector<std::string>> Words(LayerImporter& node, absl::string_view key,
                                               std::vector<std::string> fallback) {
  if (!node.Has(key)) return fallback;
  auto words = ParseList(node.Text(key));
  if (!words.has_value()) return node.FailInvalid(key, "is no list");
  return *std::move(words);
}

// `gates` rows of weights a cell, `biases` numbers.
absl::StatusOr<Sequence> ReadSequence(LayerImporter& node, int states, int64_t gates,
                                      int64_t biases, const std::vector<std::string>& functions) {
  RETURN_IF_ERROR(node.ExpectInputs(1 + states, 1 + states));
  Sequence s;
  if (node.rank(0) != 3) return node.FailInvalid("layer_bottom_shape", "is no [batch,steps,input]");
  s.batch = node.shape(0)[0];
  s.steps = node.shape(0)[1];
  s.inputs = node.shape(0)[2];
  s.cells = node.NumberOr("cell_size", 0);
  if (s.steps < 1 || s.steps > kMaxSteps) {
    return node.FailAt("time_steps", DiagnosticKind::kUnsupportedOperatorMode,
                       absl::StrCat("a sequence of ", s.steps, " steps"),
                       absl::StrCat("use 1 to ", kMaxSteps, " steps"));
  }
  for (int i = 1; i <= states; ++i) {
    if (node.type(i).element_count() == s.batch * s.cells) continue;
    return node.FailInvalid("cell_size", absl::StrCat("is ", s.cells, ", and a first state is ",
                                                      PrintShape(node.shape(i))));
  }
  const std::string direction = absl::AsciiStrToLower(node.TextOr("direction", "forward"));
  s.is_reverse = direction == "reverse";
  if (!s.is_reverse && direction != "forward") {
    return node.FailAt(
        "direction", DiagnosticKind::kUnsupportedOperatorMode,
        absl::StrCat("'", Printable(direction, 40), "' is neither forward nor reverse"),
        "write a layer for each direction");
  }
  ASSIGN_OR_RETURN(s.threshold, node.RealOr("threshold", std::numeric_limits<float>::max()));
  ASSIGN_OR_RETURN(s.functions, Words(node, "activations", functions));
  if (s.functions.size() != functions.size()) {
    return node.FailInvalid(
        "activations", absl::StrCat("has ", s.functions.size(), " names, not ", functions.size()));
  }
  for (const std::string& function : s.functions) {
    if (function == "SIGMOID" || function == "TANH" || function == "RELU") continue;
    return node.FailAt(
        "activations", DiagnosticKind::kUnsupportedOperatorMode,
        absl::StrCat("'", Printable(function, 40), "' is none of SIGMOID, TANH, RELU"),
        "use one of these");
  }
  ASSIGN_OR_RETURN(s.results,
                   Words(node, "out_sequence", {node.source().op == "BasicLSTM" ? "Y" : "H"}));
  ASSIGN_OR_RETURN(const Operands operands, WeightsOf(node));
  s.weight = operands.weight;
  s.bias = operands.bias;
  const Shape expected = {gates * s.cells, s.inputs + s.cells};
  if (s.weight->type.shape != expected || s.bias->type.shape != Shape{biases * s.cells}) {
    return node.FailInvalid("weights_shape",
                            absl::StrCat(PrintShape(s.weight->type.shape), " and biases ",
                                         PrintShape(s.bias->type.shape), " are not ",
                                         PrintShape(expected), " and [", biases * s.cells, "]"));
  }
  return s;
}

Term Activate(const Sequence& s, size_t i, const Term& x) {
  const Term seen =
      s.threshold < std::numeric_limits<float>::max() ? Min(Max(x, -s.threshold), s.threshold) : x;
  if (s.functions[i] == "RELU") return frontend::Relu(seen);
  return s.functions[i] == "TANH" ? frontend::Tanh(seen) : frontend::Sigmoid(seen);
}

Term Product(const Term& x, const ValueRef& weight) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Emit("MatMul", {*x.value, weight},
                                    {{"transpose_a", false}, {"transpose_b", true}}));
}

// Cells first..first+count of the gates in the last dimension.
Term Gates(const Sequence& s, const Term& x, int64_t first, int64_t count = 1) {
  if (!x.value.ok()) return x;
  const int64_t axis = static_cast<int64_t>((*x.value)->type.shape.size()) - 1;
  return Term(*x.node, x.node->Sliced(*x.value, axis, first * s.cells, count * s.cells));
}

Term Beside(const Term& a, const Term& b) {
  if (!a.value.ok()) return a;
  if (!b.value.ok()) return b;
  return Term(*a.node, a.node->Joined({*a.value, *b.value}, 1));
}

// Rows first..first+count of the gates' weights.
absl::StatusOr<ValueRef> WeightRows(LayerImporter& node, const Sequence& s, int64_t first,
                                    int64_t count) {
  return node.Sliced(s.weight, 0, first * s.cells, count * s.cells);
}

struct States {
  ValueRef h;
  ValueRef c;  // of an LSTM
};

using Step = absl::Status (*)(LayerImporter& node, const Sequence& s, const Term& x,
                              States& states);

// Gates in the order input, candidate, forget, output.
absl::Status LstmStep(LayerImporter& node, const Sequence& s, const Term& x, States& states) {
  ASSIGN_OR_RETURN(const double forget_bias, node.RealOr("forget_bias", 0));
  const Term bias(node, s.bias);
  const Term sums = Product(Beside(x, Term(node, states.h)), s.weight) + bias;
  const Term input = Activate(s, 0, Gates(s, sums, 0));
  const Term candidate = Activate(s, 1, Gates(s, sums, 1));
  const Term forget = Activate(s, 0, Gates(s, sums, 2) + forget_bias);
  const Term output = Activate(s, 0, Gates(s, sums, 3));
  const Term kept = forget * Term(node, states.c);
  const Term fresh = input * candidate;
  Term c = kept + fresh;
  if (node.Has("cell_clip")) {
    ASSIGN_OR_RETURN(const double clip, node.RealOr("cell_clip", 0));
    c = Min(Max(c, -clip), clip);
  }
  Sequence plain = s;
  plain.threshold = std::numeric_limits<float>::max();
  const Term h = output * Activate(plain, 2, c);
  ASSIGN_OR_RETURN(states.c, c.value);
  ASSIGN_OR_RETURN(states.h, h.value);
  return absl::OkStatus();
}

// Gates in the order reset, update, candidate. GRUv3 resets the state before its product, GRUv1
// behind it, with a bias of its own.
absl::Status GruStep(LayerImporter& node, const Sequence& s, const Term& x, States& states) {
  const bool is_v1 = node.source().op == "GRUv1";
  ASSIGN_OR_RETURN(const ValueRef of_gates, WeightRows(node, s, 0, 2));
  ASSIGN_OR_RETURN(const ValueRef of_candidate, WeightRows(node, s, 2, 1));
  const Term bias(node, s.bias);
  const Term state(node, states.h);
  const Term bias_of_gates = Gates(s, bias, 0, 2);
  const Term bias_of_candidate = Gates(s, bias, 2);
  const Term sums = Product(Beside(x, state), of_gates) + bias_of_gates;
  const Term gates = Activate(s, 0, sums);
  const Term reset = Gates(s, gates, 0);
  const Term update = Gates(s, gates, 1);
  Term candidate = x;
  if (is_v1) {
    ASSIGN_OR_RETURN(const ValueRef of_x, node.Sliced(of_candidate, 1, 0, s.inputs));
    ASSIGN_OR_RETURN(const ValueRef of_h, node.Sliced(of_candidate, 1, s.inputs, s.cells));
    const Term bias_of_state = Gates(s, bias, 3);
    const Term from_h = Product(state, of_h) + bias_of_state;
    const Term from_x = Product(x, of_x) + bias_of_candidate;
    const Term part = reset * from_h;
    candidate = Activate(s, 1, from_x + part);
  } else {
    const Term part = state * reset;
    candidate = Activate(s, 1, Product(Beside(x, part), of_candidate) + bias_of_candidate);
  }
  const Term fresh = (1.0 - update) * candidate;
  const Term kept = update * state;
  ASSIGN_OR_RETURN(states.h, (fresh + kept).value);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueRef>> RunSteps(LayerImporter& node, const Sequence& s,
                                               States states, Step step) {
  std::vector<ValueRef> all(static_cast<size_t>(s.steps));
  for (int64_t k = 0; k < s.steps; ++k) {
    const int64_t t = s.is_reverse ? s.steps - 1 - k : k;
    ASSIGN_OR_RETURN(const ValueRef slice, node.Sliced(node.input(0), 1, t, 1));
    ASSIGN_OR_RETURN(const ValueRef x, node.Reshaped(slice, {s.batch, s.inputs}));
    RETURN_IF_ERROR(step(node, s, Term(node, x), states));
    ASSIGN_OR_RETURN(all[static_cast<size_t>(t)], node.Reshaped(states.h, {s.batch, 1, s.cells}));
  }
  const bool is_lstm = states.c != nullptr;
  std::vector<ValueRef> results;
  for (const std::string& name : s.results) {
    if (name == (is_lstm ? "Y" : "H")) {
      ASSIGN_OR_RETURN(results.emplace_back(), node.Joined(all, 1));
    } else if (name == (is_lstm ? "H" : "Hn")) {
      results.push_back(states.h);
    } else if (is_lstm && name == "C") {
      results.push_back(states.c);
    } else {
      return node.FailInvalid(
          "out_sequence",
          absl::StrCat("'", Printable(name, 40), "' is none of ", is_lstm ? "Y, H, C" : "H, Hn"));
    }
  }
  for (size_t i = 0; i < results.size() && i < node.top_count(); ++i) {
    ASSIGN_OR_RETURN(results[i], node.Reshaped(results[i], node.top_shape(i)));
  }
  return results;
}

absl::StatusOr<ValueRef> FirstState(LayerImporter& node, const Sequence& s, int bottom) {
  return node.Reshaped(node.input(bottom), {s.batch, s.cells});
}

absl::StatusOr<std::vector<ValueRef>> ImportLstm(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, 2, 4, 4, {"SIGMOID", "TANH", "TANH"}));
  States states;
  ASSIGN_OR_RETURN(states.h, FirstState(node, s, 1));
  ASSIGN_OR_RETURN(states.c, FirstState(node, s, 2));
  return RunSteps(node, s, std::move(states), LstmStep);
}

absl::StatusOr<std::vector<ValueRef>> ImportGru(LayerImporter& node) {
  const int64_t biases = node.source().op == "GRUv1" ? 4 : 3;
  ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, 1, 3, biases, {"SIGMOID", "TANH"}));
  States states;
  ASSIGN_OR_RETURN(states.h, FirstState(node, s, 1));
  return RunSteps(node, s, std::move(states), GruStep);
}

constexpr ImportRule kRecurrentRules[] = {
    {"BasicLSTM", nullptr, ImportLstm},
    {"GRUv1", nullptr, ImportGru},
    {"GRUv3", nullptr, ImportGru},
};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::compass
