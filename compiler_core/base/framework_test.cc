#include "compiler_core/base/framework.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(FrameworkTest, NamesAreTheConfigValues) {
  EXPECT_STREQ(FrameworkName(Framework::kTensorFlow), "TF");
  EXPECT_STREQ(FrameworkName(Framework::kTorchScript), "PT");
  EXPECT_EQ(FrameworkNamed("COMPASS"), Framework::kCompass);
  EXPECT_EQ(FrameworkNamed("KERAS"), std::nullopt);
  EXPECT_EQ(FrameworkNamed("tf"), std::nullopt);
  for (const FrameworkInfo& info : AllFrameworks()) {
    EXPECT_EQ(&InfoOf(info.framework), &info);
    EXPECT_EQ(FrameworkNamed(info.name), info.framework);
  }
}

TEST(FrameworkTest, WordsAndEndingsBelongToOneFormat) {
  std::set<absl::string_view> seen;
  for (const FrameworkInfo& format : AllFrameworks()) {
    EXPECT_TRUE(seen.insert(format.name).second) << format.name;
    if (format.cfg_word.empty() || format.cfg_word == format.name) continue;
    EXPECT_TRUE(seen.insert(format.cfg_word).second) << format.cfg_word;
  }
  for (const FrameworkInfo& info : AllFrameworks()) {
    EXPECT_FALSE(info.format.empty() || info.a_model.empty()) << info.name;
    EXPECT_EQ(info.data_key.empty(), info.data_file == DataFile::kNone) << info.name;
    EXPECT_FALSE(info.data_ending.empty() && info.data_file == DataFile::kAlways) << info.name;
    for (const absl::string_view ending : absl::StrSplit(info.endings, '|', absl::SkipEmpty())) {
      EXPECT_TRUE(absl::StartsWith(ending, ".") || absl::StartsWith(ending, "-")) << ending;
      EXPECT_TRUE(seen.insert(ending).second) << ending;
    }
  }
}

TEST(FrameworkTest, ListsTheFrameworksWithAFact) {
  EXPECT_THAT(FrameworkNames(), StartsWith("TF, PT, "));
  EXPECT_THAT(ModelsThatAreRead(),
              StartsWith("a frozen TensorFlow GraphDef, a TorchScript archive, a TFLite model"));
  EXPECT_THAT(ModelsThatAreRead(), HasSubstr(" or a"));
  EXPECT_EQ(FrameworksWith(&FrameworkInfo::has_turned_inputs), "PT");
  EXPECT_EQ(FrameworksWithDataKey("MODEL_BIN"), "ONNX|COMPASS");
  EXPECT_EQ(FrameworksWithDataKey("MODEL_BIN", DataFile::kAlways), "COMPASS");
  EXPECT_EQ(FrameworksWithDataKey("MODEL_FILE"), "");
}

}  // namespace
}  // namespace npuc
