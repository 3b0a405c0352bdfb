#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_VIEW_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::onnx {
class Attribute;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace npuc::fe::onnx

namespace npuc::onnx {

// Limits on a model; more is a diagnostic.
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr int kMaxNodes = 1 << 17;
inline constexpr int kMaxInputsPerNode = 1 << 12;
inline constexpr int kMaxAttributesPerNode = 1 << 8;
inline constexpr int kMaxListEntries = 1 << 18;  // the nodes of a forest are lists
inline constexpr size_t kMaxNameBytes = kMaxNodeNameBytes;

// Operator sets of the default domain that are read.
inline constexpr int64_t kMinOpset = 6;
inline constexpr int64_t kMaxOpset = 25;

// ONNX's data type by wire number; kInvalid where the IR has no such type. All floats are
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
  // The graphs of its attributes, in the attributes' order.
  std::vector<const fe::onnx::GraphProto*> Graphs() const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;  // an integer other than 0
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<std::vector<double>> Floats(absl::string_view name) const;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view name) const;
  absl::StatusOr<const fe::onnx::TensorProto*> TensorOf(absl::string_view name) const;
  absl::StatusOr<const fe::onnx::GraphProto*> GraphOf(absl::string_view name) const;

  const fe::onnx::NodeProto& proto() const { return *proto_; }

 private:
  const fe::onnx::Attribute* Find(absl::string_view name) const;

  const fe::onnx::NodeProto* proto_;
};

// "Conv", or DOMAIN.NAME of an operator that is not ONNX's own.
std::string NameOf(const NodeView& node);

// What the file states of a tensor: wire type (0: none) and dimensions, -1 where unknown.
struct TensorInfo {
  std::string name;
  bool is_tensor = true;  // not a sequence, map or optional
  int data_type = 0;
  std::optional<std::vector<int64_t>> dims;
  std::vector<std::string> dim_names;  // of each; empty where it has none
};
std::string ToString(const std::vector<int64_t>& partial_dims);  // "[?,64]"

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_NODE_VIEW_H_
