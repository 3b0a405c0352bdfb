// Recurrent layers: the rnn of 2.x, the lstm and gru of fluid. Lookups of rows.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/recurrent.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/paddle/op_import.h"

namespace npuc::paddle {
namespace {

using frontend::RecurrentCell;
using frontend::RecurrentStack;

constexpr int64_t kMaxLayers = 64;

// Operands: Input [steps, batch, in], PreState [layers * directions, batch, units] (of an LSTM h
// and c), WeightList: W and R of each layer and direction, then their biases likewise.
absl::Status ImportRnn(OpImporter& node) {
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", "RNN_TANH"));
  const auto cell = frontend::CellOfMode(mode, {"LSTM", "GRU", "RNN_RELU", "RNN_TANH"});
  if (!cell.has_value()) {
    return node.FailMode(absl::StrCat("mode ", mode), "use LSTM, GRU, RNN_TANH or RNN_RELU");
  }
  ASSIGN_OR_RETURN(const int64_t count, node.IntOr("num_layers", 1));
  ASSIGN_OR_RETURN(const bool is_bidirectional, node.BoolOr("is_bidirec", false));
  const size_t directions = is_bidirectional ? 2 : 1;
  ASSIGN_OR_RETURN(const ValueRef x, node.In("Input"));
  if (node.Takes("SequenceLength")) {
    return node.FailMode("sequence lengths", "use sequences of one length");
  }
  const std::vector<ValueRef> weights = node.All("WeightList");
  const std::vector<ValueRef> states = node.All("PreState");
  const bool has_cell = cell->kind == RecurrentCell::Kind::kLstm;
  if (count < 1 || count > kMaxLayers || states.size() != (has_cell ? 2u : 1u) ||
      weights.size() != 4 * directions * static_cast<size_t>(count)) {
    return absl::InvalidArgumentError(absl::StrCat(count, " layers with ", weights.size(),
                                                   " weights and ", states.size(), " states"));
  }
  RecurrentStack stack;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::vector<RecurrentCell>& layer = stack.layers.emplace_back();
    for (size_t d = 0; d < directions; ++d) {
      const size_t at = 2 * (i * directions + d);
      const size_t biases = at + weights.size() / 2;
      layer.push_back(*cell);
      layer.back().input = weights[at];
      layer.back().hidden = weights[at + 1];
      layer.back().input_bias = weights[biases];
      layer.back().hidden_bias = weights[biases + 1];
    }
  }
  stack.h = states[0];
  if (has_cell) stack.c = states[1];
  ASSIGN_OR_RETURN(frontend::StackResults results, RunRecurrentStack(node, stack, x));
  std::vector<ValueRef> after = {results.h};
  if (has_cell) after.push_back(results.c);
  RETURN_IF_ERROR(node.Give("State", std::move(after)));
  return node.Give("Out", results.y);
}

absl::StatusOr<RecurrentCell::Function> FunctionOf(OpImporter& node, absl::string_view attribute,
                                                   absl::string_view fallback) {
  ASSIGN_OR_RETURN(const std::string name, node.StringOr(attribute, std::string(fallback)));
  if (name == "sigmoid") return frontend::Sigmoid;
  if (name == "tanh") return frontend::Tanh;
  if (name == "relu") return frontend::Relu;
  if (name == "identity" || name.empty()) {
    return RecurrentCell::Function([](const Term& x) { return x; });
  }
  return node.FailMode(absl::StrCat(attribute, " ", name), "use sigmoid, tanh, relu or identity");
}

// A weight of fluid, [units, gates * units], with its gates in rows.
absl::StatusOr<ValueRef> GatesInRows(OpImporter& node, const ValueRef& weight) {
  return node.Transposed(weight, {1, 0});
}

// The state that an operand states, [1, units], or zeros.
absl::StatusOr<ValueRef> FirstState(OpImporter& node, absl::string_view parameter, int64_t units) {
  const ValueRef given = node.Optional(parameter);
  return given == nullptr ? ZeroState(node, 1, units) : given;
}

// The facts of both operators of fluid: one sequence, each row of Input a step's W x already.
struct FluidLayer {
  ValueRef x;  // [steps, 1, gates * units]
  int64_t units = 0;
  bool is_backward = false;
  ValueRef bias;  // [columns], or null
};

absl::StatusOr<FluidLayer> ReadFluid(OpImporter& node, int64_t gates) {
  FluidLayer layer;
  ASSIGN_OR_RETURN(const ValueRef rows, node.In("Input"));
  ASSIGN_OR_RETURN(const ValueRef weight, node.In("Weight"));
  const Shape& w = weight->type.shape;
  const Shape& x = rows->type.shape;
  if (w.size() != 2 || w[1] != gates * w[0] || x.size() != 2 || x[1] != w[1]) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence ", TypeToString(rows->type),
                                                   " with a weight ", TypeToString(weight->type)));
  }
  layer.units = w[0];
  ASSIGN_OR_RETURN(layer.x, node.Reshaped(rows, {x[0], 1, x[1]}));
  ASSIGN_OR_RETURN(layer.is_backward, node.BoolOr("is_reverse", false));
  if (const ValueRef bias = node.Optional("Bias")) {
    ASSIGN_OR_RETURN(layer.bias, node.Reshaped(bias, {bias->type.element_count()}));
  }
  return layer;
}

// The results of one sequence, [steps, units].
absl::StatusOr<ValueRef> Rows(OpImporter& node, const std::vector<ValueRef>& steps) {
  return node.Joined(steps, 0);
}

