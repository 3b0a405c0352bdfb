#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/darknet/cfg_file.h"
#include "compiler_core/frontends/darknet/heads.h"
#include "compiler_core/frontends/darknet/import.h"
#include "compiler_core/frontends/darknet/layer_import.h"
#include "compiler_core/frontends/darknet/net_plan.h"

namespace npuc {
namespace {

ModelOutline::Port PortOf(const std::string& name, const darknet::Size& size) {
  return {.key = name, .name = name, .type = "float32", .dims = size.Dims()};
}

}  // namespace

absl::StatusOr<ModelOutline> OutlineDarknet(absl::string_view cfg, absl::string_view file,
                                            Diagnostics& diagnostics) {
  Diagnostics found;
  ModelOutline outline;
  const std::string name(file);
  const std::optional<darknet::CfgFile> parsed = darknet::ParseCfg(cfg, file, found);
  if (parsed.has_value()) {
    const darknet::Size input = darknet::InputSize(*parsed, name, found);
    const darknet::NetPlan plan =
        darknet::PlanNet(*parsed, parsed->layers.size(), input, name, found);
    outline.operators_are = "layers";
    outline.inputs = {PortOf(darknet::kInputName, plan.input)};
    for (const int layer : plan.outputs) {
      const darknet::Layer& from = plan.layers[static_cast<size_t>(layer)];
      outline.outputs.push_back(PortOf(from.name, from.out));
    }
    for (const darknet::Layer& layer : plan.layers) {
      ++outline.operators[Printable(layer.section->type, 80)];
    }
    CountWeight({plan.weight_count}, sizeof(float), outline);
    if (plan.input.is_image()) {
      outline.notes.push_back("Darknet gives the net RGB pictures with values from 0 to 1");
    }
    for (const int head : plan.heads) {
      const darknet::Layer& layer = plan.layers[static_cast<size_t>(head)];
      darknet::LayerOptions options(layer.section, &layer.name, &name, &found);
      const int from = layer.sources[0];
      outline.notes.push_back(darknet::DescribeHead(
          options, layer,
          from < 0 ? darknet::kInputName : plan.layers[static_cast<size_t>(from)].name));
    }
  }
  diagnostics.Append(found);
  RETURN_IF_ERROR(found.ToStatus());
  return outline;
}

}  // namespace npuc
