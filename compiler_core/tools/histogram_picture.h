#ifndef NPUC_COMPILER_CORE_TOOLS_HISTOGRAM_PICTURE_H_
#define NPUC_COMPILER_CORE_TOOLS_HISTOGRAM_PICTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler_core/report/histogram.h"
#include "compiler_core/tools/picture.h"

namespace npuc {

// A weight's histogram as gxnpuc's -s saves one: bars with their counts, axes, the figures that
// decide on compression in words, and the compressed range as red lines where there is one.
Picture DrawHistogram(const WeightHistogram& weight);

// Where the bars are, for whoever reads a picture back: bar i of n covers the columns from
// left + i * width / n up to left + (i + 1) * width / n, and a count of `full` reaches from the
// bottom line up to the top one.
struct HistogramPlot {
  int left = 0, top = 0, width = 0, height = 0;
  double full = 1;
};
HistogramPlot PlotOf(const Histogram& histogram);

// A file name for each weight, in order: letters, digits, '.', '-' and '_' of its name, anything
// else as '_', at most 100 characters, ".jpg". Names that would be equal, also where a file system
// ignores case, get "_2", "_3" and so on.
std::vector<std::string> HistogramFileNames(absl::Span<const WeightHistogram> weights);

// Draws each weight into a folder, which is made. Returns the paths, one a weight.
absl::StatusOr<std::vector<std::string>> WriteHistograms(absl::Span<const WeightHistogram> weights,
                                                         const std::string& folder);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_HISTOGRAM_PICTURE_H_
