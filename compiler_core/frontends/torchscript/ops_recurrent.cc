// Recurrent layers, unrolled step by step into matrix products and activations.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/torchscript/op_call.h"

namespace npuc::pt {
namespace {

enum class Cell { kGru, kLstm, kTanh, kRelu };

// The parameters of one layer in one direction; biases and projection may be null.
struct Weights {
  ValueRef input, hidden, input_bias, hidden_bias, projection;
};
struct State {
  ValueRef h;
  ValueRef c;  // of an LSTM
};

absl::StatusOr<ValueRef> Affine(OpCall& call, const ValueRef& x, const ValueRef& weight,
                                const ValueRef& bias) {
  ASSIGN_OR_RETURN(ValueRef y, call.Emit("MatMul", {x, weight},
                                         {{"transpose_a", false}, {"transpose_b", true}}));
  if (bias == nullptr) return y;
  return call.Emit("Add", {y, bias});
}

// r, z, n = gates; h' = n + z (h - n), which is (1 - z) n + z h.
absl::StatusOr<State> GruStep(OpCall& call, const ValueRef& gi, const ValueRef& gh,
                              const State& state) {
  const int64_t n = state.h->type.shape[1];
  ASSIGN_OR_RETURN(const ValueRef gi_rz, call.Sliced(gi, 1, 0, 2 * n));
  ASSIGN_OR_RETURN(const ValueRef gh_rz, call.Sliced(gh, 1, 0, 2 * n));
  ASSIGN_OR_RETURN(ValueRef rz, call.Emit("Add", {gi_rz, gh_rz}));
  ASSIGN_OR_RETURN(rz, call.Emit("Sigmoid", {rz}));
  ASSIGN_OR_RETURN(const ValueRef r, call.Sliced(rz, 1, 0, n));
  ASSIGN_OR_RETURN(const ValueRef z, call.Sliced(rz, 1, n, n));
  ASSIGN_OR_RETURN(const ValueRef gi_n, call.Sliced(gi, 1, 2 * n, n));
  ASSIGN_OR_RETURN(ValueRef candidate, call.Sliced(gh, 1, 2 * n, n));
  ASSIGN_OR_RETURN(candidate, call.Emit("Mul", {r, candidate}));
  ASSIGN_OR_RETURN(candidate, call.Emit("Add", {gi_n, candidate}));
  ASSIGN_OR_RETURN(candidate, call.Emit("Tanh", {candidate}));
  ASSIGN_OR_RETURN(ValueRef h, call.Emit("Sub", {state.h, candidate}));
  ASSIGN_OR_RETURN(h, call.Emit("Mul", {z, h}));
  ASSIGN_OR_RETURN(h, call.Emit("Add", {candidate, h}));
  return State{std::move(h), nullptr};
}

// i, f, g, o = gates; c' = f c + i g; h' = o tanh(c').
absl::StatusOr<State> LstmStep(OpCall& call, const ValueRef& gi, const ValueRef& gh,
                               const State& state, const ValueRef& projection) {
  const int64_t n = state.c->type.shape[1];
  ASSIGN_OR_RETURN(const ValueRef gates, call.Emit("Add", {gi, gh}));
  ASSIGN_OR_RETURN(ValueRef input_forget, call.Sliced(gates, 1, 0, 2 * n));
  ASSIGN_OR_RETURN(input_forget, call.Emit("Sigmoid", {input_forget}));
  ASSIGN_OR_RETURN(ValueRef candidate, call.Sliced(gates, 1, 2 * n, n));
  ASSIGN_OR_RETURN(candidate, call.Emit("Tanh", {candidate}));
  ASSIGN_OR_RETURN(ValueRef output, call.Sliced(gates, 1, 3 * n, n));
  ASSIGN_OR_RETURN(output, call.Emit("Sigmoid", {output}));
  ASSIGN_OR_RETURN(ValueRef input, call.Sliced(input_forget, 1, 0, n));
  ASSIGN_OR_RETURN(ValueRef forget, call.Sliced(input_forget, 1, n, n));
  ASSIGN_OR_RETURN(forget, call.Emit("Mul", {forget, state.c}));
  ASSIGN_OR_RETURN(input, call.Emit("Mul", {input, candidate}));
  ASSIGN_OR_RETURN(ValueRef c, call.Emit("Add", {forget, input}));
  ASSIGN_OR_RETURN(ValueRef h, call.Emit("Tanh", {c}));
  ASSIGN_OR_RETURN(h, call.Emit("Mul", {output, h}));
  if (projection != nullptr) {
    ASSIGN_OR_RETURN(h, Affine(call, h, projection, nullptr));
  }
  return State{std::move(h), std::move(c)};
}

// One step: gi is the input's share of the gates.
absl::StatusOr<State> Advance(OpCall& call, Cell cell, const ValueRef& gi, const Weights& weights,
                              const State& state) {
  ASSIGN_OR_RETURN(const ValueRef gh, Affine(call, state.h, weights.hidden, weights.hidden_bias));
  if (cell == Cell::kGru) return GruStep(call, gi, gh, state);
  if (cell == Cell::kLstm) return LstmStep(call, gi, gh, state, weights.projection);
  ASSIGN_OR_RETURN(ValueRef h, call.Emit("Add", {gi, gh}));
  ASSIGN_OR_RETURN(h, call.Emit(cell == Cell::kTanh ? "Tanh" : "Relu", {h}));
  return State{std::move(h), nullptr};
}

// The sequence x [T,B,I] through one layer in one direction: results [1,B,H], by time.
absl::StatusOr<std::vector<ValueRef>> RunDirection(OpCall& call, Cell cell, const ValueRef& x,
                                                   const Weights& weights, bool reverse,
                                                   State& state) {
  const Shape shape = x->type.shape;
  const int64_t steps = shape[0];
  const int64_t batch = shape[1];
  // The input's share of all steps is one matrix product.
  ASSIGN_OR_RETURN(ValueRef flat, call.Reshaped(x, {steps * batch, shape[2]}));
  ASSIGN_OR_RETURN(const ValueRef gates, Affine(call, flat, weights.input, weights.input_bias));
  std::vector<ValueRef> results(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i;
    ASSIGN_OR_RETURN(const ValueRef gi, call.Sliced(gates, 0, t * batch, batch));
    ASSIGN_OR_RETURN(state, Advance(call, cell, gi, weights, state));
    ASSIGN_OR_RETURN(results[t], call.Reshaped(state.h, {1, batch, state.h->type.shape[1]}));
  }
  return results;
}

struct Layer {
  Cell cell = Cell::kGru;
  bool has_biases = true;
  int64_t layers = 1;
  bool bidirectional = false;
  bool batch_first = false;
  std::vector<ValueRef> parameters;
  ValueRef h;  // [layers * directions, B, H]
  ValueRef c;
  ValueRef x;
};

absl::Status CheckLayer(const Layer& layer) {
  const Shape& x = layer.x->type.shape;
  const Shape& h = layer.h->type.shape;
  const int64_t directions = layer.bidirectional ? 2 : 1;
  if (layer.layers < 1 || layer.layers > 64) {
    return absl::InvalidArgumentError(absl::StrCat(layer.layers, " layers; allowed are 1 to 64"));
  }
  if (x.size() != 3 || h.size() != 3 || h[0] != layer.layers * directions ||
      h[1] != x[layer.batch_first ? 0 : 1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state ", TypeToString(layer.h->type), " does not fit the input ",
                     TypeToString(layer.x->type), " and ", layer.layers, " layers"));
  }
  if (x[0] < 1 || x[1] < 1 || x[2] < 1) {
    return absl::InvalidArgumentError("the sequence is empty");
  }
  if (layer.c != nullptr && (layer.c->type.shape.size() != 3 || layer.c->type.shape[0] != h[0] ||
                             layer.c->type.shape[1] != h[1])) {
    return absl::InvalidArgumentError("the cell state does not fit the hidden state");
  }
  return absl::OkStatus();
}

// The parameters of direction `index`, counted over layers and directions.
absl::StatusOr<Weights> WeightsOf(const Layer& layer, size_t index) {
  const bool projects = layer.c != nullptr && layer.c->type.shape[2] != layer.h->type.shape[2];
  const size_t count = 2 + (layer.has_biases ? 2 : 0) + (projects ? 1 : 0);
  const size_t first = index * count;
  if (layer.parameters.size() < first + count) {
    return absl::InvalidArgumentError(
        absl::StrCat(layer.parameters.size(), " parameters are too few for the layers"));
  }
  Weights weights;
  weights.input = layer.parameters[first];
  weights.hidden = layer.parameters[first + 1];
  if (layer.has_biases) {
    weights.input_bias = layer.parameters[first + 2];
    weights.hidden_bias = layer.parameters[first + 3];
  }
  if (projects) weights.projection = layer.parameters[first + count - 1];
  const int64_t gates = layer.cell == Cell::kGru ? 3 : (layer.cell == Cell::kLstm ? 4 : 1);
  const int64_t units = (layer.c != nullptr ? layer.c : layer.h)->type.shape[2];
  if (weights.input->type.shape.size() != 2 || weights.hidden->type.shape.size() != 2 ||
      weights.input->type.shape[0] != gates * units ||
      weights.hidden->type.shape[0] != gates * units) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", TypeToString(weights.input->type),
                                                   " and ", TypeToString(weights.hidden->type),
                                                   " do not fit ", units, " units"));
  }
  return weights;
}

