#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_VIEW_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_VIEW_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/onnx/node_view.h"

namespace npuc::onnx {

// A read-only view of one graph: the model's own one, the body of a loop or a branch, or a local
// function as one node calls it. Immutable, so thread-safe once made.
class GraphView {
 public:
  // The proto outlives it. Every problem of the graph itself goes to `diagnostics`; `file` names
  // the model there. `opset`: the operator set of the default domain that its nodes are of.
  GraphView(const fe::onnx::GraphProto& proto, int64_t opset, absl::string_view file,
            Diagnostics& diagnostics);

  int64_t opset() const { return opset_; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  const NodeView& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  const std::vector<NodeView>& nodes() const { return nodes_; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  // The node result of the name: {node, output}; node -1 where none has it.
  struct Producer {
    int node = -1;
    int output = 0;
  };
  Producer FindProducer(absl::string_view name) const;
  const fe::onnx::TensorProto* FindInitializer(absl::string_view name) const;  // or null
  bool has_initializers() const { return !initializers_.empty(); }
  int FindInput(absl::string_view name) const;  // or -1
  // What value_info, or outputs, say of a tensor; null where nothing.
  const TensorInfo* FindInfo(absl::string_view name) const;
  // ONNX's number of the tensor's type, as far as the graph states it: that of an initializer, of
  // an input, of value_info, of a cast or of a constant; 0: unknown.
  int DataTypeOf(absl::string_view tensor) const;
  std::vector<absl::string_view> TensorNames() const;
  // True: the graph has a tensor of the name, and does not take it from around it.
  bool Defines(absl::string_view name) const;

 private:
  void CheckNodes(absl::string_view file, Diagnostics& diagnostics);
  void CheckTensors(const fe::onnx::GraphProto& graph, absl::string_view file,
                    Diagnostics& diagnostics);

  const int64_t opset_;
  std::vector<NodeView> nodes_;
  std::vector<TensorInfo> inputs_;
  std::vector<TensorInfo> outputs_;
  absl::flat_hash_map<absl::string_view, Producer> producers_;
  absl::flat_hash_map<absl::string_view, const fe::onnx::TensorProto*> initializers_;
  absl::flat_hash_map<absl::string_view, int> input_index_;
  absl::flat_hash_map<absl::string_view, TensorInfo> infos_;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_GRAPH_VIEW_H_
