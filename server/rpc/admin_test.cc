// The actions of an operator, and the lines of the audit log.
#include <functional>

#include "gmock/gmock.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = grpc::StatusCode;

class AdminTest : public RpcTest {
 protected:
  grpc::Status SetDispatch(bool paused, const std::string& reason, v1::DispatchState* state) {
    grpc::ClientContext context;
    v1::SetDispatchRequest request;
    request.set_paused(paused);
    request.set_reason(reason);
    v1::SetDispatchResponse response;
    const grpc::Status status = admin_stub_->SetDispatch(&context, request, &response);
    *state = response.state();
    return status;
  }
  grpc::Status Cancel(const v1::CancelJobsRequest& request, v1::CancelJobsResponse* response) {
    grpc::ClientContext context;
    return admin_stub_->CancelJobs(&context, request, response);
  }
  grpc::Status Requeue(const v1::RequeueJobsRequest& request, v1::RequeueJobsResponse* response) {
    grpc::ClientContext context;
    response->Clear();
    return admin_stub_->RequeueJobs(&context, request, response);
  }
  std::string FailedJob() {
    const std::string id = Submit();
    const auto leased = *jobs_.TryLease();
    EXPECT_TRUE(leased.has_value());
    EXPECT_TRUE(jobs_
                    .Finish(leased->lease, {},
                            {.failure_kind = jobs::FailureKind::kInternal, .reason = "crashed"})
                    .ok());
    return id;
  }
};

TEST_F(AdminTest, WhilePausedNothingIsStarted) {
  const std::string job = Submit();
  v1::DispatchState state;
  ASSERT_TRUE(SetDispatch(true, "disk swap", &state).ok());
  EXPECT_TRUE(state.paused());
  EXPECT_EQ(state.reason(), "disk swap");
  EXPECT_EQ(state.by(), auth::kLocalIdentity);
  EXPECT_FALSE((*jobs_.TryLease()).has_value());
  Submit();  // accepted all the same
  ASSERT_TRUE(SetDispatch(false, "", &state).ok());
  EXPECT_FALSE(state.paused());
  EXPECT_TRUE((*jobs_.TryLease()).has_value());
  EXPECT_THAT(AuditLines({"admin.pause", "disk swap", "\"result\":\"OK\""}), SizeIs(1));
  EXPECT_THAT(AuditLines({"admin.resume"}), SizeIs(1));
  EXPECT_EQ(ReasonOf(SetDispatch(true, std::string(1025, 'x'), &state)), "INVALID_FIELD");
}

TEST_F(AdminTest, CancelsAllOfAFilter) {
  const std::string done = Submit();
  RunNext(1);
  Submit("two");
  Submit("three");
  v1::CancelJobsRequest request;
  request.set_reason("enough");
  request.mutable_filter()->set_text("nowhere");
  v1::CancelJobsResponse response;
  ASSERT_TRUE(Cancel(request, &response).ok());
  EXPECT_EQ(response.cancelled(), 0);
  request.mutable_filter()->clear_text();
  ASSERT_TRUE(Cancel(request, &response).ok());
  EXPECT_EQ(response.cancelled(), 2);
  EXPECT_FALSE(response.has_more());
  EXPECT_EQ((*jobs_.Get(done))->state, jobs::JobState::kSucceeded);
  EXPECT_THAT(AuditLines({"admin.cancel_jobs", "2 cancelled; enough"}), SizeIs(1));
  request.mutable_filter()->add_states(v1::JOB_STATE_FAILED);
  EXPECT_EQ(ReasonOf(Cancel(request, &response)), "INVALID_FIELD");
}

