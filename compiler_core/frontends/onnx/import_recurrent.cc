// LSTM, GRU and RNN, step by step in operators of the IR.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/activations.h"
#include "compiler_core/frontends/onnx/node_import.h"

namespace npuc::onnx {
namespace {

constexpr int64_t kMaxSteps = 4096;

// What is fixed for all steps of one direction. Operands are named as ONNX names them.
struct Cell {
  int64_t hidden = 0;
  int64_t gates = 0;
  ValueRef w;       // [gates*hidden, input]
  ValueRef r;       // [gates*hidden, hidden]
  ValueRef w_bias;  // [gates*hidden], or null
  ValueRef r_bias;
  ValueRef peepholes;  // [3*hidden], or null
  std::vector<std::string> functions;
  std::vector<double> alpha;
  std::vector<double> beta;
  double clip = 0;
  bool linear_before_reset = false;
  bool couples_gates = false;
};

Term Activate(const Cell& cell, size_t i, const Term& x) {
  const std::string& f = cell.functions[i];
  if (f == "relu") return Relu(x);
  if (f == "sigmoid") return Sigmoid(x);
  if (f == "affine") return x * cell.alpha[i] + cell.beta[i];
  if (f == "leakyrelu") return LeakyRelu(x, cell.alpha[i]);
  if (f == "scaledtanh") return Tanh(x * cell.beta[i]) * cell.alpha[i];
  if (f == "softsign") return x / (Apply("Abs", x) + 1.0);
  if (f == "softplus") return Softplus(x);
  if (f == "hardsigmoid") {
    return Apply("Relu6", (x * cell.alpha[i] + cell.beta[i]) * 6.0) * (1.0 / 6);
  }
  if (f == "elu") return Elu(x, cell.alpha[i], 1);
  return Tanh(x);
}

Term Clipped(const Cell& cell, const Term& x) {
  return cell.clip > 0 ? Min(Max(x, -cell.clip), cell.clip) : x;
}

Term MatMul(const Term& x, const ValueRef& weight) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Emit("MatMul", {*x.value, weight},
                                    {{"transpose_a", false}, {"transpose_b", true}}));
}

// Gate k of [N, gates*hidden], or of a vector [gates*hidden].
Term Gate(const Cell& cell, const Term& x, int64_t k) {
  if (!x.value.ok()) return x;
  const int64_t axis = static_cast<int64_t>((*x.value)->type.shape.size()) - 1;
  return Term(*x.node, x.node->Sliced(*x.value, axis, k * cell.hidden, cell.hidden));
}

Term PlusBias(NodeImporter& node, const Term& x, const ValueRef& bias) {
  return bias == nullptr ? x : x + Term(node, bias);
}

// One step: the products of the operand are given; h and c are [N, hidden].
Term RnnStep(NodeImporter& node, const Cell& cell, const Term& x, const Term& h) {
  return Activate(cell, 0, Clipped(cell, x + PlusBias(node, MatMul(h, cell.r), cell.r_bias)));
}

Term GruStep(NodeImporter& node, const Cell& cell, const Term& x, const Term& h) {
  const Term from_h = PlusBias(node, MatMul(h, cell.r), cell.r_bias);
  const auto gate = [&](int64_t k) {
    const Term of_h = Gate(cell, from_h, k);
    return Activate(cell, 0, Clipped(cell, Gate(cell, x, k) + of_h));
  };
  const Term z = gate(0);
  const Term r = gate(1);
  Term reset = r * Gate(cell, from_h, 2);
  if (!cell.linear_before_reset) {
    const absl::StatusOr<ValueRef> weight = node.Sliced(cell.r, 0, 2 * cell.hidden, cell.hidden);
    if (!weight.ok()) return Term(node, weight.status());
    reset = MatMul(r * h, *weight);
    if (cell.r_bias != nullptr) reset = reset + Gate(cell, Term(node, cell.r_bias), 2);
  }
  const Term candidate = Activate(cell, 1, Clipped(cell, Gate(cell, x, 2) + reset));
  const Term kept = z * h;
  return (1.0 - z) * candidate + kept;
}

