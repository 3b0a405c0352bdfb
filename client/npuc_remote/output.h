#ifndef NPUC_CLIENT_NPUC_REMOTE_OUTPUT_H_
#define NPUC_CLIENT_NPUC_REMOTE_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/diagnostic_text.h"
#include "npuc/v1/admin.pb.h"
#include "npuc/v1/compile.pb.h"
#include "npuc/v1/server_info.pb.h"

namespace npuc::remote {

// Names as scripts see them: "QUEUED", "RUNNING", ...; "UNKNOWN" for what a newer server has.
std::string StateName(v1::JobState state);
std::string FailureKindName(v1::FailureKind kind);
bool ParseState(absl::string_view name, v1::JobState& state);
v1::JobState StateOf(const v1::CompileJob& job);
bool HasEnded(const v1::CompileJob& job);
std::string WaitReasonName(v1::WaitReason reason);
// What a waiting job's record says of its place, as the events of a watch do.
v1::QueuePosition PlaceOf(const v1::Queued& queued);
// "3 before it, starts in about 40s"; empty where nothing is known. `now`: when that is read.
std::string DescribePlace(const v1::QueuePosition& place, absl::Time now);
// Why it failed, was cancelled or ran out of time; may be empty.
std::string ReasonOf(const v1::CompileJob& job);

// For RenderDiagnostic and DiagnosticLines; valid while the message is.
DiagnosticText TextOf(const v1::Diagnostic& diagnostic);
// The lines of a list of them for a person.
template <typename List>
std::vector<DiagnosticLine> LinesOf(const List& diagnostics) {
  std::vector<DiagnosticText> texts;
  for (const v1::Diagnostic& diagnostic : diagnostics) texts.push_back(TextOf(diagnostic));
  return DiagnosticLines(texts);
}
v1::Diagnostic ToWire(const Diagnostic& diagnostic);

// Machine-readable output: one object, no line end. The fields are those of shared names in the
// README; everything that a server may have made up is ASCII in the end.
std::string JobJson(const v1::CompileJob& job);
std::string EventJson(absl::string_view job_id, const v1::JobEvent& event);
std::string ErrorJson(const absl::Status& status, const std::vector<v1::Diagnostic>& diagnostics);
std::string ServerJson(const v1::GetServerInfoResponse& info);
// {"ready": false, "conditions": {"disk": "0 MiB are free ...", "store": "ok"}}, as /readyz.
std::string HealthJson(const v1::GetServerInfoResponse& info);
// Whether each condition holds; false where the server tells none.
bool IsReady(const v1::GetServerInfoResponse& info);
// "ready"; or "not ready" and a line "CONDITION: REASON" for each that does not hold. None where
// the server tells none.
std::vector<std::string> ReadinessLines(const v1::GetServerInfoResponse& info);
// The report of `npuc inspect --json`: the inspection with `ok` and the diagnostics.
std::string InspectionJson(const v1::InspectModelResponse& answer);
std::string DispatchJson(const v1::DispatchState& state);
std::string CordonJson(const v1::CordonState& state);
// With the token itself where it is shown.
std::string RotationJson(const v1::RotateTokenResponse& answer, const std::string& token);
std::string DroppedJson(const v1::DropUploadsResponse& answer);
std::string EvictedJson(const v1::EvictContentResponse& answer);
std::string CountJson(const char* name, int64_t count);
std::string RequeueJson(const v1::RequeueJobsResponse& answer);
std::string TenantJson(const v1::TenantState& tenant);
std::string ConnectionJson(const v1::Connection& connection, const std::string& node);
std::string StreamJson(const v1::OpenStream& stream, const std::string& node);
std::string AuditJson(const v1::AuditEntry& entry);
std::string UsageJson(const v1::TenantUsage& usage);
std::string CallerJson(const v1::GetCallerResponse& caller);
std::string CoreJson(absl::string_view core);
std::string OperatorJson(const v1::Operator& op);

// For a table: "-" where it is empty.
std::string OrDash(const std::string& text);
// "12.3 kB"
std::string HumanBytes(int64_t bytes);
// "2026-01-31 12:00:00" in the zone of the process; "-" where not set.
std::string HumanTime(const google::protobuf::Timestamp& time);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_OUTPUT_H_
