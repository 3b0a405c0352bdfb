#include "server/executor/job_trace.h"

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"

namespace npuc::executor {
namespace {

using observe::Span;

constexpr size_t kSpanIdBytes = 16;

std::string DerivedId(const jobs::Job& job, absl::string_view name) {
  return Sha256Hex(absl::StrCat("npuc.", name, "/", job.id)).substr(0, kSpanIdBytes);
}

std::string SubmitId(const jobs::Job& job) { return DerivedId(job, "submit"); }
std::string JobId(const jobs::Job& job) { return DerivedId(job, "job"); }

Span Named(const jobs::Job& job, absl::string_view name, std::string span_id, std::string parent_id,
           absl::Time start, absl::Time end) {
  return {.trace_id = job.spec.trace.trace_id,
          .span_id = std::move(span_id),
          .parent_id = std::move(parent_id),
          .name = std::string(name),
          .start = start,
          .end = end};
}

}  // namespace

bool IsTraced(const observe::Tracer* tracer, const jobs::JobSpec& spec) {
  return tracer != nullptr && spec.trace.sampled && !spec.trace.empty();
}

base::TraceContext TraceOf(const jobs::Job& job) {
  base::TraceContext trace = job.spec.trace;
  trace.span_id = SubmitId(job);
  return trace;
}

Span SpanOfJob(const jobs::Job& job, absl::string_view name, absl::Time start, absl::Time end) {
  return Named(job, name, observe::NewSpanId(), JobId(job), start, end);
}

void RecordSubmit(observe::Tracer* tracer, const jobs::Job& job, const SubmitTimes& times) {
  if (!IsTraced(tracer, job.spec)) return;
  Span submit =
      Named(job, "submit", SubmitId(job), job.spec.trace.span_id, times.start, tracer->Now());
  submit.kind = Span::Kind::kServer;
  submit.attributes = {{"npuc.job.id", job.id}, {"npuc.tenant", job.tenant}};
  tracer->Record(std::move(submit));
  if (times.lookup_start == absl::InfinitePast()) return;
  Span lookup = Named(job, "cache lookup", observe::NewSpanId(), SubmitId(job), times.lookup_start,
                      times.lookup_end);
  lookup.attributes = {{"npuc.cache.hit", job.cache_hit}};
  tracer->Record(std::move(lookup));
}

void RecordJob(observe::Tracer* tracer, const jobs::Job& job) {
  if (!IsTraced(tracer, job.spec)) return;
  // It was never run: the cache had its result, an equal job's run gave it, or it was ended.
  if (job.attempts == 0 && job.end_time > job.create_time) {
    tracer->Record(SpanOfJob(job, "queue", job.create_time, job.end_time));
  }
  Span span = Named(job, "job", JobId(job), SubmitId(job), job.create_time, job.end_time);
  span.attributes = {{"npuc.job.id", job.id},
                     {"npuc.tenant", job.tenant},
                     {"npuc.core", job.spec.core},
                     {"npuc.framework", job.spec.framework},
                     {"npuc.state", std::string(jobs::JobStateName(job.state))},
                     {"npuc.attempts", int64_t{job.attempts}},
                     {"npuc.cache.hit", job.cache_hit}};
  span.is_error = job.state != jobs::JobState::kSucceeded;
  if (span.is_error) span.error = job.reason;
  tracer->Record(std::move(span));
}

RunTrace::RunTrace(observe::Tracer* tracer, const jobs::Job& job, absl::string_view run_id)
    : tracer_(IsTraced(tracer, job.spec) ? tracer : nullptr), job_(job) {
  if (!is_on()) return;
  run_ = SpanOfJob(job, "run", tracer_->Now(), absl::InfinitePast());
  run_.attributes = {{"npuc.run.id", std::string(run_id)},
                     {"npuc.attempt", int64_t{job.attempts} + 1}};
}

RunTrace::Part RunTrace::Add(absl::string_view name, const std::string& parent_id) {
  if (!is_on() || parts_.size() >= kMaxSpansOfARun) return {nullptr, 0};
  parts_.push_back(
      Named(job_, name, observe::NewSpanId(), parent_id, tracer_->Now(), absl::InfinitePast()));
  return {this, parts_.size() - 1};
}

RunTrace::Part RunTrace::Begin(absl::string_view name) { return Add(name, run_.span_id); }

RunTrace::Part RunTrace::BeginWorker() {
  Part worker = Begin("worker");
  if (worker.trace_ != nullptr) worker_id_ = parts_[worker.index_].span_id;
  return worker;
}

void RunTrace::Stage(absl::string_view stage) {
  if (worker_id_.empty() || stage == stage_name_) return;
  EndStage();
  stage_name_ = std::string(stage);
  stage_.emplace(Add(absl::StrCat("stage ", stage), worker_id_));
}

void RunTrace::EndStage() {
  stage_.reset();
  stage_name_.clear();
}

RunTrace::Part::~Part() {
  if (trace_ == nullptr) return;
  Span& span = trace_->parts_[index_];
  if (!span.span_id.empty() && span.span_id == trace_->worker_id_) {
    trace_->EndStage();
    trace_->worker_id_.clear();
  }
  span.end = trace_->tracer_->Now();
}

void RunTrace::Part::Note(absl::string_view key, Span::Value value) {
  if (trace_ == nullptr) return;
  trace_->parts_[index_].attributes.emplace_back(key, std::move(value));
}

void RunTrace::Part::Fail(absl::string_view why) {
  if (trace_ == nullptr) return;
  trace_->parts_[index_].is_error = true;
  trace_->parts_[index_].error = std::string(why);
}

void RunTrace::Record(absl::Time waited_since, absl::string_view error) {
  if (!is_on()) return;
  EndStage();
  run_.end = tracer_->Now();
  run_.is_error = !error.empty();
  run_.error = std::string(error);
  tracer_->Record(SpanOfJob(job_, "queue", waited_since, run_.start));
  for (Span& part : parts_) tracer_->Record(std::move(part));
  parts_.clear();
  tracer_->Record(run_);
}

}  // namespace npuc::executor
