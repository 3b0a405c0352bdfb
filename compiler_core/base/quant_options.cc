#include "compiler_core/base/quant_options.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

constexpr double kDefaultPercentile = 0.9999;

std::optional<double> Number(absl::string_view text, double most) {
  for (const char c : text) {  // SimpleAtod alone would take inf, nan, signs and exponents
    if (!absl::ascii_isdigit(c) && c != '.') return std::nullopt;
  }
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !(value > 0 && value <= most)) return std::nullopt;
  return value;
}

}  // namespace

absl::string_view NameOf(QuantMethod method) {
  switch (method) {
    case QuantMethod::kPerTensorSymmetricRestricted:
      return "per_tensor_symmetric_restricted_range";
    case QuantMethod::kPerTensorSymmetricFull:
      return "per_tensor_symmetric_full_range";
    case QuantMethod::kPerChannelSymmetricRestricted:
      return "per_channel_symmetric_restricted_range";
    case QuantMethod::kPerChannelSymmetricFull:
      return "per_channel_symmetric_full_range";
    case QuantMethod::kPerTensorAsymmetric:
      return "per_tensor_asymmetric";
  }
  NPUC_CHECK(false);
  return "";
}

std::optional<QuantMethod> QuantMethodFromName(absl::string_view name) {
  for (const QuantMethod method : kWeightMethods) {
    if (name == NameOf(method)) return method;
  }
  if (name == NameOf(QuantMethod::kPerTensorAsymmetric)) return QuantMethod::kPerTensorAsymmetric;
  return std::nullopt;
}

bool IsPerChannel(QuantMethod method) {
  return method == QuantMethod::kPerChannelSymmetricRestricted ||
         method == QuantMethod::kPerChannelSymmetricFull;
}

std::string NameOf(const QuantStrategy& strategy) {
  switch (strategy.kind) {
    case QuantStrategy::Kind::kMean:
      return "mean";
    case QuantStrategy::Kind::kExtrema:
      return "extrema";
    case QuantStrategy::Kind::kStd:
      return absl::StrCat(strategy.parameter, "std");
    case QuantStrategy::Kind::kKld:
      return "KLD";
    case QuantStrategy::Kind::kInIr:
      return "in_ir";
    case QuantStrategy::Kind::kPercentile:
      return absl::StrCat(strategy.parameter, "percentile");
    case QuantStrategy::Kind::kAciqLaplace:
      return "aciq_laplace";
    case QuantStrategy::Kind::kAciqGauss:
      return "aciq_gauss";
    case QuantStrategy::Kind::kBestSingle:
      return "best_single";
    case QuantStrategy::Kind::kAuto:
      return "auto";
  }
  NPUC_CHECK(false);
  return "";
}

bool IsMeasured(const QuantStrategy& strategy) {
  return strategy.kind == QuantStrategy::Kind::kBestSingle ||
         strategy.kind == QuantStrategy::Kind::kAuto;
}

std::optional<QuantStrategy> QuantStrategyFromName(absl::string_view name) {
  using Kind = QuantStrategy::Kind;
  const std::string lower = absl::AsciiStrToLower(name);
  for (const Kind kind : {Kind::kMean, Kind::kExtrema, Kind::kKld, Kind::kInIr, Kind::kAciqLaplace,
                          Kind::kAciqGauss, Kind::kBestSingle, Kind::kAuto}) {
    if (lower == absl::AsciiStrToLower(NameOf(QuantStrategy{kind, 0}))) {
      return QuantStrategy{kind, 0};
    }
  }
  absl::string_view rest = lower;
  if (rest == "percentile") return QuantStrategy{Kind::kPercentile, kDefaultPercentile};
  constexpr double kMaxDeviations = 100;
  std::optional<double> number;
  Kind kind = Kind::kStd;
  if (absl::ConsumeSuffix(&rest, "std")) {
    number = Number(rest, kMaxDeviations);
  } else if (absl::ConsumeSuffix(&rest, "percentile")) {
    kind = Kind::kPercentile;
    number = Number(rest, 1);
  }
  if (!number.has_value()) return std::nullopt;
  return QuantStrategy{kind, *number};
}

absl::string_view QuantStrategyForms() {
  return "mean, extrema, Nstd (3std), KLD, in_ir, Npercentile (0.9999percentile), aciq_laplace, "
         "aciq_gauss, best_single, auto";
}

}  // namespace npuc
