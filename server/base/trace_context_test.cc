#include "server/base/trace_context.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace npuc::base {
namespace {

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kSpan[] = "b7ad6b7169203331";

std::string Header(absl::string_view version, absl::string_view trace, absl::string_view span,
                   absl::string_view flags, absl::string_view rest = "") {
  return absl::StrCat(version, "-", trace, "-", span, "-", flags, rest);
}

TEST(TraceContextTest, ReadsWhatTheStandardShows) {
  const auto context = ParseTraceparent(Header("00", kTrace, kSpan, "01"));
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id, kTrace);
  EXPECT_EQ(context->span_id, kSpan);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(FormatTraceparent(*context), Header("00", kTrace, kSpan, "01"));
  EXPECT_FALSE(ParseTraceparent(Header("00", kTrace, kSpan, "00"))->sampled);
  // Other flags are for others; the lowest bit counts.
  EXPECT_TRUE(ParseTraceparent(Header("00", kTrace, kSpan, "ff"))->sampled);
  EXPECT_FALSE(ParseTraceparent(Header("00", kTrace, kSpan, "fe"))->sampled);
}

TEST(TraceContextTest, ReadsLaterVersions) {
  EXPECT_TRUE(ParseTraceparent(Header("cc", kTrace, kSpan, "01")).has_value());
  EXPECT_TRUE(ParseTraceparent(Header("cc", kTrace, kSpan, "01", "-what-comes")).has_value());
  EXPECT_FALSE(ParseTraceparent(Header("cc", kTrace, kSpan, "01", ".what-comes")).has_value());
  EXPECT_FALSE(ParseTraceparent(Header("ff", kTrace, kSpan, "01")).has_value());
}

TEST(TraceContextTest, RefusesWhatIsMalformed) {
  const std::string good = Header("00", kTrace, kSpan, "01");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseTraceparent(good.substr(0, size)).has_value()) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char wrong : {'A', 'g', ' ', '\0', '\x80'}) {
      std::string text = good;
      text[at] = wrong;
      EXPECT_FALSE(ParseTraceparent(text).has_value()) << at << " " << wrong;
    }
  }
  EXPECT_FALSE(ParseTraceparent(good + "-").has_value());
  EXPECT_FALSE(ParseTraceparent(Header("00", std::string(32, '0'), kSpan, "01")).has_value());
  EXPECT_FALSE(ParseTraceparent(Header("00", kTrace, std::string(16, '0'), "01")).has_value());
  EXPECT_FALSE(
      ParseTraceparent(Header("01", kTrace, kSpan, "01", "-" + std::string(300, 'a'))).has_value());
}

}  // namespace
}  // namespace npuc::base