Term LstmStep(NodeImporter& node, const Cell& cell, const Term& x, const Term& h, Term* c) {
  const Term gates = x + PlusBias(node, MatMul(h, cell.r), cell.r_bias);  // i, o, f, c
  const auto peep = [&](const Term& gate, int64_t k, const Term& state) {
    if (cell.peepholes == nullptr) return gate;
    return gate + Gate(cell, Term(node, cell.peepholes), k) * state;
  };
  const Term i = Activate(cell, 0, Clipped(cell, peep(Gate(cell, gates, 0), 0, *c)));
  Term f = 1.0 - i;
  if (!cell.couples_gates) {
    f = Activate(cell, 0, Clipped(cell, peep(Gate(cell, gates, 2), 2, *c)));
  }
  const Term candidate = Activate(cell, 1, Clipped(cell, Gate(cell, gates, 3)));
  const Term fresh = i * candidate;
  *c = f * *c + fresh;
  const Term o = Activate(cell, 0, Clipped(cell, peep(Gate(cell, gates, 1), 1, *c)));
  return o * Activate(cell, 2, *c);
}

// A whole node: operands X, W, R, B, sequence_lens, initial_h, initial_c, P.
struct Recurrent {
  Shape x_shape;  // [steps, batch, input]
  int64_t directions = 1;
  bool is_reverse = false;
  bool is_batch_first = false;
  std::vector<int64_t> lengths;  // empty: all steps
};

// Part d of an operand whose first dimension is the directions, without that dimension.
absl::StatusOr<ValueRef> OfDirection(NodeImporter& node, const ValueRef& value, int64_t d) {
  ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(value, 0, d, 1));
  return node.Reshaped(part, Shape(value->type.shape.begin() + 1, value->type.shape.end()));
}

// The rows of sequences that are over at step t keep what they had.
absl::StatusOr<ValueRef> KeepFinished(NodeImporter& node, const Recurrent& r, int64_t t,
                                      const ValueRef& now, const ValueRef& before) {
  if (std::all_of(r.lengths.begin(), r.lengths.end(), [&](int64_t n) { return t < n; })) {
    return now;
  }
  std::vector<ValueRef> rows;
  for (size_t i = 0; i < r.lengths.size(); ++i) {
    ASSIGN_OR_RETURN(rows.emplace_back(),
                     node.Sliced(t < r.lengths[i] ? now : before, 0, static_cast<int64_t>(i), 1));
  }
  return node.Joined(rows, 0);
}

struct Results {
  std::vector<ValueRef> y;  // by step, [batch, hidden]
  ValueRef h;
  ValueRef c;
};

absl::StatusOr<Results> RunDirection(NodeImporter& node, const Recurrent& r, const Cell& cell,
                                     const ValueRef& x, ValueRef h, ValueRef c, bool backwards) {
  const int64_t steps = r.x_shape[0];
  const int64_t batch = r.x_shape[1];
  // The products of all steps are one.
  ASSIGN_OR_RETURN(const ValueRef rows, node.Reshaped(x, {steps * batch, r.x_shape[2]}));
  Term products = PlusBias(node, MatMul(Term(node, rows), cell.w), cell.w_bias);
  RETURN_IF_ERROR(products.value.status());
  Results results;
  results.y.resize(static_cast<size_t>(steps));
  const bool ragged = !r.lengths.empty();
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = backwards ? steps - 1 - k : k;
    ASSIGN_OR_RETURN(const ValueRef now, node.Sliced(*products.value, 0, t * batch, batch));
    Term next_c(node, c);
    const Term state(node, h);
    const Term step(node, now);
    const Term next = cell.gates == 1   ? RnnStep(node, cell, step, state)
                      : cell.gates == 3 ? GruStep(node, cell, step, state)
                                        : LstmStep(node, cell, step, state, &next_c);
    RETURN_IF_ERROR(next.value.status());
    ValueRef y = *next.value;
    if (ragged) {
      ASSIGN_OR_RETURN(h, KeepFinished(node, r, t, y, h));
      const ValueRef zero = node.Floats(
          {batch, cell.hidden}, std::vector<double>(static_cast<size_t>(batch * cell.hidden), 0),
          y->type.dtype);
      ASSIGN_OR_RETURN(y, KeepFinished(node, r, t, y, zero));
      if (c != nullptr) {
        ASSIGN_OR_RETURN(c, KeepFinished(node, r, t, *next_c.value, c));
      }
    } else {
      h = y;
      if (c != nullptr) c = *next_c.value;
    }
    results.y[static_cast<size_t>(t)] = y;
  }
  results.h = h;
  results.c = c;
  return results;
}