// The lstm of fluid: gates c, i, f, o; a bias of 7 * units has the peepholes of i, f and o behind
// that of the gates.
absl::Status ImportLstm(OpImporter& node) {
  ASSIGN_OR_RETURN(FluidLayer layer, ReadFluid(node, 4));
  RecurrentCell cell;
  cell.kind = RecurrentCell::Kind::kLstm;
  cell.order = {1, 2, 0, 3};
  ASSIGN_OR_RETURN(const ValueRef weight, node.In("Weight"));
  ASSIGN_OR_RETURN(cell.hidden, GatesInRows(node, weight));
  ASSIGN_OR_RETURN(const bool has_peepholes, node.BoolOr("use_peepholes", true));
  if (layer.bias != nullptr) {
    const int64_t wanted = (has_peepholes ? 7 : 4) * layer.units;
    if (layer.bias->type.element_count() != wanted) {
      return absl::InvalidArgumentError(absl::StrCat("a bias ", TypeToString(layer.bias->type),
                                                     " where ", wanted, " numbers stand"));
    }
    ASSIGN_OR_RETURN(cell.hidden_bias, node.Sliced(layer.bias, 0, 0, 4 * layer.units));
    if (has_peepholes) {
      ASSIGN_OR_RETURN(cell.peepholes,
                       node.Sliced(layer.bias, 0, 4 * layer.units, 3 * layer.units));
    }
  }
  ASSIGN_OR_RETURN(cell.gate, FunctionOf(node, "gate_activation", "sigmoid"));
  ASSIGN_OR_RETURN(cell.shown, FunctionOf(node, "cell_activation", "tanh"));
  ASSIGN_OR_RETURN(cell.function, FunctionOf(node, "candidate_activation", "tanh"));
  frontend::RecurrentState state;
  ASSIGN_OR_RETURN(state.h, FirstState(node, "H0", layer.units));
  ASSIGN_OR_RETURN(state.c, FirstState(node, "C0", layer.units));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> steps,
                   RunRecurrent(node, cell, layer.x, layer.is_backward, nullptr, state));
  return node.Give("Hidden", Rows(node, steps));
}

// The gru of fluid: gates u, r, c. Its weight is [units, 2 * units] of u and r, and behind these
// [units, units] of c, in one array.
absl::Status ImportGru(OpImporter& node) {
  ASSIGN_OR_RETURN(FluidLayer layer, ReadFluid(node, 3));
  const int64_t units = layer.units;
  RecurrentCell cell;
  cell.kind = RecurrentCell::Kind::kGru;
  cell.resets_before = true;
  ASSIGN_OR_RETURN(const bool is_original, node.BoolOr("origin_mode", false));
  cell.swaps_update = !is_original;
  ASSIGN_OR_RETURN(const ValueRef weight, node.In("Weight"));
  ASSIGN_OR_RETURN(const ValueRef flat, node.Reshaped(weight, {3 * units * units}));
  std::vector<ValueRef> parts;
  int64_t begin = 0;
  for (const int64_t wide : {2 * units, units}) {
    ASSIGN_OR_RETURN(ValueRef part, node.Sliced(flat, 0, begin, units * wide));
    ASSIGN_OR_RETURN(part, node.Reshaped(part, {units, wide}));
    ASSIGN_OR_RETURN(parts.emplace_back(), GatesInRows(node, part));
    begin += units * wide;
  }
  ASSIGN_OR_RETURN(cell.hidden, node.Joined(parts, 0));
  cell.input_bias = layer.bias;
  ASSIGN_OR_RETURN(cell.gate, FunctionOf(node, "gate_activation", "sigmoid"));
  ASSIGN_OR_RETURN(cell.function, FunctionOf(node, "activation", "tanh"));
  frontend::RecurrentState state;
  ASSIGN_OR_RETURN(state.h, FirstState(node, "H0", units));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> steps,
                   RunRecurrent(node, cell, layer.x, layer.is_backward, nullptr, state));
  return node.Give("Hidden", Rows(node, steps));
}

// Operands: W [rows, units], Ids; those of the first version have a last dimension of 1. Ids of
// padding_idx give zeros.
absl::Status ImportLookup(OpImporter& node) {
  ASSIGN_OR_RETURN(ValueRef table, node.In("W"));
  ASSIGN_OR_RETURN(ValueRef ids, node.In("Ids"));
  ASSIGN_OR_RETURN(const int64_t padding, node.IntOr("padding_idx", -1));
  const Shape rows = table->type.shape;
  if (rows.size() != 2) return absl::InvalidArgumentError("the table must have rank 2");
  if (padding >= 0 && padding < rows[0]) {
    std::vector<ValueRef> parts;
    const auto add = [&](int64_t first, int64_t count) -> absl::Status {
      if (count == 0) return absl::OkStatus();
      ASSIGN_OR_RETURN(parts.emplace_back(), node.Sliced(table, 0, first, count));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(add(0, padding));
    parts.push_back(node.MakeConstant(Tensor::Zeros({table->type.dtype, {1, rows[1]}})));
    RETURN_IF_ERROR(add(padding + 1, rows[0] - padding - 1));
    ASSIGN_OR_RETURN(table, node.Joined(parts, 0));
  }
  Shape shape = ids->type.shape;
  if (node.node().type() == "lookup_table" && !shape.empty() && shape.back() == 1) {
    shape.pop_back();
    ASSIGN_OR_RETURN(ids, node.Reshaped(ids, std::move(shape)));
  }
  return node.Give("Out", LookedUp(node, table, ids, /*axis=*/0, /*may_be_negative=*/false));
}

constexpr ImportRule kRecurrentRules[] = {
    {"gru", ImportGru},
    {"lookup_table", ImportLookup},
    {"lookup_table_v2", ImportLookup},
    {"lstm", ImportLstm},
    {"rnn", ImportRnn},
};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::paddle
