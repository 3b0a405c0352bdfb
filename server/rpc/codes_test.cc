// Rows of proto/API.md's table of errors that no other test has as their subject;
// tests/docs/error_rows_test.py sees to it that each row has a test.
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

class CodesTest : public RpcTest {};

TEST_F(CodesTest, AJobThatIsNotThereIsNotFound) {
  grpc::ClientContext context;
  v1::GetCompileJobRequest request;
  request.set_job_id(kUnknownJob);
  v1::GetCompileJobResponse response;
  const grpc::Status status = compile_->GetCompileJob(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "JOB_NOT_FOUND");
}

TEST_F(CodesTest, OverItsMemoryLimitTheServerTakesNoWorkAndInvitesARetry) {
  lifecycle_.SetOverMemory(true);
  v1::CreateCompileJobResponse response;
  const grpc::Status status = Create(Request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "SERVER_BUSY");
  EXPECT_GE(DetailOf<rpc::RetryInfo>(status).retry_delay().seconds(), 1);
  lifecycle_.SetOverMemory(false);
  EXPECT_TRUE(Create(Request(), &response).ok());
}

TEST_F(CodesTest, OurOwnFaultsHaveAReasonToo) {
  EXPECT_EQ(ReasonOf(ToGrpcStatus(absl::InternalError("x"))), "INTERNAL");
  EXPECT_EQ(ReasonOf(ToGrpcStatus(absl::DataLossError("x"))), "STORE_FAILED");
}

TEST_F(CodesTest, APageOfTheListIsBoundedByItsBytesAndGoesOn) {
  // 32 labels of 255 bytes make a job of 9 KiB; 300 of them are more than one page may have.
  constexpr int kJobs = 300;
  std::set<std::string> made;
  for (int i = 0; i < kJobs; ++i) {
    v1::CreateCompileJobRequest request = Request(absl::StrCat("job-", i));
    for (int label = 0; label < 32; ++label) {
      (*request.mutable_spec()->mutable_labels())[absl::StrCat("label", label)] =
          std::string(255, 'x');
    }
    v1::CreateCompileJobResponse response;
    ASSERT_TRUE(Create(request, &response).ok());
    made.insert(response.job().job_id());
    // The queue has three places.
    grpc::ClientContext context;
    v1::CancelCompileJobRequest cancel;
    cancel.set_job_id(response.job().job_id());
    v1::CancelCompileJobResponse cancelled;
    ASSERT_TRUE(compile_->CancelCompileJob(&context, cancel, &cancelled).ok());
  }
  std::set<std::string> listed;
  int pages = 0;
  v1::ListCompileJobsRequest request;
  request.set_page_size(1000);
  do {
    grpc::ClientContext context;
    v1::ListCompileJobsResponse response;
    ASSERT_TRUE(compile_->ListCompileJobs(&context, request, &response).ok());
    EXPECT_LT(response.ByteSizeLong(), size_t{3} << 20);
    for (const v1::CompileJob& job : response.jobs()) {
      EXPECT_TRUE(listed.insert(job.job_id()).second) << "listed twice";
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, made);
  EXPECT_GE(pages, 2);
}

}  // namespace
}  // namespace npuc::rpc
