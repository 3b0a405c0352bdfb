#ifndef NPUC_COMPILER_CORE_PIPELINE_REPORT_PARTS_H_
#define NPUC_COMPILER_CORE_PIPELINE_REPORT_PARTS_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler_core/base/compile_options.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/emit/artifact.h"
#include "compiler_core/ir/graph/graph.h"
#include "compiler_core/memplan/plan.h"
#include "compiler_core/report/histogram.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/report/json_writer.h"
#include "nlohmann/json.hpp"

namespace npuc {

// What report.json of every core has in common: the same names for the same things, so that one
// page, one dashboard and one script read all. Pure.

// Writes lists, and `omitted` before the first one that is too long.
class ListWriter {
 public:
  // `lists`: the name and length of each, in the report's order.
  ListWriter(JsonWriter& out, const std::vector<std::pair<const char*, size_t>>& lists)
      : out_(out), omitted_(nlohmann::ordered_json::object()) {
    for (const auto& [name, size] : lists) {
      if (size > kMaxReportEntries) omitted_[name] = size - kMaxReportEntries;
    }
  }

  void Announce(size_t count) {
    if (count <= kMaxReportEntries || is_told_) return;
    out_.Member("omitted", omitted_);
    is_told_ = true;
  }
  // entry(i) writes the members of each of `count` entries, as far as they are shown.
  template <typename Entry>
  void Write(const char* name, size_t count, const Entry& entry) {
    Announce(count);
    out_.Key(name);
    out_.BeginArray();
    for (size_t i = 0; i < std::min(count, kMaxReportEntries); ++i) {
      out_.BeginObject();
      entry(i);
      out_.EndObject();
    }
    out_.EndArray();
  }

 private:
  JsonWriter& out_;
  nlohmann::ordered_json omitted_;
  bool is_told_ = false;
};

nlohmann::ordered_json SizesJson(const CompiledModel& model, const MemoryPlanResult& memory);
nlohmann::ordered_json MemoryPlanJson(const MemoryPlanResult& memory);

// The nodes that `graph` lists: all but constants.
std::vector<const Node*> NodesOfReport(const Graph& graph);
void WriteGraph(const Graph& graph, absl::Span<const Node* const> nodes, JsonWriter& out,
                ListWriter& lists);

// The buffers of data_content in use; where not all are shown, the largest say most.
std::vector<size_t> DataBuffers(absl::Span<const Buffer> buffers,
                                absl::Span<const LiveRange> ranges);
// Which bytes of data_content each of the buffers `shown` has, from its first command to its last.
void WriteMemoryMap(absl::Span<const Buffer> buffers, size_t command_count,
                    absl::Span<const LiveRange> ranges, absl::Span<const size_t> shown,
                    JsonWriter& out, ListWriter& lists);

// Of all values of a weight; and as {low, high, min, max, values, counts}: the bins' edges, the
// least and the greatest value.
Histogram ReportHistogram(const Tensor& tensor);
void WriteHistogram(const Histogram& histogram, JsonWriter& out);

void WriteDiagnostics(const Diagnostics& diagnostics, JsonWriter& out);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_PIPELINE_REPORT_PARTS_H_