TEST_F(AdminTest, RequeuesFailedJobsOnce) {
  const std::string failed = FailedJob();
  const std::string lost = FailedJob();
  const std::string config = *jobs_.ReadConfig(failed);
  v1::RequeueJobsRequest request;
  request.mutable_filter()->set_text(failed);
  v1::RequeueJobsResponse response;
  ASSERT_TRUE(Requeue(request, &response).ok());
  EXPECT_EQ(response.requeued(), 1);
  ASSERT_TRUE(Requeue(request, &response).ok());
  EXPECT_EQ(response.requeued(), 0);
  EXPECT_EQ(response.already_requeued(), 1);
  const auto leased = *jobs_.TryLease();
  ASSERT_TRUE(leased.has_value());
  EXPECT_NE(leased->job->id, failed);
  EXPECT_EQ(leased->job->tenant, auth::kLocalTenant);
  EXPECT_EQ(leased->job->spec.submitter, auth::kLocalIdentity);
  EXPECT_EQ(*jobs_.ReadConfig(leased->job->id), config);
  // The files of the other one are gone.
  inputs_.Forget((*jobs_.Get(lost))->model().sha256, auth::kLocalTenant);
  request.mutable_filter()->set_text(lost);
  ASSERT_TRUE(Requeue(request, &response).ok());
  ASSERT_EQ(response.failures_size(), 1);
  EXPECT_EQ(response.failures(0).job_id(), lost);
  EXPECT_THAT(response.failures(0).message(), HasSubstr("not uploaded"));
  request.mutable_filter()->set_page_token("nonsense");
  EXPECT_EQ(ReasonOf(Requeue(request, &response)), "INVALID_FIELD");
}

TEST_F(AdminTest, TenantsAndTheirLimits) {
  grpc::ClientContext context;
  v1::ListTenantsResponse response;
  ASSERT_TRUE(admin_stub_->ListTenants(&context, {}, &response).ok());
  ASSERT_EQ(response.tenants_size(), 1);
  EXPECT_EQ(response.tenants(0).name(), "a");
  EXPECT_EQ(response.tenants(0).queued_jobs(), 2);
  EXPECT_EQ(response.tenants(0).max_queued_jobs(), 7);
  EXPECT_FALSE(response.tenants(0).has_max_job_bytes());
}

TEST_F(AdminTest, ACordonHoldsThisServerBack) {
  const auto cordon = [&](bool on, const std::string& reason) {
    grpc::ClientContext context;
    v1::SetCordonRequest request;
    request.set_cordoned(on);
    request.set_reason(reason);
    v1::SetCordonResponse response;
    const grpc::Status status = admin_stub_->SetCordon(&context, request, &response);
    EXPECT_EQ(response.state().cordoned(), status.ok() && on);
    EXPECT_TRUE(!status.ok() || response.state().node() == "node-a");
    return status;
  };
  Submit();
  ASSERT_TRUE(cordon(true, "new memory").ok());
  EXPECT_FALSE((*jobs_.TryLease()).has_value());
  grpc::ClientContext context;
  v1::ListTenantsResponse tenants;
  ASSERT_TRUE(admin_stub_->ListTenants(&context, {}, &tenants).ok());
  EXPECT_FALSE(tenants.dispatch().paused());
  EXPECT_EQ(tenants.cordon().reason(), "new memory");
  EXPECT_EQ(tenants.cordon().by(), auth::kLocalIdentity);
  ASSERT_TRUE(cordon(false, "").ok());
  EXPECT_TRUE((*jobs_.TryLease()).has_value());
  EXPECT_EQ(ReasonOf(cordon(true, std::string(1025, 'x'))), "INVALID_FIELD");
  EXPECT_THAT(AuditLines({"\"admin.cordon\"", "node-a", "new memory", "\"result\":\"OK\""}),
              SizeIs(1));
  EXPECT_THAT(AuditLines({"\"admin.uncordon\""}), SizeIs(1));
}

