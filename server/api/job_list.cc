#include "server/api/job_list.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/api/convert.h"
#include "server/api/page_size.h"
#include "server/executor/canary.h"
#include "server/executor/submission.h"

namespace npuc::api {
namespace {

constexpr size_t kDefaultPageSize = 50;
constexpr size_t kMaxPageBytes = 2 << 20;
constexpr int kMaxFilterValues = 64;
constexpr size_t kMaxFilterTextBytes = 255;

std::vector<std::string> ReadValues(const char* field,
                                    const google::protobuf::RepeatedPtrField<std::string>& values,
                                    int most, jobs::FieldChecker& check) {
  if (values.size() > most) {
    check.Add(field, absl::StrCat(values.size(), " values, at most ", most, " are allowed"));
  }
  return {values.begin(), values.end()};
}

std::optional<jobs::JobOrder> OrderFromProto(v1::JobOrder order) {
  switch (order) {
    case v1::JOB_ORDER_UNSPECIFIED:
      return jobs::JobOrder::kCreateTime;
    case v1::JOB_ORDER_END_TIME:
      return jobs::JobOrder::kEndTime;
    case v1::JOB_ORDER_NAME:
      return jobs::JobOrder::kName;
    case v1::JOB_ORDER_TOOK:
      return jobs::JobOrder::kTook;
    case v1::JOB_ORDER_STATE:
      return jobs::JobOrder::kState;
    case v1::JOB_ORDER_CORE:
      return jobs::JobOrder::kCore;
    case v1::JOB_ORDER_FRAMEWORK:
      return jobs::JobOrder::kFramework;
    case v1::JOB_ORDER_TENANT:
      return jobs::JobOrder::kTenant;
    default:
      return std::nullopt;
  }
}

absl::StatusOr<jobs::JobIndex::Query> ReadQuery(const auth::Caller& caller,
                                                const v1::ListCompileJobsRequest& request) {
  jobs::FieldChecker check;
  jobs::JobIndex::Query query{.filter = ReadFilter(caller, request, check),
                              .reverse = request.reverse(),
                              .after_id = request.page_token(),
                              .with_totals = request.with_totals()};
  query.limit = ReadPageSize(request.page_size(), kDefaultPageSize, check);
  if (!request.page_token().empty() && !jobs::IsValidJobId(request.page_token())) {
    check.Add("page_token", "is not a next_page_token of an earlier answer");
  }
  const auto order = OrderFromProto(request.order());
  if (!order.has_value()) {
    check.Add("order", absl::StrCat(static_cast<int>(request.order()), " is no order"));
  }
  RETURN_IF_ERROR(check.ToStatus());
  query.order = *order;
  return query;
}

// The store can answer without the index: the newest first, by state and the caller's tenant.
bool NeedsIndex(const v1::ListCompileJobsRequest& request) {
  v1::ListCompileJobsRequest rest = request;
  rest.clear_page_size();
  rest.clear_page_token();
  rest.clear_states();
  return rest.ByteSizeLong() > 0;
}

// Adds jobs to a page until it is full.
class PageWriter {
 public:
  PageWriter(const ApiDependencies& deps, v1::ListCompileJobsResponse* response)
      : deps_(deps), response_(response) {}

  // False: the page is full, and the next one begins behind this job. More would not pass a
  // client's limit of 4 MiB a message.
  bool Add(const jobs::Job& job) {
    v1::CompileJob* const out = response_->add_jobs();
    FillJob(deps_, job, out);
    out->clear_diagnostics();
    bytes_ += out->ByteSizeLong();
    return bytes_ <= kMaxPageBytes;
  }

