#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::onnx {
class Attribute;
class NodeProto;
class TensorProto;
}  // namespace npuc::fe::onnx

namespace npuc::onnx {

// Limits on a model; more is a diagnostic.
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr int kMaxNodes = 1 << 17;
inline constexpr int kMaxInputsPerNode = 1 << 12;
inline constexpr int kMaxAttributesPerNode = 1 << 8;
inline constexpr int kMaxListEntries = 1 << 12;
inline constexpr size_t kMaxNameBytes = kMaxNodeNameBytes;

// Operator sets of the default domain that are read.
inline constexpr int64_t kMinOpset = 6;
inline constexpr int64_t kMaxOpset = 22;

// ONNX's data type by wire number; kInvalid where the IR has no such type. BFLOAT16 and DOUBLE are
// read as f32, UINT64 as i64.
DType DTypeFromWire(int data_type);
// "FLOAT", or "data type 77" for a number that is not ONNX's.
std::string DataTypeName(int data_type);

// A read-only view of one node. Attribute functions return INVALID_ARGUMENT naming the attribute,
// what kind it has and what kind was expected; NOT_FOUND where it is absent.
class NodeView {
 public:
  explicit NodeView(const fe::onnx::NodeProto* proto) : proto_(proto) {}

  // The node's name; of a nameless node its first result's.
  absl::string_view name() const;
  absl::string_view op() const;
  NodeSource source() const { return {std::string(name()), std::string(op())}; }
  absl::string_view domain() const;  // "" for ONNX's own operators
  int input_count() const;
  absl::string_view input(int i) const;  // "" where an optional operand is left out
  int output_count() const;
  absl::string_view output(int i) const;

  bool HasAttr(absl::string_view name) const { return Find(name) != nullptr; }
  bool HasGraphs() const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;  // an integer other than 0
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view name) const;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view name) const;
  absl::StatusOr<const fe::onnx::TensorProto*> TensorOf(absl::string_view name) const;

 private:
  const fe::onnx::Attribute* Find(absl::string_view name) const;

  const fe::onnx::NodeProto* proto_;
};

// What the file states of a tensor: wire type (0: none) and dimensions, -1 where unknown.
struct TensorInfo {
  std::string name;
  bool is_tensor = true;  // not a sequence, map or optional
  int data_type = 0;
  std::optional<std::vector<int64_t>> dims;
};
std::string ToString(const std::vector<int64_t>& partial_dims);  // "[?,64]"

// A parsed model. Owns everything its views point to. Immutable, so thread-safe once made.
class ModelFile {
 public:
  // Every problem of the file itself goes to `diagnostics`; null where there was one that is an
  // error. `file` names the model in diagnostics.
  static std::unique_ptr<ModelFile> Parse(absl::string_view bytes, absl::string_view file,
                                          Diagnostics& diagnostics);
  ~ModelFile();

  int64_t opset() const { return opset_; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  const NodeView& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  // Which node result has the name: {node, output}; node -1 where none has.
  struct Producer {
    int node = -1;
    int output = 0;
  };
  Producer FindProducer(absl::string_view name) const;
  const fe::onnx::TensorProto* FindInitializer(absl::string_view name) const;  // or null
  int FindInput(absl::string_view name) const;                                 // or -1
  // What value_info, or outputs, say of a tensor; null where nothing.
  const TensorInfo* FindInfo(absl::string_view name) const;
  std::vector<absl::string_view> TensorNames() const;

 private:
  struct Impl;
  ModelFile();
  void CheckNodes(absl::string_view file, Diagnostics& diagnostics);
  void CheckTensors(absl::string_view file, Diagnostics& diagnostics);
  void ReadOpset(absl::string_view file, Diagnostics& diagnostics);

  std::unique_ptr<Impl> impl_;
  std::vector<NodeView> nodes_;
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  int64_t opset_ = 0;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_
