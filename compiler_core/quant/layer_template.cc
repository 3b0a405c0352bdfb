#include "compiler_core/quant/layer_template.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/trim_text.h"

namespace npuc {
namespace {

absl::string_view CompassDType(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return "Dtype.INT8";
    case DType::kUint8:
      return "Dtype.UINT8";
    case DType::kInt16:
      return "Dtype.INT16";
    case DType::kUint16:
      return "Dtype.UINT16";
    default:
      return "Dtype.FP32";
  }
}

// Compass writes 1 / scale and -zero_point.
std::string QuantizationInfo(const QuantPlan& plan, const Layer& layer) {
  std::vector<std::string> tensors;
  for (size_t k = 0; k < layer.outputs.size(); ++k) {
    const auto found = plan.values.find(layer.outputs[k]);
    if (found == plan.values.end()) continue;
    const QuantParams& q = found->second;
    int bits = 0;
    while ((int64_t{1} << bits) - 1 < q.qmax - q.qmin) ++bits;
    const auto real = [&](int64_t integer) {
      return JsonNumber(static_cast<double>(integer - q.zero_point[0]) * q.scale[0]);
    };
    tensors.push_back(absl::StrCat(
        "'", layer.name, k == 0 ? "" : absl::StrCat(":", k), "': {'scale': '[",
        JsonNumber(1 / q.scale[0]), "]', 'zerop': '[", -q.zero_point[0], "]', 'qbits': '", bits,
        "', 'dtype': '", std::string(CompassDType(q.dtype)), "', 'qmin': '", q.qmin, "', 'qmax': '",
        q.qmax, "', 'fmin': '[", real(q.qmin), "]', 'fmax': '[", real(q.qmax),
        "]', 'fmin_key_axis': 'None', 'fmax_key_axis': 'None', 'qinvariant': 'False'}"));
  }
  return absl::StrCat("{", absl::StrJoin(tensors, ", "), "}");
}

std::string Display(const QuantPlan& plan, size_t i, absl::Span<const LayerFidelity> fidelity) {
  const Layer& layer = plan.layers[i];
  std::string brief = absl::StrCat("layer_id = ", i, ", layer_type = OpType.", layer.type);
  if (i < fidelity.size()) {
    absl::StrAppend(&brief, ", similarity=", JsonNumber(fidelity[i].cosine),
                    ", MSE=", JsonNumber(fidelity[i].mse));
  }
  constexpr char kIndent[] = ",\n            ";
  return absl::StrCat(
      "{\n            \"quantization_info\": ", JsonQuoted(QuantizationInfo(plan, layer)), kIndent,
      "\"optimization_info\": \"{}\"", kIndent, "\"brief_info\": ", JsonQuoted(brief),
      "\n        }");
}

std::string Members(const QuantPlan& plan, size_t i, const LayerSettings& s,
                    absl::Span<const LayerFidelity> fidelity) {
  std::vector<std::string> members;
  const auto text = [&](absl::string_view key, absl::string_view value) {
    members.push_back(absl::StrCat("\"", key, "\": ", JsonQuoted(std::string(value))));
  };
  const auto raw = [&](absl::string_view key, const std::string& value) {
    members.push_back(absl::StrCat("\"", key, "\": ", value));
  };
  if (plan.layers[i].type == "Convolution") raw("with_winograd", "false");
  text("q_mode_activation", NameOf(s.activation_method));
  text("q_mode_weight", NameOf(s.weight_method));
  raw("q_bits_activation", absl::StrCat(s.activation_bits));
  raw("q_bits_weight", absl::StrCat(s.weight_bits));
  raw("q_bits_bias", absl::StrCat(s.bias_bits));
  text("q_strategy_activation", NameOf(s.activation_strategy));
  text("q_strategy_weight", NameOf(s.weight_strategy));
  raw("running_statistic_momentum", JsonNumber(s.momentum));
  raw("histc_bins", absl::StrCat(s.histc_bins));
  if (s.lut_bits != kChosenLutBits) raw("lut_items_in_bits", absl::StrCat(s.lut_bits));
  raw("force_dtype_int", s.force_dtype_int ? "true" : "false");
  raw("force_shift_positive", "false");
  text("trigger_float_op", s.in_float ? "float32_preferred" : "disable");
  // Those that Compass's reader takes and its writer leaves out stand only where they are set.
  const LayerSettings usual;
  if (s.multiplier_bits != usual.multiplier_bits) {
    raw("multiplier_bits", absl::StrCat(s.multiplier_bits));
  }
  if (s.bias_effective_bits != usual.bias_effective_bits) {
    raw("bias_effective_bits", absl::StrCat(s.bias_effective_bits));
  }
  if (s.trim.has_value()) text("trim_infinity_before_statistic", TextOf(*s.trim));
  raw("just_for_display", Display(plan, i, fidelity));
  return absl::StrJoin(members, ",\n        ");
}

}  // namespace

std::string WriteLayerTemplate(const Graph& graph, const QuantPlan& plan,
                               absl::Span<const LayerSettings> settings,
                               absl::Span<const LayerFidelity> fidelity) {
  std::vector<std::string> layers;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    layers.push_back(absl::StrCat("    ", JsonQuoted(plan.layers[i].name), ": {\n        ",
                                  Members(plan, i, settings[i], fidelity), "\n    }"));
  }
  if (layers.empty()) return "{}";
  return absl::StrCat("{\n", absl::StrJoin(layers, ",\n"), "\n}");
}

}  // namespace npuc
