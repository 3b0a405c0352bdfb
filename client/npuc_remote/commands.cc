#include "client/npuc_remote/commands.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/lib/service_error.h"
#include "client/npuc_remote/output.h"
#include "client/npuc_remote/profile.h"
#include "compiler_core/base/status.h"

namespace npuc::remote {
namespace {

constexpr size_t kMaxTokenFileBytes = 64 << 10;

// What the transport's words for a server that was reached come from; empty for others.
absl::string_view HintAt(absl::string_view failure, bool tls) {
  if (!tls && absl::StrContains(failure, "Socket closed")) {
    return "; a server with TLS needs --ca FILE or --tls";
  }
  if (tls && absl::StrContains(failure, "wrong version number")) {
    return "; a server without TLS is called without --ca, --tls, --cert and --key";
  }
  if (tls && absl::StrContains(failure, "certificate verify failed")) {
    return "; the server's certificate is not signed by an authority in the file of --ca, or with "
           "--tls by one that this system trusts";
  }
  return "";
}

absl::StatusOr<client::ClientOptions> MakeClientOptions(const Options& options, Console& console) {
  client::ClientOptions made;
  made.server = options.server;
  made.tls = options.tls;
  made.ca_file = options.ca_file;
  made.cert_file = options.cert_file;
  made.key_file = options.key_file;
  made.token = options.token;
  made.traceparent = options.traceparent;
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(std::string token,
                     client::ReadWholeFile(options.token_file, kMaxTokenFileBytes));
    made.token = std::string(absl::StripAsciiWhitespace(token));
    if (made.token.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the token file '", options.token_file, "' is empty"));
    }
  }
  made.retry.reconnect_wait = options.patience;
  made.retry.connect_wait = std::min(made.retry.connect_wait, options.patience);
  made.retry.is_interrupted = [&console] { return console.IsInterrupted(); };
  made.retry.on_outage = [&console, tls = options.tls || !options.ca_file.empty()](
                             const absl::Status& failure, absl::Duration patience) {
    console.Err(absl::StrCat("npuc-remote: ", failure.message(), HintAt(failure.message(), tls),
                             "; trying again for up to ", absl::FormatDuration(patience)));
  };
  return made;
}

// "QUEUED, 3 before it, starts in about 40s"
std::string Standing(const v1::CompileJob& job) {
  std::string text = StateName(StateOf(job));
  if (job.has_queued()) {
    const std::string place = DescribePlace(PlaceOf(job.queued()), absl::Now());
    if (!place.empty()) absl::StrAppend(&text, ", ", place);
  }
  if (job.has_running() && !job.running().stage().empty()) {
    absl::StrAppendFormat(&text, ", %s, %.0f %%", Printable(job.running().stage()),
                          job.running().fraction() * 100);
  }
  if (job.cache_hit()) absl::StrAppend(&text, " (from the cache)");
  return text;
}

// "branch=main run=12"; "-" where there is none.
std::string LabelsText(const v1::CompileJob& job) {
  const std::map<std::string, std::string> sorted(job.spec().labels().begin(),
                                                  job.spec().labels().end());
  return OrDash(absl::StrJoin(sorted, " ", absl::PairFormatter("=")));
}

// From acceptance to the end.
std::string TookText(const v1::CompileJob& job) {
  if (!job.has_end_time()) return "-";
  const auto seconds = [](const google::protobuf::Timestamp& time) {
    return static_cast<double>(time.seconds()) + time.nanos() * 1e-9;
  };
  return absl::StrFormat("%.1fs", seconds(job.end_time()) - seconds(job.create_time()));
}

bool HasConnection(const Options& options) {
  return options.tls || !options.server.empty() || !options.ca_file.empty() ||
         !options.cert_file.empty() || !options.key_file.empty() || !options.token_file.empty();
}

ExitCode RunConfig(const Options& options, Console& console) {
  if (HasConnection(options)) {
    if (const absl::Status written = WriteProfile(options); !written.ok()) {
      console.Err(Console::Tone::kBad, absl::StrCat("npuc-remote: ", written.message()));
      return kWrongUsage;
    }
  }
  const absl::StatusOr<std::string> text = ReadProfile();
  if (!text.ok()) return console.Fail(text.status(), options.json);
  console.Out(absl::StrCat("# ", ProfilePath(), "\n", absl::StripAsciiWhitespace(*text)));
  return kDone;
}

ExitCode Dispatch(client::Client& client, const Options& options, Console& console) {
  switch (options.command) {
    case Command::kCompile:
    case Command::kSubmit:
      return RunCompile(client, options, console);
    case Command::kWatch:
      return RunWatch(client, options, console);
    case Command::kStatus:
      return RunStatus(client, options, console);
    case Command::kList:
      return RunList(client, options, console);
    case Command::kCancel:
      return RunCancel(client, options, console);
    case Command::kFetch:
      return RunFetch(client, options, console);
    case Command::kAdmin:
      return RunAdmin(client, options, console);
    case Command::kUsage:
      return RunUsage(client, options, console);
    case Command::kInspect:
      return RunInspect(client, options, console);
    case Command::kServer:
      return RunServer(client, options, console);
    case Command::kQuota:
      return RunQuota(client, options, console);
    case Command::kWhoami:
      return RunWhoami(client, options, console);
    case Command::kHealth:
      return RunHealth(client, options, console);
    case Command::kCores:
      return RunCores(client, options, console);
    case Command::kOps:
      return RunOps(client, options, console);
    case Command::kLogs:
      return RunLogs(client, options, console);
    case Command::kRetry:
      return RunRetry(client, options, console);
    case Command::kConfig:  // needs no server
    case Command::kCompletion:
    case Command::kMan:
      return kDone;  // printed while the command line was parsed
  }
  return kWrongUsage;
}

}  // namespace

