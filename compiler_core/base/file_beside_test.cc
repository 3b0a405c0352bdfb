#include "compiler_core/base/file_beside.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace npuc {
namespace {

class FileBesideTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Make(const std::string& name) { std::ofstream(folder_ / name) << "x"; }
  FileBeside Find(Framework framework, const std::string& model, absl::string_view stated = "") {
    Make(model);
    return FindFileBeside(InfoOf(framework), (folder_ / model).string(), stated);
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FileBesideTest, FormatsWithoutASecondFileHaveNone) {
  EXPECT_EQ(Find(Framework::kTfLite, "m.tflite").path, "");
}

TEST_F(FileBesideTest, AStatedFileCountsWhereItIsThere) {
  EXPECT_EQ(Find(Framework::kOnnx, "m.onnx", "m.data").path, "");
  Make("m.data");
  EXPECT_EQ(Find(Framework::kOnnx, "m.onnx", "m.data").path, Path("m.data"));
  EXPECT_EQ(Find(Framework::kOnnx, "m.onnx", "m.data").in_config, "m.data");
}

TEST_F(FileBesideTest, AFileThatACompileLooksForIsNotNamedInTheConfig) {
  const FileBeside weights = Find(Framework::kDarknet, "net.cfg");
  EXPECT_EQ(weights.path, Path("net.weights"));
  EXPECT_EQ(weights.in_config, "");
}

TEST_F(FileBesideTest, APrototxtSharesTheBeginningOfTheName) {
  EXPECT_EQ(Find(Framework::kCaffe, "lenet_iter_9.caffemodel").path, "");
  Make("lenet_solver.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "lenet_iter_9.caffemodel").path, "");
  Make("lenet.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "lenet_iter_9.caffemodel").in_config, "lenet.prototxt");
  Make("lenet_iter_9.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "lenet_iter_9.caffemodel").in_config, "lenet_iter_9.prototxt");
}

TEST_F(FileBesideTest, ANetOfAnotherNameIsTheDeployedOneOrTheOnlyOne) {
  Make("solver.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "_iter_9.caffemodel").path, "");
  Make("net.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "_iter_9.caffemodel").in_config, "net.prototxt");
  Make("train_test.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "_iter_9.caffemodel").path, "");
  Make("deploy.prototxt");
  EXPECT_EQ(Find(Framework::kCaffe, "_iter_9.caffemodel").in_config, "deploy.prototxt");
}

TEST_F(FileBesideTest, TheLastEpochOfParametersCounts) {
  Make("net-0003.params");
  Make("net-0012.params");
  Make("other-0099.params");
  EXPECT_EQ(Find(Framework::kMxNet, "net-symbol.json").in_config, "net-0012.params");
  EXPECT_EQ(Find(Framework::kMxNet, "net-symbol.json", "net-0003.params").in_config,
            "net-0003.params");
}

TEST_F(FileBesideTest, AProgramOfPaddleHasParamsOrAFolder) {
  EXPECT_EQ(Find(Framework::kPaddle, "inference.pdmodel").path, Path("inference.pdiparams"));
  const FileBeside whole = Find(Framework::kPaddle, "__model__");
  EXPECT_EQ(whole.path, Path("."));
  EXPECT_EQ(whole.in_config, "../" + folder_.filename().string());
  Make("__params__");
  EXPECT_EQ(Find(Framework::kPaddle, "__model__").in_config, "__params__");
}

}  // namespace
}  // namespace npuc
