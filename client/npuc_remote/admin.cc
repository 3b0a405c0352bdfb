// admin: what an operator does by hand.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/output.h"
#include "compiler_core/base/digest.h"

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

std::string CordonText(const v1::CordonState& state) {
  const std::string node = Printable(state.node());
  if (!state.cordoned()) return absl::StrCat(node, " starts jobs");
  return absl::StrCat(node, " is cordoned by ", Printable(state.by()), " since ",
                      HumanTime(state.since()), state.reason().empty() ? "" : ": ",
                      Printable(state.reason(), 2000));
}

// The one tenant that --tenant names; nullopt, and it says so, where it names none or several.
std::optional<std::string> TenantOf(const Options& options, Console& console) {
  if (options.filter.tenants_size() == 1) return options.filter.tenants(0);
  console.Err(Console::Tone::kBad, absl::StrCat("npuc-remote: admin ", options.admin_action,
                                                " wants one --tenant NAME"));
  return std::nullopt;
}

google::protobuf::Duration ToProto(absl::Duration span) {
  google::protobuf::Duration out;
  out.set_seconds(absl::ToInt64Seconds(span));
  return out;
}

ExitCode SetCordon(client::Client& client, const Options& options, Console& console) {
  const auto state = client.SetCordon(options.admin_action == "cordon", options.reason);
  if (!state.ok()) return console.Fail(state.status(), options.json);
  console.Out(options.json ? CordonJson(*state) : CordonText(*state));
  return kDone;
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

std::string BytesLimit(bool is_set, int64_t limit) { return is_set ? HumanBytes(limit) : "-"; }

std::string TemporaryText(const v1::TenantState& tenant) {
  const v1::TemporaryLimits& temporary = tenant.temporary();
  return absl::StrCat(Printable(tenant.name()), ": ",
                      Printable(temporary.limits().ShortDebugString(), 2000), " until ",
                      HumanTime(temporary.end_time()), ", set by ", Printable(temporary.by()),
                      temporary.reason().empty() ? "" : ": ", Printable(temporary.reason(), 2000));
}

void PrintTenants(const std::vector<v1::TenantState>& tenants, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"TENANT", "WEIGHT", "QUEUED", "OF", "RUNNING",
                                                 "OF", "STORED", "OF", "UPLOADS", "A JOB",
                                                 "RESULTS", "UPLOAD/S", "CALLS/S"}};
  for (const v1::TenantState& tenant : tenants) {
    rows.push_back({Printable(tenant.name()), absl::StrCat(tenant.weight()),
                    absl::StrCat(tenant.queued_jobs()),
                    Limit(tenant.has_max_queued_jobs(), tenant.max_queued_jobs()),
                    absl::StrCat(tenant.running_jobs()),
                    Limit(tenant.has_max_running_jobs(), tenant.max_running_jobs()),
                    HumanBytes(tenant.stored_bytes()),
                    BytesLimit(tenant.has_max_stored_bytes(), tenant.max_stored_bytes()),
                    absl::StrCat(tenant.open_uploads()),
                    BytesLimit(tenant.has_max_job_bytes(), tenant.max_job_bytes()),
                    BytesLimit(tenant.has_max_result_bytes(), tenant.max_result_bytes()),
                    BytesLimit(tenant.has_max_upload_rate(), tenant.max_upload_rate()),
                    Limit(tenant.has_max_call_rate(), tenant.max_call_rate())});
  }
  PrintTable(rows, console);
  for (const v1::TenantState& tenant : tenants) {
    if (tenant.has_temporary()) console.Out(TemporaryText(tenant));
  }
}

ExitCode ShowTenant(const absl::StatusOr<v1::TenantState>& tenant, const Options& options,
                    Console& console) {
  if (!tenant.ok()) return console.Fail(tenant.status(), options.json);
  if (options.json) {
    console.Out(TenantJson(*tenant));
  } else {
    PrintTenants({*tenant}, console);
  }
  return kDone;
}

ExitCode SetLimits(client::Client& client, const Options& options, Console& console) {
  const std::optional<std::string> name = TenantOf(options, console);
  if (!name.has_value()) return kWrongUsage;
  v1::SetTenantLimitsRequest request;
  request.set_tenant(*name);
  request.set_reason(options.reason);
  if (options.admin_action == "limit") {
    if (options.limits.ByteSizeLong() == 0 || !options.span.has_value()) {
      console.Err(Console::Tone::kBad,
                  "npuc-remote: admin limit wants --for TIME, and --weight or --quota");
      return kWrongUsage;
    }
    *request.mutable_limits() = options.limits;
    *request.mutable_duration() = ToProto(*options.span);
  }
  return ShowTenant(client.SetTenantLimits(request), options, console);
}