void PrintTable(const std::vector<std::vector<std::string>>& rows, Console& console) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppend(&line, row[i], std::string(widths[i] - row[i].size() + 2, ' '));
    }
    console.Out(absl::StrCat(line, row.back()));
  }
}

ExitCode RunNpucRemote(const std::vector<std::string>& arguments, Console& console) {
  Parsed parsed = ParseCommandLine(arguments, console.out(), console.err());
  if (!parsed.options.has_value()) return parsed.exit_code;
  console.SetQuiet(parsed.options->quiet);
  if (parsed.options->command == Command::kConfig) return RunConfig(*parsed.options, console);
  if (const absl::Status filled = FillConnection(*parsed.options); !filled.ok()) {
    console.Err(Console::Tone::kBad, absl::StrCat("npuc-remote: ", filled.message()));
    return kWrongUsage;
  }
  if (parsed.options->server.empty()) {
    console.Err(Console::Tone::kBad,
                "npuc-remote: no server is named; give --server HOST:PORT (npucd's own default is "
                "127.0.0.1:8470), set NPUC_SERVER, or keep it with npuc-remote config --server");
    return kWrongUsage;
  }
  absl::StatusOr<client::ClientOptions> client_options =
      MakeClientOptions(*parsed.options, console);
  absl::StatusOr<std::unique_ptr<client::Client>> client =
      client_options.ok() ? client::Client::Create(*std::move(client_options))
                          : client_options.status();
  if (!client.ok()) {
    console.Err(Console::Tone::kBad, absl::StrCat("npuc-remote: ", client.status().message()));
    // A token that must not be sent is a refusal; everything else here is how it was called.
    return client.status().code() == absl::StatusCode::kFailedPrecondition ? kRefused : kWrongUsage;
  }
  return Dispatch(**client, *parsed.options, console);
}

ExitCode RunLogs(client::Client& client, const Options& options, Console& console) {
  const absl::Status watched = client.Watch(options.job, 1, [&](const v1::JobEvent& event) {
    if (!event.has_log_line()) return;
    console.Out(options.json ? EventJson(options.job, event) : event.log_line().text());
  });
  return watched.ok() ? kDone : console.Fail(watched, options.json);
}

ExitCode RunRetry(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::CompileJob> job = client.GetJob(options.job);
  if (!job.ok()) return console.Fail(job.status(), options.json);
  const absl::StatusOr<v1::CompileJob> again =
      client.Submit(job->spec(), {}, client::NewRequestId(), nullptr);
  if (!again.ok()) return console.Fail(again.status(), options.json);
  console.Out(options.json ? JobJson(*again) : Printable(again->job_id()));
  return kDone;
}

