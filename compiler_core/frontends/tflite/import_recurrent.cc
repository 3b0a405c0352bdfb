// Recurrent layers: unrolled over the sequence from a state of zeros, or, of one step, with a state
// that goes from frame to frame.
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tflite/node_import.h"
#include "compiler_core/frontends/tflite/variables.h"
#include "compiler_core/ops/facts.h"
#include "npuc/fe/tflite/npuc_tflite_generated.h"

namespace npuc::tflite {
namespace {

constexpr int64_t kMaxSteps = 4096;

// x [rows, in] by a weight [out, in].
Term Product(NodeImporter& node, const ValueRef& x, int weight) {
  absl::StatusOr<ValueRef> transposed = node.TransposedWeight(node.input(weight));
  if (!transposed.ok()) return Term(node, transposed.status());
  return Term(node, node.Emit("MatMul", {x, *transposed}));
}

// The operand as [time * batch, in], and how many there are of each.
struct Sequence {
  ValueRef rows;
  int64_t steps = 0;
  int64_t batch = 0;
  bool time_major = false;
};

absl::StatusOr<Sequence> ReadSequence(NodeImporter& node, bool time_major) {
  if (node.rank(0) != 3) return absl::InvalidArgumentError("a sequence of rank 3 is needed");
  Sequence s;
  s.time_major = time_major;
  ValueRef x = node.input(0);
  if (!time_major) {
    ASSIGN_OR_RETURN(x, node.Transposed(x, {1, 0, 2}));
  }
  s.steps = x->type.shape[0];
  s.batch = x->type.shape[1];
  if (s.steps < 1 || s.steps > kMaxSteps || s.batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence of ", s.steps, " steps"));
  }
  ASSIGN_OR_RETURN(s.rows, node.Reshaped(x, {s.steps * s.batch, x->type.shape[2]}));
  return s;
}

// The states of all steps, each [batch, units], as the operator's result.
absl::Status SetSequence(NodeImporter& node, const Sequence& s, const std::vector<ValueRef>& all) {
  const int64_t units = all[0]->type.shape[1];
  ASSIGN_OR_RETURN(ValueRef joined, node.Joined(all, 0));
  ASSIGN_OR_RETURN(joined, node.Reshaped(joined, {s.steps, s.batch, units}));
  if (s.time_major) return node.SetOutput(std::move(joined));
  return node.SetOutput(node.Transposed(joined, {1, 0, 2}));
}

absl::Status CheckWeights(NodeImporter& node, std::initializer_list<int> weights) {
  for (const int i : weights) {
    if (node.has(i) && node.IsKnown(i) && node.rank(i) == 2) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operand ", i, " is no constant matrix of weights"));
  }
  return absl::OkStatus();
}

// Operands: x, weights [units, in], recurrent weights [units, units], bias, state.
absl::Status ImportRnn(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 5));
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_SequenceRnnOptions()));
  RETURN_IF_ERROR(CheckWeights(node, {1, 2}));
  ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, o->time_major()));
  Term inputs = Product(node, s.rows, 1);
  if (node.has(3)) inputs = inputs + Term(node, node.input(3));
  RETURN_IF_ERROR(inputs.value.status());
  std::vector<ValueRef> states;
  for (int64_t t = 0; t < s.steps; ++t) {
    Term sum(node, node.Sliced(*inputs.value, 0, t * s.batch, s.batch));
    if (t > 0) sum = sum + Product(node, states.back(), 2);
    RETURN_IF_ERROR(sum.value.status());
    ASSIGN_OR_RETURN(states.emplace_back(), node.ActivatedState(*sum.value, o->activation()));
  }
  return SetSequence(node, s, states);
}

// Operands by gate in the order input, forget, cell, output.
struct Lstm {
  static constexpr int kWeights = 1;
  static constexpr int kRecurrent = 5;
  static constexpr int kPeephole = 9;  // without the cell's
  static constexpr int kBias = 12;
  static constexpr int kProjection = 16;
  static constexpr int kNorm = 20;
};