// One entry of a state [n,B,H] as [B,H].
absl::StatusOr<ValueRef> EntryOf(OpCall& call, const ValueRef& state, int64_t index) {
  if (state == nullptr) return ValueRef();
  ASSIGN_OR_RETURN(const ValueRef entry, call.Sliced(state, 0, index, 1));
  return call.Reshaped(entry, {state->type.shape[1], state->type.shape[2]});
}

absl::StatusOr<ValueRef> StackStates(OpCall& call, const std::vector<ValueRef>& states) {
  std::vector<ValueRef> parts;
  for (const ValueRef& state : states) {
    Shape shape = state->type.shape;
    shape.insert(shape.begin(), 1);
    ASSIGN_OR_RETURN(parts.emplace_back(), call.Reshaped(state, std::move(shape)));
  }
  return call.Joined(parts, 0);
}

// output, h and, of an LSTM, c.
absl::StatusOr<ScriptValue> RunLayers(OpCall& call, Layer& layer) {
  RETURN_IF_ERROR(CheckLayer(layer));
  const Shape shape = layer.x->type.shape;
  ValueRef x = layer.x;
  const bool turns = layer.batch_first;
  const auto turned = [&](const ValueRef& value) -> absl::StatusOr<ValueRef> {
    const Shape s = value->type.shape;
    if (s[0] == 1 || s[1] == 1) return call.Reshaped(value, {s[1], s[0], s[2]});
    return call.Transposed(value, {1, 0, 2});
  };
  if (turns) {
    ASSIGN_OR_RETURN(x, turned(x));
  }
  const int64_t directions = layer.bidirectional ? 2 : 1;
  std::vector<ValueRef> last_h;
  std::vector<ValueRef> last_c;
  for (int64_t level = 0; level < layer.layers; ++level) {
    std::vector<ValueRef> both;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = level * directions + direction;
      ASSIGN_OR_RETURN(const Weights weights, WeightsOf(layer, static_cast<size_t>(index)));
      State state;
      ASSIGN_OR_RETURN(state.h, EntryOf(call, layer.h, index));
      ASSIGN_OR_RETURN(state.c, EntryOf(call, layer.c, index));
      const std::string& name = call.source().name;
      const std::string suffix = layer.layers > 1 ? absl::StrCat("_", level) : "";
      if (direction == 0) {
        state.h = call.state().KeptState(name, absl::StrCat("h", suffix), state.h);
        if (state.c != nullptr) {
          state.c = call.state().KeptState(name, absl::StrCat("c", suffix), state.c);
        }
      }
      ASSIGN_OR_RETURN(const std::vector<ValueRef> results,
                       RunDirection(call, layer.cell, x, weights, direction == 1, state));
      if (direction == 0) {
        call.state().SetStateAfter(name, absl::StrCat("h", suffix), state.h);
        call.state().SetStateAfter(name, absl::StrCat("c", suffix), state.c);
      }
      ASSIGN_OR_RETURN(both.emplace_back(), call.Joined(results, 0));
      last_h.push_back(state.h);
      last_c.push_back(state.c);
    }
    ASSIGN_OR_RETURN(x, call.Joined(both, 2));
  }
  if (turns) {
    ASSIGN_OR_RETURN(x, turned(x));
  }
  ASSIGN_OR_RETURN(ValueRef h, StackStates(call, last_h));
  std::vector<ScriptValue> results = {call.Result(std::move(x)), call.Result(std::move(h))};
  if (layer.cell == Cell::kLstm) {
    ASSIGN_OR_RETURN(ValueRef c, StackStates(call, last_c));
    results.push_back(call.Result(std::move(c)));
  }
  return call.state().heap.Tuple(std::move(results));
}

