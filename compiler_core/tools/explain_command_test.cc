#include "compiler_core/tools/explain_command.h"

#include "compiler_core/base/diagnostic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npuc {
namespace {

using ::testing::HasSubstr;

TEST(ExplainTest, GivesMeaningAndExample) {
  for (const char* id : {"NPUC1404", "npuc1404", "1404", "NotFp16Data"}) {
    const absl::StatusOr<std::string> text = ExplainDiagnostic(id, false);
    ASSERT_TRUE(text.ok()) << id << ": " << text.status();
    EXPECT_THAT(*text, HasSubstr("NPUC1404 NotFp16Data (error)"));
    EXPECT_THAT(*text, HasSubstr("the core computes in fp16"));
    EXPECT_THAT(*text, HasSubstr("Example:\n    "));
    EXPECT_THAT(*text, HasSubstr("[NPUC1404]"));
  }
}

TEST(ExplainTest, KnowsEveryDiagnostic) {
  for (const DiagnosticKindInfo& info : AllDiagnosticKinds()) {
    const absl::StatusOr<std::string> text = ExplainDiagnostic(IdOf(info.kind), true);
    ASSERT_TRUE(text.ok()) << info.name;
    EXPECT_THAT(*text, HasSubstr(info.name));
  }
}

TEST(ExplainTest, SuggestsTheNearest) {
  EXPECT_THAT(std::string(ExplainDiagnostic("NPUC14044", false).status().message()),
              HasSubstr("did you mean 'NPUC1404'"));
  EXPECT_THAT(std::string(ExplainDiagnostic("hello", false).status().message()),
              HasSubstr("at the end of its line"));
}

}  // namespace
}  // namespace npuc
