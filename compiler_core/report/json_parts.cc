#include "compiler_core/report/json_parts.h"

#include <utility>

#include "compiler_core/base/diagnostic.h"

namespace npuc {

using Json = nlohmann::ordered_json;

Json LoadJson(const CommandLoad& load, int64_t cycles) {
  return Json{{"macs", load.macs},
              {"elements", load.elements},
              {"read_bytes", load.read_bytes},
              {"written_bytes", load.written_bytes},
              {"cycles", cycles}};
}

void WriteLoad(const CommandLoad& load, int64_t cycles, JsonWriter& out) {
  out.Members("macs", load.macs, "elements", load.elements, "read_bytes", load.read_bytes,
              "written_bytes", load.written_bytes, "cycles", cycles);
}

Json CycleModelJson(const CycleModel& model) {
  return Json{{"estimate", true},
              {"command_cycles", model.command_cycles},
              {"macs_per_cycle", model.macs_per_cycle},
              {"elements_per_cycle", model.elements_per_cycle},
              {"bytes_per_cycle", model.bytes_per_cycle}};
}

Json PortsJson(const std::vector<PortTensor>& inputs, const std::vector<PortTensor>& ports) {
  Json list = Json::array();
  for (const PortTensor& port : ports) {
    Json entry{{"name", Printable(port.name)}, {"type", TypeToString({port.dtype, port.shape})}};
    if (port.scale > 0) {  // of integers: (stored - zero_point) * scale
      entry["scale"] = port.scale;
      entry["zero_point"] = port.zero_point;
    }
    if (port.state_input >= 0) entry["state_of"] = Printable(inputs[port.state_input].name);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace npuc