absl::Status CheckLstm(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 24));
  RETURN_IF_ERROR(CheckWeights(node, {2, 3, 4, 6, 7, 8}));
  if (node.has(Lstm::kWeights) != node.has(Lstm::kRecurrent)) {
    return absl::InvalidArgumentError("one of the input gate's weights is missing");
  }
  for (const int i : {Lstm::kPeephole, Lstm::kPeephole + 1, Lstm::kPeephole + 2}) {
    if (node.has(i)) return node.FailMode("peepholes", "train the layer without peepholes");
  }
  for (int i = Lstm::kNorm; i < Lstm::kNorm + 4; ++i) {
    if (node.has(i)) {
      return node.FailMode("layer normalisation inside", "normalise outside of the layer");
    }
  }
  return absl::OkStatus();
}

absl::Status ImportLstm(NodeImporter& node) {
  RETURN_IF_ERROR(CheckLstm(node));
  ASSIGN_OR_RETURN(const auto* o,
                   node.Required(node.raw().options_as_UnidirectionalSequenceLstmOptions()));
  if (o->diagonal_recurrent_tensors()) {
    return node.FailMode("diagonal recurrent weights", "use full recurrent weights");
  }
  ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, o->time_major()));
  const bool is_coupled = !node.has(Lstm::kWeights);  // the input gate is 1 - the forget gate
  std::vector<Term> inputs(4, Term(node, ValueRef()));
  for (int gate = is_coupled ? 1 : 0; gate < 4; ++gate) {
    inputs[static_cast<size_t>(gate)] = Product(node, s.rows, Lstm::kWeights + gate);
    Term& sums = inputs[static_cast<size_t>(gate)];
    if (node.has(Lstm::kBias + gate)) sums = sums + Term(node, node.input(Lstm::kBias + gate));
    RETURN_IF_ERROR(sums.value.status());
  }
  std::vector<ValueRef> states;
  Term cell(node, ValueRef());
  for (int64_t t = 0; t < s.steps; ++t) {
    const auto gate_sum = [&](int gate) {
      Term sum(node,
               node.Sliced(*inputs[static_cast<size_t>(gate)].value, 0, t * s.batch, s.batch));
      return t == 0 ? sum : sum + Product(node, states.back(), Lstm::kRecurrent + gate);
    };
    const Term forget = Sigmoid(gate_sum(1));
    const Term input = is_coupled ? 1.0 - forget : Sigmoid(gate_sum(0));
    ASSIGN_OR_RETURN(const ValueRef sum, gate_sum(2).value);
    const Term fresh = input * Term(node, node.ActivatedState(sum, o->activation()));
    cell = t == 0 ? fresh : forget * cell + fresh;
    if (o->cell_clip() > 0) cell = Min(Max(cell, -o->cell_clip()), o->cell_clip());
    ASSIGN_OR_RETURN(const ValueRef now, cell.value);
    const Term shown(node, node.ActivatedState(now, o->activation()));
    Term state = Sigmoid(gate_sum(3)) * shown;
    if (node.has(Lstm::kProjection)) {
      RETURN_IF_ERROR(CheckWeights(node, {Lstm::kProjection}));
      ASSIGN_OR_RETURN(const ValueRef wide, state.value);
      state = Product(node, wide, Lstm::kProjection);
      if (node.has(Lstm::kProjection + 1)) {
        state = state + Term(node, node.input(Lstm::kProjection + 1));
      }
      if (o->proj_clip() > 0) state = Min(Max(state, -o->proj_clip()), o->proj_clip());
    }
    ASSIGN_OR_RETURN(states.emplace_back(), state.value);
  }
  return SetSequence(node, s, states);
}

// The matrix of weights over time [filters, memory] as the kernel of a convolution over a state
// [batch, memory, 1, filters]: each unit sums the memory of `rank` filters.
absl::StatusOr<ValueRef> TimeKernel(NodeImporter& node, int64_t rank) {
  const int64_t filters = node.shape(2)[0];
  const int64_t memory = node.shape(2)[1];
  ASSIGN_OR_RETURN(ValueRef kernel, node.Reshaped(node.input(2), {filters / rank, rank, memory}));
  ASSIGN_OR_RETURN(kernel, node.Transposed(kernel, {2, 1, 0}));
  if (rank == 1) return node.Reshaped(kernel, {memory, 1, filters, 1});
  return node.Reshaped(kernel, {memory, 1, rank, filters / rank});
}