Cell CellOf(absl::string_view name) {
  if (absl::StartsWith(name, "gru")) return Cell::kGru;
  if (absl::StartsWith(name, "lstm")) return Cell::kLstm;
  return absl::StartsWith(name, "rnn_tanh") ? Cell::kTanh : Cell::kRelu;
}

absl::string_view RowOf(Cell cell) {
  if (cell == Cell::kGru) return "GRU";
  return cell == Cell::kLstm ? "LSTM" : "RNN";
}

// input, hx (a list of h and c of an LSTM), params, has_biases, num_layers, dropout, train,
// bidirectional, batch_first
absl::StatusOr<ScriptValue> ImportRecurrent(OpCall& call) {
  Layer layer;
  layer.cell = CellOf(call.name());
  call.set_row(RowOf(layer.cell));
  if (!call.arg(2).IsSequence() || call.arg(3).IsSequence()) {
    return call.FailMode("a packed sequence, whose lengths are data",
                         "feed sequences of one length, without pack_padded_sequence");
  }
  ASSIGN_OR_RETURN(layer.x, call.TensorArg(0));
  if (layer.cell == Cell::kLstm) {
    ASSIGN_OR_RETURN(const std::vector<ValueRef> states, call.Tensors(1));
    if (states.size() != 2) return absl::InvalidArgumentError("an LSTM has two states");
    layer.h = states[0];
    layer.c = states[1];
  } else {
    ASSIGN_OR_RETURN(layer.h, call.TensorArg(1));
  }
  ASSIGN_OR_RETURN(layer.parameters, call.Tensors(2));
  ASSIGN_OR_RETURN(layer.has_biases, call.BoolOr(3, true));
  ASSIGN_OR_RETURN(layer.layers, call.IntOr(4, 1));
  ASSIGN_OR_RETURN(const double dropout, call.FloatOr(5, 0));
  ASSIGN_OR_RETURN(const bool trains, call.BoolOr(6, false));
  ASSIGN_OR_RETURN(layer.bidirectional, call.BoolOr(7, false));
  ASSIGN_OR_RETURN(layer.batch_first, call.BoolOr(8, false));
  if (trains && dropout > 0) {
    return call.FailMode("dropout between the layers runs in training mode",
                         "call model.eval() before torch.jit.trace or torch.jit.script");
  }
  return RunLayers(call, layer);
}

