#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/numpy_pickle.h"
#include "compiler_core/quant/statistics.h"

// The guide's statistic_file: {node: {tensor: {"extrema_min": number ...}}}, of each node its
// results first, then its constants, which have "extrema_min_key_axis", too.

namespace npuc {
namespace {

using PickleKind = PickleNode::Kind;
using PickleId = PickleTree::Id;

constexpr char kHistogram[] = "running_histc";
constexpr char kOfConstants[] = "extrema_min_key_axis";
constexpr size_t kMostFields = 64;
constexpr size_t kMostTensors = size_t{1} << 17;
constexpr size_t kMostBins = 65536;  // of a tensor, as histc_bins
constexpr size_t kMostBinsInAll = size_t{1} << 24;

class NumpyStatisticsReader {
 public:
  explicit NumpyStatisticsReader(const PickleTree& tree) : tree_(tree) {}

  absl::StatusOr<StatisticsByName> Read() {
    if (tree_.kind(tree_.root) != PickleKind::kDict) {
      return absl::InvalidArgumentError("a statistics file is a dict of nodes");
    }
    const std::vector<PickleId>& nodes = tree_.items(tree_.root);
    for (size_t i = 0; i < nodes.size(); i += 2) {
      if (tree_.kind(nodes[i]) != PickleKind::kText ||
          tree_.kind(nodes[i + 1]) != PickleKind::kDict) {
        return absl::InvalidArgumentError("a node is no name with a dict of tensors");
      }
      RETURN_IF_ERROR(ReadNode(tree_.text(nodes[i]), tree_.items(nodes[i + 1])));
    }
    return std::move(all_);
  }

 private:
  absl::Status ReadNode(const std::string& node, const std::vector<PickleId>& tensors) {
    int results = 0;
    for (size_t i = 0; i < tensors.size(); i += 2) {
      const PickleId tensor = tensors[i + 1];
      if (tree_.kind(tensor) != PickleKind::kDict || tree_.items(tensor).size() > 2 * kMostFields) {
        return WrongStatistics(
            node, absl::StrCat("a dict of at most ", kMostFields, " statistics is needed"));
      }
      if (++tensors_ > kMostTensors) {  // nodes may share a dict
        return absl::InvalidArgumentError(absl::StrCat("more than ", kMostTensors, " tensors"));
      }
      if (tree_.Find(tensor, kOfConstants) >= 0) continue;
      const std::string name = results == 0 ? node : absl::StrCat(node, ":", results);
      ++results;
      const auto [it, is_new] = all_.try_emplace(name);
      if (!is_new) return WrongStatistics(name, "it is given twice");
      RETURN_IF_ERROR(ReadTensor(name, tensor, it->second));
    }
    return absl::OkStatus();
  }

  absl::Status ReadTensor(const std::string& name, PickleId tensor, TensorStatistics& statistics) {
    FoundStatistics found;
    for (const StatisticField& field : StatisticFields()) {
      const PickleId id = tree_.Find(tensor, field.name);
      if (id < 0 || tree_.kind(id) == PickleKind::kNone) continue;
      ASSIGN_OR_RETURN(const std::vector<float> values, NumbersOf(name, id));
      if (values.size() != 1) {
        return WrongStatistics(name, absl::StrCat("it needs one number ", field.name));
      }
      found.*field.found = WideNumber(id).value_or(values[0]);
    }
    RETURN_IF_ERROR(TakeFound(name, found, statistics));
    statistics.batches = 1;
    const PickleId histogram = tree_.Find(tensor, kHistogram);
    if (histogram < 0 || tree_.kind(histogram) == PickleKind::kNone) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<float> counts, NumbersOf(name, histogram));
    bins_ += counts.size();
    if (counts.size() > kMostBins || bins_ > kMostBinsInAll) {
      return WrongStatistics(
          name, absl::StrCat("its histogram has ", counts.size(), " bins; allowed are ", kMostBins,
                             ", and ", kMostBinsInAll, " of all tensors"));
    }
    if (!statistics.histogram.RestoreBins(statistics.running_min, statistics.running_max, counts)) {
      return WrongStatistics(name, "its histogram is empty, or out of range");
    }
    return absl::OkStatus();
  }

  // A number that is stored with 64 bits.
  std::optional<double> WideNumber(PickleId id) const {
    if (tree_.kind(id) == PickleKind::kNumber) return tree_.number(id);
    if (tree_.kind(id) != PickleKind::kArray || tree_.array(id).dtype != DType::kFloat64) return {};
    double number = 0;
    std::memcpy(&number, tree_.array(id).bytes.data(), sizeof(number));
    return number;
  }

  // A number, or a list or array of some.
  absl::StatusOr<std::vector<float>> NumbersOf(const std::string& name, PickleId id) const {
    std::vector<float> numbers;
    switch (tree_.kind(id)) {
      case PickleKind::kNumber:
        numbers = {static_cast<float>(tree_.number(id))};
        return numbers;
      case PickleKind::kArray: {
        const NpyArray& array = tree_.array(id);
        if (array.bytes.size() > kMostBins * sizeof(double)) break;
        numbers.resize(static_cast<size_t>(array.element_count()));
        NpyElements(array.dtype, array.bytes.data(), numbers);
        return numbers;
      }
      case PickleKind::kList: {
        const std::vector<PickleId>& items = tree_.items(id);
        const bool are_numbers = items.size() <= kMostBins &&
                                 std::all_of(items.begin(), items.end(), [&](PickleId item) {
                                   return tree_.kind(item) == PickleKind::kNumber;
                                 });
        if (!are_numbers) break;
        for (const PickleId item : items) numbers.push_back(static_cast<float>(tree_.number(item)));
        return numbers;
      }
      default:
        break;
    }
    return WrongStatistics(name, absl::StrCat("a statistic is no number, list or array of at most ",
                                              kMostBins, " numbers"));
  }

  const PickleTree& tree_;
  size_t bins_ = 0;
  size_t tensors_ = 0;
  StatisticsByName all_;
};

}  // namespace

absl::StatusOr<StatisticsByName> ReadNumpyStatistics(absl::string_view file) {
  ASSIGN_OR_RETURN(const PickleTree tree, ReadNumpyPickle(file));
  return NumpyStatisticsReader(tree).Read();
}

std::string WriteNumpyStatistics(const std::vector<NodeStatistics>& nodes, int64_t bins) {
  NumpyPickleWriter writer;
  writer.OpenDict();
  for (const NodeStatistics& node : nodes) {
    writer.Text(node.name);
    writer.OpenDict();
    for (size_t k = 0; k < node.results.size(); ++k) {
      const TensorStatistics& s = *node.results[k];
      writer.Text(absl::StrCat(node.name, "_", k));
      writer.OpenDict();
      for (const StatisticField& field : StatisticFields()) {
        if (field.of_deviation && !s.has_deviation) continue;
        writer.Text(field.name);
        writer.Number(s.*field.member);
      }
      if (!s.histogram.empty()) {
        writer.Text(kHistogram);
        writer.Floats(s.histogram.Bins(s.running_min, s.running_max, bins));
      }
      writer.CloseDict();
    }
    writer.CloseDict();
  }
  writer.CloseDict();
  return writer.Take();
}

}  // namespace npuc
