#include "compiler_core/backends/grus/weight_histograms.h"

#include <utility>

namespace npuc {

std::vector<WeightHistogram> WeightHistograms(const Graph& graph,
                                              absl::Span<const WeightRecord> weights) {
  std::vector<WeightHistogram> histograms;
  for (const WeightRecord& weight : weights) {
    WeightHistogram histogram;
    histogram.name = weight.name;
    histogram.shape = weight.shape;
    histogram.values = MakeHistogram(graph.ConstantOf(weight.value)->ToFloats(), kHistogramBins);
    histogram.compressed = weight.compressed();
    histogram.range_min = weight.min;
    histogram.range_max = weight.max;
    histogram.sparsity = weight.sparsity;
    histograms.push_back(std::move(histogram));
  }
  return histograms;
}

}  // namespace npuc
