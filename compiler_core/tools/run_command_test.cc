#include "compiler_core/tools/run_command.h"

#include <cstring>
#include <filesystem>

#include "compiler_core/emit/fixtures_test_util.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/tools/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

std::filesystem::path Scratch() {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "npuc_run_command_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(RunCommand, RunsThePublishedMnistHeader) {
  const std::filesystem::path fixture = SharedFolder() / "fixtures" / "gxdnn-mnist";
  if (!std::filesystem::exists(fixture)) GTEST_SKIP() << "no " << fixture;
  const std::filesystem::path folder = Scratch();
  RunCommandArgs args;
  args.artifact = (fixture / "vendor_model.h").string();
  args.inputs = {"input_x=" + (fixture / "images.npy").string()};
  args.output_dir = (folder / "out").string();
  args.profile_path = (folder / "profile.json").string();
  ASSERT_EQ(RunArtifactCommand(args), 0);
  const absl::StatusOr<NpyArray> result = ReadNpy(ReadTestFile(folder / "out" / "result.npy"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->shape, testing::ElementsAre(6, 10));
  EXPECT_EQ(result->dtype, DType::kFloat32);
  const absl::StatusOr<NpyArray> digits = ReadNpy(ReadTestFile(fixture / "digits.npy"));
  ASSERT_TRUE(digits.ok());
  const size_t digit_bytes = static_cast<size_t>(SizeOf(digits->dtype));
  for (size_t item = 0; item < 6; ++item) {
    float row[10];
    std::memcpy(row, result->bytes.data() + item * sizeof(row), sizeof(row));
    EXPECT_EQ(std::max_element(row, row + 10) - row, digits->bytes[item * digit_bytes]);
  }
  const nlohmann::json profile = nlohmann::json::parse(ReadTestFile(folder / "profile.json"));
  EXPECT_EQ(profile["per_frame"]["commands"], 3);
  EXPECT_EQ(profile["per_frame"]["macs"], 7840);
  EXPECT_EQ(profile["commands"][0]["kind"], "fully_connected");
  EXPECT_EQ(DisassembleCommand(args.artifact, false), 0);
}

TEST(RunCommand, RefusesWhatItCannotRead) {
  const std::filesystem::path folder = Scratch();
  RunCommandArgs args;
  args.artifact = (folder / "missing.h").string();
  EXPECT_EQ(RunArtifactCommand(args), 1);
  args.artifact = (folder / "empty.h").string();
  ASSERT_TRUE(WriteFileAtomically(args.artifact, "").ok());
  EXPECT_EQ(RunArtifactCommand(args), 1);
  EXPECT_EQ(DisassembleCommand(args.artifact, true), 1);
}

}  // namespace
}  // namespace npuc