absl::Status ReadFunctions(NodeImporter& node, Cell& cell, int64_t directions, int64_t d,
                           const std::vector<std::string>& defaults) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < directions; ++i) all.insert(all.end(), defaults.begin(), defaults.end());
  ASSIGN_OR_RETURN(all, node.StringsOr("activations", all));
  ASSIGN_OR_RETURN(const std::vector<double> alphas, node.FloatsOr("activation_alpha", {}));
  ASSIGN_OR_RETURN(const std::vector<double> betas, node.FloatsOr("activation_beta", {}));
  const size_t count = defaults.size();
  if (all.size() != count * static_cast<size_t>(directions)) {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'activations' has ", all.size(), " entries; it must have ",
                     count * static_cast<size_t>(directions))));
  }
  // Each list has values for the functions that take one of it, "consumed in the order of
  // activation functions".
  size_t next_alpha = 0;
  size_t next_beta = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    std::string name;
    for (const char ch : all[i])
      name.push_back(ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch + 32) : ch);
    constexpr absl::string_view kKnown[] = {"relu",       "tanh",     "sigmoid",  "affine",
                                            "leakyrelu",  "softsign", "softplus", "hardsigmoid",
                                            "scaledtanh", "elu"};
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      return node.FailMode(absl::StrCat("the activation ", Printable(all[i])),
                           "use Sigmoid, Tanh, Relu or another one of the operator's page");
    }
    double alpha = name == "leakyrelu" ? 0.01 : name == "hardsigmoid" ? 0.2 : 1.0;
    double beta = name == "hardsigmoid" ? 0.5 : name == "scaledtanh" ? 1.0 : 0.0;
    const bool takes_beta = name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
    const bool takes_alpha = takes_beta || name == "leakyrelu" || name == "elu";
    if (takes_alpha && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
    if (takes_beta && next_beta < betas.size()) beta = betas[next_beta++];
    if (i / count != static_cast<size_t>(d)) continue;
    cell.functions.push_back(std::move(name));
    cell.alpha.push_back(alpha);
    cell.beta.push_back(beta);
  }
  return absl::OkStatus();
}

absl::StatusOr<Recurrent> ReadRecurrent(NodeImporter& node, int64_t gates, ValueRef* x) {
  Recurrent r;
  ASSIGN_OR_RETURN(const std::string direction, node.StringOr("direction", "forward"));
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.is_reverse = direction == "reverse";
  if (r.directions == 1 && !r.is_reverse && direction != "forward") {
    return node.BadAttribute(absl::InvalidArgumentError(
        absl::StrCat("attribute 'direction' is '", Printable(direction),
                     "'; allowed are forward, reverse and bidirectional")));
  }
  ASSIGN_OR_RETURN(r.is_batch_first, node.BoolOr("layout", false));
  *x = node.input(0);
  if (node.rank(0) != 3 || node.rank(1) != 3 || node.rank(2) != 3) {
    return absl::InvalidArgumentError("X, W and R must have three dimensions each");
  }
  if (r.is_batch_first) {
    ASSIGN_OR_RETURN(*x, node.Transposed(*x, {1, 0, 2}));
  }
  r.x_shape = (*x)->type.shape;
  const int64_t hidden = node.shape(2)[2];
  const Shape w = {r.directions, gates * hidden, r.x_shape[2]};
  const Shape h = {r.directions, gates * hidden, hidden};
  if (node.shape(1) != w || node.shape(2) != h || hidden < 1 || r.x_shape[1] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "X is ", TypeToString((*x)->type), ", W ", TypeToString(node.type(1)), " and R ",
        TypeToString(node.type(2)), "; for ", r.directions, " directions they do not fit"));
  }
  if (r.x_shape[0] < 1 || r.x_shape[0] > kMaxSteps) {
    return node.FailMode(absl::StrCat(r.x_shape[0], " steps"),
                         absl::StrCat("use 1 to ", kMaxSteps, " steps"));
  }
  if (!node.has(4)) return r;
  ASSIGN_OR_RETURN(r.lengths, node.ConstantInts(4, "sequence lengths"));
  const bool fits = static_cast<int64_t>(r.lengths.size()) == r.x_shape[1] &&
                    std::all_of(r.lengths.begin(), r.lengths.end(),
                                [&](int64_t n) { return n >= 0 && n <= r.x_shape[0]; });
  if (!fits) return absl::InvalidArgumentError("the sequence lengths do not fit X");
  if (std::all_of(r.lengths.begin(), r.lengths.end(),
                  [&](int64_t n) { return n == r.x_shape[0]; })) {
    r.lengths.clear();
  }
  return r;
}

