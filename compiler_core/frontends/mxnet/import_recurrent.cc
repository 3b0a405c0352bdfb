// The fused RNN, the operators that pick steps of a sequence, and Embedding.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/common/recurrent.h"
#include "compiler_core/frontends/common/selection.h"
#include "compiler_core/frontends/mxnet/node_import.h"

namespace npuc::mxnet {
namespace {

using frontend::RecurrentCell;
using frontend::RecurrentStack;

constexpr int64_t kMaxLayers = 64;
constexpr int64_t kMaxUnits = 1 << 16;

struct Layers {
  RecurrentCell cell;  // without its weights
  int64_t hidden = 0;
  int64_t count = 1;
  int64_t directions = 1;
};

absl::StatusOr<Layers> ReadLayers(NodeImporter& node) {
  Layers layers;
  ASSIGN_OR_RETURN(const std::string mode, node.StringOr("mode", ""));
  const auto cell = frontend::CellOfMode(mode, {"lstm", "gru", "rnn_relu", "rnn_tanh"});
  if (!cell.has_value()) {
    return node.BadChoice("mode", mode, "lstm, gru, rnn_tanh and rnn_relu");
  }
  layers.cell = *cell;
  ASSIGN_OR_RETURN(layers.hidden, node.RequiredInt("state_size"));
  ASSIGN_OR_RETURN(layers.count, node.RequiredInt("num_layers"));
  ASSIGN_OR_RETURN(const bool is_bidirectional, node.BoolOr("bidirectional", false));
  layers.directions = is_bidirectional ? 2 : 1;
  if (layers.count < 1 || layers.count > kMaxLayers || layers.hidden < 1 ||
      layers.hidden > kMaxUnits) {
    return absl::InvalidArgumentError(absl::StrCat(layers.count, " layers of ", layers.hidden,
                                                   " units; allowed are ", kMaxLayers,
                                                   " layers of ", kMaxUnits));
  }
  ASSIGN_OR_RETURN(const int64_t projection, node.IntOr("projection_size", 0));
  if (projection != 0) return node.FailMode("a projection", "use projection_size None");
  ASSIGN_OR_RETURN(const bool has_lengths, node.BoolOr("use_sequence_length", false));
  if (has_lengths) return node.FailMode("sequence lengths", "use sequences of one length");
  ASSIGN_OR_RETURN(const double low, node.FloatOr("lstm_state_clip_min", 0));
  ASSIGN_OR_RETURN(const double high, node.FloatOr("lstm_state_clip_max", 0));
  if (low != 0 || high != 0) return node.FailMode("a clipped state", "use no lstm_state_clip");
  return layers;
}

// Cuts the one vector of parameters: the weights of all layers and directions, W before R, then
// the biases likewise.
absl::StatusOr<RecurrentStack> CutParameters(NodeImporter& node, const Layers& layers) {
  const ValueRef& all = node.input(1);
  const int64_t rows = layers.cell.gates() * layers.hidden;
  const int64_t wide = layers.directions * layers.hidden;
  const int64_t first_in = node.shape(0)[2];
  int64_t wanted = 0;
  for (int64_t i = 0; i < layers.count; ++i) {
    wanted += layers.directions * rows * ((i == 0 ? first_in : wide) + layers.hidden + 2);
  }
  if (all->type.shape != Shape{wanted}) {
    return absl::InvalidArgumentError(absl::StrCat("the parameters are ", TypeToString(all->type),
                                                   "; ", layers.count, " layers of ", layers.hidden,
                                                   " units over ", first_in, " have ", wanted));
  }
  int64_t at = 0;
  const auto take = [&](Shape shape) -> absl::StatusOr<ValueRef> {
    const int64_t size = ElementCount(shape);
    ASSIGN_OR_RETURN(const ValueRef part, node.Sliced(all, 0, at, size));
    at += size;
    return node.Reshaped(part, std::move(shape));
  };
  RecurrentStack stack;
  stack.layers.assign(
      static_cast<size_t>(layers.count),
      std::vector<RecurrentCell>(static_cast<size_t>(layers.directions), layers.cell));
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    for (RecurrentCell& cell : stack.layers[i]) {
      ASSIGN_OR_RETURN(cell.input, take({rows, i == 0 ? first_in : wide}));
      ASSIGN_OR_RETURN(cell.hidden, take({rows, layers.hidden}));
    }
  }
  for (std::vector<RecurrentCell>& directions : stack.layers) {
    for (RecurrentCell& cell : directions) {
      ASSIGN_OR_RETURN(cell.input_bias, take({rows}));
      ASSIGN_OR_RETURN(cell.hidden_bias, take({rows}));
    }
  }
  return stack;
}

// The state in operand i; zeros where it is left out, or states no batch, as begin_state(0) does.
absl::StatusOr<ValueRef> StateOf(NodeImporter& node, int i, const Layers& layers) {
  const Shape wanted = {layers.count * layers.directions, node.shape(0)[1], layers.hidden};
  if (!node.has(i) || (node.IsConstant(i) && node.type(i).element_count() == 0)) {
    return node.MakeConstant(Tensor::Zeros({DType::kFloat32, wanted}));
  }
  if (node.shape(i) == wanted) return node.input(i);
  return absl::InvalidArgumentError(
      absl::StrCat("state ", TypeToString(node.type(i)), " for ", ShapeToString(wanted)));
}

// Operands: data [steps, batch, in], parameters, state [layers * directions, batch, units], and
// the cell of an LSTM.
absl::Status ImportRnn(NodeImporter& node) {
  ASSIGN_OR_RETURN(const Layers layers, ReadLayers(node));
  const bool has_cell = layers.cell.kind == RecurrentCell::Kind::kLstm;
  RETURN_IF_ERROR(node.ExpectInputs(2, has_cell ? 4 : 3));
  if (node.rank(0) != 3) return absl::InvalidArgumentError("the data must have rank 3");
  ASSIGN_OR_RETURN(RecurrentStack stack, CutParameters(node, layers));
  ASSIGN_OR_RETURN(stack.h, StateOf(node, 2, layers));
  if (has_cell) {
    ASSIGN_OR_RETURN(stack.c, StateOf(node, 3, layers));
  }
  ASSIGN_OR_RETURN(const frontend::StackResults results,
                   RunRecurrentStack(node, stack, node.input(0)));
  ASSIGN_OR_RETURN(const bool gives_states, node.BoolOr("state_outputs", false));
  std::vector<ValueRef> outputs = {results.y};
  if (gives_states) outputs.push_back(results.h);
  if (gives_states && has_cell) outputs.push_back(results.c);
  return node.SetOutputs(std::move(outputs));
}

absl::Status ImportParameters(NodeImporter& node) {
  std::vector<ValueRef> parts;
  for (int i = 0; i < node.input_count(); ++i) {
    if (!node.has(i)) return absl::InvalidArgumentError("an operand is missing");
    ASSIGN_OR_RETURN(parts.emplace_back(),
                     node.Reshaped(node.input(i), {node.type(i).element_count()}));
  }
  if (parts.empty()) return absl::InvalidArgumentError("there are no operands");
  return node.SetOutput(node.Joined(parts, 0));
}

// The axis of the steps, where all sequences have the same length.
absl::StatusOr<int64_t> StepAxis(NodeImporter& node) {
  ASSIGN_OR_RETURN(const bool has_lengths, node.BoolOr("use_sequence_length", false));
  if (has_lengths) return node.FailMode("sequence lengths", "use sequences of one length");
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t axis, node.AxisOr("axis", 0));
  if (node.shape(0)[static_cast<size_t>(axis)] >= 1) return axis;
  return absl::InvalidArgumentError("a sequence without steps");
}

