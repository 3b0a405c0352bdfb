#ifndef NPUC_COMPILER_CORE_BACKENDS_REPORT_DATA_H_
#define NPUC_COMPILER_CORE_BACKENDS_REPORT_DATA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/quant_options.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/ir/graph/quantization.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/report/histogram.h"

namespace npuc {

// What the reports of a compile show, whatever the core. A back end fills in what it knows.

// What commands do in a frame, together.
struct CommandFigures {
  int64_t commands = 0;
  CommandLoad load;
  int64_t cycles = 0;  // an estimate; 0 without a cycle model
};

// The work of each core on a layer, where a target has several.
struct LayerSharing {
  std::map<int32_t, int64_t> busy_cycles;  // by core that works on it
  std::string by;                          // "rows", "channels"; empty: one core alone
  int64_t parts = 1;
};

// The work of each core on a frame, where a target has several.
struct CoreFigures {
  std::map<int32_t, int64_t> busy_cycles;
  int64_t used = 1;                // of the cores
  int64_t phases = 1;              // from barrier to barrier
  int64_t cycles_on_one_core = 0;  // of the same layers; 0 where one core is used
};

// How far the results of one node of a graph are from those in float32, over all frames.
struct LayerError {
  int64_t values = 0;      // compared; of these:
  int64_t not_finite = 0;  // infinite or NaN on the core or in float, and in no figure below
  double max_abs = 0;
  double rms = 0;            // root of the mean square of the differences
  double reference_max = 0;  // largest magnitude in float
  double similarity = 1;     // cosine between the two; 1 where both are zero throughout
};

// How near a layer that was quantized here is to float.
struct LayerLikeness {
  double rms_error = 0;
  double similarity = 1;  // cosine
};

// One node of the model, or a layer of an integer core.
struct NodeFigures {
  std::string name;
  std::string op;                         // empty: not known
  std::optional<std::string> layer_type;  // Compass's
  std::optional<Shape> shape;             // of the first result
  CommandFigures use;
  std::optional<LayerSharing> sharing;
  int64_t data_bytes = 0;  // of the buffers that its commands touch
  int64_t weight_bytes = 0;
  std::optional<std::vector<QuantParams>> results;  // of an integer core
  std::optional<LayerError> error;                  // LAYER_ERROR_FRAMES
  std::optional<LayerLikeness> likeness;
};

// A line of the listing of operators.
struct OperatorLine {
  std::string name;
  std::string op;
  std::optional<Shape> shape;
  int64_t commands = 0;
};

struct WeightFigures {
  std::string name;
  std::string used_by;
  Shape shape;
  int bits = 0;  // as stored
  double min = 0;
  double max = 0;
  double step = 0;
  double sparsity = 0;  // share of zeros
  double max_abs_error = 0;
  double rms_error = 0;
  int64_t bytes = 0;
  std::optional<Histogram> histogram;  // of those that report.json shows
};

// A transpose that is left: a node of the graph, or a command by which another operator's data is
// turned for its unit.
struct TransposeRecord {
  std::string node;
  Shape shape;  // before
  std::vector<int64_t> perm;
  std::string reason;
};

// How WEIGHT_CACHE_SIZE would be used: an estimate, not verified on silicon.
struct WeightCacheUse {
  int64_t size_bytes = 0;
  int64_t used_bytes = 0;
  std::vector<std::string> nodes;  // the nodes whose weights it holds
};

// Where a buffer of data_content lies, and from which command to which it is in use.
struct BufferFigures {
  std::string node;
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  LiveRange range;
};
// The indices of the buffers of data_content that are in use, the largest buffer first.
std::vector<size_t> BuffersInUse(absl::Span<const Buffer> buffers,
                                 absl::Span<const LiveRange> ranges);
// These buffers, in the same order.
std::vector<BufferFigures> MemoryMapOf(absl::Span<const Buffer> buffers,
                                       absl::Span<const LiveRange> ranges);

// One figure of how good a model's outputs are (quant/metrics): of the float model, and of the
// quantized one against it.
struct MetricFigure {
  std::string metric;
  std::string output;
  double of_float = 0;
  double quantized = 0;  // not finite: none, as an sqnr without any difference
};

struct ModelMetrics {
  std::string source;  // the source of the items: "data", "calibration_data"
  std::string by;      // what ran the quantized model: "simulator", "fake quantization"
  int64_t items = 0;
  std::vector<MetricFigure> figures;  // empty: nothing was measured
};

inline constexpr int32_t kOfNoNode = -1;

struct ReportData {
  Graph graph;  // as it was lowered
  std::map<std::string, int64_t> commands_by_kind;
  CommandFigures per_frame;
  std::optional<CoreFigures> cores;
  std::vector<NodeFigures> nodes;
  // Positions in `nodes`, of each command and of each node of `graph`; kOfNoNode: of none.
  std::vector<int32_t> node_of_command;
  std::vector<int32_t> node_of_graph_node;
  std::vector<OperatorLine> operators;
  std::vector<WeightFigures> weights;
  std::optional<std::vector<TransposeRecord>> transposes;
  std::optional<WeightCacheUse> weight_cache;
  std::vector<BufferFigures> memory_map;
  ModelMetrics metrics;
  std::vector<WeightHistogram> weight_histograms;  // with options.save_histograms
};

// For each item the position of the node that it names; kOfNoNode where there is none.
template <typename Item, typename Name>
std::vector<int32_t> PositionsByName(const std::vector<NodeFigures>& nodes,
                                     const std::vector<Item>& items, const Name& name) {
  std::map<absl::string_view, int32_t> positions;
  for (size_t i = 0; i < nodes.size(); ++i) positions[nodes[i].name] = static_cast<int32_t>(i);
  std::vector<int32_t> found;
  found.reserve(items.size());
  for (const Item& item : items) {
    const auto at = positions.find(std::invoke(name, item));
    found.push_back(at == positions.end() ? kOfNoNode : at->second);
  }
  return found;
}

// The bits that the integers between qmin and qmax need.
int BitsOf(const QuantParams& params);

// The histogram of all values of a weight, in the bins that report.json has.
Histogram ReportHistogram(const Tensor& tensor);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BACKENDS_REPORT_DATA_H_
