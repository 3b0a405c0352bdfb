// Who may do what, for every rpc: no identity, an unknown one, an expired one, another tenant's,
// one of the tenant without the right, one with it, and an admin of another tenant.
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include "compiler_core/base/digest.h"
#include "gmock/gmock.h"
#include "server/rpc/rpc_test_util.h"

namespace npuc::rpc {
namespace {

using Code = grpc::StatusCode;

const char* const kIdentities[] = {"none", "unknown", "expired", "stranger", "submit",
                                   "read", "cancel",  "owner",   "admin"};

std::string TokenOf(const std::string& identity) {
  return identity + "-0123456789-0123456789-0123456789";
}

// Tenant a has `owner` with all rights of a tenant, and one identity for each right; tenant b has
// `stranger` with all of them and `admin` with `admin` alone.
std::unique_ptr<auth::Authenticator> TwoTenants() {
  const auto identity = [](const std::string& name, const std::string& rights) {
    return absl::StrCat("      ", name, ": {token_sha256: ", Sha256Hex(TokenOf(name)),
                        ", rights: ", rights, "}\n");
  };
  const std::string path = ::testing::TempDir() + "/isolation.tenants.yaml";
  std::ofstream(path) << "format: 1\ntenants:\n  a:\n    identities:\n"
                      << identity("owner", "[submit, read, cancel]") << identity("submit", "submit")
                      << identity("read", "read") << identity("cancel", "cancel")
                      << "      expired: {token_sha256: " << Sha256Hex(TokenOf("expired"))
                      << ", rights: [submit, read, cancel, admin], expires: 2020-01-01}\n"
                      << "  b:\n    identities:\n"
                      << identity("stranger", "[submit, read, cancel]")
                      << identity("admin", "admin");
  // A minute goes by from call to call, so that wrong tokens are never too many.
  const auto calls = std::make_shared<std::atomic<int>>(0);
  return *auth::Authenticator::FromFile(
      path, [calls] { return absl::Now() + ++*calls * absl::Minutes(1); });
}

class IsolationTest : public RpcTest {
 protected:
  IsolationTest() : RpcTest(TwoTenants()) {
    model_ = inputs_.Put("model bytes", "a");
    inputs_.Put("model bytes", "b");
    inputs_.Put("secret of b", "b");
  }

  std::unique_ptr<grpc::ClientContext> As(const std::string& identity) {
    auto context = std::make_unique<grpc::ClientContext>();
    if (identity != "none") context->AddMetadata("authorization", "Bearer " + TokenOf(identity));
    return context;
  }

  grpc::Status CreateAs(const std::string& identity, std::string* job_id) {
    v1::CreateCompileJobRequest request;
    request.mutable_spec()->set_config_text("config");
    request.mutable_spec()->set_config_name("config.yaml");
    request.mutable_spec()->mutable_model()->set_sha256(model_.sha256);
    request.mutable_spec()->mutable_model()->set_size_bytes(
        static_cast<int64_t>(model_.size_bytes));
    v1::CreateCompileJobResponse response;
    const auto context = As(identity);
    const grpc::Status status = compile_->CreateCompileJob(context.get(), request, &response);
    *job_id = response.job().job_id();
    return status;
  }

  // A job of tenant a that has succeeded.
  std::string DoneJobOfA() {
    std::string job_id;
    EXPECT_TRUE(CreateAs("owner", &job_id).ok());
    RunNext(1);
    return job_id;
  }

  grpc::Status InspectAs(const std::string& identity) {
    workers_.Set([](const worker::WorkerJob&, worker::WorkerEvents&) {
      return executor::SucceedWith({{"inspection.json", "{}"}, {"inspection.txt", ""}});
    });
    v1::InspectModelRequest request;
    request.set_model_name("net.onnx");
    request.mutable_model()->set_sha256(model_.sha256);
    request.mutable_model()->set_size_bytes(static_cast<int64_t>(model_.size_bytes));
    v1::InspectModelResponse response;
    return compile_->InspectModel(As(identity).get(), request, &response);
  }

