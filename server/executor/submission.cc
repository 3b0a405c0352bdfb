#include "server/executor/submission.h"

#include <algorithm>
#include <future>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "server/executor/cache_inputs.h"
#include "server/jobs/service_error.h"

namespace npuc::executor {
namespace {

void CheckName(jobs::FieldChecker& check, absl::string_view field, absl::string_view name) {
  if (name.size() > kMaxNameBytes) {
    check.Add(field,
              absl::StrCat("has ", name.size(), " bytes, at most ", kMaxNameBytes, " are allowed"));
  }
}

void CheckDigest(jobs::FieldChecker& check, absl::string_view field, const base::InputFile& file) {
  if (!cache::IsValidSha256(file.sha256)) {
    check.Add(
        absl::StrCat(field, ".sha256"),
        absl::StrCat("'", Printable(file.sha256, 80), "' is not 64 lower-case hexadecimal digits"));
  }
}

void CheckLabels(jobs::FieldChecker& check, const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) {
    check.Add("spec.labels",
              absl::StrCat(labels.size(), " pairs, at most ", kMaxLabels, " are allowed"));
    return;
  }
  for (const auto& [key, value] : labels) {
    if (key.empty() || key.size() > kMaxLabelKeyBytes || value.size() > kMaxLabelValueBytes) {
      check.Add("spec.labels", absl::StrCat("'", Printable(key, 64), "' with ", value.size(),
                                            " bytes: keys have 1 to ", kMaxLabelKeyBytes,
                                            " bytes, values at most ", kMaxLabelValueBytes));
    }
  }
}

void CheckRequestId(jobs::FieldChecker& check, absl::string_view id) {
  const bool characters = std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (id.size() > kMaxRequestIdBytes || !characters) {
    check.Add("request_id", absl::StrCat("'", Printable(id, 80), "' is not 1 to ",
                                         kMaxRequestIdBytes, " characters of [A-Za-z0-9._-]"));
  }
}

absl::Status CheckFields(const SubmitRequest& request) {
  jobs::FieldChecker check;
  CheckRequestId(check, request.request_id);
  if (request.config_text.empty() || request.config_text.size() > kMaxConfigBytes) {
    check.Add("spec.config_text", absl::StrCat("has ", request.config_text.size(), " bytes, 1 to ",
                                               kMaxConfigBytes, " are allowed"));
  }
  CheckName(check, "spec.config_name", request.config_name);
  CheckDigest(check, "spec.model", request.model);
  if (request.side_inputs.size() > kMaxSideInputs) {
    check.Add("spec.side_inputs", absl::StrCat(request.side_inputs.size(), " entries, at most ",
                                               kMaxSideInputs, " are allowed"));
  } else {
    for (size_t i = 0; i < request.side_inputs.size(); ++i) {
      const std::string field = absl::StrCat("spec.side_inputs[", i, "]");
      CheckName(check, absl::StrCat(field, ".role"), request.side_inputs[i].role);
      CheckName(check, absl::StrCat(field, ".name"), request.side_inputs[i].name);
      CheckDigest(check, absl::StrCat(field, ".digest"), request.side_inputs[i]);
    }
  }
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    check.Add("spec.priority",
              absl::StrCat(request.priority, " is not in ", -kMaxPriority, " to ", kMaxPriority));
  }
  CheckLabels(check, request.labels);
  if (request.timeout.has_value() &&
      (*request.timeout < kMinTimeout || *request.timeout > kMaxTimeout)) {
    check.Add("spec.timeout",
              absl::StrCat(absl::FormatDuration(*request.timeout), " is not in 1 s to 7 days"));
  }
  // To the end of the year 9999, as protobuf's Timestamp has it.
  if (const auto& time = request.model_info_time_seconds;
      time.has_value() && (*time < 0 || *time > 253402300799)) {
    check.Add("spec.model_info_time", "is not in the years 1970 to 9999");
  }
  return check.ToStatus();
}

// The files that the config names and those that came must be the same, by role.
absl::Status CheckRoles(const SubmitRequest& request, const ParsedConfig& config) {
  jobs::FieldChecker check;
  std::set<std::string> named;
  for (const ConfigFile& file : config.files) named.insert(file.role);
  std::set<std::string> given = {base::kModelRole};
  for (size_t i = 0; i < request.side_inputs.size(); ++i) {
    const std::string& role = request.side_inputs[i].role;
    const std::string field = absl::StrCat("spec.side_inputs[", i, "].role");
    if (!given.insert(role).second) {
      check.Add(field, absl::StrCat("'", Printable(role), "' is given twice"));
    } else if (!named.contains(role)) {
      check.Add(field, absl::StrCat("the config does not name a file as '", Printable(role), "'"));
    }
  }
  for (const ConfigFile& file : config.files) {
    if (given.contains(file.role)) continue;
    check.Add("spec.side_inputs",
              absl::StrCat("the config names '", Printable(file.path), "' as ", file.role,
                           " (line ", file.line, "), which is not among the side inputs"));
  }
  return check.ToStatus();
}

