#include "compiler_core/report/json_parts.h"

#include <utility>

#include "compiler_core/base/diagnostic.h"
#include "compiler_core/target/mac_array.h"

namespace npuc {

using Json = nlohmann::ordered_json;

Json LoadJson(const CommandLoad& load, int64_t cycles) {
  Json json{{"macs", load.macs}};
  if (load.array_cycles > 0) json["array_cycles"] = load.array_cycles;
  json.update(Json{{"elements", load.elements},
                   {"read_bytes", load.read_bytes},
                   {"written_bytes", load.written_bytes},
                   {"cycles", cycles}});
  return json;
}

void WriteLoad(const CommandLoad& load, int64_t cycles, JsonWriter& out) {
  out.Member("macs", load.macs);
  if (load.array_cycles > 0) out.Member("array_cycles", load.array_cycles);
  out.Members("elements", load.elements, "read_bytes", load.read_bytes, "written_bytes",
              load.written_bytes, "cycles", cycles);
}

Json CycleModelJson(const CoreSpec& core, absl::string_view npu_unit) {
  const CycleModel& model = *CyclesOf(core, npu_unit);
  Json json{{"estimate", true},
            {"command_cycles", model.command_cycles},
            {"register_sets", model.register_sets},
            {"macs_per_cycle", model.macs_per_cycle},
            {"elements_per_cycle", model.elements_per_cycle},
            {"bytes_per_cycle", model.bytes_per_cycle}};
  if (CoresOf(core) > 1) json["cores"] = CoresOf(core);
  if (const MacArray* array = MacArrayOf(core); array != nullptr) {
    json["array"] = {{"outputs", array->outputs},
                     {"inputs", array->inputs},
                     {"pixels", array->pixels},
                     {"weights_per_cycle", array->weights_per_cycle}};
  }
  return json;
}

double UtilisationOf(const CoreSpec& core, const CommandLoad& load, int64_t cycles) {
  if (MacArrayOf(core) == nullptr || cycles == 0) return 0;
  return static_cast<double>(load.macs) /
         (static_cast<double>(cycles) *
          static_cast<double>(core.cycles->macs_per_cycle * CoresOf(core)));
}

Json CoresJson(const std::map<int32_t, int64_t>& busy_cycles, int64_t cycles) {
  Json list = Json::array();
  for (const auto& [core, busy] : busy_cycles) {
    list.push_back({{"core", core},
                    {"busy_cycles", busy},
                    {"utilisation",
                     cycles == 0 ? 0.0 : static_cast<double>(busy) / static_cast<double>(cycles)}});
  }
  return list;
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
