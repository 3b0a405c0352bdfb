#ifndef NPUC_COMPILER_CORE_REPORT_JSON_PARTS_H_
#define NPUC_COMPILER_CORE_REPORT_JSON_PARTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler_core/ir/cmd/command.h"
#include "compiler_core/ir/cmd/load.h"
#include "compiler_core/report/json_writer.h"
#include "compiler_core/target/core_spec.h"
#include "nlohmann/json.hpp"

namespace npuc {

// Parts that a compile's report, an artifact's report and the simulator's profile have in common,
// so that one page draws them all. Pure.

// Entries of a list that grows with the model; the page says how many more there are.
inline constexpr size_t kMaxReportEntries = 1500;

// macs, array_cycles where they are not 0, elements, read_bytes, written_bytes, and cycles, which
// are an estimate.
nlohmann::ordered_json LoadJson(const CommandLoad& load, int64_t cycles);
// The same as members of the object that is open.
void WriteLoad(const CommandLoad& load, int64_t cycles, JsonWriter& out);

// The parameters of the estimate for a unit of the core. core.cycles must not be null.
nlohmann::ordered_json CycleModelJson(const CoreSpec& core, absl::string_view npu_unit);
// The share of the multipliers' cycles in which they work; 0 where the core states no array.
double UtilisationOf(const CoreSpec& core, const CommandLoad& load, int64_t cycles);

// A core's share of a frame's or a layer's cycles, for each that works on it.
nlohmann::ordered_json CoresJson(const std::map<int32_t, int64_t>& busy_cycles, int64_t cycles);

// Name and type of each port; of integers scale and zero point; of an output that is fed back, the
// input. `inputs` are the model's.
nlohmann::ordered_json PortsJson(const std::vector<PortTensor>& inputs,
                                 const std::vector<PortTensor>& ports);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_REPORT_JSON_PARTS_H_
