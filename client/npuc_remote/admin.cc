// admin: what an operator does by hand.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/output.h"

namespace npuc::remote {
namespace {

// Nothing but its pages and its order: it matches every job.
bool MatchesAll(v1::ListCompileJobsRequest filter) {
  filter.clear_page_size();
  filter.clear_page_token();
  filter.clear_order();
  filter.clear_reverse();
  return filter.ByteSizeLong() == 0;
}

std::string DispatchText(const v1::DispatchState& state) {
  if (!state.paused()) return "jobs are started";
  return absl::StrCat("paused by ", Printable(state.by()), " since ", HumanTime(state.since()),
                      state.reason().empty() ? "" : ": ", Printable(state.reason(), 2000));
}

ExitCode SetDispatch(client::Client& client, const Options& options, Console& console) {
  const auto state = client.SetDispatch(options.admin_action == "pause", options.reason);
  if (!state.ok()) return console.Fail(state.status(), options.json);
  console.Out(options.json ? DispatchJson(*state) : DispatchText(*state));
  return kDone;
}

ExitCode CancelJobs(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<int64_t> cancelled = client.CancelJobs(options.filter, options.reason);
  if (!cancelled.ok()) return console.Fail(cancelled.status(), options.json);
  console.Out(options.json ? CountJson("cancelled", *cancelled)
                           : absl::StrCat(*cancelled, " cancelled"));
  return kDone;
}

ExitCode RequeueJobs(client::Client& client, const Options& options, Console& console) {
  const auto answer = client.RequeueJobs(options.filter);
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  for (const v1::RequeueFailure& failure : answer->failures()) {
    console.Err(Console::Tone::kBad, absl::StrCat(Printable(failure.job_id()), ": ",
                                                  Printable(failure.message(), 2000)));
  }
  console.Out(options.json
                  ? RequeueJson(*answer)
                  : absl::StrCat(answer->requeued(), " requeued, ", answer->already_requeued(),
                                 " had been before, ", answer->failures_size(), " could not be"));
  return answer->failures().empty() ? kDone : kRefused;
}

std::string Limit(bool is_set, int64_t limit) { return is_set ? absl::StrCat(limit) : "-"; }

ExitCode ListTenants(client::Client& client, const Options& options, Console& console) {
  const auto answer = client.ListTenants();
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  if (options.json) {
    for (const v1::TenantState& tenant : answer->tenants()) console.Out(TenantJson(tenant));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {
      {"TENANT", "WEIGHT", "QUEUED", "OF", "RUNNING", "OF", "STORED BYTES", "JOB BYTES"}};
  for (const v1::TenantState& tenant : answer->tenants()) {
    rows.push_back({Printable(tenant.name()), absl::StrCat(tenant.weight()),
                    absl::StrCat(tenant.queued_jobs()),
                    Limit(tenant.has_max_queued_jobs(), tenant.max_queued_jobs()),
                    absl::StrCat(tenant.running_jobs()),
                    Limit(tenant.has_max_running_jobs(), tenant.max_running_jobs()),
                    Limit(tenant.has_max_stored_bytes(), tenant.max_stored_bytes()),
                    Limit(tenant.has_max_job_bytes(), tenant.max_job_bytes())});
  }
  PrintTable(rows, console);
  console.Out(DispatchText(answer->dispatch()));
  return kDone;
}

ExitCode ListConnections(client::Client& client, const Options& options, Console& console) {
  const auto answer = client.ListConnections(options.limit);
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  std::vector<std::vector<std::string>> connections = {
      {"PROTOCOL", "PEER", "IDENTITY", "TENANT", "CALLS", "LAST", "SINCE", "RECEIVED", "SENT"}};
  for (const v1::Connection& one : answer->connections()) {
    if (options.json) console.Out(ConnectionJson(one, answer->node()));
    connections.push_back({Printable(one.protocol()), Printable(one.peer()), OrDash(one.identity()),
                           OrDash(one.tenant()), absl::StrCat(one.calls()),
                           OrDash(one.last_method()), HumanTime(one.since()),
                           HumanBytes(one.received_bytes()), HumanBytes(one.sent_bytes())});
  }
  std::vector<std::vector<std::string>> streams = {
      {"PROTOCOL", "METHOD", "PEER", "IDENTITY", "TENANT", "OBJECT", "SINCE", "BYTES"}};
  for (const v1::OpenStream& one : answer->streams()) {
    if (options.json) console.Out(StreamJson(one, answer->node()));
    streams.push_back({Printable(one.protocol()), Printable(one.method()), Printable(one.peer()),
                       OrDash(one.identity()), OrDash(one.tenant()), OrDash(one.object()),
                       HumanTime(one.since()), HumanBytes(one.bytes())});
  }
  if (options.json) return kDone;
  console.Out(absl::StrCat(answer->open_connections(), " connections are open at ",
                           Printable(answer->node()), ", ", answer->connections_size(), " shown"));
  PrintTable(connections, console);
  console.Out(absl::StrCat(answer->open_streams(), " streams are open, ", answer->streams_size(),
                           " shown"));
  PrintTable(streams, console);
  return kDone;
}

}  // namespace

ExitCode RunAdmin(client::Client& client, const Options& options, Console& console) {
  const std::string& action = options.admin_action;
  if (action == "tenants") return ListTenants(client, options, console);
  if (action == "connections") return ListConnections(client, options, console);
  if (action == "pause" || action == "resume") return SetDispatch(client, options, console);
  if (MatchesAll(options.filter) && !options.all) {
    console.Err(Console::Tone::kBad,
                absl::StrCat("npuc-remote: admin ", action,
                             " without a filter is about the jobs of everybody; say which "
                             "(--tenant, --label, --since ...), or --all"));
    return kWrongUsage;
  }
  return action == "cancel" ? CancelJobs(client, options, console)
                            : RequeueJobs(client, options, console);
}

ExitCode RunUsage(client::Client& client, const Options& options, Console& console) {
  const absl::StatusOr<std::vector<v1::TenantUsage>> usage = client.GetUsage(options.usage);
  if (!usage.ok()) return console.Fail(usage.status(), options.json);
  const bool csv = options.csv;
  std::vector<std::vector<std::string>> rows = {{"day", "tenant", "jobs", "succeeded", "failed",
                                                 "cache_hits", "processor_seconds",
                                                 "uploaded_bytes", "downloaded_bytes"}};
  for (const v1::TenantUsage& one : *usage) {
    if (options.json) console.Out(UsageJson(one));
    const auto bytes = [csv](int64_t count) {
      return csv ? absl::StrCat(count) : HumanBytes(count);
    };
    rows.push_back({Printable(one.day()), Printable(one.tenant()), absl::StrCat(one.jobs()),
                    absl::StrCat(one.succeeded()), absl::StrCat(one.failed()),
                    absl::StrCat(one.cache_hits()),
                    absl::StrFormat("%.3f", one.processor_seconds()), bytes(one.uploaded_bytes()),
                    bytes(one.downloaded_bytes())});
  }
  if (options.json) return kDone;
  if (!csv) {
    PrintTable(rows, console);
    return kDone;
  }
  // Names of tenants have neither commas nor quotes.
  for (const auto& row : rows) console.Out(absl::StrJoin(row, ","));
  return kDone;
}

}  // namespace npuc::remote