ExitCode RotateToken(client::Client& client, const Options& options, Console& console) {
  const std::optional<std::string> name = TenantOf(options, console);
  if (!name.has_value()) return kWrongUsage;
  v1::RotateTokenRequest request;
  request.set_tenant(*name);
  request.set_identity(options.identity);
  if (options.grace.has_value()) *request.mutable_grace() = ToProto(*options.grace);
  const absl::StatusOr<std::string> token = client::NewToken();
  if (!token.ok()) return console.Fail(token.status(), options.json);
  request.set_token_sha256(Sha256Hex(*token));
  // Before the call: a token that cannot be kept must not replace one.
  if (options.output_folder.has_value()) {
    const int fd = open(options.output_folder->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                        S_IRUSR | S_IWUSR);
    const std::string line = *token + "\n";
    const bool written =
        fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) {
      console.Err(Console::Tone::kBad,
                  absl::StrCat("npuc-remote: cannot write the token to ", *options.output_folder,
                               ": ", std::strerror(error)));
      return kWrongUsage;
    }
  }
  const auto answer = client.RotateToken(request);
  if (!answer.ok()) {
    if (options.output_folder.has_value()) unlink(options.output_folder->c_str());
    return console.Fail(answer.status(), options.json);
  }
  const std::string shown = options.output_folder.has_value() ? "" : *token;
  if (options.json) {
    console.Out(RotationJson(*answer, shown));
    return kDone;
  }
  if (!shown.empty()) console.Out(shown);
  console.Err(Console::Tone::kPlain, answer->has_old_tokens_end_time()
                                         ? absl::StrCat("the old token is valid until ",
                                                        HumanTime(answer->old_tokens_end_time()))
                                         : "no other token is valid");
  return kDone;
}

ExitCode DropUploads(client::Client& client, const Options& options, Console& console) {
  v1::DropUploadsRequest request;
  if (options.filter.tenants_size() > 0 || !options.all) {
    const std::optional<std::string> name = TenantOf(options, console);
    if (!name.has_value()) return kWrongUsage;
    request.set_tenant(*name);
  }
  if (options.span.has_value()) *request.mutable_idle() = ToProto(*options.span);
  request.set_reason(options.reason);
  const auto answer = client.DropUploads(request);
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  console.Out(options.json ? DroppedJson(*answer)
                           : absl::StrCat(answer->dropped(), " uploads dropped, ",
                                          HumanBytes(answer->dropped_bytes())));
  return kDone;
}

ExitCode Evict(client::Client& client, const Options& options, Console& console) {
  const int names = (options.blob.empty() ? 0 : 1) + (options.result.empty() ? 0 : 1) +
                    (options.job.empty() ? 0 : 1);
  if (names != 1) {
    console.Err(Console::Tone::kBad,
                "npuc-remote: admin evict wants one of --blob, --result and --job");
    return kWrongUsage;
  }
  v1::EvictContentRequest request;
  if (options.filter.tenants_size() > 0) request.set_tenant(options.filter.tenants(0));
  if (!options.blob.empty()) request.set_blob_sha256(options.blob);
  if (!options.result.empty()) request.set_result_key(options.result);
  if (!options.job.empty()) request.set_job_id(options.job);
  request.set_reason(options.reason);
  const auto answer = client.EvictContent(request);
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  if (options.json) {
    console.Out(EvictedJson(*answer));
    return kDone;
  }
  for (const std::string& name : answer->evicted()) {
    console.Out(absl::StrCat("evicted ", Printable(name)));
  }
  if (answer->evicted().empty()) console.Out("it was not there");
  return kDone;
}

ExitCode ListTenants(client::Client& client, const Options& options, Console& console) {
  const auto answer = client.ListTenants();
  if (!answer.ok()) return console.Fail(answer.status(), options.json);
  if (options.json) {
    for (const v1::TenantState& tenant : answer->tenants()) console.Out(TenantJson(tenant));
    return kDone;
  }
  PrintTenants({answer->tenants().begin(), answer->tenants().end()}, console);
  console.Out(DispatchText(answer->dispatch()));
  if (answer->cordon().cordoned()) console.Out(CordonText(answer->cordon()));
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

ExitCode ListAudit(client::Client& client, const Options& options, Console& console) {
  v1::ListAuditEntriesRequest request = options.audit;
  request.set_identity(options.identity);
  if (options.filter.tenants_size() > 0) {
    const std::optional<std::string> name = TenantOf(options, console);
    if (!name.has_value()) return kWrongUsage;
    request.set_tenant(*name);
  }
  if (options.filter.has_created_from()) {
    *request.mutable_from_time() = options.filter.created_from();
  }
  const auto entries = client.ListAuditEntries(std::move(request), options.limit);
  if (!entries.ok()) return console.Fail(entries.status(), options.json);
  std::vector<std::vector<std::string>> rows = {
      {"TIME", "NODE", "ACTION", "IDENTITY", "TENANT", "PEER", "OBJECT", "RESULT", "DETAIL"}};
  for (const v1::AuditEntry& one : *entries) {
    if (options.json) console.Out(AuditJson(one));
    rows.push_back({HumanTime(one.time()), OrDash(one.node()), Printable(one.action()),
                    OrDash(one.identity()), OrDash(one.tenant()), OrDash(one.peer()),
                    OrDash(one.object()), Printable(one.result()), OrDash(one.detail())});
  }
  if (!options.json) PrintTable(rows, console);
  return kDone;
}

}  // namespace

ExitCode RunAdmin(client::Client& client, const Options& options, Console& console) {
  const std::string& action = options.admin_action;
  if (action == "tenants") return ListTenants(client, options, console);
  if (action == "connections") return ListConnections(client, options, console);
  if (action == "audit") return ListAudit(client, options, console);
  if (action == "pause" || action == "resume") return SetDispatch(client, options, console);
  if (action == "cordon" || action == "uncordon") return SetCordon(client, options, console);
  if (action == "limit" || action == "unlimit") return SetLimits(client, options, console);
  if (action == "rotate-token") return RotateToken(client, options, console);
  if (action == "drop-uploads") return DropUploads(client, options, console);
  if (action == "evict") return Evict(client, options, console);
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

ExitCode RunQuota(client::Client& client, const Options& options, Console& console) {
  return ShowTenant(client.GetQuota(), options, console);
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