// Tells whether two requests with one id are the same request.
std::string RequestSha256(const SubmitRequest& request) {
  // The model's role and name are the config's.
  std::vector<std::string> parts = {request.config_text, request.config_name, request.model.sha256,
                                    absl::StrCat(request.model.size_bytes)};
  for (const base::InputFile& side : request.side_inputs) {
    parts.insert(parts.end(), {side.role, side.name, side.sha256, absl::StrCat(side.size_bytes)});
  }
  // The settings and the labels follow; no label has the empty key.
  parts.insert(parts.end(), {"", absl::StrCat(request.priority), request.no_cache ? "1" : "0"});
  parts.push_back(request.timeout.has_value() ? absl::FormatDuration(*request.timeout) : "");
  parts.push_back(request.model_info_time_seconds.has_value()
                      ? absl::StrCat(*request.model_info_time_seconds)
                      : "");
  for (const auto& [key, value] : request.labels) parts.insert(parts.end(), {key, value});
  return cache::Sha256OfParts(parts);
}

std::string BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

}  // namespace

Submission::Submission(SubmissionOptions options, jobs::JobService* jobs, cache::InputStore* inputs,
                       cache::ResultCache* cache, InputHolds* holds)
    : options_(std::move(options)), jobs_(jobs), inputs_(inputs), cache_(cache), holds_(holds) {}

absl::Status Submission::CheckQuota(const SubmitRequest& request) const {
  if (options_.max_job_bytes == nullptr) return absl::OkStatus();
  const std::optional<int64_t> limit = options_.max_job_bytes(request.tenant);
  // Unsigned and saturating: the sizes are the client's word until the blobs are looked at.
  uint64_t bytes = request.model.size_bytes;
  for (const base::InputFile& side : request.side_inputs) {
    bytes += std::min(side.size_bytes, std::numeric_limits<uint64_t>::max() - bytes);
  }
  if (!limit.has_value() || bytes <= static_cast<uint64_t>(*limit)) return absl::OkStatus();
  const std::string found = absl::StrCat(bytes, " of ", *limit, " bytes");
  return jobs::ServiceError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("the model and side inputs of the job have ", bytes, " bytes, at most ", *limit,
                   " are allowed for tenant '", request.tenant, "'"),
      {.reason = "QUOTA_EXCEEDED", .quota_violations = {{"job_bytes", found}}});
}

absl::StatusOr<ParsedConfig> Submission::ReadConfig(const SubmitRequest& request) const {
  Diagnostics diagnostics;
  absl::StatusOr<ParsedConfig> config =
      options_.parse_config(request.config_text, request.config_name, diagnostics);
  if (!config.ok()) {
    jobs::FieldChecker check;
    for (const Diagnostic& diagnostic : diagnostics.list()) {
      if (diagnostic.severity() == Severity::kError) {
        check.Add("spec.config_text", diagnostic.ToString());
      }
    }
    if (check.ok()) check.Add("spec.config_text", config.status().message());
    return check.ToStatus("INVALID_CONFIG");
  }
  return config;
}

absl::Status Submission::AcquireInputs(const SubmitRequest& request, const ParsedConfig& config,
                                       jobs::JobSpec& spec, InputHolds::Holds& holds) {
  std::vector<base::InputFile> inputs = {request.model};
  inputs.front().role = base::kModelRole;
  inputs.front().name = config.options.model_name;
  for (const base::InputFile& side : request.side_inputs) {
    inputs.push_back(side);
    inputs.back().name = BaseName(side.name);
  }
  jobs::ErrorDetails missing{.reason = "BLOB_MISSING"};
  for (base::InputFile& wanted : inputs) {
    auto held = inputs_->Acquire(request.tenant, wanted.sha256);
    if (!held.ok() && !absl::IsNotFound(held.status())) return held.status();
    if (!held.ok() || held->info.size_bytes != wanted.size_bytes) {
      missing.precondition_violations.push_back(
          {"BLOB_MISSING", wanted.sha256,
           absl::StrCat(wanted.role, " of ", wanted.size_bytes,
                        " bytes is not uploaded; upload it with UploadBlob")});
      continue;
    }
    wanted.md5 = held->info.md5;
    spec.inputs.push_back(std::move(wanted));
    holds.push_back(std::move(held->hold));
  }
  if (missing.precondition_violations.empty()) return absl::OkStatus();
  return jobs::ServiceError(absl::StatusCode::kFailedPrecondition,
                            absl::StrCat(missing.precondition_violations.size(), " of ",
                                         inputs.size(), " blobs are not uploaded"),
                            missing);
}

