#include "compiler_core/frontends/common/feature_extraction.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace npuc::frontend {

bool FeatureExtraction::IsExtraction(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"DecodeWav", "AudioSpectrogram", "Mfcc",
                                        "AudioMicrofrontend"};
  // TFLite Micro's: SignalWindow, SignalRfft, SignalFilterBank and so on.
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps) ||
         (absl::StartsWith(op, "Signal") && op.size() > 6 && op[6] >= 'A' && op[6] <= 'Z');
}

int FeatureExtraction::TensorOf(const std::string& name) {
  const auto [found, is_new] = by_name_.emplace(name, static_cast<int>(tensors_.size()));
  if (is_new) tensors_.push_back({.name = name});
  return found->second;
}

void FeatureExtraction::AddNode(absl::string_view op, const std::vector<std::string>& operands,
                                const std::vector<std::string>& results) {
  const int index = static_cast<int>(nodes_.size());
  Node node{.op = std::string(op)};
  for (const std::string& name : operands) {
    const int tensor = TensorOf(name);
    node.operands.push_back(tensor);
    tensors_[static_cast<size_t>(tensor)].readers.push_back(index);
  }
  for (const std::string& name : results) {
    const int tensor = TensorOf(name);
    node.results.push_back(tensor);
    tensors_[static_cast<size_t>(tensor)].producer = index;
  }
  nodes_.push_back(std::move(node));
}

std::vector<bool> FeatureExtraction::BeforeExtraction() const {
  std::vector<bool> is_before(nodes_.size(), false);
  std::vector<int> waiting;
  const auto add_producers = [&](const Node& node) {
    for (const int operand : node.operands) {
      const int producer = tensors_[static_cast<size_t>(operand)].producer;
      if (producer < 0 || is_before[static_cast<size_t>(producer)]) continue;
      is_before[static_cast<size_t>(producer)] = true;
      waiting.push_back(producer);
    }
  };
  for (const Node& node : nodes_) {
    if (IsExtraction(node.op)) add_producers(node);
  }
  while (!waiting.empty()) {
    const int node = waiting.back();
    waiting.pop_back();
    add_producers(nodes_[static_cast<size_t>(node)]);
  }
  return is_before;
}

std::vector<bool> FeatureExtraction::ResultFlags() const {
  const std::vector<bool> is_before = BeforeExtraction();
  std::vector<bool> flags(tensors_.size(), false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (is_before[i] || !IsExtraction(nodes_[i].op)) continue;
    for (const int result : nodes_[i].results) {
      flags[static_cast<size_t>(result)] = !tensors_[static_cast<size_t>(result)].readers.empty();
    }
  }
  return flags;
}

std::vector<std::string> FeatureExtraction::Results() const {
  const std::vector<bool> flags = ResultFlags();
  std::vector<std::string> names;
  for (const Node& node : nodes_) {
    for (const int result : node.results) {
      const auto tensor = static_cast<size_t>(result);
      if (flags[tensor] && !absl::c_linear_search(names, tensors_[tensor].name)) {
        names.push_back(tensors_[tensor].name);
      }
    }
  }
  return names;
}

bool FeatureExtraction::FeedsItAlone(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || Results().empty()) return false;
  const std::vector<bool> is_before = BeforeExtraction();
  std::vector<bool> is_seen(tensors_.size(), false);
  std::vector<int> waiting = {found->second};
  bool reaches_it = false;
  while (!waiting.empty()) {
    const auto tensor = static_cast<size_t>(waiting.back());
    waiting.pop_back();
    if (is_seen[tensor]) continue;
    is_seen[tensor] = true;
    if (tensors_[tensor].readers.empty()) return false;  // an output of the model
    for (const int reader : tensors_[tensor].readers) {
      const Node& node = nodes_[static_cast<size_t>(reader)];
      const bool is_last = IsExtraction(node.op) && !is_before[static_cast<size_t>(reader)];
      reaches_it |= is_last;
      if (!is_last) waiting.insert(waiting.end(), node.results.begin(), node.results.end());
    }
  }
  return reaches_it;
}

std::string FeatureExtraction::Operators() const {
  std::vector<absl::string_view> ops;
  for (const Node& node : nodes_) {
    if (!IsExtraction(node.op)) continue;
    if (std::find(ops.begin(), ops.end(), node.op) == ops.end()) ops.push_back(node.op);
  }
  return absl::StrJoin(ops, ", ");
}

}  // namespace npuc::frontend