absl::Status CheckSvdf(NodeImporter& node, int64_t rank) {
  RETURN_IF_ERROR(node.ExpectInputs(3, 5));
  RETURN_IF_ERROR(CheckWeights(node, {1, 2}));
  const Shape& feature = node.shape(1);
  const Shape& time = node.shape(2);
  if (node.rank(0) != 2 || node.shape(0)[1] != feature[1] || feature[0] != time[0] ||
      feature[0] < 1 || time[1] < 1 || rank < 1 || feature[0] % rank != 0) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", TypeToString(node.type(1)), " and ",
                                                   TypeToString(node.type(2)), " with rank ", rank,
                                                   " do not fit ", TypeToString(node.type(0))));
  }
  if (node.input_count() < 5 || node.operand_number(4) < 0 || !node.operand(4).is_variable) {
    return node.FailMode("a state that is no variable", "convert the model with a variable state");
  }
  return absl::OkStatus();
}

// Operands: x, weights of features [filters, in], weights over time [filters, memory], bias, state.
// The products of this frame's x with the first join those of the frames before; each unit is a sum
// over time. The state is kept as [batch, memory, filters], the oldest frame first.
absl::Status ImportSvdf(NodeImporter& node) {
  ASSIGN_OR_RETURN(const auto* o, node.Required(node.raw().options_as_SvdfOptions()));
  const int64_t rank = o->rank();
  RETURN_IF_ERROR(CheckSvdf(node, rank));
  ASSIGN_OR_RETURN(Variables* const states, node.States());
  const TensorView& stored = node.operand(4);
  const std::string name =
      stored.name.empty() ? absl::StrCat("state_", node.operand_number(4)) : stored.name;
  const int64_t batch = node.shape(0)[0];
  const int64_t filters = node.shape(1)[0];
  const int64_t memory = node.shape(2)[1];
  ASSIGN_OR_RETURN(const ValueRef weight, node.TransposedWeight(node.input(1)));
  ASSIGN_OR_RETURN(ValueRef fresh,
                   node.Emit("MatMul", {node.input(0), weight}, {{kSvdfFact, true}}));
  if (stored.quant.has_value()) {
    ASSIGN_OR_RETURN(fresh, node.Requantized(fresh, *stored.quant));
  }
  ASSIGN_OR_RETURN(fresh, node.Reshaped(fresh, {batch, 1, filters}));
  const ValueRef before = states->ReadState(name, {batch, memory, filters}, stored.quant);
  if (before == nullptr) return node.AlreadyReported(absl::CancelledError());
  ValueRef now = fresh;
  if (memory > 1) {
    ASSIGN_OR_RETURN(const ValueRef kept, node.Sliced(before, 1, 1, memory - 1));
    ASSIGN_OR_RETURN(now, node.Joined({kept, fresh}, 1));
  }
  states->SetState(name, now);
  ASSIGN_OR_RETURN(const ValueRef image, node.Reshaped(now, {batch, memory, 1, filters}));
  ASSIGN_OR_RETURN(const ValueRef kernel, TimeKernel(node, rank));
  ASSIGN_OR_RETURN(ValueRef sums,
                   node.Emit(rank == 1 ? "DepthwiseConv2D" : "Conv2D", {image, kernel},
                             {{"strides", Shape{1, 1}},
                              {"dilations", Shape{1, 1}},
                              {"pads", Shape{0, 0, 0, 0}},
                              {kSvdfFact, true}}));
  if (node.has(3)) {
    ASSIGN_OR_RETURN(sums, node.Emit("Add", {sums, node.input(3)}));
  }
  ASSIGN_OR_RETURN(sums, node.Reshaped(sums, {batch, filters / rank}));
  return node.SetActivated(std::move(sums), o->activation());
}

constexpr ImportRule kRules[] = {{"SVDF", ImportSvdf},
                                 {"UNIDIRECTIONAL_SEQUENCE_LSTM", ImportLstm},
                                 {"UNIDIRECTIONAL_SEQUENCE_RNN", ImportRnn}};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRules; }

}  // namespace npuc::tflite
