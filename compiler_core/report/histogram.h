#ifndef NPUC_COMPILER_CORE_REPORT_HISTOGRAM_H_
#define NPUC_COMPILER_CORE_REPORT_HISTOGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace npuc {

// How values are spread over bins of equal width. Bin i holds values of [edge i, edge i+1), the
// last one its upper edge as well; where all values are equal, the bins cover half a unit to either
// side: as NumPy's histogram does. Values that are not finite are counted apart.
struct Histogram {
  double low = 0;  // lower edge of the first bin
  double high = 1;
  std::vector<int64_t> counts;
  int64_t total = 0;  // values in the bins
  int64_t zeros = 0;  // of these, exactly zero
  int64_t not_finite = 0;
  // Of the values in the bins; 0 where there are none.
  double min = 0;
  double max = 0;
  double mean = 0;

  // The lower edge of bin i; i = counts.size() gives `high`.
  double Edge(int64_t i) const;
};

// Pure; bins >= 1.
Histogram MakeHistogram(absl::Span<const float> values, int bins);

// The histogram of one weight, with what its compression makes of it.
struct WeightHistogram {
  std::string name;  // the weight's node; any bytes
  std::vector<int64_t> shape;
  Histogram values;  // of the model's float weights
  bool compressed = false;
  double range_min = 0;  // the range that is compressed
  double range_max = 0;
  double sparsity = 0;  // share of weights that are stored as zero, 0..1
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_HISTOGRAM_H_
