#include "compiler_core/frontends/tensorflow/features.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/frontends/common/outline.h"

namespace npuc::tf {
namespace {

constexpr int kMaxLooked = 16;  // operators in a row that are looked through
constexpr int64_t kMaxFeature = int64_t{1} << 30;

// "node", or "node:2".
std::string KeyOf(absl::string_view node, int output) {
  return output == 0 ? std::string(node) : absl::StrCat(node, ":", output);
}

}  // namespace

Features::Features(const GraphFile& file, const std::vector<InputDecl>& declared) : file_(file) {
  for (const InputDecl& input : declared) declared_[input.name] = input.shape;
  bool extracts = false;
  for (int i = 0; i < file.node_count(); ++i) {
    extracts |= frontend::FeatureExtraction::IsExtraction(file.node(i).op());
  }
  if (!extracts) return;
  absl::flat_hash_map<std::string, std::vector<std::string>> read_results;  // by node
  std::vector<std::vector<std::string>> operands(static_cast<size_t>(file.node_count()));
  for (int i = 0; i < file.node_count(); ++i) {
    const NodeView& node = file.node(i);
    for (int k = 0; k < node.input_count(); ++k) {
      const absl::StatusOr<TensorName> name = ParseTensorName(node.input(k));
      if (!name.ok() || name->is_control) continue;
      operands[static_cast<size_t>(i)].push_back(KeyOf(name->node, name->output));
      read_results[name->node].push_back(operands[static_cast<size_t>(i)].back());
    }
  }
  for (int i = 0; i < file.node_count(); ++i) {
    const NodeView& node = file.node(i);
    const auto read = read_results.find(node.name());
    extraction_.AddNode(node.op(), operands[static_cast<size_t>(i)],
                        read != read_results.end()
                            ? read->second
                            : std::vector<std::string>{std::string(node.name())});
    if (frontend::FeatureExtraction::IsExtraction(node.op())) Describe(node);
  }
  for (const std::string& tensor : extraction_.Results()) {
    inputs_.push_back({.name = tensor, .shape = DimsOf(tensor, 0)});
  }
}

std::vector<int64_t> Features::DimsOf(const std::string& tensor, int depth) const {
  const auto declared = declared_.find(tensor);
  if (declared != declared_.end()) return declared->second;
  const absl::StatusOr<TensorName> name = ParseTensorName(tensor);
  const int index = name.ok() && name->output == 0 ? file_.Find(name->node) : -1;
  if (index < 0 || depth == kMaxLooked) return {};
  return DimsOfNode(file_.node(index), depth);
}

std::vector<int64_t> Features::DimsOfNode(const NodeView& node, int depth) const {
  const auto operand = [&] {
    return node.input_count() == 0 ? std::vector<int64_t>()
                                   : DimsOf(std::string(node.input(0)), depth + 1);
  };
  if (node.op() == "Placeholder") {
    const absl::StatusOr<PartialShape> shape = node.ShapeOf("shape");
    return shape.ok() && !shape->unknown_rank ? shape->dims : std::vector<int64_t>();
  }
  if (node.op() == "Identity") return operand();
  if (node.op() == "DecodeWav") {
    return {node.Int("desired_samples").value_or(-1), node.Int("desired_channels").value_or(-1)};
  }
  if (node.op() == "AudioSpectrogram") {
    const std::vector<int64_t> sound = operand();  // [samples, channels]
    const int64_t window = node.Int("window_size").value_or(-1);
    const int64_t stride = node.Int("stride").value_or(-1);
    const bool is_known = window > 1 && window <= kMaxFeature && stride > 0;
    std::vector<int64_t> dims = {-1, -1, -1};
    if (is_known)
      dims[2] = 1 + static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window))) / 2;
    if (sound.size() != 2) return dims;
    dims[0] = sound[1];
    if (is_known && sound[0] >= window) dims[1] = 1 + (sound[0] - window) / stride;
    return dims;
  }
  if (node.op() == "Mfcc") {
    std::vector<int64_t> dims = operand();  // [channels, frames, bins]
    if (dims.size() != 3) dims = {-1, -1, -1};
    dims[2] = node.Int("dct_coefficient_count").value_or(13);
    return dims;
  }
  return {};
}

void Features::Describe(const NodeView& node) {
  std::string text(node.op());
  if (node.op() == "AudioSpectrogram") {
    absl::StrAppend(&text, " of windows of ", node.Int("window_size").value_or(0),
                    " samples, every ", node.Int("stride").value_or(0),
                    node.Bool("magnitude_squared").value_or(false) ? ", squared" : "");
  } else if (node.op() == "Mfcc") {
    absl::StrAppend(&text, " with ", node.Int("dct_coefficient_count").value_or(13),
                    " coefficients of ", node.Int("filterbank_channel_count").value_or(40),
                    " bands from ", node.Float("lower_frequency_limit").value_or(20), " to ",
                    node.Float("upper_frequency_limit").value_or(4000), " Hz");
  } else if (node.op() == "DecodeWav" && node.Int("desired_samples").value_or(-1) > 0) {
    absl::StrAppend(&text, " of ", node.Int("desired_samples").value_or(-1), " samples");
  }
  absl::StrAppend(&description_, description_.empty() ? "" : "; ", text);
}

std::string NamesOf(const std::vector<InputDecl>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const InputDecl& input) {
    absl::StrAppend(
        out, "'", Printable(input.name), "' ",
        OutlineShape(input.shape.empty() ? std::nullopt
                                         : std::make_optional<std::vector<int64_t>>(input.shape)));
  });
}

}  // namespace npuc::tf
