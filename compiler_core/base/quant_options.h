#ifndef NPUC_COMPILER_CORE_BASE_QUANT_OPTIONS_H_
#define NPUC_COMPILER_CORE_BASE_QUANT_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace npuc {

// The settings of integer quantization, with Compass's names, values and defaults. Source:
// shared/spec/compass.md section 2.

enum class QuantMethod : uint8_t {
  kPerTensorSymmetricRestricted,  // "per_tensor_symmetric_restricted_range": -127..127
  kPerTensorSymmetricFull,        // "per_tensor_symmetric_full_range": -128..127
  kPerChannelSymmetricRestricted,
  kPerChannelSymmetricFull,
  kPerTensorAsymmetric,
};
absl::string_view NameOf(QuantMethod method);
std::optional<QuantMethod> QuantMethodFromName(absl::string_view name);
inline constexpr QuantMethod kWeightMethods[] = {
    QuantMethod::kPerTensorSymmetricRestricted, QuantMethod::kPerTensorSymmetricFull,
    QuantMethod::kPerChannelSymmetricRestricted, QuantMethod::kPerChannelSymmetricFull};
inline constexpr QuantMethod kActivationMethods[] = {QuantMethod::kPerTensorSymmetricRestricted,
                                                     QuantMethod::kPerTensorSymmetricFull,
                                                     QuantMethod::kPerTensorAsymmetric};
bool IsPerChannel(QuantMethod method);

// How a range is chosen from statistics. Written as "mean", "extrema", "3std", "KLD", "in_ir",
// "0.9999percentile", "aciq_laplace", "aciq_gauss"; of activations also "best_single", which tries
// them all for all tensors alike, and "auto", which then tries them all for each tensor.
struct QuantStrategy {
  enum class Kind : uint8_t {
    kMean,
    kExtrema,
    kStd,
    kKld,
    kInIr,
    kPercentile,
    kAciqLaplace,
    kAciqGauss,
    kBestSingle,
    kAuto,
  };
  Kind kind = Kind::kMean;
  double parameter = 0;  // kStd: N, in (0, 100]; kPercentile: the share kept, in (0, 1]
  bool operator==(const QuantStrategy&) const = default;
};
std::string NameOf(const QuantStrategy& strategy);
// Whether the range is chosen by quantized runs over calibration data.
bool IsMeasured(const QuantStrategy& strategy);
// Letters' case does not count. "percentile" alone is 0.9999percentile.
std::optional<QuantStrategy> QuantStrategyFromName(absl::string_view name);
// The forms above, for messages.
absl::string_view QuantStrategyForms();

// trim_infinity_before_statistic: values outside [min, max] are clipped to it before statistics
// are taken, or replaced by the least and greatest value inside.
struct TrimInfinity {
  double min = 0;
  double max = 0;
  bool second = false;
  bool operator==(const TrimInfinity&) const = default;
};

// Layers by their numbers, as opt_template.json's brief_info counts them; both ends belong to it.
struct LayerIds {
  int64_t first = 0;
  int64_t last = 0;
  bool Holds(int64_t id) const { return first <= id && id <= last; }
  bool operator==(const LayerIds&) const = default;
};

// trim_infinity_before_statistic of some layers alone: those of a type, or of a range of numbers.
struct TrimRule {
  std::string type;  // empty: `ids` choose; letters' case does not count
  LayerIds ids;
  TrimInfinity trim;
  bool operator==(const TrimRule&) const = default;
};

// featuremap_tiling_param: maps of some layers in rows x columns tiles.
struct LayerTiles {
  LayerIds ids;
  int64_t rows = 1;
  int64_t columns = 1;
  bool operator==(const LayerTiles&) const = default;
};

// A byte b of an input stands for (b - zero_point) * scale.
struct InputBytes {
  double scale = 0;
  int64_t zero_point = 0;  // 0..255
  bool operator==(const InputBytes&) const = default;
};

// One way to work on the whole graph behind calibration, in the order that they are listed.
enum class GlobalCalibration : uint8_t { kEqualization, kAdaround, kBiasCorrection };

// Below this many dB an output's noise is more than a tenth of its values' size.
inline constexpr double kPoorSqnrDb = 20;

struct QuantOptions {
  int weight_bits = 8;
  int bias_bits = 32;
  int activation_bits = 8;
  int lut_items_in_bits = 0;  // 0: as many as the curve of each function needs
  QuantMethod weight_method = QuantMethod::kPerTensorSymmetricRestricted;
  QuantMethod activation_method = QuantMethod::kPerTensorSymmetricFull;
  QuantStrategy activation_strategy = {QuantStrategy::Kind::kMean, 0};
  QuantStrategy weight_strategy = {QuantStrategy::Kind::kExtrema, 0};
  int64_t calibration_batch_size = 1;
  // The graph input of each file of calibration_data and data, in the order of their roles; "" for
  // a single file.
  std::vector<std::string> calibration_inputs;
  std::vector<std::string> data_inputs;
  std::vector<std::string> metrics;  // "cosine", "mse", "sqnr", "topk:5", "auc", "wer"
  double running_statistic_momentum = 0.9;
  int64_t histc_bins = 2048;
  std::optional<TrimInfinity> trim_infinity;
  std::vector<TrimRule> trim_rules;  // for a layer the first that fits; with none `trim_infinity`
  bool save_statistic_info = false;
  int bias_effective_bits = 32;
  bool unify_scales_for_concat = false;
  int64_t unify_scales_for_concat_max_depth = 20;
  // mixed_precision_auto_search "batches,threshold,L or G": off below one batch.
  int64_t mixed_precision_batches = 0;
  double mixed_precision_threshold = 0;
  bool mixed_precision_less_is_better = true;
  std::vector<std::string> fake_quant_scopes;     // layer names that stay in float
  std::vector<LayerIds> fake_quant_ids;           // layers that do, by number
  std::vector<std::string> fake_quant_operators;  // layer types that do, in any case
  std::vector<GlobalCalibration> global_calibration;
  // Bits go up to 16 until every output is so many dB above its quantization noise; 0: they stay.
  double least_sqnr_db = 0;
  // Manual tiling, of the compile and not of the quantization: of some layers; of all others, where
  // tiles read at most so many percent of a map's rows more than once.
  std::vector<LayerTiles> featuremap_tiling;
  int64_t featuremap_rows = 1;
  int64_t featuremap_columns = 1;
  int64_t featuremap_overlap_percent = 50;
  bool resize_degrade_to_nearest = false;  // images that are interpolated take the nearest pixels
  bool force_float_ir = false;             // a quantized model is turned back into float first
  // How every input but states is stored, whatever the samples say; nullopt: by their range.
  std::optional<InputBytes> input_bytes;
  bool operator==(const QuantOptions&) const = default;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BASE_QUANT_OPTIONS_H_
