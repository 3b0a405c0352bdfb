#ifndef NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_
#define NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/byte_source.h"
#include "compiler_core/frontends/common/operand_node.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/compass/tensors.h"

namespace npuc::compass {

using frontend::ImportState;
using frontend::ValueRef;

inline constexpr char kCut[] = "cut the model around the layer with INPUT_OPS or OUTPUT_OPS";

// What the rule of a layer type sees of its layer: attributes and constants of the text, which the
// checker has found sound, beside what all front ends share. Operands are float here; a result is
// quantized where the text says so, behind the rule.
class LayerImporter : public frontend::OperandNode {
 public:
  LayerImporter(ImportState* state, const LayerView* layer, absl::Span<const Top> tops,
                const ByteSource* bin, std::vector<ValueRef> inputs,
                std::vector<const Top*> bottoms)
      : OperandNode(state, {layer->name, layer->type}, std::move(inputs)),
        layer_(*layer),
        tops_(tops),
        bin_(*bin),
        bottoms_(std::move(bottoms)) {}

  const Block& block() const { return *layer_.block; }
  const Top& top() const { return tops_[0]; }  // the first one
  const Shape& top_shape(size_t i) const { return tops_[i].type.shape; }
  size_t top_count() const { return tops_.size(); }
  const Top& bottom(int i) const { return *bottoms_[static_cast<size_t>(i)]; }
  bool Has(absl::string_view key) const { return block().Find(key) != nullptr; }
  int64_t NumberOr(absl::string_view key, int64_t fallback) const;
  std::string Text(absl::string_view key) const { return block().ValueOr(key, ""); }
  std::string TextOr(absl::string_view key, absl::string_view fallback) const {
    return block().ValueOr(key, fallback);
  }
  // "true" and "false" in any case.
  absl::StatusOr<bool> FlagOr(absl::string_view key, bool fallback);
  // A finite number.
  absl::StatusOr<double> RealOr(absl::string_view key, double fallback);
  // A list of whole numbers, as many as `count`; or one such list a dimension.
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view key, int64_t count);
  absl::StatusOr<std::vector<Shape>> Pairs(absl::string_view key, int64_t count);
  absl::StatusOr<int64_t> AxisOr(absl::string_view key, int64_t fallback);

  // Reports a problem at the line of `key`.
  absl::Status FailAt(absl::string_view key, DiagnosticKind kind, const std::string& message,
                      std::string fix);
  absl::Status FailInvalid(absl::string_view key, const std::string& message);

  // Result i is stored as integers, and the text does not state their scale.
  absl::Status FailWithoutScale(size_t i);

  // A constant of the .bin by its name in the keys: "weights". An error where it is not there.
  absl::StatusOr<Tensor> ReadConstant(absl::string_view name);
  // A float constant, or integers by those parameters, named after the layer.
  ValueRef MakeWeight(Tensor values, std::optional<QuantParams> params, absl::string_view name);

  // The requantization's own factors, where they do not follow from the scales.
  void SetFactors(std::vector<Factor> factors) { settings_.factors = std::move(factors); }
  int multiplier_bits() const { return settings_.multiplier_bits; }
  // Reads multiplier_bits, lut_items_in_bits and bias_effective_bits.
  absl::Status ReadSettings();
  // Result i through Quantize, with the layer's settings, and Dequantize, where it is stored as
  // integers with a scale; booleans and whole numbers stay. Its shape must be the one stated.
  absl::StatusOr<ValueRef> Finish(ValueRef value, size_t i = 0);

 private:
  absl::Status ReadBits(absl::string_view key, int lowest, int highest, int& bits);

  const LayerView& layer_;
  const absl::Span<const Top> tops_;
  const ByteSource& bin_;
  const std::vector<const Top*> bottoms_;
  LayerQuant settings_;
};

// The rule of a layer type: one of the two, for types with one result and with several.
struct ImportRule {
  absl::string_view op;  // the layer type
  absl::StatusOr<ValueRef> (*import)(LayerImporter& node) = nullptr;
  absl::StatusOr<std::vector<ValueRef>> (*import_all)(LayerImporter& node) = nullptr;
};
frontend::RuleTable<ImportRule> AllRules();

// The families of AllRules, and what they share.
absl::Span<const ImportRule> MathRules();
absl::Span<const ImportRule> RecurrentRules();
absl::Span<const ImportRule> ShapeRules();

using Names = std::pair<absl::string_view, absl::string_view>;
// Returns the operator that `method` names; a report where it names none of these.
absl::StatusOr<std::string> MethodOf(LayerImporter& node, absl::Span<const Names> methods);
// The value through with_activation.
absl::StatusOr<ValueRef> Activated(LayerImporter& node, ValueRef value);
// The constants "weights" [out, ...] and "biases" [out], with their scales.
struct Operands {
  ValueRef weight;
  ValueRef bias;
};
absl::StatusOr<Operands> WeightsOf(LayerImporter& node);

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_FRONTENDS_COMPASS_LAYER_IMPORT_H_
