#include "compiler_core/base/compile_options.h"

#include <bit>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

// Appends values so that no two different sequences of equal static types give equal bytes:
// numbers are eight bytes, little endian; strings and lists carry their length first.
class CanonicalWriter {
 public:
  void Put(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      out_.push_back(static_cast<char>((value >> shift) & 0xff));
    }
  }
  void Put(int value) { Put(int64_t{value}); }
  void Put(int64_t value) { Put(static_cast<uint64_t>(value)); }
  void Put(bool value) { Put(static_cast<uint64_t>(value ? 1 : 0)); }
  void Put(double value) { Put(std::bit_cast<uint64_t>(value)); }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void Put(Enum value) { Put(static_cast<uint64_t>(value)); }
  void Put(const std::string& text) {
    Put(static_cast<uint64_t>(text.size()));
    out_ += text;
  }
  void Put(const InputDecl& input) {
    const auto& [name, shape] = input;
    Put(name);
    Put(shape);
  }
  template <typename T>
  void Put(const std::vector<T>& list) {
    Put(static_cast<uint64_t>(list.size()));
    for (const T& item : list) Put(item);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value.has_value()) Put(*value);
  }
  void Put(const std::map<std::string, std::pair<double, double>>& ranges) {
    Put(static_cast<uint64_t>(ranges.size()));
    for (const auto& [name, range] : ranges) {
      Put(name);
      Put(range.first);
      Put(range.second);
    }
  }
  void Put(const QuantStrategy& strategy) {
    const auto& [kind, parameter] = strategy;
    PutAll(kind, parameter);
  }
  void Put(const TrimInfinity& trim) {
    const auto& [min, max, second] = trim;
    PutAll(min, max, second);
  }
  void Put(const QuantOptions& options) {
    const auto& [weight_bits, bias_bits, activation_bits, lut_items_in_bits, weight_method,
                 activation_method, activation_strategy, weight_strategy, calibration_batch_size,
                 calibration_inputs, data_inputs, metrics, running_statistic_momentum, histc_bins,
                 trim_infinity, save_statistic_info, bias_effective_bits, unify_scales_for_concat,
                 unify_scales_for_concat_max_depth, mixed_precision_batches,
                 mixed_precision_threshold, mixed_precision_less_is_better, fake_quant_scopes,
                 fake_quant_operators, global_calibration, force_float_ir] = options;
    PutAll(weight_bits, bias_bits, activation_bits, lut_items_in_bits, weight_method,
           activation_method, activation_strategy, weight_strategy, calibration_batch_size,
           calibration_inputs, data_inputs, metrics, running_statistic_momentum, histc_bins,
           trim_infinity, save_statistic_info, bias_effective_bits, unify_scales_for_concat,
           unify_scales_for_concat_max_depth, mixed_precision_batches, mixed_precision_threshold,
           mixed_precision_less_is_better, fake_quant_scopes, fake_quant_operators,
           global_calibration, force_float_ir);
  }
  template <typename... Fields>
  void PutAll(const Fields&... fields) {
    (Put(fields), ...);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Changes when the order or the meaning of the fields does.
constexpr char kFormat[] = "npuc-options-2";

}  // namespace

const char* FrameworkName(Framework framework) {
  switch (framework) {
    case Framework::kTensorFlow:
      return "TF";
    case Framework::kTorchScript:
      return "PT";
    case Framework::kTfLite:
      return "TFLITE";
    case Framework::kOnnx:
      return "ONNX";
    case Framework::kCaffe:
      return "CAFFE";
    case Framework::kCompass:
      return "COMPASS";
  }
  NPUC_CHECK(false);
  return "";
}

std::string CanonicalOptions(const CompileOptions& options) {
  // A structured binding must name every field, so a field added to CompileOptions (or InputDecl,
  // above) does not compile until it is listed here; compile_options_test then fails until it is
  // also written below.
  const auto& [core, npu_unit, framework, model_name, output_type, output_file, inputs, outputs,
               fp16_outputs, input_ncx_to_nxc, fuse_bn, fuse_biasadd, compress, conv2d_compress,
               exclude_compress_ops, exclude_conv2d_compress_ops, weight_min_max,
               weight_cache_size_bytes, model_info, memory_plan, quant, save_histograms,
               layer_error_frames, strict_ops] = options;
  CanonicalWriter writer;
  writer.PutAll(std::string(kFormat), core, npu_unit, framework, model_name, output_type,
                output_file, inputs, outputs, fp16_outputs, input_ncx_to_nxc, fuse_bn, fuse_biasadd,
                compress, conv2d_compress, exclude_compress_ops, exclude_conv2d_compress_ops,
                weight_min_max, weight_cache_size_bytes, model_info, memory_plan, quant,
                save_histograms, layer_error_frames, strict_ops);
  return writer.Take();
}

}  // namespace npuc
