#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "npuc/v1/compile.grpc.pb.h"
#include "server/executor/access.h"
#include "server/executor/canary.h"
#include "server/jobs/service_error.h"
#include "server/rpc/call.h"
#include "server/rpc/convert.h"
#include "server/rpc/services.h"

namespace npuc {
namespace {

constexpr int32_t kDefaultPageSize = 50;
constexpr int32_t kMaxPageSize = 1000;
constexpr size_t kMaxPageBytes = 2 << 20;
constexpr size_t kMaxReasonFieldBytes = 1024;

// The trace id of a W3C traceparent header, "00-<32 hex digits>-<16>-<2>"; empty where there is
// none.
std::string TraceIdOf(const grpc::CallbackServerContext& context) {
  constexpr size_t kBegin = 3;
  constexpr size_t kDigits = 32;
  const auto header = context.client_metadata().find("traceparent");
  if (header == context.client_metadata().end()) return "";
  const std::string id(header->second.data(), header->second.size());
  if (id.size() < kBegin + kDigits || id.size() > 256) return "";
  const std::string digits = id.substr(kBegin, kDigits);
  const bool hex = std::all_of(digits.begin(), digits.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return hex ? digits : "";
}

class CompileService : public v1::CompileService::CallbackService {
 public:
  CompileService(const RpcDependencies* dependencies, WorkPool* pool, const WatchContext& watch)
      : deps_(*dependencies), pool_(pool), watch_(watch) {}

  grpc::ServerUnaryReactor* CreateCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CreateCompileJobRequest* request,
                                             v1::CreateCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, "CreateCompileJob", Right::kSubmit,
                    [this, request, response, trace = TraceIdOf(*context)](const Caller& caller) {
                      return Create(caller, *request, trace, response);
                    });
  }

  grpc::ServerUnaryReactor* GetCompileJob(grpc::CallbackServerContext* context,
                                          const v1::GetCompileJobRequest* request,
                                          v1::GetCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, "GetCompileJob", Right::kRead,
                    [this, request, response](const Caller& caller) {
                      return Get(caller, *request, response);
                    });
  }

  grpc::ServerUnaryReactor* ListCompileJobs(grpc::CallbackServerContext* context,
                                            const v1::ListCompileJobsRequest* request,
                                            v1::ListCompileJobsResponse* response) override {
    return RunUnary(context, *pool_, deps_, "ListCompileJobs", Right::kRead,
                    [this, request, response](const Caller& caller) {
                      return List(caller, *request, response);
                    });
  }

  grpc::ServerWriteReactor<v1::WatchCompileJobResponse>* WatchCompileJob(
      grpc::CallbackServerContext* context, const v1::WatchCompileJobRequest* request) override {
    return StartWatch(watch_, *context, *request);
  }

  grpc::ServerUnaryReactor* CancelCompileJob(grpc::CallbackServerContext* context,
                                             const v1::CancelCompileJobRequest* request,
                                             v1::CancelCompileJobResponse* response) override {
    return RunUnary(context, *pool_, deps_, "CancelCompileJob", Right::kCancel,
                    [this, request, response](const Caller& caller) {
                      return Cancel(caller, *request, response);
                    });
  }

 private:
  absl::Status Create(const Caller& caller, const v1::CreateCompileJobRequest& request,
                      const std::string& trace_id, v1::CreateCompileJobResponse* response) {
    RETURN_IF_ERROR(deps_.lifecycle->CheckWrites());
    ASSIGN_OR_RETURN(SubmitRequest submit, FromProto(request));
    submit.tenant = caller.tenant;
    submit.trace_id = trace_id;
    ASSIGN_OR_RETURN(const JobService::Submitted submitted, deps_.submission->Submit(submit));
    Fill(*submitted.job, response->mutable_job());
    response->set_already_existed(submitted.already_existed);
    if (deps_.metrics != nullptr && !submitted.already_existed) {
      deps_.metrics->Add(Metric::kJobsAccepted, {caller.tenant}, 1);
    }
    deps_.log->Info(submitted.already_existed ? "job repeated" : "job accepted",
                    {{"job", submitted.job->id},
                     {"trace", submitted.job->spec.trace_id},
                     {"tenant", caller.tenant},
                     {"identity", caller.identity},
                     {"state", JobStateName(submitted.job->state)},
                     {"model_md5", submitted.job->model().md5}});
    return absl::OkStatus();
  }

