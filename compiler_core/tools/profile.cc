#include "compiler_core/tools/profile.h"

#include <map>
#include <utility>

#include "compiler_core/base/digest.h"
#include "compiler_core/emit/model_file.h"
#include "compiler_core/report/json_parts.h"
#include "compiler_core/report/profile_buffer.h"
#include "compiler_core/target/core_spec.h"
#include "compiler_core/tools/array_files.h"
#include "compiler_core/tools/files.h"

namespace npuc {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

absl::StatusOr<CompiledModel> LoadArtifact(const std::string& path, Diagnostics& diagnostics) {
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxArtifactBytes);
  if (!bytes.ok()) {
    AddFileProblem(bytes.status(), diagnostics);
    return bytes.status();
  }
  return ReadArtifact(*bytes, path, diagnostics);
}

Json ProfileJson(const Simulator& simulator, int64_t items, bool has_cores) {
  struct Sum {
    int64_t commands = 0;
    CommandLoad load;
    PhaseClock clock;
    void Add(const Simulator::CommandInfo& info) {
      ++commands;
      load += info.load;
      clock.Add(info.phase, info.core, info.cycles);
    }
    Json ToJson() const {
      Json json = {{"commands", commands}};
      json.update(LoadJson(load, clock.cycles()));
      return json;
    }
  };
  Json commands = Json::array();
  std::map<std::string, Sum> kinds;
  Sum frame;
  for (const Simulator::CommandInfo& info : simulator.commands()) {
    frame.Add(info);
    kinds[info.kind].Add(info);
    Json command = {{"offset", info.offset_bytes}, {"kind", info.kind}};
    if (has_cores) command.update(Json{{"core", info.core}, {"phase", info.phase}});
    command.update(LoadJson(info.load, info.cycles));
    commands.push_back(std::move(command));
  }
  Json per_frame = frame.ToJson();
  if (has_cores) per_frame["cores"] = CoresJson(frame.clock.busy(), frame.clock.cycles());
  per_frame["by_kind"] = Json::object();
  for (const auto& [kind, sum] : kinds) per_frame["by_kind"][kind] = sum.ToJson();
  return {{"items", items}, {"per_frame", per_frame}, {"commands", commands}};
}

std::string ProfileBytes(const CompiledModel& model, const Simulator& simulator) {
  ProfileBuffer buffer;
  buffer.commands_md5 =
      Md5Hex({reinterpret_cast<const char*>(model.cmd_content.data()), model.cmd_content.size()});
  const CoreSpec* core = FindCore(model.core);
  int64_t phase = 0;
  for (const Simulator::CommandInfo& info : simulator.commands()) {
    ProfileRecord& record = buffer.records.emplace_back();
    record.core = static_cast<uint32_t>(info.core);
    record.barrier = info.phase != phase;
    phase = info.phase;
    record.offset_bytes = static_cast<uint32_t>(info.offset_bytes);
    record.cycles = info.cycles;
    record.read_bytes = info.load.read_bytes;
    record.written_bytes = info.load.written_bytes;
    record.macs = info.load.macs;
    if (core == nullptr || core->cycles == nullptr) continue;
    const UnitCycles units = EstimateUnits(*CyclesOf(*core, model.npu_unit), info.load);
    (info.load.macs > 0 ? record.aiff_busy_cycles : record.tpc_busy_cycles) = units.computing;
    record.dma_busy_cycles = units.moving;
  }
  return WriteProfileBuffer(buffer);
}

}  // namespace npuc