// Metadata that cannot be read costs a compile, not a job.
void Submission::TakeResult(const cache::CachedResult& result, jobs::NewJob& job) {
  auto diagnostics = jobs::DecodeResultMetadata(result.metadata);
  if (!diagnostics.ok()) return;
  job.cached = jobs::NewJob::Cached{.artifacts = ToJobArtifacts(result.artifacts),
                                    .diagnostics = *std::move(diagnostics)};
}

absl::StatusOr<Submission::Prepared> Submission::Prepare(const SubmitRequest& request) {
  RETURN_IF_ERROR(CheckFields(request));
  RETURN_IF_ERROR(CheckQuota(request));
  ASSIGN_OR_RETURN(const ParsedConfig config, ReadConfig(request));
  RETURN_IF_ERROR(CheckRoles(request, config));
  Prepared prepared;
  jobs::NewJob& job = prepared.job;
  RETURN_IF_ERROR(AcquireInputs(request, config, job.spec, prepared.holds));
  job.tenant = request.tenant;
  job.request_id = request.request_id;
  job.request_sha256 = RequestSha256(request);
  job.spec.config_name = request.config_name;
  job.spec.priority = static_cast<int32_t>(request.priority);
  job.spec.labels = request.labels;
  job.spec.timeout = request.timeout.value_or(options_.default_timeout);
  job.spec.no_cache = request.no_cache;
  job.spec.model_info_time_seconds = request.model_info_time_seconds;
  job.spec.trace = request.trace;
  job.spec.pinned_to = request.pinned_to;
  job.spec.core = config.options.core;
  job.spec.framework = FrameworkName(config.options.framework);
  job.spec.submitter = request.submitter;
  job.config_text = request.config_text;
  job.output_file = config.options.output_file;
  const std::string scope =
      options_.result_scope == nullptr ? job.tenant : options_.result_scope(job.tenant);
  ASSIGN_OR_RETURN(const cache::CacheKey key,
                   ResultKey(scope, job.spec, config.options, options_.compiler_build_id));
  job.cache_key = key.ToString();
  if (request.no_cache) return prepared;
  LookUp(key, prepared);
  return prepared;
}

// A cache that cannot be read costs a compile, not a job.
void Submission::LookUp(const cache::CacheKey& key, Prepared& prepared) const {
  const bool is_traced = IsTraced(options_.tracer, prepared.job.spec);
  if (is_traced) prepared.times.lookup_start = options_.tracer->Now();
  const auto result = cache_->Lookup(key);
  if (result.ok() && result->has_value()) TakeResult(**result, prepared.job);
  if (is_traced) prepared.times.lookup_end = options_.tracer->Now();
}

// A repeat is answered although its blobs may be gone by now, or what is allowed have changed.
absl::StatusOr<jobs::JobService::Submitted> Submission::AnswerUnprepared(
    const SubmitRequest& request, const absl::Status& why) {
  if (!CheckFields(request).ok()) return why;
  ASSIGN_OR_RETURN(
      std::shared_ptr<const jobs::Job> earlier,
      jobs_->FindSubmitted(request.tenant, request.request_id, RequestSha256(request)));
  if (earlier == nullptr) return why;
  return jobs::JobService::Submitted{std::move(earlier), true};
}

void Submission::HoldInputs(const jobs::Job& job, InputHolds::Holds holds) {
  if (holds_ == nullptr || jobs::IsTerminal(job.state)) return;
  holds_->Add(job.id, std::move(holds));
  // It may have ended in between, and then nobody else lets go.
  const auto now = jobs_->Get(job.id);
  if (!now.ok() || jobs::IsTerminal((*now)->state)) holds_->Remove(job.id);
}

void Submission::Submit(const SubmitRequest& request, jobs::JobService::Done done) {
  const bool is_traced = options_.tracer != nullptr && request.trace.sampled;
  const absl::Time start = is_traced ? options_.tracer->Now() : absl::InfinitePast();
  absl::StatusOr<Prepared> prepared = Prepare(request);
  if (!prepared.ok()) return done(AnswerUnprepared(request, prepared.status()));
  prepared->times.start = start;
  jobs_->Submit(
      std::move(prepared->job),
      [this, holds = std::move(prepared->holds), times = prepared->times,
       done = std::move(done)](absl::StatusOr<jobs::JobService::Submitted> submitted) mutable {
        if (submitted.ok() && !submitted->already_existed) {
          HoldInputs(*submitted->job, std::move(holds));
          RecordSubmit(options_.tracer, *submitted->job, times);
        }
        done(std::move(submitted));
      });
}

absl::StatusOr<jobs::JobService::Submitted> Submission::SubmitAndWait(
    const SubmitRequest& request) {
  std::promise<absl::StatusOr<jobs::JobService::Submitted>> answer;
  std::future<absl::StatusOr<jobs::JobService::Submitted>> answered = answer.get_future();
  Submit(request, [&answer](absl::StatusOr<jobs::JobService::Submitted> submitted) {
    answer.set_value(std::move(submitted));
  });
  return answered.get();
}

}  // namespace npuc::executor
