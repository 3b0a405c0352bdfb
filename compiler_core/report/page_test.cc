#include "compiler_core/report/page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportPage, HoldsTheJsonAndNothingFromElsewhere) {
  const std::string page = ReportPage("{\"model\": \"m.pb\"}");
  EXPECT_THAT(page, HasSubstr("{\"model\": \"m.pb\"}"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("@CSS@")));
  EXPECT_THAT(page, Not(HasSubstr("@VIEWS_CSS@")));
  EXPECT_THAT(page, Not(HasSubstr("@JS@")));
  EXPECT_THAT(page, Not(HasSubstr("\nimport ")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_LT(page.size(), 96u << 10);
}

TEST(ReportPage, AProfileHasItsOwnScript) {
  const std::string page = ProfilePage("{\"graph_name\": \"m<1>\"}");
  EXPECT_THAT(page, HasSubstr("{\"graph_name\": \"m\\u003c1>\"}"));
  EXPECT_THAT(page, HasSubstr("runtime_information"));
  EXPECT_THAT(page, Not(HasSubstr("@JS@")));
  EXPECT_THAT(page, Not(HasSubstr("\nimport ")));
}

TEST(ReportPage, TextCannotEndItsScriptElement) {
  const std::string page = ReportPage("{\"model\": \"</script><script>alert(1)<!--\"}");
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cscript>alert(1)\\u003c!--"));
  EXPECT_THAT(page, Not(HasSubstr("</script><script>alert")));
}

}  // namespace
}  // namespace npuc
