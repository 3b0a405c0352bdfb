// LSTM and RNN, and lookups of rows. Caffe's layers go on from frame to frame: cont [steps, batch]
// is 0 at the first step of a sequence and 1 elsewhere, so the state of the frame before is an
// input NAME_h (of an LSTM NAME_c, too) and an output NAME_h_out, unless no first step reads it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/caffe/node_import.h"
#include "compiler_core/frontends/common/recurrent.h"
#include "compiler_core/frontends/common/selection.h"

namespace npuc::caffe {
namespace {

using frontend::RecurrentCell;
using frontend::RecurrentState;

// Bottoms: x [steps, batch, ...], cont, and with expose_hidden the states [1, batch, units]. A
// static input is refused.
struct Recurrent {
  ValueRef x;     // [steps, batch, in]
  ValueRef cont;  // null: one sequence from its beginning
  int64_t units = 0;
  bool exposes_states = false;
};

absl::StatusOr<Recurrent> ReadRecurrent(LayerImporter& node, int states) {
  Recurrent r;
  ASSIGN_OR_RETURN(r.units, node.BoundedOr("num_output", 0, 1));
  ASSIGN_OR_RETURN(r.exposes_states, node.BoolOr("expose_hidden", false));
  const int exposed = r.exposes_states ? states : 0;
  if (node.input_count() == 3 + exposed) {
    return node.FailMode("a static input", "join it with the first bottom, step by step");
  }
  RETURN_IF_ERROR(node.ExpectInputs(1, 2 + exposed));
  if (r.exposes_states && node.input_count() != 2 + exposed) {
    return absl::InvalidArgumentError("expose_hidden is set, and a state is missing");
  }
  const Shape& shape = node.shape(0);
  if (shape.size() < 2) return absl::InvalidArgumentError("the first bottom has no batch");
  const int64_t rows = shape[0] * shape[1];
  if (rows < 1) return absl::InvalidArgumentError("the sequence is empty");
  ASSIGN_OR_RETURN(r.x,
                   node.Reshaped(node.input(0), {shape[0], shape[1], ElementCount(shape) / rows}));
  if (!node.has(1)) return r;
  if (node.shape(1) != Shape{shape[0], shape[1]}) {
    return absl::InvalidArgumentError(absl::StrCat("cont is ", TypeToString(node.type(1)), " for ",
                                                   shape[0], " steps of ", shape[1]));
  }
  r.cont = node.input(1);
  return r;
}

// True where some sequence may go on at the first step.
bool GoesOn(const Recurrent& r) {
  if (r.cont == nullptr) return false;
  if (!r.cont->constant.has_value()) return true;
  for (int64_t i = 0; i < r.cont->type.shape[1]; ++i) {
    if (r.cont->constant->at(i) != 0) return true;
  }
  return false;
}

// The state before the first step: bottom `bottom`, an input of the model, or zeros.
absl::StatusOr<ValueRef> StateBefore(LayerImporter& node, const Recurrent& r, int bottom,
                                     absl::string_view what) {
  const Shape shape = {r.x->type.shape[1], r.units};
  if (r.exposes_states) return node.Reshaped(node.input(bottom), shape);
  if (GoesOn(r)) return node.StateBefore(what, shape);
  return ZeroState(node, shape[0], shape[1]);
}

absl::Status SetResults(LayerImporter& node, const Recurrent& r, const std::vector<ValueRef>& steps,
                        const RecurrentState& state) {
  ASSIGN_OR_RETURN(const ValueRef y, StackedSteps(node, steps));
  std::vector<ValueRef> outputs = {y};
  const auto hand_on = [&](const ValueRef& value, absl::string_view what) -> absl::Status {
    if (value == nullptr) return absl::OkStatus();
    if (r.exposes_states) {
      ASSIGN_OR_RETURN(outputs.emplace_back(),
                       node.Reshaped(value, {1, value->type.shape[0], value->type.shape[1]}));
    } else if (GoesOn(r)) {
      node.SetStateAfter(what, value);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(hand_on(state.h, "h"));
  RETURN_IF_ERROR(hand_on(state.c, "c"));
  return node.SetOutputs(std::move(outputs));
}

// Blobs: W [4 units, in] of the gates i, f, o, g, their bias, R [4 units, units].
absl::Status ImportLstm(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Recurrent r, ReadRecurrent(node, 2));
  RETURN_IF_ERROR(node.ExpectBlobs(3));
  RecurrentCell cell;
  cell.kind = RecurrentCell::Kind::kLstm;
  cell.order = {0, 1, 3, 2};
  const int64_t rows = 4 * r.units;
  ASSIGN_OR_RETURN(cell.input, node.Blob(0, "input weight", {rows, r.x->type.shape[2]}));
  ASSIGN_OR_RETURN(cell.input_bias, node.Blob(1, "bias", {rows}));
  ASSIGN_OR_RETURN(cell.hidden, node.Blob(2, "recurrent weight", {rows, r.units}));
  RecurrentState state;
  ASSIGN_OR_RETURN(state.h, StateBefore(node, r, 2, "h"));
  ASSIGN_OR_RETURN(state.c, StateBefore(node, r, 3, "c"));
  ASSIGN_OR_RETURN(const std::vector<ValueRef> steps,
                   RunRecurrent(node, cell, r.x, false, r.cont, state));
  return SetResults(node, r, steps, state);
}

// Blobs: W, bias, R; and those of the result o = tanh(W_ho h + b_o).
absl::Status ImportRnn(LayerImporter& node) {
  ASSIGN_OR_RETURN(const Recurrent r, ReadRecurrent(node, 1));
  RETURN_IF_ERROR(node.ExpectBlobs(5));
  RecurrentCell cell;
  ASSIGN_OR_RETURN(cell.input, node.Blob(0, "input weight", {r.units, r.x->type.shape[2]}));
  ASSIGN_OR_RETURN(cell.input_bias, node.Blob(1, "bias", {r.units}));
  ASSIGN_OR_RETURN(cell.hidden, node.Blob(2, "recurrent weight", {r.units, r.units}));
  ASSIGN_OR_RETURN(const ValueRef weight, node.Blob(3, "result's weight", {r.units, r.units}));
  ASSIGN_OR_RETURN(const ValueRef bias, node.Blob(4, "result's bias", {r.units}));
  RecurrentState state;
  ASSIGN_OR_RETURN(state.h, StateBefore(node, r, 2, "h"));
  ASSIGN_OR_RETURN(std::vector<ValueRef> steps,
                   RunRecurrent(node, cell, r.x, false, r.cont, state));
  for (ValueRef& step : steps) {
    const Term product = TimesTransposed(Term(node, step), weight);
    const Term sum = product + Term(node, bias);
    ASSIGN_OR_RETURN(step, Tanh(sum).value);
  }
  return SetResults(node, r, steps, state);
}

// Blobs: rows [input_dim, num_output], and a bias unless bias_term says otherwise.
absl::Status ImportEmbed(LayerImporter& node) {
  RETURN_IF_ERROR(node.ExpectInputs(1, 1));
  ASSIGN_OR_RETURN(const int64_t units, node.BoundedOr("num_output", 0, 1));
  ASSIGN_OR_RETURN(const int64_t rows, node.BoundedOr("input_dim", 0, 1));
  ASSIGN_OR_RETURN(const bool has_bias, node.BoolOr("bias_term", true));
  RETURN_IF_ERROR(node.ExpectBlobs(has_bias ? 2 : 1));
  ASSIGN_OR_RETURN(const ValueRef table, node.Blob(0, "weight", {rows, units}));
  ASSIGN_OR_RETURN(const ValueRef indices, CastTo(node, node.input(0), DType::kInt32));
  Term y(node, LookedUp(node, table, indices, /*axis=*/0, /*may_be_negative=*/false));
  if (has_bias) {
    const Term bias(node, node.Blob(1, "bias", {units}));
    y = y + bias;
  }
  return node.SetOutput(y.value);
}

constexpr ImportRule kRecurrentRules[] = {
    {"Embed", ImportEmbed}, {"LSTM", ImportLstm}, {"RNN", ImportRnn}};

}  // namespace

absl::Span<const ImportRule> RecurrentRules() { return kRecurrentRules; }

}  // namespace npuc::caffe