 private:
  const ApiDependencies& deps_;
  v1::ListCompileJobsResponse* const response_;
  size_t bytes_ = 0;
};

absl::Status ListByStore(const ApiDependencies& deps, const jobs::JobIndex::Query& wanted,
                         v1::ListCompileJobsResponse* response) {
  ASSIGN_OR_RETURN(const jobs::JobPage page,
                   deps.jobs->List({.states = wanted.filter.states,
                                    .before_id = wanted.after_id,
                                    .limit = wanted.limit,
                                    .tenant = wanted.filter.only_tenant}));
  PageWriter writer(deps, response);
  for (const jobs::Job& job : page.jobs) {
    if (job.tenant == executor::Canary::kTenant) continue;  // nobody asked for it
    if (writer.Add(job) || &job == &page.jobs.back()) continue;
    response->set_next_page_token(job.id);
    return absl::OkStatus();
  }
  response->set_next_page_token(page.next_before);
  return absl::OkStatus();
}

void TotalsToProto(const jobs::JobTotals& totals, v1::JobTotals* out) {
  out->set_jobs(totals.jobs);
  for (const auto& [state, count] : totals.states) {
    (*out->mutable_states())[std::string(jobs::JobStateName(state))] = count;
  }
  const auto copy = [](const std::map<std::string, int64_t>& from, auto* to) {
    to->insert(from.begin(), from.end());
  };
  copy(totals.cores, out->mutable_cores());
  copy(totals.frameworks, out->mutable_frameworks());
  copy(totals.tenants, out->mutable_tenants());
}

absl::Status ListByIndex(const ApiDependencies& deps, const jobs::JobIndex::Query& query,
                         v1::ListCompileJobsResponse* response) {
  const jobs::JobIndex::Page page = deps.index->Find(query);
  if (!page.knows_after) {
    jobs::FieldChecker check;
    check.Add("page_token", "names a job that is no longer kept; begin again without it");
    return check.ToStatus();
  }
  if (query.with_totals) TotalsToProto(page.totals, response->mutable_totals());
  PageWriter writer(deps, response);
  for (const std::string& id : page.ids) {
    const auto job = deps.jobs->Get(id);
    if (absl::IsNotFound(job.status())) continue;  // pruned meanwhile
    RETURN_IF_ERROR(job.status());
    // The index may be a moment behind.
    if (!jobs::Matches({.states = query.filter.states}, **job)) continue;
    if (writer.Add(**job) || &id == &page.ids.back()) continue;
    response->set_next_page_token(id);
    return absl::OkStatus();
  }
  if (page.has_more) response->set_next_page_token(page.ids.back());
  return absl::OkStatus();
}

}  // namespace

void FillJob(const ApiDependencies& deps, const jobs::Job& job, v1::CompileJob* out) {
  ToProto(job, job.state == jobs::JobState::kQueued ? deps.jobs->Wait(job.id) : std::nullopt, out);
}

void FillNewJob(const ApiDependencies& deps, const jobs::Job& job, v1::CompileJob* out) {
  ToProto(job, job.state == jobs::JobState::kQueued ? deps.jobs->WaitOfNew(job) : std::nullopt,
          out);
}

jobs::JobFilter ReadFilter(const auth::Caller& caller, const v1::ListCompileJobsRequest& request,
                           jobs::FieldChecker& check) {
  jobs::JobFilter filter;
  filter.hidden_tenant = executor::Canary::kTenant;
  if (!caller.rights.Has(auth::Right::kAdmin)) filter.only_tenant = caller.tenant;
  for (const int state : request.states()) {
    const auto known = FromProto(static_cast<v1::JobState>(state));
    if (known.has_value()) {
      filter.states.push_back(*known);
    } else {
      check.Add("states", absl::StrCat(state, " is not a state"));
    }
  }
  filter.cores = ReadValues("cores", request.cores(), kMaxFilterValues, check);
  filter.frameworks = ReadValues("frameworks", request.frameworks(), kMaxFilterValues, check);
  filter.tenants = ReadValues("tenants", request.tenants(), kMaxFilterValues, check);
  for (const std::string& label :
       ReadValues("labels", request.labels(), executor::kMaxLabels, check)) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos) {
      filter.labels.emplace_back(label, std::nullopt);
    } else {
      filter.labels.emplace_back(label.substr(0, equals), label.substr(equals + 1));
    }
  }
  if (request.text().size() > kMaxFilterTextBytes) {
    check.Add("text", absl::StrCat("has ", request.text().size(), " bytes, at most ",
                                   kMaxFilterTextBytes, " are allowed"));
  }
  filter.text = request.text();
  if (request.has_created_from()) filter.created_from = FromProto(request.created_from());
  if (request.has_created_before()) filter.created_before = FromProto(request.created_before());
  if (request.mine()) {
    filter.submitter = caller.identity;
    filter.only_tenant = caller.tenant;
  }
  return filter;
}

absl::Status ListJobs(const ApiDependencies& deps, const auth::Caller& caller,
                      const v1::ListCompileJobsRequest& request,
                      v1::ListCompileJobsResponse* response) {
  RETURN_IF_ERROR(deps.lifecycle->CheckReads());
  ASSIGN_OR_RETURN(const jobs::JobIndex::Query query, ReadQuery(caller, request));
  if (deps.index->is_complete()) return ListByIndex(deps, query, response);
  if (!NeedsIndex(request)) return ListByStore(deps, query, response);
  return IndexNotReady();
}

absl::Status IndexNotReady() {
  return jobs::ServiceError(
      absl::StatusCode::kResourceExhausted,
      "the server has just started and still reads its jobs; try again in a moment",
      {.reason = "SERVER_BUSY", .retry_delay = absl::Seconds(1)});
}

}  // namespace npuc::api
