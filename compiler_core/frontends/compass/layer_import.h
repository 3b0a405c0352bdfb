#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/frontends/common/operand_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/compass/tensors.h"

namespace npuc::compass {

using frontend::ImportState;
using frontend::ValueRef;

// What the rule of a layer type sees of its layer: attributes and constants of the text, which the
// checker has found sound, beside what all front ends share. Operands are float here; a result is
// quantized where the text says so, behind the rule.
class LayerImporter : public frontend::OperandNode {
 public:
  LayerImporter(ImportState* state, const LayerView* layer, const Top* top, const ByteSource* bin,
                std::vector<ValueRef> inputs, std::vector<const Top*> bottoms)
      : OperandNode(state, {layer->name, layer->type}, std::move(inputs)),
        layer_(*layer),
        top_(*top),
        bin_(*bin),
        bottoms_(std::move(bottoms)) {}

  const Block& block() const { return *layer_.block; }
  const Top& top() const { return top_; }
  const Top& bottom(int i) const { return *bottoms_[static_cast<size_t>(i)]; }
  bool Has(absl::string_view key) const { return block().Find(key) != nullptr; }
  int64_t NumberOr(absl::string_view key, int64_t fallback) const;
  std::string Text(absl::string_view key) const { return block().ValueOr(key, ""); }

  // Reports a problem at the line of `key`.
  absl::Status FailAt(absl::string_view key, DiagnosticKind kind, const std::string& message,
                      std::string fix);
  absl::Status FailInvalid(absl::string_view key, const std::string& message);

  // A constant of the .bin by its name in the keys: "weights". An error where it is not there.
  absl::StatusOr<Tensor> ReadConstant(absl::string_view name);
  // A float constant, or integers by those parameters, named after the layer.
  ValueRef MakeWeight(Tensor values, std::optional<QuantParams> params, absl::string_view name);

  // The requantization's own factors, where they do not follow from the scales.
  void SetFactors(std::vector<Factor> factors) { settings_.factors = std::move(factors); }
  int multiplier_bits() const { return settings_.multiplier_bits; }
  // Reads multiplier_bits, lut_items_in_bits and bias_effective_bits.
  absl::Status ReadSettings();
  // The result through Quantize, with the layer's settings, and Dequantize, where it is stored as
  // integers. Its shape must be the one stated.
  absl::StatusOr<ValueRef> Finish(ValueRef value);

 private:
  absl::Status ReadBits(absl::string_view key, int lowest, int highest, int& bits);

  const LayerView& layer_;
  const Top& top_;
  const ByteSource& bin_;
  const std::vector<const Top*> bottoms_;
  LayerQuant settings_;
};

// The rule of a layer type with one result.
struct ImportRule {
  absl::string_view op;  // the layer type
  absl::StatusOr<ValueRef> (*import)(LayerImporter& node);
};
frontend::RuleTable<ImportRule> AllRules();

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_
