// Recurrent layers, unrolled over the sequence. TensorFlow Lite begins a call with the state in
// which the last one ended, until an application resets it. A layer of one step a call does so
// here, too, its state being an input and an output of the model. One of a whole sequence begins
// with zeros, as it was trained.
#include <array>
#include <optional>
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

// The name of the state in operand i.
std::string StateName(NodeImporter& node, int i) {
  const std::string& name = node.operand(i).name;
  return name.empty() ? absl::StrCat("state_", node.operand_number(i)) : name;
}

bool HasVariable(const NodeImporter& node, int i) {
  return node.input_count() > i && node.operand_number(i) >= 0 && node.operand(i).is_variable;
}

// Whether the layer's state, operand i, goes from call to call.
bool KeepsState(const NodeImporter& node, const Sequence& s, int i) {
  return s.steps == 1 && HasVariable(node, i);
}

// The state in operand i as the call begins: an input of the model.
absl::StatusOr<ValueRef> StateBefore(NodeImporter& node, int i, Shape shape) {
  ASSIGN_OR_RETURN(Variables* const states, node.States());
  ValueRef before = states->ReadState(StateName(node, i), std::move(shape), node.operand(i).quant);
  if (before == nullptr) return node.AlreadyReported(absl::CancelledError());
  return before;
}

absl::Status SetStateAfter(NodeImporter& node, int i, ValueRef value) {
  ASSIGN_OR_RETURN(Variables* const states, node.States());
  states->SetState(StateName(node, i), std::move(value));
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
  constexpr int kState = 4;
  const bool keeps = KeepsState(node, s, kState);
  ValueRef before;
  if (keeps) {
    ASSIGN_OR_RETURN(before, StateBefore(node, kState, {s.batch, node.shape(2)[0]}));
  }
  std::vector<ValueRef> states;
  for (int64_t t = 0; t < s.steps; ++t) {
    Term sum(node, node.Sliced(*inputs.value, 0, t * s.batch, s.batch));
    if (before != nullptr) sum = sum + Product(node, before, 2);
    RETURN_IF_ERROR(sum.value.status());
    ASSIGN_OR_RETURN(before, node.ActivatedState(*sum.value, o->activation()));
    states.push_back(before);
  }
  if (keeps) RETURN_IF_ERROR(SetStateAfter(node, kState, before));
  return SetSequence(node, s, states);
}

// Operands by gate in the order input, forget, cell, output.
struct Lstm {
  static constexpr int kWeights = 1;
  static constexpr int kRecurrent = 5;
  static constexpr int kPeephole = 9;  // without the cell's
  static constexpr int kBias = 12;
  static constexpr int kProjection = 16;
  static constexpr int kState = 18;  // hidden, then cell
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

// TensorFlow Lite's storage of the values inside of an LSTM of integers: sums of gates with 12 bits
// behind the point, what functions give of them with 15, the cell by its own power of two. All are
// null where the model does not say, and where a projection follows.
struct LstmStores {
  std::optional<QuantParams> sum;
  std::optional<QuantParams> share;
  std::optional<QuantParams> cell;
  std::optional<QuantParams> hidden;
};

QuantParams SixteenBits(double scale) {
  return {.dtype = DType::kInt16,
          .qmin = INT16_MIN,
          .qmax = INT16_MAX,
          .scale = {scale},
          .zero_point = {0}};
}

// The parameters of a state tensor, operand i; null where it has none.
std::optional<QuantParams> StateParams(const NodeImporter& node, int i) {
  if (node.input_count() <= i || node.operand_number(i) < 0) return std::nullopt;
  return node.operand(i).quant;
}

LstmStores StoresOf(const NodeImporter& node) {
  const std::optional<QuantParams> hidden = StateParams(node, Lstm::kState);
  const std::optional<QuantParams> cell = StateParams(node, Lstm::kState + 1);
  if (!node.operand(0).quant.has_value() || !node.output(0).quant.has_value() ||
      !hidden.has_value() || !cell.has_value() || cell->dtype != DType::kInt16 ||
      cell->scale.size() != 1 || node.has(Lstm::kProjection)) {
    return {};
  }
  return {SixteenBits(0x1p-12), SixteenBits(0x1p-15), cell, hidden};
}

// One LSTM, unrolled.
class LstmLayer {
 public:
  LstmLayer(NodeImporter& node, const fe::tflite::UnidirectionalSequenceLstmOptions& options)
      : node_(node), options_(options), stores_(StoresOf(node)), cell_(node, ValueRef()) {}