ExitCode RunStatus(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::CompileJob> job = client.GetJob(options.job);
  if (!job.ok()) return console.Fail(job.status(), options.json);
  if (options.json) {
    console.Out(JobJson(*job));
    return kDone;
  }
  console.Out(absl::StrCat("job       ", Printable(job->job_id())));
  console.Out(absl::StrCat("state     ", Standing(*job)));
  if (!ReasonOf(*job).empty()) {
    console.Out(absl::StrCat("reason    ", Printable(ReasonOf(*job), 2000)));
  }
  console.Out(absl::StrCat("config    ", Printable(job->spec().config_name())));
  console.Out(absl::StrCat("attempts  ", job->attempts()));
  console.Out(absl::StrCat("accepted  ", HumanTime(job->create_time())));
  console.Out(absl::StrCat("started   ", HumanTime(job->start_time())));
  console.Out(absl::StrCat("ended     ", HumanTime(job->end_time())));
  for (const DiagnosticLine& line : LinesOf(job->diagnostics())) console.Out(line.text);
  for (const v1::Artifact& artifact : job->artifacts()) {
    console.Out(absl::StrCat("artifact  ", Printable(artifact.name()), "  ",
                             HumanBytes(artifact.size_bytes())));
  }
  return kDone;
}

ExitCode RunList(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<std::vector<v1::CompileJob>> jobs =
      client.ListJobs(options.filter, options.limit);
  if (!jobs.ok()) return console.Fail(jobs.status(), options.json);
  if (options.json) {
    for (const v1::CompileJob& listed : *jobs) {
      // Lists come without diagnostics; a job's object has them wherever it is printed.
      const absl::StatusOr<v1::CompileJob> job = client.GetJob(listed.job_id());
      if (!job.ok()) return console.Fail(job.status(), options.json);
      console.Out(JobJson(*job));
    }
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "ACCEPTED", "TOOK", "TRIES", "CORE", "SUBMITTER", "CONFIG", "LABELS"}};
  for (const v1::CompileJob& job : *jobs) {
    rows.push_back({Printable(job.job_id()), StateName(StateOf(job)), HumanTime(job.create_time()),
                    TookText(job), absl::StrCat(job.attempts()), OrDash(job.core()),
                    OrDash(job.submitter()), Printable(job.spec().config_name()), LabelsText(job)});
  }
  PrintTable(rows, console);
  return kDone;
}

ExitCode RunCancel(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::CompileJob> job = client.CancelJob(options.job, options.reason);
  if (!job.ok()) return console.Fail(job.status(), options.json);
  if (options.json) {
    console.Out(JobJson(*job));
  } else {
    console.Out(absl::StrCat(
        Printable(job->job_id()), " ",
        job->has_cancelled() ? "is " : "had already ended: ", StateName(StateOf(*job))));
  }
  return kDone;
}

bool PrepareFolder(const std::string& folder, Console& console) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  }
  if (!error) return true;
  console.Err(absl::StrCat("npuc-remote: cannot put files into '", Printable(folder),
                           "': ", error.message()));
  return false;
}

ExitCode FetchArtifacts(client::Client& client, const v1::CompileJob& job,
                        absl::Span<const v1::Artifact> artifacts, const std::string& folder,
                        const Options& options, Console& console, bool* lost) {
  if (!PrepareFolder(folder, console)) return kWrongUsage;
  const absl::Status status =
      client.Fetch(job.job_id(), artifacts, folder, [&console](int64_t done, int64_t total) {
        console.progress().Show("fetching",
                                absl::StrCat(HumanBytes(done), " of ", HumanBytes(total)));
      });
  console.progress().Clear();
  if (lost != nullptr && client::ServiceErrorOf(status).reason == "ARTIFACT_LOST") {
    *lost = true;
    return kRefused;
  }
  if (!status.ok()) {
    console.Err(absl::StrCat("npuc-remote: to fetch them again: npuc-remote fetch ",
                             Printable(job.job_id())));
    return console.Fail(status, options.json);
  }
  if (!options.json) {
    for (const v1::Artifact& artifact : artifacts) {
      console.Out(
          absl::StrFormat("%s/%s  %s", folder, artifact.name(), HumanBytes(artifact.size_bytes())));
    }
  }
  return kDone;
}

