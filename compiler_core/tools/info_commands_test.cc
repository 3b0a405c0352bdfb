#include "compiler_core/tools/info_commands.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler_core/base/framework.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

TEST(InfoCommandsTest, CompatibilityNamesTheFrameworksThatCompile) {
  Json all = Json::array();
  for (const FrameworkInfo& info : AllFrameworks()) all.push_back(info.name);
  for (const Json& core : Json::parse(ListCompatibility(true))) {
    EXPECT_EQ(core["frameworks"], all) << core;
  }
  EXPECT_THAT(ListCompatibility(false), Not(HasSubstr("KERAS")));
}

TEST(InfoCommandsTest, CompatibilityGivesEachNameOnce) {
  EXPECT_THAT(ListCompatibility(false), StartsWith("GRUS (V150)\n  chips      GX8002\n"));
  EXPECT_THAT(ListCompatibility(false), HasSubstr("\nX2_1204\n  chips      not published\n"));
}

TEST(InfoCommandsTest, TorchFunctionsBehindTheOperatorsAreListed) {
  const auto text = ListOperators("GRUS", "PT", false);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr(" functions of torch become these:\n      "));
  EXPECT_THAT(*text, HasSubstr(" layer_norm,"));
  const std::string functions = text->substr(text->find(" functions of torch"));
  for (const absl::string_view line : absl::StrSplit(functions, '\n')) EXPECT_LE(line.size(), 100u);
  const Json list = Json::parse(*ListOperators("GRUS", "PT", true))[0];
  EXPECT_THAT(list["functions"].get<std::vector<std::string>>(), Contains("conv_transpose2d"));
  EXPECT_FALSE(Json::parse(*ListOperators("GRUS", "TF", true))[0].contains("functions"));
}

TEST(InfoCommandsTest, WhatHasNoListSaysSo) {
  const auto integer = ListOperators("X2_1204", "TF", false);
  ASSERT_TRUE(integer.ok()) << integer.status();
  EXPECT_THAT(*integer, HasSubstr("X2_1204 has no list"));
  EXPECT_EQ(*ListOperators("X2_1204", "TF", true), "[]\n");
  EXPECT_EQ(*ListOperators("LEO", "PT", false), "LEO has no list for PT\n");
  const auto keras = ListOperators("", "KERAS", false);
  EXPECT_THAT(std::string(keras.status().message()), HasSubstr("unknown framework 'KERAS'; known"));
}

}  // namespace
}  // namespace npuc
