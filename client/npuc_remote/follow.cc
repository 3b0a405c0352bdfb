// compile, submit and watch: everything that follows a job.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/npuc_remote/batch.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/job_input.h"
#include "client/npuc_remote/output.h"

namespace npuc::remote {
namespace {

constexpr size_t kMaxLineBytes = 5000;
// So often are artifacts that the server lost compiled again.
constexpr int kMaxArtifactLosses = 2;

// Shows a job's events as they come: log lines on standard output, or on standard error where that
// is for JSON.
class EventPrinter {
 public:
  EventPrinter(std::string job_id, bool json_events, bool json, Console& console)
      : job_id_(std::move(job_id)), json_events_(json_events), json_(json), console_(console) {}

  void Show(const v1::JobEvent& event) {
    // Those of a live stream alone have no number, and no place in a log.
    if (json_events_ && event.seq() > 0) console_.Out(EventJson(job_id_, event));
    switch (event.event_case()) {
      case v1::JobEvent::kStateChanged:
        ShowState(event.state_changed());
        break;
      case v1::JobEvent::kQueuePosition:
        console_.progress().Show("queued", DescribePlace(event.queue_position(), absl::Now()));
        break;
      case v1::JobEvent::kProgress:
        // Off a terminal the phase alone: the log has a line for each stage.
        console_.progress().Show("compiling",
                                 absl::StrFormat("%s, %.0f %%", Printable(event.progress().stage()),
                                                 event.progress().fraction() * 100));
        break;
      case v1::JobEvent::kLogLine:
        Line(Printable(event.log_line().text(), kMaxLineBytes));
        break;
      default:
        break;  // artifacts and diagnostics are shown together at the end
    }
  }

 private:
  void Line(absl::string_view line) {
    if (console_.is_quiet()) return;
    if (json_) {
      console_.Err(line);
    } else {
      console_.Out(line);
    }
  }

  void ShowState(const v1::StateChanged& change) {
    if (change.state() == v1::JOB_STATE_QUEUED && !change.reason().empty()) {
      console_.Err(absl::StrCat("npuc-remote: the job waits again: ",
                                Printable(change.reason(), kMaxLineBytes)));
    }
    if (change.state() == v1::JOB_STATE_QUEUED) console_.progress().Show("queued");
    if (change.state() == v1::JOB_STATE_RUNNING) console_.progress().Show("running");
  }

  const std::string job_id_;
  const bool json_events_;
  const bool json_;
  Console& console_;
};

// After an interrupt or a lost server: the job goes on without this client.
void ShowWayBack(const std::string& job_id, Console& console) {
  const std::string shown = Printable(job_id);
  console.Err(absl::StrCat("npuc-remote: the job goes on without this client; to come back:\n",
                           "  npuc-remote watch ", shown, "\n", "  npuc-remote fetch ", shown, "\n",
                           "or to end it:\n", "  npuc-remote cancel ", shown));
}

ExitCode FailFollowing(const absl::Status& status, const std::string& job_id,
                       const Options& options, Console& console) {
  console.progress().Clear();
  const ExitCode code = console.Fail(status, options.json);
  if (code == kInterrupted || code == kUnreachable) ShowWayBack(job_id, console);
  return code;
}

std::vector<v1::Diagnostic> ToWire(const Diagnostics& diagnostics) {
  std::vector<v1::Diagnostic> wire;
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    wire.push_back(remote::ToWire(diagnostic));
  }
  return wire;
}

// Follows a job that was just submitted, to its artifacts. *lost: it succeeded, but the artifacts
// were found damaged or gone as they were fetched; nothing was said of that.
ExitCode Follow(client::Client& client, const std::string& job_id, const std::string& folder,
                const Options& options, Console& console, bool* lost) {
  EventPrinter printer(job_id, /*json_events=*/false, options.json, console);
  const absl::Status watched =
      client.Watch(job_id, 1, [&](const v1::JobEvent& event) { printer.Show(event); });
  if (!watched.ok()) return FailFollowing(watched, job_id, options, console);
  const absl::StatusOr<v1::CompileJob> job = client.GetJob(job_id);
  if (!job.ok()) return FailFollowing(job.status(), job_id, options, console);
  ShowEnd(*job, console);
  ExitCode code = ExitCodeOf(*job);
  if (job->has_succeeded()) {
    const std::vector<v1::Artifact> artifacts(job->artifacts().begin(), job->artifacts().end());
    code = FetchArtifacts(client, *job, artifacts, folder, options, console, lost);
    if (code != kDone) return code;
  }
  if (options.json) console.Out(JobJson(*job));
  return code;
}

// Why a job ended as it did, where its diagnostics, which are shown before, do not say it: a failed
// compile's message is the first error's text.
std::string ReasonBesideDiagnostics(const v1::CompileJob& job) {
  const std::string reason = ReasonOf(job);
  int errors = 0;
  bool said = false;
  for (const v1::Diagnostic& diagnostic : job.diagnostics()) {
    if (diagnostic.severity() != v1::SEVERITY_ERROR) continue;
    ++errors;
    said = said || absl::StartsWith(reason, RenderDiagnostic(TextOf(diagnostic)));
  }
  return said ? absl::StrCat(errors, " problem(s), see above") : reason;
}

}  // namespace