absl::StatusOr<Cell> ReadCell(NodeImporter& node, const Recurrent& r, int64_t gates, int64_t d) {
  Cell cell;
  cell.gates = gates;
  cell.hidden = node.shape(2)[2];
  ASSIGN_OR_RETURN(cell.w, OfDirection(node, node.input(1), d));
  ASSIGN_OR_RETURN(cell.r, OfDirection(node, node.input(2), d));
  if (node.has(3)) {
    if (node.shape(3) != Shape{r.directions, 2 * gates * cell.hidden}) {
      return absl::InvalidArgumentError(absl::StrCat("B is ", TypeToString(node.type(3))));
    }
    ASSIGN_OR_RETURN(const ValueRef both, OfDirection(node, node.input(3), d));
    ASSIGN_OR_RETURN(cell.w_bias, node.Sliced(both, 0, 0, gates * cell.hidden));
    ASSIGN_OR_RETURN(cell.r_bias, node.Sliced(both, 0, gates * cell.hidden, gates * cell.hidden));
  }
  if (gates == 4 && node.has(7)) {
    if (node.shape(7) != Shape{r.directions, 3 * cell.hidden}) {
      return absl::InvalidArgumentError(absl::StrCat("P is ", TypeToString(node.type(7))));
    }
    ASSIGN_OR_RETURN(cell.peepholes, OfDirection(node, node.input(7), d));
  }
  ASSIGN_OR_RETURN(cell.clip, node.FloatOr("clip", 0));
  ASSIGN_OR_RETURN(cell.linear_before_reset, node.BoolOr("linear_before_reset", false));
  ASSIGN_OR_RETURN(cell.couples_gates, node.BoolOr("input_forget", false));
  std::vector<std::string> defaults = {"Tanh"};
  if (gates == 3) defaults = {"Sigmoid", "Tanh"};
  if (gates == 4) defaults = {"Sigmoid", "Tanh", "Tanh"};
  RETURN_IF_ERROR(ReadFunctions(node, cell, r.directions, d, defaults));
  return cell;
}

// A state [directions, batch, hidden] (or batch first) of one direction; zeros where it is absent.
absl::StatusOr<ValueRef> InitialState(NodeImporter& node, const Recurrent& r, int operand,
                                      int64_t hidden, int64_t d) {
  const int64_t batch = r.x_shape[1];
  if (!node.has(operand)) {
    return node.Floats({batch, hidden}, std::vector<double>(static_cast<size_t>(batch * hidden), 0),
                       node.type(0).dtype);
  }
  ValueRef state = node.input(operand);
  if (r.is_batch_first && node.rank(operand) == 3) {
    ASSIGN_OR_RETURN(state, node.Transposed(state, {1, 0, 2}));
  }
  if (state->type.shape != Shape{r.directions, batch, hidden}) {
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", operand, " is ", TypeToString(state->type)));
  }
  return OfDirection(node, state, d);
}