TEST_F(AdminTest, LimitsForATimeWithinTheirBounds) {
  v1::SetTenantLimitsRequest request;
  request.set_tenant(auth::kLocalTenant);
  request.mutable_limits()->set_weight(3);
  request.mutable_limits()->set_max_running_jobs(2);
  request.mutable_duration()->set_seconds(3600);
  request.set_reason("release");
  const auto set = [&](v1::TenantState* now) {
    grpc::ClientContext context;
    v1::SetTenantLimitsResponse response;
    const grpc::Status status = admin_stub_->SetTenantLimits(&context, request, &response);
    *now = response.tenant();
    return status;
  };
  v1::TenantState now;
  ASSERT_TRUE(set(&now).ok());
  EXPECT_EQ(policy_refreshes_, 1);
  EXPECT_EQ(now.weight(), 3);
  EXPECT_EQ(now.max_running_jobs(), 2);
  EXPECT_EQ(now.max_queued_jobs(), 7);  // as before
  EXPECT_EQ(now.temporary().by(), auth::kLocalIdentity);
  EXPECT_EQ(now.temporary().reason(), "release");
  EXPECT_FALSE(now.temporary().limits().has_max_queued_jobs());
  grpc::ClientContext context;
  v1::GetQuotaResponse quota;
  ASSERT_TRUE(admin_stub_->GetQuota(&context, {}, &quota).ok());
  EXPECT_EQ(quota.tenant().SerializeAsString(), now.SerializeAsString());
  EXPECT_THAT(AuditLines({"admin.limit", "weight: 3", "1h", "release"}), SizeIs(1));
  const v1::SetTenantLimitsRequest good = request;
  const std::vector<std::function<void()>> bad = {
      [&] { request.mutable_limits()->set_weight(0); },
      [&] { request.mutable_limits()->set_weight(1001); },
      [&] { request.mutable_limits()->set_max_queued_jobs(0); },
      [&] { request.mutable_limits()->set_max_upload_rate(65535); },
      [&] { request.mutable_limits()->set_max_stored_bytes((int64_t{1} << 50) + 1); },
      [&] { request.mutable_limits()->set_max_call_rate(-1); },
      [&] { request.clear_duration(); },
      [&] { request.mutable_duration()->set_seconds(-5); },
      [&] { request.mutable_duration()->set_seconds(int64_t{90} * 86400 + 1); },
      [&] { request.set_tenant("a/b"); },
      [&] { request.set_reason(std::string(1025, 'x')); }};
  for (size_t i = 0; i < bad.size(); ++i) {
    request = good;
    bad[i]();
    EXPECT_EQ(ReasonOf(set(&now)), "INVALID_FIELD") << i;
  }
  request = good;
  request.set_tenant("nobody");
  EXPECT_EQ(ReasonOf(set(&now)), "TENANT_NOT_FOUND");
  EXPECT_EQ(limits_.Find(auth::kLocalTenant)->weight, 3);
  request = good;
  request.clear_limits();
  request.clear_duration();
  ASSERT_TRUE(set(&now).ok());
  EXPECT_FALSE(now.has_temporary());
  EXPECT_THAT(AuditLines({"admin.unlimit"}), SizeIs(1));
}

TEST_F(AdminTest, UploadsAreDropped) {
  v1::DropUploadsRequest request;
  v1::DropUploadsResponse response;
  const auto drop = [&] {
    grpc::ClientContext context;
    return admin_stub_->DropUploads(&context, request, &response);
  };
  request.set_tenant("audio");
  request.mutable_idle()->set_seconds(90);
  request.set_reason("stuck");
  ASSERT_TRUE(drop().ok());
  EXPECT_EQ(response.dropped(), 2);
  EXPECT_EQ(response.dropped_bytes(), 30);
  EXPECT_THAT(dropped_, testing::ElementsAre(testing::Pair("audio", absl::Seconds(90))));
  EXPECT_THAT(AuditLines({"admin.drop_uploads", "audio", "2 dropped; stuck"}), SizeIs(1));
  request.mutable_idle()->set_seconds(-1);
  EXPECT_EQ(ReasonOf(drop()), "INVALID_FIELD");
  request.Clear();
  ASSERT_TRUE(drop().ok());
  EXPECT_THAT(AuditLines({"admin.drop_uploads", "of all tenants"}), SizeIs(1));
  request.set_tenant("../x");
  EXPECT_EQ(ReasonOf(drop()), "INVALID_FIELD");
  EXPECT_THAT(dropped_, SizeIs(2));
}

