#include "compiler_core/frontends/caffe/text_format.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc::caffe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double NumberOf(absl::string_view text) {
  const std::string field = absl::StrCat("x: ", text);
  const auto message = ParseTextFormat(field);
  EXPECT_TRUE(message.ok()) << message.status();
  return message.ok() ? (*message)->Find("x")->number : 0;
}

TEST(CaffeTextTest, ReadsEachFormOfAField) {
  const auto message = ParseTextFormat(
      "# a net\nname: \"a\" 'b' # two strings\nflag:true;kind: MAX, fork_param < depth { x: 1 } >\n"
      "dim: [1, 2,3] dim: 4 sub: { y: -2 } [a.b]: 5");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ((*message)->Text("name"), "ab");
  EXPECT_EQ((*message)->Find("flag")->Bool(), true);
  EXPECT_EQ((*message)->Text("kind"), "MAX");
  EXPECT_EQ((*message)->All("dim").size(), 4u);
  EXPECT_EQ((*message)->Messages("fork_param")[0]->Messages("depth")[0]->Find("x")->Int(), 1);
  EXPECT_EQ((*message)->Messages("sub")[0]->Find("y")->Int(), -2);
  EXPECT_EQ((*message)->Find("a.b")->Int(), 5);
}

TEST(CaffeTextTest, ReadsNumbers) {
  EXPECT_EQ(NumberOf("0x1F"), 31);
  EXPECT_EQ(NumberOf("017"), 15);
  EXPECT_EQ(NumberOf("-1.5e-3f"), -1.5e-3);
  EXPECT_EQ(NumberOf(".5"), 0.5);
  EXPECT_TRUE(std::isinf(NumberOf("-inf")));
  EXPECT_TRUE(std::isnan(NumberOf("nan")));
}

TEST(CaffeTextTest, EscapesInStrings) {
  const auto message = ParseTextFormat("s: 'a\\n\\x41\\'' t: \"\\101\"");
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_THAT((*message)->Texts("s"), ElementsAre("a\nA'"));
  EXPECT_THAT((*message)->Texts("t"), ElementsAre("A"));
}

TEST(CaffeTextTest, SaysWhereTextIsWrong) {
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"a {\n  b: 1", "2:7: the text ends inside of a message; '}' is missing"},
           {"a: 1\n b 2", "2:4: ':' or '{' is expected behind 'b', not '2'"},
           {"a: 'x", "1:4: the string does not end"},
           {"a: 1x", "1:4: '1x' is no number"},
           {"a: }", "1:4: a value is expected, not '}'"},
           {"}", "1:1: the name of a field is expected, not '}'"},
           {"a: [1 2]", "1:7: ',' or ']' is expected, not '2'"},
           {"a: [1,", "1:7: a value is expected, not the end of the text"}}) {
    const auto message = ParseTextFormat(text);
    EXPECT_THAT(std::string(message.status().message()), HasSubstr(what)) << text;
  }
}

TEST(CaffeTextTest, BoundsDepthAndFields) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a{";
  EXPECT_TRUE(absl::IsResourceExhausted(ParseTextFormat(deep).status()));
  std::string wide;
  for (int i = 0; i <= kMaxFields; ++i) wide += "a:1 ";
  EXPECT_TRUE(absl::IsResourceExhausted(ParseTextFormat(wide).status()));
}

}  // namespace
}  // namespace npuc::caffe
