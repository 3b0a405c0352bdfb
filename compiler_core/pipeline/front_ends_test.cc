#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compiler_core/pipeline/import.h"
#include "compiler_core/pipeline/inspect.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

// The beginning of a file of each format.
std::string SampleOf(Framework framework) {
  const std::map<Framework, std::string> samples = {
      {Framework::kTensorFlow, "\x0a\x04node"},
      {Framework::kTorchScript, "PK\x03\x04 and entries"},
      {Framework::kTfLite, std::string("\x1c\0\0\0TFL3", 8)},
      {Framework::kCaffe, std::string("\x0a\x03net\xa2\x06\x00", 8)},
      {Framework::kOnnx, std::string("\x08\x07\x3a\0", 4)},
      {Framework::kDarknet, "# a net\n[net]\nwidth=1\n"},
      {Framework::kPaddle, std::string("\x0a\x04\x08\0\x10\0", 6)},
      {Framework::kMxNet, "{\n \"nodes\": [\n  {\n   \"op\": \"null\","},
      {Framework::kCompass, "model_name=net\nlayer_number=1\n"},
  };
  const auto sample = samples.find(framework);
  return sample == samples.end() ? "" : sample->second;
}

TEST(FrontEndsTest, EachKnowsItsFiles) {
  for (const FrameworkInfo& info : AllFrameworks()) {
    EXPECT_EQ(SniffFramework(SampleOf(info.framework)), info.framework)
        << info.name << ": SampleOf() needs the beginning of a file";
  }
  for (const absl::string_view other : {"", "CORENAME: GRUS\n", "\x89HDF\r\n", "\x1f\x8b"}) {
    EXPECT_EQ(SniffFramework(other), std::nullopt) << other;
  }
}

TEST(FrontEndsTest, AnEndingTellsWhereTheBytesDoNot) {
  const absl::string_view damaged("\x0a\xff\x01", 3);
  EXPECT_EQ(FrameworkOfModel(damaged, "net.PB"), Framework::kTensorFlow);
  EXPECT_EQ(FrameworkOfModel(damaged, "net.jit"), Framework::kTorchScript);
  EXPECT_EQ(FrameworkOfModel(damaged, "net.bin"), std::nullopt);
  EXPECT_EQ(FrameworkOfModel(SampleOf(Framework::kTfLite), "net.pb"), Framework::kTfLite);
}

TEST(FrontEndsTest, EachListsItsOperators) {
  for (const FrameworkInfo& info : AllFrameworks()) {
    const std::vector<std::string> ops = FrontEndOf(info.framework).operators();
    EXPECT_FALSE(ops.empty()) << info.name;
    EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end())) << info.name;
    EXPECT_EQ(std::adjacent_find(ops.begin(), ops.end()), ops.end()) << info.name;
  }
}

TEST(FrontEndsTest, EachRefusesWhatIsNoFileOfItsFormat) {
  for (const FrameworkInfo& info : AllFrameworks()) {
    for (const absl::string_view bytes : {absl::string_view(), absl::string_view("junk")}) {
      CompileRequest request;
      request.model_bytes = bytes;
      request.options.core = "GRUS";
      request.options.framework = info.framework;
      request.options.model_name = "model";
      Diagnostics imported;
      EXPECT_FALSE(ImportModel(request, imported).ok()) << info.name;
      EXPECT_TRUE(imported.has_errors()) << info.name;
      Diagnostics outlined;
      EXPECT_FALSE(FrontEndOf(info.framework).outline({.model = bytes}, "model", outlined).ok())
          << info.name;
      EXPECT_TRUE(outlined.has_errors()) << info.name;
    }
  }
}

}  // namespace
}  // namespace npuc
