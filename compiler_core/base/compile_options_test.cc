#include "compiler_core/base/compile_options.h"

#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using Change = std::function<void(CompileOptions&)>;

// One change per field. The structured binding in FieldCount stops compiling when the struct
// grows, and the count then asks for a change here.
constexpr int kFieldCount = 24;

std::vector<Change> OneChangePerField() {
  return {
      [](CompileOptions& o) { o.core = "LEO"; },
      [](CompileOptions& o) { o.npu_unit = "NPU64"; },
      [](CompileOptions& o) { o.framework = Framework::kTorchScript; },
      [](CompileOptions& o) { o.model_name = "b.pb"; },
      [](CompileOptions& o) { o.output_type = "raw"; },
      [](CompileOptions& o) { o.output_file = "b.h"; },
      [](CompileOptions& o) {
        o.inputs[0].shape = {1, 785};
      },
      [](CompileOptions& o) { o.outputs = {"b"}; },
      [](CompileOptions& o) { o.fp16_outputs = {"b"}; },
      [](CompileOptions& o) { o.input_ncx_to_nxc = {0}; },
      [](CompileOptions& o) { o.fuse_bn = true; },
      [](CompileOptions& o) { o.fuse_biasadd = true; },
      [](CompileOptions& o) { o.compress = true; },
      [](CompileOptions& o) { o.conv2d_compress = true; },
      [](CompileOptions& o) { o.exclude_compress_ops = {"w"}; },
      [](CompileOptions& o) { o.exclude_conv2d_compress_ops = {"w"}; },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-1, 1}}};
      },
      [](CompileOptions& o) { o.weight_cache_size_bytes = 0; },
      [](CompileOptions& o) { o.model_info = "v1"; },
      [](CompileOptions& o) { o.memory_plan = CompileOptions::MemoryPlan::kInPlace; },
      [](CompileOptions& o) { o.quant.emplace(); },
      [](CompileOptions& o) { o.save_histograms = true; },
      [](CompileOptions& o) { o.layer_error_frames = 1; },
      [](CompileOptions& o) { o.strict_ops = true; },
  };
}

using QuantChange = std::function<void(QuantOptions&)>;

std::vector<QuantChange> OneChangePerQuantOption() {
  return {
      [](QuantOptions& q) { q.weight_bits = 4; },
      [](QuantOptions& q) { q.bias_bits = 16; },
      [](QuantOptions& q) { q.activation_bits = 16; },
      [](QuantOptions& q) { q.lut_items_in_bits = 10; },
      [](QuantOptions& q) { q.weight_method = QuantMethod::kPerChannelSymmetricFull; },
      [](QuantOptions& q) { q.activation_method = QuantMethod::kPerTensorAsymmetric; },
      [](QuantOptions& q) { q.activation_strategy.kind = QuantStrategy::Kind::kKld; },
      [](QuantOptions& q) { q.activation_strategy.parameter = 3; },
      [](QuantOptions& q) { q.weight_strategy.kind = QuantStrategy::Kind::kKld; },
      [](QuantOptions& q) { q.calibration_batch_size = 2; },
      [](QuantOptions& q) { q.calibration_inputs = {"a"}; },
      [](QuantOptions& q) { q.data_inputs = {"a"}; },
      [](QuantOptions& q) { q.metrics = {"mse"}; },
      [](QuantOptions& q) { q.running_statistic_momentum = 0.5; },
      [](QuantOptions& q) { q.histc_bins = 1024; },
      [](QuantOptions& q) {
        q.trim_infinity = {-1, 1, false};
      },
      [](QuantOptions& q) {
        q.trim_infinity = {-1, 1, true};
      },
      [](QuantOptions& q) { q.save_statistic_info = true; },
      [](QuantOptions& q) { q.bias_effective_bits = 16; },
      [](QuantOptions& q) { q.unify_scales_for_concat = true; },
      [](QuantOptions& q) { q.unify_scales_for_concat_max_depth = 3; },
      [](QuantOptions& q) { q.mixed_precision_batches = 1; },
      [](QuantOptions& q) { q.mixed_precision_threshold = 0.5; },
      [](QuantOptions& q) { q.mixed_precision_less_is_better = false; },
      [](QuantOptions& q) { q.fake_quant_scopes = {"a"}; },
      [](QuantOptions& q) { q.fake_quant_operators = {"a"}; },
      [](QuantOptions& q) { q.global_calibration = {GlobalCalibration::kAdaround}; },
      [](QuantOptions& q) { q.force_float_ir = true; },
  };
}

