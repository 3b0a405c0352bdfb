#ifndef NPUC_SERVER_EXECUTOR_JOB_TRACE_H_
#define NPUC_SERVER_EXECUTOR_JOB_TRACE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/jobs/job.h"
#include "server/observe/tracer.h"

namespace npuc::executor {

// The spans of a job, each a child of the one above it:
//
//   submit                     the call that brought it; a child of the client's span
//     cache lookup
//     job                      from its acceptance to its end
//       queue                  one for each time that it waited
//       run                    one for each attempt
//         cache lookup, inputs, store
//         worker
//           stage NAME         one for each stage of the compile
//
// The ids of `submit` and `job` follow from the job's id, so every daemon of a cluster names them
// alike.

inline constexpr size_t kMaxSpansOfARun = 256;

// Tells whether spans of the job are recorded. `tracer` may be null, here and below: then nothing
// is.
bool IsTraced(const observe::Tracer* tracer, const jobs::JobSpec& spec);

// Makes a transfer of the job a child of the span `submit`.
base::TraceContext TraceOf(const jobs::Job& job);

// A child of the span `job`.
observe::Span SpanOfJob(const jobs::Job& job, absl::string_view name, absl::Time start,
                        absl::Time end);

// When the parts of a submit were.
struct SubmitTimes {
  absl::Time start = absl::InfinitePast();
  absl::Time lookup_start = absl::InfinitePast();  // InfinitePast: the cache was not asked
  absl::Time lookup_end = absl::InfinitePast();
};
// Records the spans of a submit; the job was just stored.
void RecordSubmit(observe::Tracer* tracer, const jobs::Job& job, const SubmitTimes& times);
// Records the span of a job that has just ended.
void RecordJob(observe::Tracer* tracer, const jobs::Job& job);

// The spans of one run, recorded together when it is over. For one thread at a time.
class RunTrace {
 public:
  RunTrace(observe::Tracer* tracer, const jobs::Job& job, absl::string_view run_id);
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  bool is_on() const { return tracer_ != nullptr; }

  // A part of the run, which ends with this.
  class Part {
   public:
    Part(Part&& other) noexcept
        : trace_(std::exchange(other.trace_, nullptr)), index_(other.index_) {}
    Part& operator=(Part&&) = delete;
    ~Part();
    void Note(absl::string_view key, observe::Span::Value value);
    void Fail(absl::string_view why);

   private:
    friend class RunTrace;
    Part(RunTrace* trace, size_t index) : trace_(trace), index_(index) {}
    RunTrace* trace_;  // null: it is not recorded
    size_t index_;
  };
  Part Begin(absl::string_view name);
  // Begins the worker; its stages are parts of it.
  Part BeginWorker();
  void Stage(absl::string_view stage);

  // Records the run, and that the job has waited for it since a time. Without this call nothing is
  // recorded: the run was none.
  void Record(absl::Time waited_since, absl::string_view error);

 private:
  Part Add(absl::string_view name, const std::string& parent_id);
  void EndStage();

  observe::Tracer* const tracer_;  // null: not traced
  const jobs::Job& job_;
  observe::Span run_;
  std::vector<observe::Span> parts_;
  std::string worker_id_;  // of its span; empty: no worker runs
  std::string stage_name_;
  std::optional<Part> stage_;
};

}  // namespace npuc::executor

#endif  // NPUC_SERVER_EXECUTOR_JOB_TRACE_H_
