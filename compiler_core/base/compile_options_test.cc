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
constexpr int kFieldCount = 22;

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
      [](CompileOptions& o) { o.save_histograms = true; },
      [](CompileOptions& o) { o.layer_error_frames = 1; },
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
                                f16, f17, f18, f19, f20, f21, f22] = options;
  return 22;
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