ExitCode RunFetch(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::CompileJob> job = client.GetJob(options.job);
  if (!job.ok()) return console.Fail(job.status(), options.json);
  if (!HasEnded(*job)) {
    return console.Fail(absl::FailedPreconditionError(absl::StrCat(
                            "the job is ", StateName(StateOf(*job)), "; npuc-remote watch ",
                            Printable(job->job_id()), " waits for its end")),
                        options.json);
  }
  if (!job->has_succeeded()) {
    if (options.json) console.Out(JobJson(*job));
    ShowEnd(*job, console);
    return ExitCodeOf(*job);
  }
  std::vector<v1::Artifact> wanted(job->artifacts().begin(), job->artifacts().end());
  if (!options.names.empty()) {
    const auto named = [&](absl::string_view name) {
      return std::find(options.names.begin(), options.names.end(), name) != options.names.end();
    };
    for (const std::string& name : options.names) {
      const bool found = std::any_of(wanted.begin(), wanted.end(),
                                     [&](const v1::Artifact& a) { return a.name() == name; });
      if (found) continue;
      std::vector<std::string> known;
      for (const v1::Artifact& artifact : wanted) known.push_back(Printable(artifact.name()));
      return console.Fail(
          absl::NotFoundError(absl::StrCat("the job has no artifact '", Printable(name),
                                           "'; it has: ", absl::StrJoin(known, ", "))),
          options.json);
    }
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(),
                                [&](const v1::Artifact& a) { return !named(a.name()); }),
                 wanted.end());
  }
  const ExitCode code =
      FetchArtifacts(client, *job, wanted, options.output_folder.value_or("."), options, console);
  if (code == kDone && options.json) console.Out(JobJson(*job));
  return code;
}

ExitCode RunServer(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::GetServerInfoResponse> info = client.GetServerInfo();
  if (!info.ok()) return console.Fail(info.status(), options.json);
  if (options.json) {
    console.Out(ServerJson(*info));
    return kDone;
  }
  console.Out(absl::StrCat("version  ", Printable(info->version())));
  console.Out(absl::StrCat("build    ", Printable(info->compiler_build_id())));
  console.Out(absl::StrCat("cores    ", Printable(absl::StrJoin(info->cores(), " "))));
  console.Out(absl::StrCat("workers  ", info->workers()));
  console.Out(absl::StrCat("jobs     ", info->running_jobs(), " running, ", info->queued_jobs(),
                           " queued (at most ", info->max_queued_jobs(), ")"));
  console.Out(absl::StrCat("blobs    at most ", HumanBytes(info->max_blob_bytes()), " each"));
  console.Out(absl::StrCat("timeout  ",
                           absl::FormatDuration(absl::Seconds(info->default_timeout().seconds())),
                           " unless a job says otherwise"));
  for (const std::string& line : ReadinessLines(*info)) {
    console.Out(absl::StrCat("health   ", line));
  }
  return kDone;
}

ExitCode RunWhoami(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::GetCallerResponse> caller = client.GetCaller();
  if (!caller.ok()) return console.Fail(caller.status(), options.json);
  if (options.json) {
    console.Out(CallerJson(*caller));
    return kDone;
  }
  console.Out(absl::StrCat("identity  ", Printable(caller->identity())));
  console.Out(absl::StrCat("tenant    ", Printable(caller->tenant())));
  console.Out(absl::StrCat("rights    ", Printable(absl::StrJoin(caller->rights(), " "))));
  return kDone;
}

// Not ready is as good as not there, for who has work to send.
ExitCode RunHealth(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::GetServerInfoResponse> info = client.GetServerInfo();
  if (!info.ok()) return console.Fail(info.status(), options.json);
  if (info->conditions().empty()) {
    return console.Fail(absl::UnimplementedError("the server is of a version that does not tell; "
                                                 "ask /readyz at the port of its --http"),
                        options.json);
  }
  if (options.json) {
    console.Out(HealthJson(*info));
  } else {
    for (const std::string& line : ReadinessLines(*info)) console.Out(line);
  }
  return IsReady(*info) ? kDone : kUnreachable;
}

ExitCode RunCores(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<v1::GetServerInfoResponse> info = client.GetServerInfo();
  if (!info.ok()) return console.Fail(info.status(), options.json);
  for (const std::string& core : info->cores()) {
    console.Out(options.json ? CoreJson(core) : Printable(core));
  }
  return kDone;
}

ExitCode RunOps(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<std::vector<v1::Operator>> operators =
      client.ListOperators(options.core, options.framework);
  if (!operators.ok()) return console.Fail(operators.status(), options.json);
  for (const v1::Operator& op : *operators) {
    if (options.json) {
      console.Out(OperatorJson(op));
      continue;
    }
    console.Out(absl::StrCat(Printable(op.core()), " ", Printable(op.framework()), " ",
                             Printable(op.op())));
    for (const std::string& restriction : op.restrictions()) {
      console.Out(absl::StrCat("    ", Printable(restriction, 1000)));
    }
  }
  return kDone;
}

}  // namespace npuc::remote