  // The states of all steps.
  absl::StatusOr<std::vector<ValueRef>> Run(const Sequence& s) {
    for (int gate = 0; gate < 4; ++gate) {
      sums_.emplace_back(node_, ValueRef());
      if (gate == 0 && IsCoupled()) continue;
      Term sums = Product(node_, s.rows, Lstm::kWeights + gate);
      if (node_.has(Lstm::kBias + gate)) sums = sums + Term(node_, node_.input(Lstm::kBias + gate));
      sums_.back() = Stored(sums, stores_.sum);
      RETURN_IF_ERROR(sums_.back().value.status());
    }
    const bool keeps = KeepsState(node_, s, Lstm::kState) && HasVariable(node_, Lstm::kState + 1);
    ValueRef before;
    if (keeps) {
      const int64_t units = node_.shape(Lstm::kRecurrent + 1)[0];
      const int64_t results = node_.shape(Lstm::kRecurrent + 1)[1];
      ASSIGN_OR_RETURN(before, StateBefore(node_, Lstm::kState, {s.batch, results}));
      cell_ = Term(node_, StateBefore(node_, Lstm::kState + 1, {s.batch, units}));
    }
    std::vector<ValueRef> states;
    for (int64_t t = 0; t < s.steps; ++t) {
      ASSIGN_OR_RETURN(before, Step(s, t, before));
      states.push_back(before);
    }
    if (keeps) {
      RETURN_IF_ERROR(SetStateAfter(node_, Lstm::kState, before));
      ASSIGN_OR_RETURN(ValueRef cell, cell_.value);
      RETURN_IF_ERROR(SetStateAfter(node_, Lstm::kState + 1, std::move(cell)));
    }
    return states;
  }

 private:
  // The input gate is 1 - the forget gate.
  bool IsCoupled() const { return !node_.has(Lstm::kWeights); }

  Term Stored(const Term& x, const std::optional<QuantParams>& params) {
    if (!params.has_value() || !x.value.ok()) return x;
    return Term(node_, node_.RequantizedInside(*x.value, *params));
  }

  Term GateSum(int gate, const Sequence& s, int64_t t, const ValueRef& before) {
    Term sum(node_, node_.Sliced(*sums_[static_cast<size_t>(gate)].value, 0, t * s.batch, s.batch));
    if (before == nullptr) return sum;
    const Term recurrent = Stored(Product(node_, before, Lstm::kRecurrent + gate), stores_.sum);
    return Stored(sum + recurrent, stores_.sum);
  }

  Term Share(const Term& sum) { return Stored(Sigmoid(sum), stores_.share); }

  // `before`: the state of the step before, null in the first one.
  absl::StatusOr<ValueRef> Step(const Sequence& s, int64_t t, const ValueRef& before) {
    const Term forget = Share(GateSum(1, s, t, before));
    const Term input =
        IsCoupled() ? Stored(1.0 - forget, stores_.share) : Share(GateSum(0, s, t, before));
    ASSIGN_OR_RETURN(const ValueRef sum, GateSum(2, s, t, before).value);
    const Term fresh_share =
        Stored(Term(node_, node_.ActivatedState(sum, options_.activation())), stores_.share);
    const Term fresh = Stored(input * fresh_share, stores_.cell);
    if (before == nullptr) {
      cell_ = fresh;
    } else {
      const Term kept = Stored(forget * cell_, stores_.cell);
      cell_ = kept + fresh;
    }
    if (options_.cell_clip() > 0) {
      cell_ = Min(Max(cell_, -options_.cell_clip()), options_.cell_clip());
    }
    cell_ = Stored(cell_, stores_.cell);
    ASSIGN_OR_RETURN(const ValueRef now, cell_.value);
    const Term shown =
        Stored(Term(node_, node_.ActivatedState(now, options_.activation())), stores_.share);
    const Term state = Stored(Share(GateSum(3, s, t, before)) * shown, stores_.hidden);
    return node_.has(Lstm::kProjection) ? Projected(state) : state.value;
  }

  absl::StatusOr<ValueRef> Projected(const Term& state) {
    RETURN_IF_ERROR(CheckWeights(node_, {Lstm::kProjection}));
    ASSIGN_OR_RETURN(const ValueRef wide, state.value);
    Term projected = Product(node_, wide, Lstm::kProjection);
    if (node_.has(Lstm::kProjection + 1)) {
      projected = projected + Term(node_, node_.input(Lstm::kProjection + 1));
    }
    if (options_.proj_clip() > 0) {
      projected = Min(Max(projected, -options_.proj_clip()), options_.proj_clip());
    }
    return projected.value;
  }

  NodeImporter& node_;
  const fe::tflite::UnidirectionalSequenceLstmOptions& options_;
  const LstmStores stores_;
  std::vector<Term> sums_;  // of the inputs of all steps, by gate
  Term cell_;
};

absl::Status ImportLstm(NodeImporter& node) {
  RETURN_IF_ERROR(CheckLstm(node));
  ASSIGN_OR_RETURN(const auto* o,
                   node.Required(node.raw().options_as_UnidirectionalSequenceLstmOptions()));
  if (o->diagonal_recurrent_tensors()) {
    return node.FailMode("diagonal recurrent weights", "use full recurrent weights");
  }
  ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, o->time_major()));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> states, LstmLayer(node, *o).Run(s));
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
  const std::string name = StateName(node, 4);
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

constexpr ImportRule kRecurrentRules[] = {{"SVDF", ImportSvdf},
                                          {"UNIDIRECTIONAL_SEQUENCE_LSTM", ImportLstm},
                                          {"UNIDIRECTIONAL_SEQUENCE_RNN", ImportRnn}};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::tflite