  grpc::Status GetAs(const std::string& identity, const std::string& job_id) {
    v1::GetCompileJobRequest request;
    request.set_job_id(job_id);
    v1::GetCompileJobResponse response;
    return compile_->GetCompileJob(As(identity).get(), request, &response);
  }

  grpc::Status CancelAs(const std::string& identity, const std::string& job_id) {
    v1::CancelCompileJobRequest request;
    request.set_job_id(job_id);
    v1::CancelCompileJobResponse response;
    return compile_->CancelCompileJob(As(identity).get(), request, &response);
  }

  grpc::Status WatchAs(const std::string& identity, const std::string& job_id) {
    v1::WatchCompileJobRequest request;
    request.set_job_id(job_id);
    const auto context = As(identity);
    const auto reader = compile_->WatchCompileJob(context.get(), request);
    v1::WatchCompileJobResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  }

  grpc::Status DownloadAs(const std::string& identity, const std::string& job_id) {
    v1::DownloadArtifactRequest request;
    request.set_job_id(job_id);
    request.set_artifact_name("model.h");
    const auto context = As(identity);
    const auto reader = blobs_->DownloadArtifact(context.get(), request);
    v1::DownloadArtifactResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  }

  grpc::Status ListAs(const std::string& identity, std::vector<std::string>* ids = nullptr) {
    v1::ListCompileJobsResponse response;
    const grpc::Status status = compile_->ListCompileJobs(As(identity).get(), {}, &response);
    if (ids != nullptr) {
      for (const v1::CompileJob& job : response.jobs()) ids->push_back(job.job_id());
    }
    return status;
  }

  grpc::Status FindMissingAs(const std::string& identity, const std::string& bytes, bool* missing) {
    v1::FindMissingBlobsRequest request;
    v1::BlobDigest* digest = request.add_digests();
    digest->set_sha256(Sha256Hex(bytes));
    digest->set_size_bytes(static_cast<int64_t>(bytes.size()));
    v1::FindMissingBlobsResponse response;
    const grpc::Status status = blobs_->FindMissingBlobs(As(identity).get(), request, &response);
    *missing = response.missing_size() == 1;
    return status;
  }

  grpc::Status QueryAs(const std::string& identity) {
    v1::QueryUploadRequest request;
    request.mutable_digest()->set_sha256(model_.sha256);
    request.mutable_digest()->set_size_bytes(static_cast<int64_t>(model_.size_bytes));
    v1::QueryUploadResponse response;
    return blobs_->QueryUpload(As(identity).get(), request, &response);
  }

  grpc::Status UploadAs(const std::string& identity) {
    const std::string bytes = "blob of " + identity;
    const auto context = As(identity);
    v1::UploadBlobResponse response;
    const auto writer = blobs_->UploadBlob(context.get(), &response);
    writer->Write(Chunk({Sha256Hex(bytes), bytes.size()}, 0, bytes));
    writer->WritesDone();
    return writer->Finish();
  }

