#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/compass/import.h"
#include "compiler_core/ir/compass/check.h"
#include "compiler_core/ir/compass/document.h"

namespace npuc {
namespace compass {
namespace {

std::vector<std::string> ListOf(const Block& block, absl::string_view key) {
  return ParseList(block.ValueOr(key, "[]")).value_or(std::vector<std::string>());
}

// The results of all layers by name. A type that the IR lacks stays as it is written.
std::map<std::string, ModelOutline::Port> TensorsOf(const Document& document) {
  std::map<std::string, ModelOutline::Port> tensors;
  for (const Block& layer : document.layers) {
    const std::vector<std::string> names = ListOf(layer, "layer_top");
    const std::vector<std::string> types = ListOf(layer, "layer_top_type");
    const auto shapes = ParseIntLists(layer.ValueOr("layer_top_shape", "[]"));
    for (size_t i = 0; i < names.size(); ++i) {
      ModelOutline::Port port{.key = names[i], .name = names[i]};
      if (i < types.size()) port.type = Printable(types[i]);
      if (shapes.has_value() && i < shapes->size()) port.dims = (*shapes)[i];
      tensors.emplace(names[i], std::move(port));
    }
  }
  return tensors;
}

void CountWeights(const Block& layer, ModelOutline& outline) {
  for (const Entry& entry : layer.entries) {
    if (!absl::EndsWith(entry.key, "_shape") || absl::StartsWith(entry.key, "layer_")) continue;
    const std::string stem = entry.key.substr(0, entry.key.size() - 6);
    const auto dims = ParseInts(entry.value);
    const DType dtype = TypeFromName(layer.ValueOr(stem + "_type", ""));
    if (dims.has_value()) CountWeight(*dims, SizeOf(dtype), outline);
  }
}

}  // namespace
}  // namespace compass

absl::StatusOr<ModelOutline> OutlineCompass(absl::string_view text, absl::string_view file,
                                            Diagnostics& diagnostics) {
  ASSIGN_OR_RETURN(const compass::Document document,
                   compass::ParseDocument(text, file, diagnostics));
  RETURN_IF_ERROR(compass::CheckDocument(document, std::nullopt, file, diagnostics));
  ModelOutline outline;
  outline.operators_are = "layers";
  const std::map<std::string, ModelOutline::Port> tensors = compass::TensorsOf(document);
  const auto add = [&](absl::string_view key, std::vector<ModelOutline::Port>& ports) {
    for (const std::string& name : compass::ListOf(document.head, key)) {
      const auto found = tensors.find(name);
      if (found != tensors.end()) ports.push_back(found->second);
    }
  };
  add("input_tensors", outline.inputs);
  add("output_tensors", outline.outputs);
  for (const compass::Block& layer : document.layers) {
    const std::string type = layer.ValueOr("layer_type", "");
    if (type != "Constant" && type != "Input") ++outline.operators[Printable(type)];
    compass::CountWeights(layer, outline);
  }
  return outline;
}

}  // namespace npuc