// [batch, hidden] by direction -> [directions, batch, hidden], or batch first.
absl::StatusOr<ValueRef> StackStates(NodeImporter& node, const Recurrent& r,
                                     const std::vector<ValueRef>& states) {
  std::vector<ValueRef> parts;
  for (const ValueRef& state : states) {
    const Shape& s = state->type.shape;
    ASSIGN_OR_RETURN(
        parts.emplace_back(),
        node.Reshaped(state, r.is_batch_first ? Shape{s[0], 1, s[1]} : Shape{1, s[0], s[1]}));
  }
  return node.Joined(parts, r.is_batch_first ? 1 : 0);
}

// Every step of every direction: [steps, directions, batch, hidden], or [batch, steps, directions,
// hidden].
absl::StatusOr<ValueRef> StackSteps(NodeImporter& node, const Recurrent& r,
                                    const std::vector<Results>& results) {
  std::vector<ValueRef> parts;
  for (int64_t t = 0; t < r.x_shape[0]; ++t) {
    for (const Results& result : results) parts.push_back(result.y[static_cast<size_t>(t)]);
  }
  const Shape s = parts[0]->type.shape;
  ASSIGN_OR_RETURN(const ValueRef joined, node.Joined(parts, 0));
  ASSIGN_OR_RETURN(const ValueRef y,
                   node.Reshaped(joined, {r.x_shape[0], r.directions, s[0], s[1]}));
  return r.is_batch_first ? node.Transposed(y, {2, 0, 1, 3}) : y;
}

absl::Status Recur(NodeImporter& node, int64_t gates) {
  RETURN_IF_ERROR(node.ExpectInputs(3, gates == 4 ? 8 : 6));
  ValueRef x;
  ASSIGN_OR_RETURN(const Recurrent r, ReadRecurrent(node, gates, &x));
  std::vector<Results> results;
  std::vector<ValueRef> hs;
  std::vector<ValueRef> cs;
  for (int64_t d = 0; d < r.directions; ++d) {
    const bool is_backward = r.is_reverse || d == 1;
    ASSIGN_OR_RETURN(const Cell cell, ReadCell(node, r, gates, d));
    ASSIGN_OR_RETURN(ValueRef h, InitialState(node, r, 5, cell.hidden, d));
    ValueRef c;
    if (gates == 4) {
      ASSIGN_OR_RETURN(c, InitialState(node, r, 6, cell.hidden, d));
    }
    const std::string& name = node.source().name;
    if (!is_backward) {
      h = node.state().KeptState(name, "h", h);
      if (c != nullptr) c = node.state().KeptState(name, "c", c);
    }
    ASSIGN_OR_RETURN(results.emplace_back(), RunDirection(node, r, cell, x, h, c, is_backward));
    if (!is_backward) {
      node.state().SetStateAfter(name, "h", results.back().h);
      node.state().SetStateAfter(name, "c", results.back().c);
    }
    hs.push_back(results.back().h);
    cs.push_back(results.back().c);
  }
  std::vector<ValueRef> outputs(3);
  if (node.WantsOutput(0)) {
    ASSIGN_OR_RETURN(outputs[0], StackSteps(node, r, results));
  }
  if (node.WantsOutput(1)) {
    ASSIGN_OR_RETURN(outputs[1], StackStates(node, r, hs));
  }
  if (gates == 4 && node.WantsOutput(2)) {
    ASSIGN_OR_RETURN(outputs[2], StackStates(node, r, cs));
  }
  return node.SetOutputs(std::move(outputs));
}

absl::Status ImportRnn(NodeImporter& node) { return Recur(node, 1); }
absl::Status ImportGru(NodeImporter& node) { return Recur(node, 3); }
absl::Status ImportLstm(NodeImporter& node) { return Recur(node, 4); }

constexpr ImportRule kRecurrentRules[] = {
    {"GRU", ImportGru}, {"LSTM", ImportLstm}, {"RNN", ImportRnn}};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::onnx
