#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_VARIABLES_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_VARIABLES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler_core/frontends/tflite/model_file.h"
#include "compiler_core/frontends/tflite/node_import.h"

namespace npuc::tflite {

// The variables of a streaming model (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE; the tensors in
// which operators such as SVDF keep a state), as inputs and outputs of the graph: what a frame
// reads is input NAME, what it assigns last is output NAME_out, which the application feeds to the
// next frame. One that is only read, or only assigned, is an input or an output alone.
class Variables {
 public:
  // More is a diagnostic.
  static constexpr size_t kMost = 1024;

  // Both outlive it.
  Variables(const ModelFile& file, ImportState* state);

  // Whether the operator is one of those above, or CALL_ONCE, which states what variables begin
  // with.
  static bool IsAbout(const OperatorView& op);

  // The variable that the operator reads or assigns, as an index; -1 where it does neither.
  int ReadBy(const OperatorView& op) const;
  int AssignedBy(const OperatorView& op) const;

  // The value of a READ_VARIABLE: what the frame assigned before, else the input, which is made
  // where it is first asked for. Null where it was reported.
  ValueRef Read(const OperatorView& op);
  // `value` of an ASSIGN_VARIABLE; null: it failed.
  void Assign(const OperatorView& op, ValueRef value);

  // The state that an operator keeps in tensor NAME, as an input of this shape that holds what
  // `quant` stores. Null where it was reported.
  ValueRef ReadState(const std::string& name, Shape shape, const std::optional<QuantParams>& quant);
  // The next frame's value of that state.
  void SetState(const std::string& name, ValueRef value);

  // Adds the outputs NAME_out, in the order of the inputs NAME, and a note on what the variables
  // begin with. Once, before the model's own outputs.
  void AddOutputs();

 private:
  struct Variable {
    std::string name;
    ValueRef input;                      // null: not read yet
    ValueRef current;                    // null: not assigned yet
    const TensorView* stored = nullptr;  // how the file holds its values
    bool is_read = false;
  };

  int IndexOf(int handle) const;
  // The value of an input, through `quant` where it has one.
  ValueRef MakeInput(const std::string& name, TensorType type,
                     const std::optional<QuantParams>& quant);
  void NoteInitialValue(const Variable& variable);

  const ModelFile& file_;
  ImportState& state_;
  std::vector<Variable> variables_;
  std::map<int, int> by_handle_;  // tensor of a handle -> variable
  std::vector<int> in_order_;     // as they were first read
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_VARIABLES_H_
