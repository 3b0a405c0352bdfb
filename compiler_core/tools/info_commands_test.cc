#include "compiler_core/tools/info_commands.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace npuc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

TEST(InfoCommandsTest, CompatibilityNamesTheFrameworksThatCompile) {
  for (const Json& core : Json::parse(ListCompatibility(true))) {
    const Json expected =
        core["core"] == "LEO" ? Json{"TF"} : Json{"TF", "PT", "TFLITE", "ONNX", "COMPASS"};
    EXPECT_EQ(core["frameworks"], expected) << core;
  }
  EXPECT_THAT(ListCompatibility(false), Not(HasSubstr("CAFFE")));
}

TEST(InfoCommandsTest, CompatibilityGivesEachNameOnce) {
  EXPECT_THAT(ListCompatibility(false), StartsWith("GRUS (V150)\n  chips      GX8002\n"));
  EXPECT_THAT(ListCompatibility(false), HasSubstr("\nX2_1204\n  chips      not published\n"));
}

TEST(InfoCommandsTest, WhatHasNoListSaysSo) {
  const auto integer = ListOperators("X2_1204", "TF", false);
  ASSERT_TRUE(integer.ok()) << integer.status();
  EXPECT_THAT(*integer, HasSubstr("X2_1204 has no list"));
  EXPECT_EQ(*ListOperators("X2_1204", "TF", true), "[]\n");
  EXPECT_EQ(*ListOperators("LEO", "PT", false), "LEO has no list for PT\n");
  const auto caffe = ListOperators("", "CAFFE", false);
  EXPECT_THAT(std::string(caffe.status().message()), HasSubstr("unknown framework 'CAFFE'; known"));
}

}  // namespace
}  // namespace npuc
