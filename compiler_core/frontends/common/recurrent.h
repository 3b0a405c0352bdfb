#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/frontends/common/emitter.h"
#include "compiler_core/frontends/common/term.h"

namespace npuc::frontend {

// Steps that one layer may take: each is a dozen nodes.
inline constexpr int64_t kMaxRecurrentSteps = 4096;

// One direction of a recurrent layer, its gates in rows of the weights. With x the step's operand
// and h the state before it, a gate sums W x + w + R h + r.
struct RecurrentCell {
  enum class Kind : uint8_t {
    kPlain,  // h' = f(sum)
    kGru,    // z, r: sigmoids; n = f(W x + w + r * (R h + r)); h' = (1 - z) n + z h
    kLstm,   // i, f, o: sigmoids; g = f(sum); c' = f c + i g; h' = o k(c')
  };
  using Function = Term (*)(const Term& x);

  Kind kind = Kind::kPlain;
  ValueRef input;        // W [gates * hidden, in]; null: the operand is W x already
  ValueRef hidden;       // R [gates * hidden, hidden]
  ValueRef input_bias;   // w [gates * hidden], or null
  ValueRef hidden_bias;  // r, likewise
  ValueRef peepholes;    // of an LSTM: [3 * hidden], c's share in i, f and (of c') in o; or null
  // Which block of rows is which gate: z, r, n of a GRU, i, f, g, o of an LSTM.
  std::array<int, 4> order = {0, 1, 2, 3};
  // Variants of a GRU: n = f(W x + w + R (r * h) + r), and h' = (1 - z) h + z n.
  bool resets_before = false;
  bool swaps_update = false;
  Function gate = Sigmoid;
  Function function = Tanh;  // f
  Function shown = Tanh;     // k
  std::string level;         // behind h and c in the names of states that are kept

  int64_t gates() const { return kind == Kind::kPlain ? 1 : kind == Kind::kGru ? 3 : 4; }
};

// The cell, without weights, that cuDNN's layers of a mode have; `modes` are the names of LSTM, GRU
// and the plain ones of relu and tanh in a format. nullopt: the mode is none of them.
std::optional<RecurrentCell> CellOfMode(absl::string_view mode,
                                        const std::array<absl::string_view, 4>& modes);

// x W^T. x: [rows, in]; weight: [columns, in].
Term TimesTransposed(const Term& x, const ValueRef& weight);

// [batch, hidden] each; c of an LSTM alone.
struct RecurrentState {
  ValueRef h;
  ValueRef c;
};

// Zeros [batch, hidden].
ValueRef ZeroState(Emitter& node, int64_t batch, int64_t hidden);

// Runs x [steps, batch, in] through the cell, from its last step where `is_backward`. The results
// by time, each [batch, hidden]; `state` is that before and then that behind. `kept` [steps, batch]
// or null: factors of the state before each step, which is forgotten where they are 0. The state
// before that KEEP_STATES keeps is an input of the model, unless `is_backward`.
// INVALID_ARGUMENT where shapes do not fit.
absl::StatusOr<std::vector<ValueRef>> RunRecurrent(Emitter& node, const RecurrentCell& cell,
                                                   const ValueRef& x, bool is_backward,
                                                   const ValueRef& kept, RecurrentState& state);

// [steps, batch, hidden] of the results by time.
absl::StatusOr<ValueRef> StackedSteps(Emitter& node, const std::vector<ValueRef>& steps);

// Layers of one or two directions, as cuDNN has them; PaddlePaddle and MXNet take its operands:
// each layer's operand is all directions' results of the layer before, side by side.
struct RecurrentStack {
  std::vector<std::vector<RecurrentCell>> layers;  // by layer and direction
  ValueRef h;                                      // [layers * directions, batch, hidden]
  ValueRef c;                                      // likewise, of an LSTM
};
struct StackResults {
  ValueRef y;  // [steps, batch, directions * hidden]
  ValueRef h;  // as the stack's, behind the last step
  ValueRef c;
};
absl::StatusOr<StackResults> RunRecurrentStack(Emitter& node, const RecurrentStack& stack,
                                               ValueRef x);

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_RECURRENT_H_
