#include "compiler_core/frontends/common/recurrent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc::frontend {
namespace {

Term PlusBias(const Term& x, const ValueRef& bias) {
  return bias == nullptr ? x : x + Term(*x.node, bias);
}

// `size` columns of a matrix, or elements of a vector.
Term Columns(const Term& x, int64_t begin, int64_t size) {
  if (!x.value.ok()) return x;
  const int64_t axis = static_cast<int64_t>((*x.value)->type.shape.size()) - 1;
  return Term(*x.node, x.node->Sliced(*x.value, axis, begin, size));
}

class Stepper {
 public:
  Stepper(Emitter& node, const RecurrentCell& cell) : node_(node), cell_(cell) {}

  // `x`: this step's W x + w.
  absl::StatusOr<RecurrentState> Step(const Term& x, const RecurrentState& before) {
    const Term h(node_, before.h);
    hidden_ = before.h->type.shape[1];
    if (cell_.kind == RecurrentCell::Kind::kLstm) return LstmStep(x, before);
    Term next = h;
    if (cell_.kind == RecurrentCell::Kind::kGru) {
      next = GruStep(x, h);
    } else {
      const Term of_h = PlusBias(TimesTransposed(h, cell_.hidden), cell_.hidden_bias);
      next = cell_.function(x + of_h);
    }
    RETURN_IF_ERROR(next.value.status());
    return RecurrentState{*next.value, nullptr};
  }

 private:
  Term Gate(const Term& x, int gate) {
    return Columns(x, cell_.order[static_cast<size_t>(gate)] * hidden_, hidden_);
  }

  Term GruStep(const Term& x, const Term& h) {
    const Term of_h = PlusBias(TimesTransposed(h, cell_.hidden), cell_.hidden_bias);
    const auto gate = [&](int k) {
      const Term part = Gate(of_h, k);
      return cell_.gate(Gate(x, k) + part);
    };
    const Term z = gate(0);
    const Term r = gate(1);
    Term reset = r * Gate(of_h, 2);
    if (cell_.resets_before) {
      const int64_t begin = cell_.order[2] * hidden_;
      const absl::StatusOr<ValueRef> weight = node_.Sliced(cell_.hidden, 0, begin, hidden_);
      if (!weight.ok()) return Term(node_, weight.status());
      reset = TimesTransposed(r * h, *weight);
      if (cell_.hidden_bias != nullptr) reset = reset + Gate(Term(node_, cell_.hidden_bias), 2);
    }
    const Term candidate = cell_.function(Gate(x, 2) + reset);
    if (cell_.swaps_update) {
      const Term change = candidate - h;
      return h + z * change;
    }
    const Term change = h - candidate;
    return candidate + z * change;
  }

  absl::StatusOr<RecurrentState> LstmStep(const Term& x, const RecurrentState& before) {
    const Term of_h =
        PlusBias(TimesTransposed(Term(node_, before.h), cell_.hidden), cell_.hidden_bias);
    const Term gates = x + of_h;
    const Term c(node_, before.c);
    const auto peep = [&](const Term& gate, int64_t k, const Term& state) {
      if (cell_.peepholes == nullptr) return gate;
      return gate + Columns(Term(node_, cell_.peepholes), k * hidden_, hidden_) * state;
    };
    const Term i = cell_.gate(peep(Gate(gates, 0), 0, c));
    const Term f = cell_.gate(peep(Gate(gates, 1), 1, c));
    const Term g = cell_.function(Gate(gates, 2));
    const Term kept = f * c;
    const Term next_c = kept + i * g;
    const Term o = cell_.gate(peep(Gate(gates, 3), 2, next_c));
    const Term next_h = o * cell_.shown(next_c);
    RETURN_IF_ERROR(next_h.value.status());
    return RecurrentState{*next_h.value, *next_c.value};
  }

