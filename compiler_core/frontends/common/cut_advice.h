#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMMON_CUT_ADVICE_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMMON_CUT_ADVICE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace npuc::frontend {

// Where to cut a model around nodes that are not supported, for a model whose tensors have names.
// A node behind all that can be compiled is cut off by OUTPUT_OPS, one in front of it by INPUT_OPS,
// one between by either. Following the advice to the letter leaves the supported part of the model.
class CutAdvice {
 public:
  // Tensors that are inputs, then nodes with producers first, then outputs.
  void AddInput(const std::string& tensor);
  void AddNode(absl::string_view op, bool is_supported, const std::vector<std::string>& operands,
               const std::vector<std::string>& results);
  void AddOutput(const std::string& tensor);

  // The fix of a diagnostic about the node that gives the tensor, which is not supported. Where
  // many are not, it is the same for all. `otherwise`: what else helps, e.g. "export the model
  // without it".
  std::string FixFor(const std::string& result, absl::string_view otherwise) const;

 private:
  struct Node {
    bool is_supported = false;
    bool computes = false;    // more than the form of what it reads, from a model input
    bool is_blocked = false;  // it is not supported, or needs such a node
    bool has_work_before = false;
    bool has_work_after = false;
    std::vector<int> operands;
    std::vector<int> results;
  };
  struct Tensor {
    std::string name;
    int producer = -1;  // -1: an input or a constant
    bool is_run_time = false;
    std::vector<int> users;
  };

  int TensorOf(const std::string& name);
  // Results of supported nodes in front of the node, and outputs that do not need it.
  std::vector<int> TensorsBefore(int node) const;
  // Results of the node and others that are not supported, which supported nodes read.
  std::vector<int> TensorsBehind(int node) const;

  std::vector<Node> nodes_;
  std::vector<Tensor> tensors_;
  std::vector<int> outputs_;
  int unsupported_count_ = 0;
  absl::flat_hash_map<std::string, int> by_name_;
};

}  // namespace npuc::frontend

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMMON_CUT_ADVICE_H_
