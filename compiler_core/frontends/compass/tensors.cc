#include "compiler_core/frontends/compass/tensors.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/ops/quantize.h"

namespace npuc::compass {
namespace {

bool IsScale(double scale) { return std::isfinite(scale) && scale > 0; }

int ZeroBitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return absl::countr_zero(bits);
}

// The lists of parameters beside layer_top; empty entries where the layer has none.
struct Lists {
  const Entry* scale_entry;
  const Entry* zero_entry;
  const Entry* range_entry;
  std::vector<std::string> scales = {};
  std::vector<std::string> zeros = {};
  std::vector<std::vector<int64_t>> ranges = {};

  explicit Lists(const Block& block)
      : scale_entry(block.Find("layer_top_scale")),
        zero_entry(block.Find("layer_top_zp")),
        range_entry(block.Find("layer_top_range")) {
    if (scale_entry != nullptr) scales = ParseList(scale_entry->value).value_or(scales);
    if (zero_entry != nullptr) zeros = ParseList(zero_entry->value).value_or(zeros);
    if (range_entry != nullptr) ranges = ParseIntLists(range_entry->value).value_or(ranges);
  }
};

// The parameters of top i, whose type is an integer's; nullopt, with the reason told, where they
// cannot be.
std::optional<QuantParams> ParamsOf(const LayerView& layer, const Lists& lists, size_t i,
                                    DType dtype, LayerReporter& reporter) {
  QuantParams params{dtype, LowestOf(dtype), HighestOf(dtype), -1, {}, {}};
  params.scale = {ScaleFromText(lists.scales[i])};
  if (!IsScale(params.scale[0])) {
    reporter.Report(layer, lists.scale_entry,
                    absl::StrCat("'", Printable(lists.scales[i]),
                                 "' is no number above 0 whose reciprocal is finite"));
    return std::nullopt;
  }
  if (i < lists.ranges.size()) {
    const std::vector<int64_t>& range = lists.ranges[i];
    if (range[0] >= range[1] || range[0] < params.qmin || range[1] > params.qmax) {
      reporter.Report(
          layer, lists.range_entry,
          absl::StrCat("[", range[0], ",", range[1], "] is not within ",
                       std::string(TypeName(dtype)), "'s ", params.qmin, "..", params.qmax));
      return std::nullopt;
    }
    params.qmin = range[0];
    params.qmax = range[1];
  }
  const std::optional<int64_t> zero = ParseInt(lists.zeros[i]);
  if (!zero.has_value() || -*zero < params.qmin || -*zero > params.qmax) {
    reporter.Report(layer, lists.zero_entry,
                    absl::StrCat("'", Printable(lists.zeros[i]), "' is no whole number in ",
                                 -params.qmax, "..", -params.qmin));
    return std::nullopt;
  }
  params.zero_point = {-*zero};
  return params;
}

}  // namespace

std::vector<Top> ReadTops(const LayerView& layer, LayerReporter& reporter) {
  const Entry* const type_entry = layer.block->Find("layer_top_type");
  const std::vector<std::string> names =
      ParseList(layer.block->ValueOr("layer_top", "[]")).value_or(std::vector<std::string>());
  const std::vector<std::string> types =
      type_entry == nullptr ? names : ParseList(type_entry->value).value_or(names);
  const Lists lists(*layer.block);
  std::vector<Top> tops;
  for (size_t i = 0; i < names.size(); ++i) {
    Top top{names[i], {TypeFromName(types[i]), layer.tops[i]}};
    const DType dtype = top.type.dtype;
    if (IsInteger(dtype) && i < lists.scales.size() && i < lists.zeros.size()) {
      top.quant = ParamsOf(layer, lists, i, dtype, reporter);
    } else if (!IsInteger(dtype) && dtype != DType::kFloat32) {
      reporter.Report(layer, type_entry,
                      absl::StrCat("'", Printable(names[i]), "' is ", Printable(types[i]),
                                   "; values are float32, integers with a scale, or indices"));
    }
    const absl::Status size = CheckShape(top.type.shape);
    if (!size.ok()) {
      reporter.Report(layer, layer.block->Find("layer_top_shape"), std::string(size.message()));
    }
    tops.push_back(std::move(top));
  }
  return tops;
}

double ScaleFromText(absl::string_view text) {
  long double reciprocal = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), reciprocal);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  const double scale = static_cast<double>(1 / reciprocal);
  return IsScale(scale) ? scale : 0;
}

double ScaleFromReciprocal(double reciprocal) {
  double best = 1 / reciprocal;
  if (!IsScale(best)) return 0;
  double at = std::nextafter(std::nextafter(best, 0), 0);
  for (int i = 0; i < 5; ++i) {
    if (1 / at == reciprocal && ZeroBitsOf(at) > ZeroBitsOf(best)) best = at;
    at = std::nextafter(at, INFINITY);
  }
  return best;
}

}  // namespace npuc::compass