// input, hx, w_ih, w_hh, b_ih, b_hh
absl::StatusOr<ScriptValue> ImportCell(OpCall& call) {
  const Cell cell = CellOf(call.name());
  call.set_row(RowOf(cell));
  ASSIGN_OR_RETURN(const ValueRef x, call.TensorArg(0));
  State state;
  if (cell == Cell::kLstm) {
    ASSIGN_OR_RETURN(const std::vector<ValueRef> states, call.Tensors(1));
    if (states.size() != 2) return absl::InvalidArgumentError("an LSTM has two states");
    state = {states[0], states[1]};
  } else {
    ASSIGN_OR_RETURN(state.h, call.TensorArg(1));
  }
  Weights weights;
  ASSIGN_OR_RETURN(weights.input, call.TensorArg(2));
  ASSIGN_OR_RETURN(weights.hidden, call.TensorArg(3));
  ASSIGN_OR_RETURN(weights.input_bias, call.OptionalTensor(4));
  ASSIGN_OR_RETURN(weights.hidden_bias, call.OptionalTensor(5));
  const int64_t gates = cell == Cell::kGru ? 3 : (cell == Cell::kLstm ? 4 : 1);
  const Shape& h = state.h->type.shape;
  if (x->type.shape.size() != 2 || h.size() != 2 || weights.hidden->type.shape.size() != 2 ||
      weights.hidden->type.shape[0] != gates * h[1] ||
      (state.c != nullptr && state.c->type.shape != h)) {
    return absl::InvalidArgumentError(absl::StrCat("the state ", TypeToString(state.h->type),
                                                   " does not fit the input ",
                                                   TypeToString(x->type), " and the weights"));
  }
  ASSIGN_OR_RETURN(const ValueRef gi, Affine(call, x, weights.input, weights.input_bias));
  ASSIGN_OR_RETURN(State next, Advance(call, cell, gi, weights, state));
  const ScriptValue result = call.Result(std::move(next.h));
  if (cell != Cell::kLstm) return result;
  return call.state().heap.Tuple({result, call.Result(std::move(next.c))});
}

constexpr absl::string_view kLayer =
    "input hx params has_biases num_layers dropout train bidirectional batch_first";
constexpr absl::string_view kCell = "input hx w_ih w_hh b_ih b_hh";

constexpr OpRule kRecurrentRules[] = {
    {"gru", kLayer, ImportRecurrent},      {"gru_cell", kCell, ImportCell},
    {"lstm", kLayer, ImportRecurrent},     {"lstm_cell", kCell, ImportCell},
    {"rnn_relu", kLayer, ImportRecurrent}, {"rnn_relu_cell", kCell, ImportCell},
    {"rnn_tanh", kLayer, ImportRecurrent}, {"rnn_tanh_cell", kCell, ImportCell},
};

}  // namespace

absl::Span<const OpRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::pt
