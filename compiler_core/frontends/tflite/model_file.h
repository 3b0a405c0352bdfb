#ifndef NPUC_COMPILER_CORE_FRONTENDS_TFLITE_MODEL_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TFLITE_MODEL_FILE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::fe::tflite {
struct Operator;
struct SubGraph;
struct TensorInfo;
}  // namespace npuc::fe::tflite

namespace npuc::tflite {

// Limits on a model; more is a diagnostic.
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr int kMaxTables = 1 << 20;
inline constexpr int kMaxDepth = 64;
inline constexpr int kMaxTensors = 1 << 17;
inline constexpr int kMaxOperators = 1 << 17;
inline constexpr int kMaxOperandsPerOperator = 1 << 12;
inline constexpr size_t kMaxNameBytes = kMaxNodeNameBytes;

// The builtin operator that carries its own name.
inline constexpr int kCustomOperator = 32;

// TFLite's element type by wire number; kInvalid where the IR has no such type.
DType DTypeFromWire(int element_type);
std::string ElementTypeName(int element_type);  // "COMPLEX64", or "element type 77"
// "CONV_2D", or "builtin operator 999" for a number that is not the format's.
std::string BuiltinName(int builtin_code);

// One tensor of the model. data views the file's copy, or what was unpacked of a sparse constant;
// empty where the tensor is no constant.
struct TensorView {
  std::string name;
  int element_type = 0;
  TensorType type;                 // dtype kInvalid where the IR lacks the element type
  std::vector<int64_t> signature;  // -1 where the dimension varies; empty: as type.shape
  std::optional<QuantParams> quant;
  absl::Span<const uint8_t> data;
  bool is_variable = false;

  bool is_dynamic() const;  // the stated shape is not binding
};

// One operator, with indices of tensors that exist.
struct OperatorView {
  int index = 0;
  int builtin_code = 0;
  std::string op;           // "CONV_2D"; the name of a custom operator
  std::vector<int> inputs;  // -1: left out
  std::vector<int> outputs;
  const fe::tflite::Operator* raw = nullptr;
  std::string variable;   // VAR_HANDLE: the variable's shared name
  std::string composite;  // STABLEHLO_COMPOSITE: what it computes, "odml.rms_norm"
  // The graphs that it runs: condition and body of a WHILE, the two branches of an IF, what a
  // STABLEHLO_COMPOSITE is made of.
  std::vector<int> subgraphs;
};

// One graph of the file, all indices checked: the main one, or one that an operator runs.
struct SubgraphView {
  std::vector<TensorView> tensors;
  std::vector<OperatorView> operators;
  std::vector<int> inputs;
  std::vector<int> outputs;

  const TensorView& tensor(int i) const { return tensors[static_cast<size_t>(i)]; }
};

// A parsed model: the first subgraph and those that its operators run. Owns what its views point
// to. Immutable, so thread-safe once made.
class ModelFile {
 public:
  // Every problem of the file itself goes to `diagnostics`; null where there was an error. `file`
  // names the model there.
  static std::unique_ptr<ModelFile> Parse(absl::string_view bytes, absl::string_view file,
                                          Diagnostics& diagnostics);

  const SubgraphView& main() const { return subgraphs_.at(0); }
  // One of OperatorView::subgraphs.
  const SubgraphView& subgraph(int number) const { return subgraphs_.at(number); }
  const std::vector<TensorView>& tensors() const { return main().tensors; }
  const TensorView& tensor(int i) const { return main().tensor(i); }
  const std::vector<OperatorView>& operators() const { return main().operators; }
  const std::vector<int>& inputs() const { return main().inputs; }
  const std::vector<int>& outputs() const { return main().outputs; }
  int FindTensor(absl::string_view name) const;  // the first of that name, or -1
  // What CALL_ONCE assigns to a variable before the first frame; null: nothing known.
  const TensorView* FindInitialValue(absl::string_view variable) const;

 private:
  class Reader;

  std::vector<uint8_t> bytes_;                        // aligned as FlatBuffers wants it
  std::deque<std::vector<uint8_t>> unpacked_;         // sparse constants, made dense
  std::map<int, SubgraphView> subgraphs_;             // by number in the file
  std::map<std::string, TensorView> initial_values_;  // by variable
};

}  // namespace npuc::tflite

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TFLITE_MODEL_FILE_H_
