#ifndef NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_GRAPHDEF_H_
#define NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_GRAPHDEF_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/ir/graph/graph.h"

namespace npuc::fe::tf {
class AttrValue;
class NodeDef;
class TensorProto;
class TensorShapeProto;
}  // namespace npuc::fe::tf

namespace npuc::tf {

// Limits on a GraphDef; more is a diagnostic.
inline constexpr size_t kMaxModelBytes = size_t{1} << 28;
inline constexpr int kMaxNodes = 1 << 17;
inline constexpr int kMaxInputsPerNode = 1 << 12;
inline constexpr int kMaxAttrsPerNode = 1 << 8;
inline constexpr size_t kMaxNameBytes = kMaxNodeNameBytes;
inline constexpr int kMaxOutputIndex = 1 << 16;

// Which output of which node: "name", "name:2", "^name" in a NodeDef's inputs, INPUT_OPS and
// OUTPUT_OPS.
struct TensorName {
  absl::string_view node;
  int output = 0;
  bool is_control = false;
};
// INVALID_ARGUMENT where text is empty or its index is no number below kMaxOutputIndex.
absl::StatusOr<TensorName> ParseTensorName(absl::string_view text);

// TensorFlow's DataType by wire number; kInvalid where the IR has no such type. DT_BFLOAT16 is read
// as f32, which holds each of its values.
DType DTypeFromWire(int data_type);
// "DT_FLOAT", or "DataType 77" for a number that is not TensorFlow's.
std::string DataTypeName(int data_type);

// A shape attribute: unknown_rank, or dims of which -1 is unknown.
struct PartialShape {
  bool unknown_rank = false;
  std::vector<int64_t> dims;
};
std::string ToString(const PartialShape& shape);

// A read-only view of one NodeDef. Attribute functions return INVALID_ARGUMENT naming the
// attribute, what kind it has and what kind was expected; NOT_FOUND where it is absent.
class NodeView {
 public:
  explicit NodeView(const fe::tf::NodeDef* proto) : proto_(proto) {}

  absl::string_view name() const;
  absl::string_view op() const;
  NodeSource source() const { return {std::string(name()), std::string(op())}; }
  int input_count() const;
  absl::string_view input(int i) const;

  bool HasAttr(absl::string_view name) const;
  absl::StatusOr<bool> Bool(absl::string_view name) const;
  absl::StatusOr<int64_t> Int(absl::string_view name) const;
  absl::StatusOr<double> Float(absl::string_view name) const;
  absl::StatusOr<std::string> String(absl::string_view name) const;
  absl::StatusOr<int> Type(absl::string_view name) const;  // a DataType's wire number
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name) const;
  absl::StatusOr<PartialShape> ShapeOf(absl::string_view name) const;
  absl::StatusOr<const fe::tf::TensorProto*> TensorOf(absl::string_view name) const;

 private:
  const fe::tf::AttrValue* Find(absl::string_view name) const;
  absl::StatusOr<const fe::tf::AttrValue*> FindKind(absl::string_view name, int kind,
                                                    absl::string_view kind_name) const;

  const fe::tf::NodeDef* proto_;
};

// A parsed GraphDef with its nodes by name. Owns everything its views point to. Immutable, so
// thread-safe once made.
class GraphFile {
 public:
  // Every problem of the file itself goes to `diagnostics`; null where there was one that is an
  // error. `file` names the model in diagnostics.
  static std::unique_ptr<GraphFile> Parse(absl::string_view bytes, absl::string_view file,
                                          Diagnostics& diagnostics);
  ~GraphFile();

  int node_count() const { return static_cast<int>(nodes_.size()); }
  const NodeView& node(int i) const { return nodes_[i]; }
  int Find(absl::string_view name) const;  // -1 where there is none
  // Whether `op` is a function that the file itself defines.
  bool IsFunction(absl::string_view op) const;
  // GraphDef.versions.producer; 0 where absent.
  int producer_version() const { return producer_version_; }

 private:
  GraphFile();
  bool CheckNodes(absl::string_view file, Diagnostics& diagnostics);

  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::vector<NodeView> nodes_;
  int producer_version_ = 0;
};

}  // namespace npuc::tf

#endif  // NPUC_COMPILER_CORE_FRONTENDS_TENSORFLOW_GRAPHDEF_H_