  cache::BlobDigest model_;
};

// The code that each identity gets, in the order of kIdentities.
struct Row {
  const char* rpc;
  std::function<grpc::Status(const std::string&)> call;
  std::vector<Code> codes;
};

TEST_F(IsolationTest, EveryRpcByEveryKindOfIdentity) {
  constexpr Code kAnon = Code::UNAUTHENTICATED;
  constexpr Code kDenied = Code::PERMISSION_DENIED;
  constexpr Code kHidden = Code::NOT_FOUND;
  constexpr Code kOk = Code::OK;
  const std::string job = DoneJobOfA();
  std::string ignored;
  bool missing = false;
  v1::GetServerInfoResponse info;
  v1::ListOperatorsResponse operators;
  v1::GetCallerResponse caller;
  v1::SetDispatchResponse dispatch;
  v1::CancelJobsResponse cancelled;
  v1::RequeueJobsResponse requeued;
  v1::ListTenantsResponse tenants;
  v1::ListConnectionsResponse connections;
  v1::ListAuditEntriesResponse audit;
  v1::GetUsageResponse usage;
  v1::SetCordonResponse cordon;
  v1::SetTenantLimitsRequest limit;
  limit.set_tenant("a");
  v1::SetTenantLimitsResponse limited;
  v1::RotateTokenRequest rotate;
  rotate.set_tenant("a");
  rotate.set_identity("owner");
  rotate.set_token_sha256(std::string(64, '7'));
  v1::RotateTokenResponse rotated;
  v1::DropUploadsResponse dropped;
  v1::EvictContentRequest evict;
  evict.set_blob_sha256(std::string(64, '7'));
  v1::EvictContentResponse evicted;
  v1::GetQuotaResponse quota;
  // none, unknown, expired, stranger, submit, read, cancel, owner, admin
  const std::vector<Row> rows = {
      {"CreateCompileJob",
       [&](const std::string& who) { return CreateAs(who, &ignored); },
       {kAnon, kAnon, kAnon, kOk, kOk, kDenied, kDenied, kOk, kDenied}},
      {"GetCompileJob",
       [&](const std::string& who) { return GetAs(who, job); },
       {kAnon, kAnon, kAnon, kHidden, kDenied, kOk, kDenied, kOk, kOk}},
      {"ListCompileJobs",
       [&](const std::string& who) { return ListAs(who); },
       {kAnon, kAnon, kAnon, kOk, kDenied, kOk, kDenied, kOk, kOk}},
      {"WatchCompileJob",
       [&](const std::string& who) { return WatchAs(who, job); },
       {kAnon, kAnon, kAnon, kHidden, kDenied, kOk, kDenied, kOk, kOk}},
      {"CancelCompileJob",
       [&](const std::string& who) { return CancelAs(who, job); },
       {kAnon, kAnon, kAnon, kHidden, kDenied, kDenied, kOk, kOk, kOk}},
      {"DownloadArtifact",
       [&](const std::string& who) { return DownloadAs(who, job); },
       {kAnon, kAnon, kAnon, kHidden, kDenied, kOk, kDenied, kOk, kOk}},
      {"InspectModel",
       [&](const std::string& who) { return InspectAs(who); },
       {kAnon, kAnon, kAnon, kOk, kOk, kDenied, kDenied, kOk, kDenied}},
      {"FindMissingBlobs",
       [&](const std::string& who) { return FindMissingAs(who, "x", &missing); },
       {kAnon, kAnon, kAnon, kOk, kOk, kDenied, kDenied, kOk, kDenied}},
      {"QueryUpload",
       [&](const std::string& who) { return QueryAs(who); },
       {kAnon, kAnon, kAnon, kOk, kOk, kDenied, kDenied, kOk, kDenied}},
      {"UploadBlob",
       [&](const std::string& who) { return UploadAs(who); },
       {kAnon, kAnon, kAnon, kOk, kOk, kDenied, kDenied, kOk, kDenied}},
      {"GetServerInfo",
       [&](const std::string& who) { return info_->GetServerInfo(As(who).get(), {}, &info); },
       {kAnon, kAnon, kAnon, kOk, kOk, kOk, kOk, kOk, kOk}},
      {"GetCaller",
       [&](const std::string& who) { return info_->GetCaller(As(who).get(), {}, &caller); },
       {kAnon, kAnon, kAnon, kOk, kOk, kOk, kOk, kOk, kOk}},
      {"SetDispatch",
       [&](const std::string& who) {
         return admin_stub_->SetDispatch(As(who).get(), {}, &dispatch);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"SetCordon",
       [&](const std::string& who) { return admin_stub_->SetCordon(As(who).get(), {}, &cordon); },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"SetTenantLimits",
       [&](const std::string& who) {
         return admin_stub_->SetTenantLimits(As(who).get(), limit, &limited);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"RotateToken",
       [&](const std::string& who) {
         return admin_stub_->RotateToken(As(who).get(), rotate, &rotated);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"DropUploads",
       [&](const std::string& who) {
         return admin_stub_->DropUploads(As(who).get(), {}, &dropped);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"EvictContent",
       [&](const std::string& who) {
         return admin_stub_->EvictContent(As(who).get(), evict, &evicted);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"GetQuota",
       [&](const std::string& who) { return admin_stub_->GetQuota(As(who).get(), {}, &quota); },
       {kAnon, kAnon, kAnon, kOk, kOk, kOk, kOk, kOk, kOk}},
      {"CancelJobs",
       [&](const std::string& who) {
         return admin_stub_->CancelJobs(As(who).get(), {}, &cancelled);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"RequeueJobs",
       [&](const std::string& who) {
         return admin_stub_->RequeueJobs(As(who).get(), {}, &requeued);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"GetUsage",
       [&](const std::string& who) { return admin_stub_->GetUsage(As(who).get(), {}, &usage); },
       {kAnon, kAnon, kAnon, kOk, kDenied, kOk, kDenied, kOk, kOk}},
      {"ListTenants",
       [&](const std::string& who) {
         return admin_stub_->ListTenants(As(who).get(), {}, &tenants);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"ListConnections",
       [&](const std::string& who) {
         return admin_stub_->ListConnections(As(who).get(), {}, &connections);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"ListAuditEntries",
       [&](const std::string& who) {
         return admin_stub_->ListAuditEntries(As(who).get(), {}, &audit);
       },
       {kAnon, kAnon, kAnon, kDenied, kDenied, kDenied, kDenied, kDenied, kOk}},
      {"ListOperators",
       [&](const std::string& who) { return info_->ListOperators(As(who).get(), {}, &operators); },
       {kAnon, kAnon, kAnon, kOk, kOk, kOk, kOk, kOk, kOk}},
  };
  const std::map<std::string, std::string> reasons = {
      {"none", "NO_IDENTITY"}, {"unknown", "UNKNOWN_IDENTITY"}, {"expired", "IDENTITY_EXPIRED"}};
  for (const Row& row : rows) {
    for (size_t i = 0; i < std::size(kIdentities); ++i) {
      const std::string who = kIdentities[i];
      const grpc::Status status = row.call(who);
      EXPECT_EQ(status.error_code(), row.codes[i])
          << row.rpc << " as " << who << ": " << status.error_message();
      if (row.codes[i] == kAnon) {
        EXPECT_EQ(ReasonOf(status), reasons.at(who)) << row.rpc;
      } else if (row.codes[i] == kDenied) {
        EXPECT_EQ(ReasonOf(status), "RIGHT_MISSING") << row.rpc;
      }
    }
  }
}

TEST_F(IsolationTest, AHiddenJobIsAsOneThatIsNotThereToTheByte) {
  const std::string job = DoneJobOfA();
  std::string unknown = job;
  unknown.back() = unknown.back() == '0' ? '1' : '0';
  const std::vector<std::function<grpc::Status(const std::string&)>> calls = {
      [&](const std::string& id) { return GetAs("stranger", id); },
      [&](const std::string& id) { return WatchAs("stranger", id); },
      [&](const std::string& id) { return CancelAs("stranger", id); },
      [&](const std::string& id) { return DownloadAs("stranger", id); }};
  for (const auto& call : calls) {
    const grpc::Status hidden = call(job);
    const grpc::Status absent = call(unknown);
    const auto with_id = [&](std::string text) {
      const size_t at = text.find(unknown);
      return at == std::string::npos ? text : text.replace(at, unknown.size(), job);
    };
    EXPECT_EQ(hidden.error_code(), absent.error_code());
    EXPECT_EQ(hidden.error_message(), with_id(absent.error_message()));
    std::string details = absent.error_details();
    for (size_t at = details.find(unknown); at != std::string::npos; at = details.find(unknown)) {
      details.replace(at, unknown.size(), job);
    }
    EXPECT_EQ(hidden.error_details(), details);
  }
}

TEST_F(IsolationTest, ListsAndBlobsAreATenantsOwn) {
  const std::string job_of_a = DoneJobOfA();
  std::string job_of_b;
  ASSERT_TRUE(CreateAs("stranger", &job_of_b).ok());
  std::vector<std::string> ids;
  ASSERT_TRUE(ListAs("read", &ids).ok());
  EXPECT_THAT(ids, ::testing::ElementsAre(job_of_a));
  ids.clear();
  ASSERT_TRUE(ListAs("stranger", &ids).ok());
  EXPECT_THAT(ids, ::testing::ElementsAre(job_of_b));
  ids.clear();
  ASSERT_TRUE(ListAs("admin", &ids).ok());
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre(job_of_a, job_of_b));
  bool missing = false;
  ASSERT_TRUE(FindMissingAs("owner", "secret of b", &missing).ok());
  EXPECT_TRUE(missing);
  ASSERT_TRUE(FindMissingAs("stranger", "secret of b", &missing).ok());
  EXPECT_FALSE(missing);
}

TEST_F(IsolationTest, AnothersModelCannotBeInspected) {
  EXPECT_TRUE(InspectAs("owner").ok());
  model_ = inputs_.Put("secret of b", "b");
  EXPECT_EQ(ReasonOf(InspectAs("owner")), "BLOB_MISSING");
  EXPECT_TRUE(InspectAs("stranger").ok());
}

// Filters, totals and texts show nothing of another tenant.
TEST_F(IsolationTest, NoFilterReachesAnotherTenantsJobs) {
  const std::string job = DoneJobOfA();
  const auto list = [&](const std::string& who,
                        const std::function<void(v1::ListCompileJobsRequest&)>& fill) {
    v1::ListCompileJobsRequest request;
    request.set_with_totals(true);
    fill(request);
    v1::ListCompileJobsResponse response;
    EXPECT_TRUE(compile_->ListCompileJobs(As(who).get(), request, &response).ok());
    EXPECT_EQ(response.totals().jobs(), response.jobs_size());
    return response;
  };
  const std::vector<std::function<void(v1::ListCompileJobsRequest&)>> fills = {
      [](auto&) {}, [](auto& r) { r.add_tenants("a"); }, [](auto& r) { r.set_text("config"); },
      [&](auto& r) { r.set_text(job); }, [](auto& r) { r.set_order(v1::JOB_ORDER_NAME); }};
  for (const auto& fill : fills) {
    EXPECT_EQ(list("stranger", fill).jobs_size(), 0);
    EXPECT_EQ(list("stranger", fill).totals().tenants_size(), 0);
    EXPECT_EQ(list("owner", fill).jobs_size(), 1);
    EXPECT_EQ(list("admin", fill).jobs_size(), 1);
  }
  const auto mine = [](auto& r) { r.set_mine(true); };
  EXPECT_EQ(list("owner", mine).jobs_size(), 1);
  EXPECT_EQ(list("read", mine).jobs_size(), 0);
  EXPECT_EQ(list("admin", mine).jobs_size(), 0);
}

TEST_F(IsolationTest, UsageIsATenantsOwn) {
  usage_->Add("a", {.jobs = 1});
  usage_->Add("b", {.jobs = 2});
  const auto sizes = [&](const std::string& who, const std::string& tenant) {
    v1::GetUsageRequest request;
    request.set_tenant(tenant);
    v1::GetUsageResponse response;
    EXPECT_TRUE(admin_stub_->GetUsage(As(who).get(), request, &response).ok());
    return response.usage_size();
  };
  EXPECT_EQ(sizes("owner", ""), 1);
  EXPECT_EQ(sizes("owner", "b"), 0);
  EXPECT_EQ(sizes("admin", ""), 2);
}

TEST_F(IsolationTest, AQuotaIsTheCallersOwnTenants) {
  v1::GetQuotaResponse quota;
  ASSERT_TRUE(admin_stub_->GetQuota(As("owner").get(), {}, &quota).ok());
  EXPECT_EQ(quota.tenant().name(), "a");
  ASSERT_TRUE(admin_stub_->GetQuota(As("stranger").get(), {}, &quota).ok());
  EXPECT_EQ(quota.tenant().name(), "b");
}

TEST_F(IsolationTest, TokensAreRotatedForIdentitiesOfTheFileAlone) {
  const auto rotate = [&](const std::string& tenant, const std::string& identity, char digit) {
    v1::RotateTokenRequest request;
    request.set_tenant(tenant);
    request.set_identity(identity);
    request.set_token_sha256(std::string(64, digit));
    v1::RotateTokenResponse response;
    return ReasonOf(admin_stub_->RotateToken(As("admin").get(), request, &response));
  };
  EXPECT_EQ(rotate("a", "owner", '7'), "no ErrorInfo");  // it was done
  EXPECT_TRUE(tokens_.Find(std::string(64, '7'))->owner.has_value());
  EXPECT_LT(tokens_.Find(Sha256Hex(TokenOf("owner")))->end, absl::Now() + absl::Hours(25));
  EXPECT_EQ(rotate("b", "owner", '8'), "IDENTITY_NOT_FOUND");
  EXPECT_EQ(rotate("a", "", '8'), "IDENTITY_NOT_FOUND");
  EXPECT_EQ(rotate("a", "submit", '7'), "INVALID_FIELD");  // another's token
  EXPECT_EQ(rotate("a", "submit", 'g'), "INVALID_FIELD");
  EXPECT_EQ(rotate("A/B", "submit", '8'), "INVALID_FIELD");
  EXPECT_THAT(AuditLines({"admin.rotate_token", "a/owner", "the old ones end on"}),
              ::testing::SizeIs(1));
  EXPECT_THAT(AuditLines({"admin.rotate_token", "b/owner", "IDENTITY_NOT_FOUND"}),
              ::testing::SizeIs(1));
}

TEST_F(IsolationTest, RefusalsAreLinesOfTheAuditLog) {
  std::string ignored;
  EXPECT_FALSE(CreateAs("none", &ignored).ok());
  EXPECT_THAT(AuditLines({"\"action\":\"refused\"", "CreateCompileJob", "NO_IDENTITY"}),
              ::testing::SizeIs(1));
  EXPECT_FALSE(CreateAs("read", &ignored).ok());
  EXPECT_THAT(AuditLines({"\"action\":\"refused\"", "\"identity\":\"read\"", "RIGHT_MISSING"}),
              ::testing::SizeIs(1));
}

TEST_F(IsolationTest, ACallerLearnsItsTenantAndRights) {
  v1::GetCallerResponse caller;
  ASSERT_TRUE(info_->GetCaller(As("owner").get(), {}, &caller).ok());
  EXPECT_EQ(caller.identity(), "owner");
  EXPECT_EQ(caller.tenant(), "a");
  EXPECT_THAT(caller.rights(), ::testing::ElementsAre("submit", "read", "cancel"));
  ASSERT_TRUE(info_->GetCaller(As("admin").get(), {}, &caller).ok());
  EXPECT_THAT(caller.rights(), ::testing::ElementsAre("admin"));
}

TEST_F(IsolationTest, OneTenantsResultIsNoHitForAnother) {
  DoneJobOfA();
  std::string again;
  ASSERT_TRUE(CreateAs("owner", &again).ok());
  EXPECT_TRUE((*jobs_.Get(again))->cache_hit);
  std::string job_of_b;
  ASSERT_TRUE(CreateAs("stranger", &job_of_b).ok());
  EXPECT_FALSE((*jobs_.Get(job_of_b))->cache_hit);
  EXPECT_NE((*jobs_.Get(again))->cache_key, (*jobs_.Get(job_of_b))->cache_key);
}

TEST_F(IsolationTest, RequestIdsAreATenantsOwn) {
  v1::CreateCompileJobRequest request;
  request.set_request_id("one-id");
  request.mutable_spec()->set_config_text("config");
  request.mutable_spec()->set_config_name("config.yaml");
  request.mutable_spec()->mutable_model()->set_sha256(model_.sha256);
  request.mutable_spec()->mutable_model()->set_size_bytes(static_cast<int64_t>(model_.size_bytes));
  v1::CreateCompileJobResponse of_a;
  v1::CreateCompileJobResponse of_b;
  ASSERT_TRUE(compile_->CreateCompileJob(As("owner").get(), request, &of_a).ok());
  ASSERT_TRUE(compile_->CreateCompileJob(As("stranger").get(), request, &of_b).ok());
  EXPECT_FALSE(of_b.already_existed());
  EXPECT_NE(of_a.job().job_id(), of_b.job().job_id());
}

}  // namespace
}  // namespace npuc::rpc
