#ifndef NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/onnx/graph_view.h"

namespace npuc::onnx {

// A parsed model: its graph, the graphs that nodes of it run, and its local functions. Owns
// everything its views point to. Immutable, so thread-safe once made.
class ModelFile {
 public:
  // Every problem of the file itself goes to `diagnostics`; null where there was one that is an
  // error. `file` names the model in diagnostics.
  static std::unique_ptr<ModelFile> Parse(absl::string_view bytes, absl::string_view file,
                                          Diagnostics& diagnostics);
  ~ModelFile();

  const GraphView& main() const { return *graphs_[0]; }
  // All graphs, the main one first.
  const std::vector<std::unique_ptr<GraphView>>& graphs() const { return graphs_; }
  // The graph that an attribute of a node holds.
  const GraphView& Of(const fe::onnx::GraphProto* graph) const;
  // The local function that the node calls, with the node's attributes in it; null where it calls
  // none. Its operands and results are those of the node by number.
  const GraphView* FunctionOf(const NodeView& node) const;

 private:
  struct Impl;
  class Reader;
  ModelFile();

  std::unique_ptr<Impl> impl_;
  std::vector<std::unique_ptr<GraphView>> graphs_;
};

}  // namespace npuc::onnx

#endif  // NPUC_COMPILER_CORE_FRONTENDS_ONNX_MODEL_FILE_H_
