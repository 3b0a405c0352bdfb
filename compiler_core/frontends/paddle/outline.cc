#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/paddle/import.h"
#include "compiler_core/frontends/paddle/importer.h"
#include "compiler_core/frontends/paddle/program_file.h"

namespace npuc {
namespace {

ModelOutline::Port PortOf(const paddle::ProgramFile& program, const std::string& name) {
  ModelOutline::Port port{.key = name, .name = name};
  const paddle::Variable* variable = program.FindVariable(name);
  if (variable == nullptr || !variable->is_tensor) return port;
  const DType dtype = paddle::DTypeFromWire(variable->data_type);
  port.type =
      dtype == DType::kInvalid ? paddle::DataTypeName(variable->data_type) : OutlineTypeName(dtype);
  port.dims = variable->dims;
  return port;
}

}  // namespace

absl::StatusOr<ModelOutline> OutlinePaddle(absl::string_view program, absl::string_view file,
                                           Diagnostics& diagnostics) {
  Diagnostics found;
  const std::unique_ptr<paddle::ProgramFile> parsed =
      paddle::ProgramFile::Parse(program, file, found);
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  ModelOutline outline{.producer = parsed->producer()};
  for (const std::string& name : parsed->inputs()) outline.inputs.push_back(PortOf(*parsed, name));
  const paddle::ProgramEnds ends = paddle::EndsOf(*parsed);
  for (const std::string& name : ends.outputs) outline.outputs.push_back(PortOf(*parsed, name));
  for (const paddle::OpView& op : parsed->ops()) ++outline.operators[Printable(op.type(), 80)];
  for (const auto& [name, variable] : parsed->variables()) {
    if (!variable.is_parameter) continue;
    CountWeight(variable.dims,
                std::max<int64_t>(SizeOf(paddle::DTypeFromWire(variable.data_type)), 1), outline);
  }
  if (!ends.decoders.empty()) {
    outline.notes.push_back(
        "operators that decode boxes are left out: the outputs are what they read");
  }
  return outline;
}

}  // namespace npuc
