#include "compiler_core/base/framework.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;

TEST(FrameworkTest, NamesAreTheConfigValues) {
  EXPECT_STREQ(FrameworkName(Framework::kTensorFlow), "TF");
  EXPECT_STREQ(FrameworkName(Framework::kTorchScript), "PT");
  EXPECT_EQ(FrameworkNamed("COMPASS"), Framework::kCompass);
  EXPECT_EQ(FrameworkNamed("CAFFE"), std::nullopt);
  EXPECT_EQ(FrameworkNamed("tf"), std::nullopt);
  for (const FrameworkInfo& info : AllFrameworks()) {
    EXPECT_EQ(&InfoOf(info.framework), &info);
    EXPECT_EQ(FrameworkNamed(info.name), info.framework);
  }
}

TEST(FrameworkTest, WordsAndEndingsBelongToOneFormat) {
  std::set<absl::string_view> seen;
  for (const FormatWords& format : AllFormats()) {
    EXPECT_TRUE(seen.insert(format.name).second) << format.name;
    if (format.cfg_word.empty() || format.cfg_word == format.name) continue;
    EXPECT_TRUE(seen.insert(format.cfg_word).second) << format.cfg_word;
  }
  for (const FrameworkInfo& info : AllFrameworks()) {
    EXPECT_FALSE(info.format.empty() || info.a_model.empty()) << info.name;
    for (const absl::string_view ending : absl::StrSplit(info.endings, '|', absl::SkipEmpty())) {
      EXPECT_TRUE(absl::StartsWith(ending, ".")) << ending;
      EXPECT_TRUE(seen.insert(ending).second) << ending;
    }
  }
}

TEST(FrameworkTest, FormatsKeepTheOrderOfTheRows) {
  std::vector<absl::string_view> names;
  for (const FormatWords& format : AllFormats()) {
    names.push_back(format.name);
    EXPECT_EQ(format.is_read, FrameworkNamed(format.name).has_value()) << format.name;
  }
  EXPECT_THAT(names, ElementsAre("TF", "PT", "TFLITE", "ONNX", "CAFFE", "COMPASS"));
}

TEST(FrameworkTest, ListsTheFrameworksWithAFact) {
  EXPECT_EQ(FrameworkNames(), "TF, PT, TFLITE, ONNX, COMPASS");
  EXPECT_EQ(ModelsThatAreRead(),
            "a frozen TensorFlow GraphDef, a TorchScript archive, a TFLite model, an ONNX model or "
            "a Compass IR");
  EXPECT_EQ(FrameworksWith(&FrameworkInfo::needs_output_ops), "TF");
  EXPECT_EQ(FrameworksWith(&FrameworkInfo::has_port_names), "TF|TFLITE|ONNX|COMPASS");
  EXPECT_EQ(FrameworksWith(&FrameworkInfo::data_file), "ONNX|COMPASS");
}

}  // namespace
}  // namespace npuc
