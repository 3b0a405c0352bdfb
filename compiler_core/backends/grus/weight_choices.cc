#include "compiler_core/backends/grus/weight_choices.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/quant/opt_template.h"

namespace npuc {
namespace {

// The weight that a config means by `name`: the Const node, or the "/read" Identity behind it.
const WeightName* FindWeight(absl::Span<const WeightName> weights, absl::string_view name) {
  for (const WeightName& weight : weights) {
    if (name == weight.name) return &weight;
  }
  if (!absl::ConsumeSuffix(&name, "/read")) return nullptr;
  for (const WeightName& weight : weights) {
    if (name == weight.name) return &weight;
  }
  return nullptr;
}

class Chooser {
 public:
  Chooser(const CompileRequest& request, const CoreSpec& core, absl::Span<const WeightName> weights,
          Diagnostics& diagnostics)
      : request_(request), core_(core), weights_(weights), diagnostics_(diagnostics) {}

  absl::StatusOr<LowerOptions> Choose() {
    const CompileOptions& options = request_.options;
    lower_.default_choice.compress = options.compress;
    lower_.conv_choice.compress = options.conv2d_compress;
    lower_.in_place = options.memory_plan == CompileOptions::MemoryPlan::kInPlace;
    lower_.plain_commands = options.memory_plan == CompileOptions::MemoryPlan::kCompatible;
    lower_.model_name = options.model_name;
    if (HasCodeBooks(core_)) ChooseBooks();
    for (const std::string& name : options.exclude_compress_ops) {
      WeightChoice* choice = ChoiceOf("EXCLUDE_COMPRESS_OPS", name, Kind::kFullyConnected);
      if (choice != nullptr) choice->compress = false;
    }
    for (const std::string& name : options.exclude_conv2d_compress_ops) {
      WeightChoice* choice = ChoiceOf("EXCLUDE_CONV2D_COMPRESS_OPS", name, Kind::kConvolution);
      if (choice != nullptr) choice->compress = false;
    }
    for (const auto& [name, range] : options.weight_min_max) {
      if (WeightChoice* choice = ChoiceOf("WEIGHT_MIN_MAX", name, Kind::kAny)) {
        choice->min = range.first;
        choice->max = range.second;
      }
    }
    RETURN_IF_ERROR(ApplyTemplate());
    RETURN_IF_ERROR(diagnostics_.ToStatus());
    return std::move(lower_);
  }

 private:
  void ChooseBooks() {
    const CompileOptions& options = request_.options;
    lower_.book_bits = static_cast<int>(options.compress_quant_bits.value_or(kMostBookBits));
    lower_.book_spacing = options.compress_type == CompileOptions::CompressType::kGaussian
                              ? BookSpacing::kGaussian
                              : BookSpacing::kLinear;
    lower_.in_place = lower_.in_place || options.space_optimization;
    if (options.float16) {
      lower_.exponent_bits = static_cast<int>(options.float16_exp_bits.value_or(kHalfExponentBits));
    }
  }

  enum class Kind : uint8_t { kFullyConnected, kConvolution, kAny };

  static absl::string_view NameOf(Kind kind) {
    if (kind == Kind::kFullyConnected) return "fully connected weight";
    return kind == Kind::kConvolution ? "convolution weight" : "weight";
  }
  static bool Matches(Kind kind, const WeightName& weight) {
    return kind == Kind::kAny || weight.is_convolution == (kind == Kind::kConvolution);
  }

  // The entry for a weight that key `key` names; null, with a diagnostic, where the model has no
  // such weight of that kind.
  WeightChoice* ChoiceOf(absl::string_view key, const std::string& name, Kind kind) {
    const WeightName* weight = FindWeight(weights_, name);
    if (weight == nullptr || !Matches(kind, *weight)) {
      std::vector<absl::string_view> candidates;
      for (const WeightName& known : weights_) {
        if (Matches(kind, known)) candidates.push_back(known.name);
      }
      diagnostics_.Add({.kind = DiagnosticKind::kUnknownWeightName,
                        .message = absl::StrCat(key, " names '", Printable(name), "', which is no ",
                                                NameOf(kind), " of the model"),
                        .file = request_.options.model_name,
                        .fix = DidYouMean(name, candidates, "npuc CONFIG -w lists the weights")});
      return nullptr;
    }
    const auto it = lower_.weight_choices
                        .try_emplace(weight->name, weight->is_convolution ? lower_.conv_choice
                                                                          : lower_.default_choice)
                        .first;
    return &it->second;
  }

  absl::Status ApplyTemplate() {
    const auto it = request_.side_inputs.find("OPT_CONFIG");
    if (it == request_.side_inputs.end()) return absl::OkStatus();
    std::vector<std::string> names;
    for (const WeightName& weight : weights_) names.push_back(weight.name);
    ASSIGN_OR_RETURN(const std::string text,
                     ReadAll(*it->second.bytes, std::numeric_limits<int32_t>::max()));
    ASSIGN_OR_RETURN(const WeightSettings settings,
                     ReadOptTemplate(text, it->second.name, names,
                                     lower_.book_bits > 0 ? kLeastBookBits : 8, diagnostics_));
    for (const auto& [name, setting] : settings) {
      WeightChoice* choice = ChoiceOf("OPT_CONFIG", name, Kind::kAny);
      if (choice == nullptr) continue;
      if (setting.q_bits) choice->compress = *setting.q_bits < 16;
      if (setting.q_bits && lower_.book_bits > 0 && choice->compress) choice->bits = setting.q_bits;
      if (setting.min) choice->min = setting.min;
      if (setting.max) choice->max = setting.max;
    }
    return absl::OkStatus();
  }

  const CompileRequest& request_;
  const CoreSpec& core_;
  absl::Span<const WeightName> weights_;
  Diagnostics& diagnostics_;
  LowerOptions lower_;
};

}  // namespace

absl::StatusOr<LowerOptions> ChooseWeights(const CompileRequest& request, const CoreSpec& core,
                                           absl::Span<const WeightName> weight_names,
                                           Diagnostics& diagnostics) {
  return Chooser(request, core, weight_names, diagnostics).Choose();
}

std::string WriteTemplate(absl::Span<const WeightRecord> weights) {
  std::vector<TemplateWeight> entries;
  for (const WeightRecord& weight : weights) {
    TemplateWeight entry;
    entry.name = weight.name;
    entry.setting = {weight.bits, weight.min, weight.max};
    entry.display = TemplateDisplay{weight.shape,    weight.used_by,       weight.step,
                                    weight.sparsity, weight.max_abs_error, weight.rms_error};
    // Without spread there is no range to set: min and max come as a pair with min < max.
    if (!(weight.min < weight.max)) entry.setting.min = entry.setting.max = std::nullopt;
    entries.push_back(std::move(entry));
  }
  return WriteOptTemplate(entries);
}

}  // namespace npuc