void ShowEnd(const v1::CompileJob& job, Console& console) {
  console.progress().Clear();
  for (const DiagnosticLine& line : LinesOf(job.diagnostics())) console.Err(line);
  std::string verdict =
      absl::StrCat("npuc-remote: job ", Printable(job.job_id()), " ", StateName(StateOf(job)));
  if (job.cache_hit()) absl::StrAppend(&verdict, " (from the cache)");
  if (const std::string reason = ReasonBesideDiagnostics(job); !reason.empty()) {
    absl::StrAppend(&verdict, ": ", Printable(reason, kMaxLineBytes));
  }
  console.Err(job.has_succeeded() ? Console::Tone::kGood : Console::Tone::kBad, verdict);
}

ExitCode RunCompile(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<std::vector<BatchItem>> items = ExpandConfigs(options.configs);
  if (!items.ok()) {
    console.Err(absl::StrCat("npuc-remote: ", items.status().message()));
    return kWrongUsage;
  }
  // A folder is a batch, however many configs it has: scripts then know what they get.
  if (items->size() > 1 || (*items)[0].config != options.configs[0]) {
    return RunBatch(client, *items, options, console);
  }
  Diagnostics diagnostics;
  absl::StatusOr<JobInput> input = ReadJobInput(options.configs[0], diagnostics);
  if (!input.ok()) {
    console.Fail(input.status(), options.json, ToWire(diagnostics));
    return kRefused;  // whatever the first problem's own code is
  }
  for (const Diagnostic& warning : diagnostics.list()) console.Err(warning.ToString());
  const absl::Status added = AddOptions(options, input->spec);
  if (!added.ok()) {
    console.Fail(added, options.json);
    return kWrongUsage;
  }
  const bool detach = options.detach || options.command == Command::kSubmit;
  const std::string folder = options.output_folder.value_or(input->output_folder);
  // Before the compile rather than after it.
  if (!detach && !PrepareFolder(folder, console)) return kWrongUsage;
  const auto show_upload = [&console](int64_t done, int64_t total) {
    console.progress().Show(
        "uploading", absl::StrFormat("%d %%  (%s of %s)", total > 0 ? done * 100 / total : 100,
                                     HumanBytes(done), HumanBytes(total)));
  };
  for (int losses = 0;; ++losses) {
    const absl::StatusOr<v1::CompileJob> job =
        client.Submit(input->spec, input->files, client::NewRequestId(), show_upload);
    console.progress().Clear();
    if (!job.ok()) {
      const ExitCode code = console.Fail(job.status(), options.json);
      if (code == kInterrupted) {
        console.Err(
            "npuc-remote: no job was made; the same command goes on with the upload where "
            "it stopped");
      }
      return code;
    }
    if (detach) {
      console.Out(options.json ? JobJson(*job) : Printable(job->job_id()));
      return kDone;
    }
    console.Err(absl::StrCat("npuc-remote: job ", Printable(job->job_id())));
    bool lost = false;
    const ExitCode code = Follow(client, job->job_id(), folder, options, console,
                                 losses < kMaxArtifactLosses ? &lost : nullptr);
    if (!lost) return code;
    // The server has thrown the damaged result away, so that the same job compiles now.
    console.Err("npuc-remote: the server's copy of the artifacts is damaged; compiling again");
  }
}

ExitCode RunWatch(client::Client& client, const Options& options, Console& console) {
  EventPrinter printer(options.job, /*json_events=*/options.json, options.json, console);
  const absl::Status watched = client.Watch(
      options.job, options.from_seq, [&](const v1::JobEvent& event) { printer.Show(event); });
  if (!watched.ok()) return FailFollowing(watched, options.job, options, console);
  const absl::StatusOr<v1::CompileJob> job = client.GetJob(options.job);
  if (!job.ok()) return FailFollowing(job.status(), options.job, options, console);
  ShowEnd(*job, console);
  if (job->has_succeeded()) {
    console.Err(
        absl::StrCat("npuc-remote: its artifacts: npuc-remote fetch ", Printable(options.job)));
  }
  return ExitCodeOf(*job);
}

}  // namespace npuc::remote
