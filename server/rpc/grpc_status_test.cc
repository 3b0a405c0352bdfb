#include "server/rpc/grpc_status.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/jobs/service_error.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using ::testing::EndsWith;

// The size of the trailers, of which clients allow 8 KiB by default; details travel as base64.
size_t TrailerBytes(const grpc::Status& status) {
  return status.error_message().size() + absl::Base64Escape(status.error_details()).size();
}

TEST(GrpcStatusTest, ManyViolationsAreCutAndTheLastSaysHowMany) {
  jobs::FieldChecker check;
  for (int i = 0; i < 100; ++i) check.Add("spec.config_text", std::string(200, 'x'));
  const grpc::Status status = ToGrpcStatus(check.ToStatus("INVALID_CONFIG"));
  EXPECT_EQ(ReasonOf(status), "INVALID_CONFIG");
  EXPECT_LT(TrailerBytes(status), 8000u);
  EXPECT_GT(TrailerBytes(status), 4000u);
  const auto details = DetailOf<rpc::BadRequest>(status);
  const int told = details.field_violations_size() - 1;
  EXPECT_EQ(details.field_violations(0).description(), std::string(200, 'x'));
  EXPECT_EQ(details.field_violations(told).description(),
            absl::StrCat("and ", 100 - told, " more"));
}

TEST(GrpcStatusTest, FewViolationsAreWhole) {
  jobs::FieldChecker check;
  check.Add("a", "one");
  check.Add("b", "two");
  const auto details = DetailOf<rpc::BadRequest>(ToGrpcStatus(check.ToStatus()));
  ASSERT_EQ(details.field_violations_size(), 2);
  EXPECT_EQ(details.field_violations(1).description(), "two");
}

TEST(GrpcStatusTest, AMessageIsCutWithItsDetailsKept) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "\xe4\xb8\xad";
  const grpc::Status status = ToGrpcStatus(
      jobs::ServiceError(absl::StatusCode::kNotFound, text, {.reason = "JOB_NOT_FOUND"}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_LT(3 * status.error_message().size(), 1100u);
  EXPECT_THAT(status.error_message(), EndsWith("..."));
  EXPECT_EQ(ReasonOf(status), "JOB_NOT_FOUND");
}

}  // namespace
}  // namespace npuc::rpc
