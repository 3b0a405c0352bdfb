// Recurrent cells that TensorFlow computes as one operator, and layers of them.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/evaluator.h"
#include "compiler_core/frontends/common/recurrent.h"
#include "compiler_core/frontends/common/term.h"
#include "compiler_core/frontends/tensorflow/node_import.h"

namespace npuc::tf {
namespace {

using frontend::Term;

// The parameters of an LSTM; gates lie side by side in the columns of w [in + n, 4 n].
struct BlockLstm {
  ValueRef w;
  ValueRef b;
  std::array<ValueRef, 3> peepholes = {};  // of i, f and o; null: none
  double forget_bias = 0;
  double cell_clip = 0;                     // 0 or less: none
  std::array<int, 4> order = {0, 1, 2, 3};  // where i, ci, f and o lie
};

// Results of one step in the operator's order: i, cs, f, o, ci, co, h.
using LstmResults = std::array<ValueRef, 7>;

Term TimesMatrix(NodeImporter& node, absl::StatusOr<ValueRef> x, const ValueRef& w) {
  if (!x.ok()) return {node, x.status()};
  return {node, node.Emit("MatMul", {*x, w})};
}

// Source: TensorFlow's core/ops/rnn_ops.cc, LSTMBlockCell.
absl::StatusOr<LstmResults> LstmStep(NodeImporter& node, const BlockLstm& lstm, const ValueRef& x,
                                     const ValueRef& cs_prev, const ValueRef& h_prev) {
  const int64_t size = cs_prev->type.shape[1];
  const Term bias(node, lstm.b);
  const Term sums = TimesMatrix(node, node.Joined({x, h_prev}, 1), lstm.w) + bias;
  RETURN_IF_ERROR(sums.value.status());
  const auto gate = [&](int k) {
    return Term(node, node.Sliced(*sums.value, 1, lstm.order[static_cast<size_t>(k)] * size, size));
  };
  const auto peep = [&](const Term& sum, int k, const Term& state) {
    const ValueRef& weight = lstm.peepholes[static_cast<size_t>(k)];
    return weight == nullptr ? sum : sum + state * Term(node, weight);
  };
  const Term before(node, cs_prev);
  const Term i = frontend::Sigmoid(peep(gate(0), 0, before));
  const Term ci = frontend::Tanh(gate(1));
  const Term f = frontend::Sigmoid(peep(gate(2) + lstm.forget_bias, 1, before));
  const Term kept = before * f;
  Term cs = kept + ci * i;
  if (lstm.cell_clip > 0) cs = frontend::Min(frontend::Max(cs, -lstm.cell_clip), lstm.cell_clip);
  const Term o = frontend::Sigmoid(peep(gate(3), 2, cs));
  const Term co = frontend::Tanh(cs);
  const Term h = co * o;
  RETURN_IF_ERROR(h.value.status());
  return LstmResults{*i.value, *cs.value, *f.value, *o.value, *ci.value, *co.value, *h.value};
}

// Reads the parameters from operand `at` on: cs_prev, h_prev, w, wci, wcf, wco, b.
absl::StatusOr<BlockLstm> ReadLstm(NodeImporter& node, int at, int64_t inputs, double usual_bias,
                                   double usual_clip) {
  BlockLstm lstm;
  ASSIGN_OR_RETURN(lstm.forget_bias, node.FloatOr("forget_bias", usual_bias));
  ASSIGN_OR_RETURN(lstm.cell_clip, node.FloatOr("cell_clip", usual_clip));
  ASSIGN_OR_RETURN(const bool has_peepholes, node.BoolOr("use_peephole", false));
  lstm.w = node.input(at + 2);
  lstm.b = node.input(at + 6);
  const Shape& state = node.shape(at);
  const int64_t size = state.size() == 2 ? state[1] : 0;
  for (int k = 0; k < 3 && has_peepholes; ++k) {
    lstm.peepholes[static_cast<size_t>(k)] = node.input(at + 3 + k);
  }
  const bool fits =
      size > 0 && node.shape(at + 1) == state &&
      lstm.w->type.shape == Shape{inputs + size, 4 * size} &&
      lstm.b->type.shape == Shape{4 * size} &&
      std::all_of(lstm.peepholes.begin(), lstm.peepholes.end(),
                  [&](const ValueRef& v) { return v == nullptr || v->type.shape == Shape{size}; });
  if (fits) return lstm;
  return absl::InvalidArgumentError(
      absl::StrCat("states ", ShapeToString(state), ", a matrix ", TypeToString(lstm.w->type),
                   " and a bias ", TypeToString(lstm.b->type), " for ", inputs, " inputs"));
}

// Operands: x [batch, in], then as ReadLstm.
absl::Status ImportLstmCell(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(8, 8));
  node.SetRewritten();
  if (node.rank(0) != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("x is ", TypeToString(node.type(0)), "; it must be a matrix"));
  }
  ASSIGN_OR_RETURN(const BlockLstm lstm, ReadLstm(node, 1, node.shape(0)[1], 1, 3));
  ASSIGN_OR_RETURN(LstmResults results,
                   LstmStep(node, lstm, node.input(0), node.input(1), node.input(2)));
  return node.SetOutputs({results.begin(), results.end()});
}