  absl::Status Get(const Caller& caller, const v1::GetCompileJobRequest& request,
                   v1::GetCompileJobResponse* response) {
    RETURN_IF_ERROR(deps_.lifecycle->CheckReads());
    RETURN_IF_ERROR(CheckJobId(request.job_id()));
    ASSIGN_OR_RETURN(const std::shared_ptr<const Job> job,
                     FindJob(*deps_.jobs, caller, request.job_id()));
    Fill(*job, response->mutable_job());
    ASSIGN_OR_RETURN(*response->mutable_job()->mutable_spec()->mutable_config_text(),
                     deps_.jobs->ReadConfig(job->id));
    return absl::OkStatus();
  }

  absl::Status List(const Caller& caller, const v1::ListCompileJobsRequest& request,
                    v1::ListCompileJobsResponse* response) {
    RETURN_IF_ERROR(deps_.lifecycle->CheckReads());
    FieldChecker check;
    JobListQuery query{.states = {}, .before_id = request.page_token()};
    if (!caller.rights.Has(Right::kAdmin)) query.tenant = caller.tenant;
    if (request.page_size() < 0 || request.page_size() > kMaxPageSize) {
      check.Add("page_size", absl::StrCat(request.page_size(), " is not in 0 to ", kMaxPageSize));
    }
    query.limit =
        static_cast<size_t>(request.page_size() == 0 ? kDefaultPageSize : request.page_size());
    if (!request.page_token().empty() && !IsValidJobId(request.page_token())) {
      check.Add("page_token", "is not a next_page_token of an earlier answer");
    }
    for (const int state : request.states()) {
      const auto known = FromProto(static_cast<v1::JobState>(state));
      if (known.has_value()) {
        query.states.push_back(*known);
      } else {
        check.Add("states", absl::StrCat(state, " is not a state"));
      }
    }
    RETURN_IF_ERROR(check.ToStatus());
    ASSIGN_OR_RETURN(const JobPage page, deps_.jobs->List(query));
    size_t bytes = 0;
    for (const Job& job : page.jobs) {
      if (job.tenant == Canary::kTenant) continue;  // nobody asked for it
      v1::CompileJob* const out = response->add_jobs();
      Fill(job, out);
      bytes += out->ByteSizeLong();
      if (bytes <= kMaxPageBytes || &job == &page.jobs.back()) continue;
      // More would not pass a client's limit of 4 MiB a message: the next page begins behind it.
      response->set_next_page_token(job.id);
      return absl::OkStatus();
    }
    response->set_next_page_token(page.next_before);
    return absl::OkStatus();
  }

  absl::Status Cancel(const Caller& caller, const v1::CancelCompileJobRequest& request,
                      v1::CancelCompileJobResponse* response) {
    RETURN_IF_ERROR(deps_.lifecycle->CheckReads());
    RETURN_IF_ERROR(CheckJobId(request.job_id()));
    if (request.reason().size() > kMaxReasonFieldBytes) {
      FieldChecker check;
      check.Add("reason", absl::StrCat("has ", request.reason().size(), " bytes, at most ",
                                       kMaxReasonFieldBytes, " are allowed"));
      return check.ToStatus();
    }
    // A look of its own and not a check inside Cancel, which takes the job's locks: how long those
    // are held would tell of another tenant's job.
    RETURN_IF_ERROR(FindJob(*deps_.jobs, caller, request.job_id()).status());
    ASSIGN_OR_RETURN(const std::shared_ptr<const Job> job,
                     deps_.jobs->Cancel(request.job_id(), request.reason()));
    Fill(*job, response->mutable_job());
    return absl::OkStatus();
  }

  void Fill(const Job& job, v1::CompileJob* out) const {
    ToProto(job, job.state == JobState::kQueued ? deps_.jobs->Wait(job.id) : std::nullopt, out);
  }

  const RpcDependencies& deps_;
  WorkPool* const pool_;
  const WatchContext watch_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCompileService(const RpcDependencies* dependencies,
                                                  WorkPool* pool, const WatchContext& watch) {
  return std::make_unique<CompileService>(dependencies, pool, watch);
}

}  // namespace npuc
