#include "server/executor/job_trace.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/executor/executor_test_util.h"

namespace npuc::executor {
namespace {

using ::testing::UnorderedElementsAre;

jobs::Job TracedJob() {
  jobs::Job job;
  job.id = "j00000000000000000000000001";
  job.tenant = "a";
  job.spec.core = "GRUS";
  job.spec.trace = {.trace_id = "0af7651916cd43dd8448eb211c80319c",
                    .span_id = "b7ad6b7169203331",
                    .sampled = true};
  job.create_time = absl::FromUnixSeconds(100);
  job.end_time = absl::FromUnixSeconds(110);
  job.state = jobs::JobState::kSucceeded;
  return job;
}

TEST(JobTraceTest, SpansHangTogether) {
  FakeTracer tracer;
  jobs::Job job = TracedJob();
  RecordSubmit(&tracer, job,
               {.start = absl::FromUnixSeconds(99),
                .lookup_start = absl::FromUnixSeconds(99),
                .lookup_end = absl::FromUnixSeconds(100)});
  {
    RunTrace trace(&tracer, job, "run-1");
    {
      auto lookup = trace.Begin("cache lookup");
      lookup.Note("npuc.cache.hit", false);
    }
    {
      auto worker = trace.BeginWorker();
      trace.Stage("import");
      trace.Stage("import");
      trace.Stage("lower");
    }
    trace.Stage("after the worker");
    trace.Begin("store").Fail("no room");
    trace.Record(job.create_time, "");
  }
  job.attempts = 1;
  RecordJob(&tracer, job);
  EXPECT_THAT(tracer.Tree(),
              UnorderedElementsAre("? > submit", "submit > cache lookup", "submit > job",
                                   "job > queue", "job > run", "run > cache lookup", "run > worker",
                                   "worker > stage import", "worker > stage lower", "run > store"));
  EXPECT_EQ(tracer.Named("submit").parent_id, "b7ad6b7169203331");
  EXPECT_TRUE(tracer.Named("store").is_error);
  EXPECT_FALSE(tracer.Named("run").is_error);
  for (const observe::Span& span : tracer.spans()) {
    EXPECT_EQ(span.trace_id, "0af7651916cd43dd8448eb211c80319c") << span.name;
    EXPECT_LE(span.start, span.end) << span.name;
  }
}

TEST(JobTraceTest, WhatIsNotTracedIsNotRecorded) {
  FakeTracer tracer;
  jobs::Job job = TracedJob();
  job.spec.trace.sampled = false;
  RecordSubmit(&tracer, job, {.start = absl::FromUnixSeconds(99)});
  RunTrace untraced(&tracer, job, "run-1");
  EXPECT_FALSE(untraced.is_on());
  auto part = untraced.BeginWorker();
  untraced.Stage("import");
  part.Fail("x");
  untraced.Record(job.create_time, "x");
  RecordJob(&tracer, job);
  EXPECT_FALSE(RunTrace(nullptr, TracedJob(), "run-1").is_on());
  {
    // Nobody gave it the job: it was no run.
    const jobs::Job traced = TracedJob();
    RunTrace claimed(&tracer, traced, "run-1");
    const auto lookup = claimed.Begin("cache lookup");
  }
  EXPECT_TRUE(tracer.spans().empty());
}

TEST(JobTraceTest, AJobThatNeverRanHasWaited) {
  FakeTracer tracer;
  jobs::Job job = TracedJob();
  job.state = jobs::JobState::kCancelled;
  job.reason = "not needed";
  RecordJob(&tracer, job);
  EXPECT_THAT(tracer.Tree(), UnorderedElementsAre("? > job", "job > queue"));
  EXPECT_TRUE(tracer.Named("job").is_error);
  EXPECT_EQ(tracer.Named("job").error, "not needed");
}

TEST(JobTraceTest, ARunHasABoundedNumberOfSpans) {
  FakeTracer tracer;
  const jobs::Job job = TracedJob();
  RunTrace trace(&tracer, job, "run-1");
  {
    const auto worker = trace.BeginWorker();
    for (int i = 0; i < 1000; ++i) trace.Stage(absl::StrCat(i));
  }
  trace.Record(job.create_time, "");
  EXPECT_EQ(tracer.spans().size(), kMaxSpansOfARun + 2);
}

}  // namespace
}  // namespace npuc::executor