TEST_F(AdminTest, BlobsAndResultsAreEvicted) {
  v1::EvictContentRequest request;
  v1::EvictContentResponse response;
  const auto evict = [&] {
    grpc::ClientContext context;
    response.Clear();
    return admin_stub_->EvictContent(&context, request, &response);
  };
  const std::string job = Submit();
  const std::string sha256 = (*jobs_.Get(job))->model().sha256;
  request.set_blob_sha256(sha256);
  request.set_tenant(auth::kLocalTenant);
  EXPECT_EQ(ReasonOf(evict()), "BLOB_IN_USE");
  RunNext(1);
  holds_.Remove(job);
  ASSERT_TRUE(evict().ok());
  EXPECT_THAT(response.evicted(),
              testing::ElementsAre(absl::StrCat(auth::kLocalTenant, "/", sha256)));
  ASSERT_TRUE(evict().ok());
  EXPECT_THAT(response.evicted(), IsEmpty());
  // Without a tenant all tenants lose it; ListTenants has tenant "a".
  inputs_.Put("model bytes", "a");
  request.clear_tenant();
  ASSERT_TRUE(evict().ok());
  EXPECT_THAT(response.evicted(), testing::ElementsAre("a/" + sha256));
  EXPECT_EQ(cache_.size(), 1u);
  request.set_job_id(job);
  ASSERT_TRUE(evict().ok());
  EXPECT_THAT(response.evicted(), testing::ElementsAre((*jobs_.Get(job))->cache_key));
  EXPECT_EQ(cache_.size(), 0u);
  request.set_result_key((*jobs_.Get(job))->cache_key);
  ASSERT_TRUE(evict().ok());
  EXPECT_THAT(response.evicted(), IsEmpty());
  EXPECT_THAT(AuditLines({"admin.evict", "1 evicted", job}), SizeIs(1));
  request.set_job_id(kUnknownJob);
  EXPECT_EQ(ReasonOf(evict()), "JOB_NOT_FOUND");
  for (const char* key : {"", "nonsense", "a/b/c"}) {
    request.set_result_key(key);
    EXPECT_EQ(ReasonOf(evict()), "INVALID_FIELD") << key;
  }
  request.set_blob_sha256("x");
  EXPECT_EQ(ReasonOf(evict()), "INVALID_FIELD");
  request.Clear();
  EXPECT_EQ(ReasonOf(evict()), "INVALID_FIELD");
}

TEST_F(AdminTest, ConnectionsAndStreamsAreListed) {
  const std::string job = Submit();
  grpc::ClientContext watching;
  v1::WatchCompileJobRequest watch;
  watch.set_job_id(job);
  const auto reader = compile_->WatchCompileJob(&watching, watch);
  v1::WatchCompileJobResponse event;
  ASSERT_TRUE(reader->Read(&event));
  v1::ListConnectionsResponse open;
  const auto list = [&](int limit) {
    grpc::ClientContext context;
    v1::ListConnectionsRequest request;
    request.set_limit(limit);
    open.Clear();
    return admin_stub_->ListConnections(&context, request, &open);
  };
  ASSERT_TRUE(list(0).ok());
  EXPECT_EQ(open.node(), "node-a");
  EXPECT_EQ(open.open_connections(), 1);
  ASSERT_EQ(open.connections_size(), 1);
  const v1::Connection& connection = open.connections(0);
  EXPECT_EQ(connection.protocol(), "gRPC");
  EXPECT_THAT(connection.peer(), testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(connection.identity(), auth::kLocalIdentity);
  EXPECT_EQ(connection.last_method(), "ListConnections");
  EXPECT_EQ(connection.calls(), 3);
  EXPECT_GT(connection.received_bytes(), 100);
  EXPECT_GT(connection.sent_bytes(), 0);
  ASSERT_EQ(open.streams_size(), 1);
  EXPECT_EQ(open.streams(0).method(), "WatchCompileJob");
  EXPECT_EQ(open.streams(0).object(), job);
  EXPECT_EQ(open.streams(0).peer(), "127.0.0.1");
  EXPECT_EQ(open.streams(0).tenant(), auth::kLocalTenant);
  EXPECT_GT(open.streams(0).bytes(), 0);
  watching.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), Code::CANCELLED);
  // The server hears of it a moment later.
  for (int i = 0; i < 10'000 && open.open_streams() > 0; ++i) ASSERT_TRUE(list(1).ok());
  EXPECT_EQ(open.open_streams(), 0);
  EXPECT_EQ(ReasonOf(list(1001)), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(list(-1)), "INVALID_FIELD");
}

