#include "server/catalog/catalog.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/service_error.h"

namespace npuc::catalog {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(CatalogTest, ListsCoresAndTheirOperators) {
  EXPECT_THAT(ListCoreNames(), Contains("GRUS"));
  const auto all = *ListOperators("", "");
  const auto grus = *ListOperators("GRUS", "TF");
  EXPECT_GT(all.size(), grus.size());
  EXPECT_THAT(grus, Not(IsEmpty()));
  bool has_matmul = false;
  for (const OperatorEntry& entry : grus) {
    EXPECT_EQ(entry.core, "GRUS");
    EXPECT_EQ(entry.framework, "TF");
    has_matmul = has_matmul || entry.op == "MatMul";
  }
  EXPECT_TRUE(has_matmul);
}

TEST(CatalogTest, UnknownNamesAreAllToldWithTheKnownOnes) {
  const auto bad = ListOperators("GRUSS", "TORCH");
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kInvalidArgument);
  const auto details = jobs::ErrorDetailsOf(bad.status());
  ASSERT_THAT(details->field_violations, SizeIs(2));
  EXPECT_THAT(details->field_violations[0].description, HasSubstr("GRUS"));
  EXPECT_THAT(details->field_violations[1].description, HasSubstr("TFLITE"));
}

}  // namespace
}  // namespace npuc::catalog
