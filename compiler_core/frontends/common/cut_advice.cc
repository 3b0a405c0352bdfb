#include "compiler_core/frontends/common/cut_advice.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/diagnostic.h"

namespace npuc::frontend {
namespace {

constexpr size_t kMaxNamed = 8;
// A model with more of them cannot be cut to advantage, and equal diagnostics share a line.
constexpr int kMaxUnsupported = 4;
// Nodes looked at for one piece of advice.
constexpr size_t kMaxVisits = 64;

// Operators of any framework that change the form of a tensor alone: a model of nothing else is not
// worth a compile.
bool ChangesFormAlone(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"Cast",           "DEQUANTIZE",  "DequantizeLinear",
                                        "Dropout",        "EXPAND_DIMS", "ExpandDims",
                                        "Flatten",        "Identity",    "QUANTIZE",
                                        "QuantizeLinear", "RESHAPE",     "Reshape",
                                        "SQUEEZE",        "Squeeze",     "StopGradient",
                                        "TRANSPOSE",      "Transpose",   "Unsqueeze",
                                        "Placeholder",    "Const",       "PlaceholderWithDefault"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// At most kMaxVisits, and nothing twice.
void AddTo(std::vector<int>& list, int entry) {
  if (list.size() >= kMaxVisits) return;
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

}  // namespace

int CutAdvice::TensorOf(const std::string& name) {
  const auto [found, is_new] = by_name_.emplace(name, static_cast<int>(tensors_.size()));
  if (is_new) {
    tensors_.emplace_back();
    tensors_.back().name = name;
  }
  return found->second;
}

void CutAdvice::AddInput(const std::string& tensor) {
  tensors_[static_cast<size_t>(TensorOf(tensor))].is_run_time = true;
}

void CutAdvice::AddNode(absl::string_view op, bool is_supported,
                        const std::vector<std::string>& operands,
                        const std::vector<std::string>& results) {
  const int index = static_cast<int>(nodes_.size());
  Node node;
  node.is_supported = is_supported;
  if (!is_supported) ++unsupported_count_;
  node.is_blocked = !is_supported;
  bool is_run_time = !is_supported;  // one without operands is a source of its own
  for (const std::string& name : operands) {
    const int id = TensorOf(name);
    Tensor& operand = tensors_[static_cast<size_t>(id)];
    node.operands.push_back(id);
    operand.users.push_back(index);
    is_run_time |= operand.is_run_time;
    if (operand.producer < 0) continue;
    const Node& producer = nodes_[static_cast<size_t>(operand.producer)];
    node.is_blocked |= producer.is_blocked;
    node.has_work_before |= producer.has_work_before || producer.computes;
  }
  node.computes = is_supported && is_run_time && !ChangesFormAlone(op);
  for (const std::string& name : results) {
    const int id = TensorOf(name);
    Tensor& result = tensors_[static_cast<size_t>(id)];
    if (result.is_run_time && result.producer < 0) continue;  // cut here already
    result.producer = index;
    result.is_run_time = is_run_time;
    node.results.push_back(id);
  }
  // What a node computes is work behind all that it needs.
  std::vector<int> queue = node.operands;
  nodes_.push_back(std::move(node));
  if (!nodes_.back().computes) return;
  while (!queue.empty()) {
    const int producer = tensors_[static_cast<size_t>(queue.back())].producer;
    queue.pop_back();
    if (producer < 0 || nodes_[static_cast<size_t>(producer)].has_work_after) continue;
    Node& before = nodes_[static_cast<size_t>(producer)];
    before.has_work_after = true;
    queue.insert(queue.end(), before.operands.begin(), before.operands.end());
  }
}

void CutAdvice::AddOutput(const std::string& tensor) { outputs_.push_back(TensorOf(tensor)); }

std::vector<int> CutAdvice::TensorsBefore(int node) const {
  std::vector<int> found;
  for (const int id : outputs_) {
    const int producer = tensors_[static_cast<size_t>(id)].producer;
    if (producer >= 0 && !nodes_[static_cast<size_t>(producer)].is_blocked) AddTo(found, id);
  }
  std::vector<int> queue = {node};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int id : nodes_[static_cast<size_t>(queue[i])].operands) {
      const Tensor& operand = tensors_[static_cast<size_t>(id)];
      if (operand.producer < 0 || !operand.is_run_time) continue;
      if (nodes_[static_cast<size_t>(operand.producer)].is_supported) {
        AddTo(found, id);
      } else {
        AddTo(queue, operand.producer);
      }
    }
  }
  return found;
}

std::vector<int> CutAdvice::TensorsBehind(int node) const {
  std::vector<int> found;
  std::vector<int> queue = {node};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int id : nodes_[static_cast<size_t>(queue[i])].results) {
      for (const int user : tensors_[static_cast<size_t>(id)].users) {
        const Node& reader = nodes_[static_cast<size_t>(user)];
        if (!reader.is_supported) {
          AddTo(queue, user);
        } else if (reader.computes || reader.has_work_after) {
          AddTo(found, id);
        }
      }
    }
  }
  return found;
}

std::string CutAdvice::FixFor(const std::string& result, absl::string_view otherwise) const {
  const auto tensor = by_name_.find(result);
  if (tensor == by_name_.end() || unsupported_count_ > kMaxUnsupported) {
    return std::string(otherwise);
  }
  const int index = tensors_[static_cast<size_t>(tensor->second)].producer;
  if (index < 0) return std::string(otherwise);
  const Node& node = nodes_[static_cast<size_t>(index)];
  const auto listed = [this](const std::vector<int>& tensors, absl::string_view behind) {
    const size_t named = std::min(tensors.size(), kMaxNamed);
    const std::string names = absl::StrJoin(
        tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(named), ", ",
        [&](std::string* out, int id) {
          absl::StrAppend(out, "'", Printable(tensors_[static_cast<size_t>(id)].name), "'", behind);
        });
    return named < tensors.size() ? absl::StrCat(names, " and ", tensors.size() - named, " more")
                                  : names;
  };
  std::vector<std::string> ways;
  const std::vector<int> behind = TensorsBehind(index);
  if (node.has_work_after && !behind.empty()) {
    ways.push_back(absl::StrCat("begin the model behind it with INPUT_OPS: {",
                                listed(behind, ": [shape]"), "}"));
  }
  const std::vector<int> before = TensorsBefore(index);
  if (node.has_work_before && !before.empty()) {
    ways.push_back(
        absl::StrCat("end the model before it with OUTPUT_OPS: [", listed(before, ""), "]"));
  }
  ways.emplace_back(otherwise);
  return absl::StrJoin(ways, ", or ");
}

}  // namespace npuc::frontend