absl::Status ImportSequenceLast(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int64_t axis, StepAxis(node));
  Shape shape = node.shape(0);
  ASSIGN_OR_RETURN(const ValueRef last,
                   node.Sliced(node.input(0), axis, shape[static_cast<size_t>(axis)] - 1, 1));
  shape.erase(shape.begin() + axis);
  return node.SetOutput(node.Reshaped(last, std::move(shape)));
}

absl::Status ImportSequenceReverse(NodeImporter& node) {
  ASSIGN_OR_RETURN(const int64_t axis, StepAxis(node));
  const int64_t steps = node.shape(0)[static_cast<size_t>(axis)];
  return node.SetOutput(steps == 1 ? node.input(0)
                                   : node.Sliced(node.input(0), axis, steps - 1, steps, -1));
}

absl::Status ImportSequenceMask(NodeImporter& node) {
  RETURN_IF_ERROR(StepAxis(node).status());
  return node.SetOutput(node.input(0));
}

// Operands: indices, weight [rows, units].
absl::Status ImportEmbedding(NodeImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(2, 2));
  if (node.rank(1) != 2) return absl::InvalidArgumentError("the weight must have rank 2");
  ASSIGN_OR_RETURN(const ValueRef indices, CastTo(node, node.input(0), DType::kInt32));
  return node.SetOutput(
      LookedUp(node, node.input(1), indices, /*axis=*/0, /*may_be_negative=*/false));
}

constexpr ImportRule kRecurrentRules[] = {
    {"Embedding", ImportEmbedding, 1},          {"RNN", ImportRnn, 1, kAnyOperand, 2},
    {"SequenceLast", ImportSequenceLast},       {"SequenceMask", ImportSequenceMask},
    {"SequenceReverse", ImportSequenceReverse}, {"_rnn_param_concat", ImportParameters, 0},
};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::mxnet
