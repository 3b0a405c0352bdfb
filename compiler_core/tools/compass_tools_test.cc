#include "compiler_core/tools/compass_tools.h"

#include "compiler_core/config/config.h"
#include "compiler_core/tools/layer_dump.h"
#include "compiler_core/tools/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ParsedConfig Parsed(const std::string& text) {
  Diagnostics diagnostics;
  absl::StatusOr<ParsedConfig> config = ParseConfig(text, "aipurun", diagnostics);
  EXPECT_TRUE(config.ok()) << config.status() << "\n" << text;
  return config.ok() ? *std::move(config) : ParsedConfig();
}

TEST(CompassToolsTest, AnIrAndOptionsAreAConfig) {
  const ParsedConfig run = Parsed(CfgOfIr(
      "ir/my net.txt", "w #1.bin", /*runs=*/true,
      {{"outputs", "y.bin"}, {"inputs", "a.bin,b.bin"}, {"target", "Z2_1104"}, {"tiling", "fps"}}));
  EXPECT_EQ(run.task.kind, CfgTask::Kind::kRun);
  EXPECT_THAT(run.task.inputs, ElementsAre("a.bin", "b.bin"));
  EXPECT_EQ(run.task.output_path, "y.bin");
  EXPECT_EQ(run.options.core, "Z2_1104");
  EXPECT_EQ(run.options.framework, Framework::kCompass);
  ASSERT_EQ(run.files.size(), 2u);
  EXPECT_EQ(run.files[0].path, "ir/my net.txt");
  EXPECT_EQ(run.files[1].path, "w #1.bin");
  const ParsedConfig build =
      Parsed(CfgOfIr("net.txt", "", /*runs=*/false, {{"outputs", "out/aipu.bin"}}));
  EXPECT_EQ(build.task.kind, CfgTask::Kind::kBuild);
  EXPECT_EQ(build.task.output_path, "out/aipu.bin");
  EXPECT_EQ(build.output_path, "out/net.h");
  EXPECT_EQ(build.files[1].path, "net.bin");
}

TEST(CompassToolsTest, AQuoteInAPathStaysInIt) {
  EXPECT_EQ(Parsed(CfgOfIr("a \"b\".txt", "", false, {{"outputs", "o.bin"}})).files[0].path,
            "a \"b\".txt");
}

TEST(CompassToolsTest, OnlyItsNamesAreTools) {
  char npuc[] = "/usr/bin/npuc";
  char* words[] = {npuc, nullptr};
  EXPECT_FALSE(RunCompassTool(1, words, 0).has_value());
  char gb[] = "/usr/bin/aipugb";
  char nothing[] = "--no_such_option";
  char* wrong[] = {gb, nothing, nullptr};
  EXPECT_EQ(RunCompassTool(2, wrong, 0), 2);
}

TEST(LayerDumpTest, LayerNumbersAreAList) {
  EXPECT_THAT(*LayerIdsOf({.all = false, .layer_ids = "3, 5,3"}), ElementsAre(3, 5));
  EXPECT_TRUE(LayerIdsOf({.all = true, .layer_ids = ""})->empty());
  EXPECT_THAT(LayerIdsOf({.all = false, .layer_ids = "3,x"}).status().message(),
              HasSubstr("takes layer numbers"));
  EXPECT_FALSE(LayerIdsOf({.all = false, .layer_ids = "-1"}).ok());
}

TEST(SimulationTest, FurtherOutputsHaveANumberBehindTheName) {
  EXPECT_EQ(OutputPath("out/y.bin", 0), "out/y.bin");
  EXPECT_EQ(OutputPath("out/y.bin", 2), "out/y.bin2");
  EXPECT_EQ(OutputPath("out/y.npy", 1), "out/y1.npy");
}

}  // namespace
}  // namespace npuc