  Emitter& node_;
  const RecurrentCell& cell_;
  int64_t hidden_ = 0;
};

absl::Status CheckShapes(const RecurrentCell& cell, const Shape& x, const RecurrentState& state) {
  if (x.size() != 3 || x[0] < 1 || x[0] > kMaxRecurrentSteps || x[1] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sequence ", ShapeToString(x), "; allowed are 1 to ", kMaxRecurrentSteps, " steps"));
  }
  const Shape& hidden = cell.hidden->type.shape;
  const int64_t rows = hidden.size() == 2 ? cell.gates() * hidden[1] : 0;
  const auto is_vector = [&](const ValueRef& v, int64_t size) {
    return v == nullptr || v->type.shape == Shape{size};
  };
  const bool fits =
      rows > 0 && hidden[0] == rows &&
      (cell.input == nullptr ? x[2] == rows : cell.input->type.shape == Shape{rows, x[2]}) &&
      is_vector(cell.input_bias, rows) && is_vector(cell.hidden_bias, rows) &&
      is_vector(cell.peepholes, 3 * hidden[1]);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights ", cell.input == nullptr ? "" : TypeToString(cell.input->type),
                     " and ", TypeToString(cell.hidden->type), " for a sequence ", ShapeToString(x),
                     " and ", cell.gates(), " gates"));
  }
  for (const ValueRef& part : {state.h, state.c}) {
    if (part == nullptr || part->type.shape == Shape{x[1], hidden[1]}) continue;
    return absl::InvalidArgumentError(absl::StrCat("a state ", TypeToString(part->type)));
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<RecurrentCell> CellOfMode(absl::string_view mode,
                                        const std::array<absl::string_view, 4>& modes) {
  RecurrentCell cell;
  if (mode == modes[0]) {
    cell.kind = RecurrentCell::Kind::kLstm;  // i, f, g, o
  } else if (mode == modes[1]) {
    cell.kind = RecurrentCell::Kind::kGru;
    cell.order = {1, 0, 2, 3};  // r, z, n
  } else if (mode == modes[2]) {
    cell.function = Relu;
  } else if (mode != modes[3]) {
    return std::nullopt;
  }
  return cell;
}

Term TimesTransposed(const Term& x, const ValueRef& weight) {
  if (!x.value.ok()) return x;
  return Term(*x.node, x.node->Emit("MatMul", {*x.value, weight},
                                    {{"transpose_a", false}, {"transpose_b", true}}));
}

ValueRef ZeroState(Emitter& node, int64_t batch, int64_t hidden) {
  return node.MakeConstant(Tensor::Zeros({DType::kFloat32, {batch, hidden}}));
}

absl::StatusOr<std::vector<ValueRef>> RunRecurrent(Emitter& node, const RecurrentCell& cell,
                                                   const ValueRef& x, bool is_backward,
                                                   const ValueRef& kept, RecurrentState& state) {
  const Shape shape = x->type.shape;
  RETURN_IF_ERROR(CheckShapes(cell, shape, state));
  const int64_t steps = shape[0];
  const int64_t batch = shape[1];
  // The operand's share of all steps is one matrix product.
  Term shares(node, node.Reshaped(x, {steps * batch, shape[2]}));
  if (cell.input != nullptr) shares = TimesTransposed(shares, cell.input);
  shares = PlusBias(shares, cell.input_bias);
  RETURN_IF_ERROR(shares.value.status());
  const std::string& layer = node.source().name;
  const std::string h = absl::StrCat("h", cell.level);
  const std::string c = absl::StrCat("c", cell.level);
  if (!is_backward) {
    state.h = node.state().KeptState(layer, h, state.h);
    if (state.c != nullptr) state.c = node.state().KeptState(layer, c, state.c);
  }
  std::vector<ValueRef> results(static_cast<size_t>(steps));
  Stepper stepper(node, cell);
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = is_backward ? steps - 1 - k : k;
    if (kept != nullptr) {
      ASSIGN_OR_RETURN(ValueRef factor, node.Sliced(kept, 0, t, 1));
      ASSIGN_OR_RETURN(factor, node.Reshaped(factor, {batch, 1}));
      for (ValueRef* part : {&state.h, &state.c}) {
        if (*part == nullptr) continue;
        ASSIGN_OR_RETURN(*part, node.Emit("Mul", {*part, factor}));
      }
    }
    const Term share(node, node.Sliced(*shares.value, 0, t * batch, batch));
    ASSIGN_OR_RETURN(state, stepper.Step(share, state));
    results[static_cast<size_t>(t)] = state.h;
  }
  if (!is_backward) {
    node.state().SetStateAfter(layer, h, state.h);
    node.state().SetStateAfter(layer, c, state.c);
  }
  return results;
}

absl::StatusOr<ValueRef> StackedSteps(Emitter& node, const std::vector<ValueRef>& steps) {
  const Shape step = steps[0]->type.shape;
  ASSIGN_OR_RETURN(ValueRef joined, node.Joined(steps, 0));
  return node.Reshaped(joined, {static_cast<int64_t>(steps.size()), step[0], step[1]});
}

absl::StatusOr<StackResults> RunRecurrentStack(Emitter& node, const RecurrentStack& stack,
                                               ValueRef x) {
  std::vector<ValueRef> hs;
  std::vector<ValueRef> cs;
  const auto state_of = [&](const ValueRef& all, int64_t i) -> absl::StatusOr<ValueRef> {
    if (all == nullptr) return ValueRef();
    const Shape& shape = all->type.shape;
    if (shape.size() != 3 || i >= shape[0]) {
      return absl::InvalidArgumentError(absl::StrCat("states ", TypeToString(all->type)));
    }
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(all, 0, i, 1));
    return node.Reshaped(part, {shape[1], shape[2]});
  };
  for (size_t level = 0; level < stack.layers.size(); ++level) {
    std::vector<RecurrentCell> directions = stack.layers[level];
    std::vector<ValueRef> parts;
    for (size_t d = 0; d < directions.size(); ++d) {
      if (stack.layers.size() > 1) directions[d].level = absl::StrCat("_", level);
      RecurrentState state;
      const auto i = static_cast<int64_t>(hs.size());
      ASSIGN_OR_RETURN(state.h, state_of(stack.h, i));
      ASSIGN_OR_RETURN(state.c, state_of(stack.c, i));
      ASSIGN_OR_RETURN(const std::vector<ValueRef> steps,
                       RunRecurrent(node, directions[d], x, d == 1, nullptr, state));
      ASSIGN_OR_RETURN(parts.emplace_back(), StackedSteps(node, steps));
      hs.push_back(state.h);
      if (state.c != nullptr) cs.push_back(state.c);
    }
    x = parts[0];
    if (parts.size() > 1) {
      ASSIGN_OR_RETURN(x, node.Joined(parts, 2));
    }
  }
  StackResults results{x, nullptr, nullptr};
  ASSIGN_OR_RETURN(results.h, StackedSteps(node, hs));
  if (!cs.empty()) {
    ASSIGN_OR_RETURN(results.c, StackedSteps(node, cs));
  }
  return results;
}

}  // namespace npuc::frontend
