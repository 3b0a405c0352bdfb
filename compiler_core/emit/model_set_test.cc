#include "compiler_core/emit/model_set.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/emit/small_model_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;

constexpr size_t kWeightBytes = 4096;

std::vector<NamedModel> TwoModels() {
  CompiledModel one = SmallModel();
  one.weight_content.assign(kWeightBytes, 7);
  CompiledModel other = one;
  other.inputs[0].shape = {2, 1};
  return {{"one", one}, {"other", other}};
}

std::string Written(const std::vector<NamedModel>& models) {
  const absl::StatusOr<std::string> bytes = WriteModelSet(models);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

absl::StatusOr<ModelSet> Read(const std::string& bytes) {
  Diagnostics diagnostics;
  absl::StatusOr<ModelSet> set = ReadModelSet(bytes, "all.npuc", diagnostics);
  EXPECT_EQ(set.ok(), !diagnostics.has_errors());
  return set;
}

// The bytes with a sound digest.
std::string Sealed(std::string content) {
  return content + absl::HexStringToBytes(Sha256Hex(content));
}

TEST(ModelSetTest, EqualWeightsAreKeptOnce) {
  const std::string bytes = Written(TwoModels());
  EXPECT_TRUE(IsModelSet(bytes));
  EXPECT_LT(bytes.size(), 2 * kWeightBytes);
  const absl::StatusOr<ModelSet> set = Read(bytes);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->models.size(), 2u);
  EXPECT_EQ(set->models[1].name, "other");
  EXPECT_EQ(set->models[1].model.inputs[0].shape, (Shape{2, 1}));
  EXPECT_EQ(set->models[0].model.weight_content, TwoModels()[0].model.weight_content);
  EXPECT_GE(set->shared_bytes, static_cast<int64_t>(kWeightBytes));
  EXPECT_EQ(Written(set->models), bytes);
}

TEST(ModelSetTest, NamesAreUnique) {
  std::vector<NamedModel> models = TwoModels();
  models[1].name = "one";
  EXPECT_THAT(std::string(WriteModelSet(models).status().message()),
              HasSubstr("two models are named 'one'"));
  EXPECT_FALSE(WriteModelSet({}).ok());
}

TEST(ModelSetTest, NoDamagedByteIsTaken) {
  const std::string bytes = Written(TwoModels());
  for (size_t i = 0; i < bytes.size(); i += 3) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x41);
    EXPECT_FALSE(Read(damaged).ok()) << i;
    EXPECT_FALSE(Read(bytes.substr(0, i)).ok()) << i;
  }
}

// The tables of a file whose digest is right.
TEST(ModelSetTest, TablesThatLieAreRefused) {
  const std::string bytes = Written(TwoModels());
  const std::string content = bytes.substr(0, bytes.size() - 32);
  for (size_t i = 8; i < 200; ++i) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      if (content[i] == value) continue;
      std::string lying = content;
      lying[i] = value;
      const absl::StatusOr<ModelSet> set = Read(Sealed(lying));
      if (!set.ok()) continue;
      EXPECT_EQ(set->models.size(), 2u) << i;  // a name has changed
    }
  }
}

}  // namespace
}  // namespace npuc