CompileOptions Base() {
  CompileOptions options;
  options.core = "GRUS";
  options.npu_unit = "NPU32";
  options.model_name = "a.pb";
  options.output_type = "c_code";
  options.output_file = "a.h";
  options.inputs = {{"x", {1, 784}}};
  options.outputs = {"a"};
  return options;
}

int FieldCount() {
  const CompileOptions options;
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15,
                                f16, f17, f18, f19, f20, f21, f22, f23, f24] = options;
  return 24;
}

TEST(CanonicalOptionsTest, EveryFieldChangesTheBytes) {
  ASSERT_EQ(FieldCount(), kFieldCount);
  const std::vector<Change> changes = OneChangePerField();
  ASSERT_EQ(changes.size(), kFieldCount);
  std::set<std::string> seen = {CanonicalOptions(Base())};
  for (size_t i = 0; i < changes.size(); ++i) {
    CompileOptions options = Base();
    changes[i](options);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second) << "change " << i;
  }
}

TEST(CanonicalOptionsTest, EveryQuantOptionChangesTheBytes) {
  CompileOptions options = Base();
  options.quant.emplace();
  std::set<std::string> seen = {CanonicalOptions(Base()), CanonicalOptions(options)};
  for (const QuantChange& change : OneChangePerQuantOption()) {
    options.quant.emplace();
    change(*options.quant);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second) << "change " << seen.size() - 2;
  }
}

TEST(CanonicalOptionsTest, EqualOptionsGiveEqualBytes) {
  EXPECT_EQ(CanonicalOptions(Base()), CanonicalOptions(Base()));
}

TEST(CanonicalOptionsTest, NeighbouringFieldsDoNotRunTogether) {
  const std::vector<Change> changes = {
      [](CompileOptions& o) { o.outputs = {"ab"}; },
      [](CompileOptions& o) {
        o.outputs = {"a", "b"};
      },
      [](CompileOptions& o) { o.outputs = {"a"}, o.fp16_outputs = {"b"}; },
      [](CompileOptions& o) {
        o.outputs = {}, o.fp16_outputs = {"a", "b"};
      },
      [](CompileOptions& o) {
        o.outputs = {"", "ab"};
      },
      [](CompileOptions& o) {
        o.inputs = {{"x", {1}}, {"784", {}}};
      },
      [](CompileOptions& o) {
        o.inputs = {{"x", {}}, {"784", {1}}};
      },
      [](CompileOptions& o) { o.exclude_compress_ops = {"w"}; },
      [](CompileOptions& o) { o.exclude_conv2d_compress_ops = {"w"}; },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-1, 1}}};
      },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-1, 2}}};
      },
      [](CompileOptions& o) {
        o.weight_min_max = {{"w", {-2, 1}}};
      },
      [](CompileOptions& o) { o.weight_cache_size_bytes = 0; },
      [](CompileOptions& o) { o.weight_cache_size_bytes = 1; },
      [](CompileOptions& o) { o.framework = Framework::kCaffe; },
  };
  std::set<std::string> seen;
  for (const Change& change : changes) {
    CompileOptions options = Base();
    change(options);
    EXPECT_TRUE(seen.insert(CanonicalOptions(options)).second);
  }
}

TEST(FrameworkNameTest, NamesAreTheConfigValues) {
  EXPECT_STREQ(FrameworkName(Framework::kTensorFlow), "TF");
  EXPECT_STREQ(FrameworkName(Framework::kTorchScript), "PT");
  EXPECT_STREQ(FrameworkName(Framework::kTfLite), "TFLITE");
  EXPECT_STREQ(FrameworkName(Framework::kOnnx), "ONNX");
  EXPECT_STREQ(FrameworkName(Framework::kCaffe), "CAFFE");
}

}  // namespace
}  // namespace npuc