// Operands: the number of steps, x [steps, batch, in], then as ReadLstm. Behind that number all
// results are zeros. BlockLSTMV2 has its gates in the order i, f, ci, o and adds no bias to f.
absl::Status ImportLstmLayer(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(9, 9));
  node.SetRewritten();
  if (node.rank(1) != 3 || node.shape(1)[0] < 1 ||
      node.shape(1)[0] > frontend::kMaxRecurrentSteps) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence ", ShapeToString(node.shape(1)),
                                                   "; allowed are 1 to ",
                                                   frontend::kMaxRecurrentSteps, " steps"));
  }
  const bool is_second = node.node().op() == "BlockLSTMV2";
  ASSIGN_OR_RETURN(BlockLstm lstm,
                   ReadLstm(node, 2, node.shape(1)[2], is_second ? 0 : 1, is_second ? 0 : 3));
  if (is_second) lstm.order = {0, 2, 1, 3};
  ASSIGN_OR_RETURN(int64_t used, node.ConstantInt(0, "number of steps"));
  const int64_t steps = node.shape(1)[0];
  used = std::clamp<int64_t>(used, 0, steps);
  const Shape step_shape = {1, node.shape(2)[0], node.shape(2)[1]};
  std::array<std::vector<ValueRef>, 7> parts;
  ValueRef cs = node.input(2);
  ValueRef h = node.input(3);
  for (int64_t t = 0; t < used; ++t) {
    ASSIGN_OR_RETURN(ValueRef x, node.Sliced(node.input(1), 0, t, 1));
    ASSIGN_OR_RETURN(x, node.Reshaped(x, {node.shape(1)[1], node.shape(1)[2]}));
    ASSIGN_OR_RETURN(const LstmResults results, LstmStep(node, lstm, x, cs, h));
    cs = results[1];
    h = results[6];
    for (size_t k = 0; k < parts.size(); ++k) {
      ASSIGN_OR_RETURN(ValueRef part, node.Reshaped(results[k], step_shape));
      parts[k].push_back(std::move(part));
    }
  }
  ValueRef rest;  // the results behind the last step
  if (used < steps) {
    ASSIGN_OR_RETURN(const Tensor zeros,
                     EvaluateBroadcast(Tensor::FromFloats({}, {0}),
                                       {steps - used, step_shape[1], step_shape[2]}));
    rest = node.MakeConstant(CastTensor(zeros, node.type(1).dtype));
  }
  std::vector<ValueRef> outputs;
  for (std::vector<ValueRef>& part : parts) {
    if (rest != nullptr) part.push_back(rest);
    ASSIGN_OR_RETURN(ValueRef all, node.Joined(part, 0));
    outputs.push_back(std::move(all));
  }
  return node.SetOutputs(std::move(outputs));
}

// Operands: x [batch, in], h_prev [batch, n], w_ru [in + n, 2 n], w_c [in + n, n], b_ru, b_c.
// Results r, u, c, h. Source: TensorFlow's core/ops/rnn_ops.cc, GRUBlockCell.
absl::Status ImportGruCell(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(6, 6));
  node.SetRewritten();
  const Shape& state = node.shape(1);
  const int64_t size = state.size() == 2 ? state[1] : 0;
  const int64_t rows = node.rank(0) == 2 ? node.shape(0)[1] + size : 0;
  if (size < 1 || rows < 1 || node.shape(2) != Shape{rows, 2 * size} ||
      node.shape(3) != Shape{rows, size} || node.shape(4) != Shape{2 * size} ||
      node.shape(5) != Shape{size}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a state ", ShapeToString(state), ", matrices ", TypeToString(node.type(2)), " and ",
        TypeToString(node.type(3)), " for an operand ", TypeToString(node.type(0))));
  }
  const Term h(node, node.input(1));
  const Term gate_bias(node, node.input(4));
  const Term gates = frontend::Sigmoid(
      TimesMatrix(node, node.Joined({node.input(0), node.input(1)}, 1), node.input(2)) + gate_bias);
  RETURN_IF_ERROR(gates.value.status());
  const Term r(node, node.Sliced(*gates.value, 1, 0, size));
  const Term u(node, node.Sliced(*gates.value, 1, size, size));
  const Term reset = h * r;
  RETURN_IF_ERROR(reset.value.status());
  const Term bias(node, node.input(5));
  const Term c = frontend::Tanh(
      TimesMatrix(node, node.Joined({node.input(0), *reset.value}, 1), node.input(3)) + bias);
  const Term change = h - c;
  const Term next = c + u * change;  // (1 - u) c + u h
  RETURN_IF_ERROR(next.value.status());
  return node.SetOutputs({*r.value, *u.value, *c.value, *next.value});
}

constexpr ImportRule kRecurrentRules[] = {
    {"BlockLSTM", ImportLstmLayer},
    {"BlockLSTMV2", ImportLstmLayer},
    {"GRUBlockCell", ImportGruCell},
    {"LSTMBlockCell", ImportLstmCell},
};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::tf
