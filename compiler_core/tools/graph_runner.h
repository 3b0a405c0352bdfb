#ifndef NPUC_COMPILER_CORE_TOOLS_GRAPH_RUNNER_H_
#define NPUC_COMPILER_CORE_TOOLS_GRAPH_RUNNER_H_

#include <string>
#include <vector>

#include "compiler_core/base/compile_options.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/tools/run_items.h"

namespace npuc {

// A graph run by its operators' reference functions; every port is float32. States are those that a
// compile with these options would find.
class GraphRunner : public FrameRunner {
 public:
  // Ports of the integers of 8 and 16 bits that a quantized model itself takes and gives.
  enum class Edges {
    kWholeNumbers,
    kRealValues,  // integers with their scale, as a compiled artifact has them
  };
  GraphRunner(Graph graph, const CompileOptions& options, Edges edges = Edges::kWholeNumbers);

  const std::vector<PortTensor>& inputs() const override { return inputs_; }
  const std::vector<PortTensor>& outputs() const override { return outputs_; }
  DType StatedType(size_t i) const override { return graph_.type(graph_.inputs()[i]).dtype; }
  absl::Status Run(absl::Span<const uint8_t> input, std::vector<uint8_t>& output) override;

 private:
  PortTensor Port(const std::string& name, ValueId value) const;

  Graph graph_;
  std::vector<PortTensor> inputs_;
  std::vector<PortTensor> outputs_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_GRAPH_RUNNER_H_