TEST_F(AdminTest, UsageByDayAndTenant) {
  const std::string job = Submit();
  RunNext(1);
  std::string bytes;
  EXPECT_TRUE(Download(job, "model.h", 50'000, &bytes).ok());
  usage_->Add("other", {.jobs = 3, .processor_micros = 1'500'000});
  grpc::ClientContext context;
  v1::GetUsageResponse response;
  ASSERT_TRUE(admin_stub_->GetUsage(&context, {}, &response).ok());
  ASSERT_EQ(response.usage_size(), 2);
  EXPECT_EQ(response.usage(0).tenant(), auth::kLocalTenant);
  EXPECT_EQ(response.usage(0).downloaded_bytes(), static_cast<int64_t>(big_.size()) - 50'000);
  EXPECT_EQ(response.usage(1).jobs(), 3);
  EXPECT_EQ(response.usage(1).processor_seconds(), 1.5);
  v1::GetUsageRequest request;
  request.set_from_day("yesterday");
  grpc::ClientContext bad_context;
  EXPECT_EQ(ReasonOf(admin_stub_->GetUsage(&bad_context, request, &response)), "INVALID_FIELD");
}

TEST_F(AdminTest, TheAuditLogHasWhatUsersDo) {
  const std::string job = Submit();
  EXPECT_THAT(AuditLines({"\"action\":\"submit\"", job, "\"identity\":\"local\"", "127.0.0.1"}),
              SizeIs(1));
  RunNext(1);
  std::string bytes;
  EXPECT_TRUE(Download(job, "model.h", 0, &bytes).ok());
  EXPECT_THAT(AuditLines({"\"action\":\"download\"", job + "/model.h"}), SizeIs(1));
  EXPECT_FALSE(Download(job, "none.h", 0, &bytes).ok());
  EXPECT_THAT(AuditLines({"none.h", "ARTIFACT_NOT_FOUND"}), SizeIs(1));
  grpc::ClientContext context;
  v1::CancelCompileJobRequest request;
  request.set_job_id(job);
  v1::CancelCompileJobResponse response;
  EXPECT_TRUE(compile_->CancelCompileJob(&context, request, &response).ok());
  EXPECT_THAT(AuditLines({"\"action\":\"cancel\"", job}), SizeIs(1));
  EXPECT_THAT(AuditLines({"model bytes"}), IsEmpty());  // no content
}

TEST_F(AdminTest, AnOperatorFindsWhatCallersDid) {
  const std::string job = Submit();
  v1::SetDispatchRequest pause;
  pause.set_paused(true);
  v1::SetDispatchResponse paused;
  grpc::ClientContext pause_context;
  ASSERT_TRUE(admin_stub_->SetDispatch(&pause_context, pause, &paused).ok());
  const auto list = [&](const v1::ListAuditEntriesRequest& request) {
    grpc::ClientContext context;
    v1::ListAuditEntriesResponse response;
    EXPECT_TRUE(admin_stub_->ListAuditEntries(&context, request, &response).ok());
    return response;
  };
  v1::ListAuditEntriesRequest request;
  request.set_page_size(1);
  v1::ListAuditEntriesResponse page = list(request);
  ASSERT_EQ(page.entries_size(), 1);
  EXPECT_EQ(page.entries(0).action(), "admin.pause");
  EXPECT_EQ(page.entries(0).node(), "npucd");
  request.set_page_token(page.next_page_token());
  EXPECT_EQ(list(request).entries(0).object(), job);
  v1::ListAuditEntriesRequest filtered;
  filtered.set_object(job);
  EXPECT_EQ(list(filtered).entries_size(), 1);
  filtered.mutable_to_time()->set_seconds(1);
  EXPECT_EQ(list(filtered).entries_size(), 0);
  for (auto change : {+[](v1::ListAuditEntriesRequest& bad) { bad.set_page_size(1001); },
                      +[](v1::ListAuditEntriesRequest& bad) { bad.set_page_token("x"); }}) {
    v1::ListAuditEntriesRequest bad;
    change(bad);
    grpc::ClientContext context;
    EXPECT_EQ(ReasonOf(admin_stub_->ListAuditEntries(&context, bad, &page)), "INVALID_FIELD");
  }
}

}  // namespace
}  // namespace npuc::rpc
