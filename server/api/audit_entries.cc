// The call of an operator who looks at the audit.
#include "absl/time/time.h"
#include "compiler_core/base/status.h"
#include "server/api/admin.h"
#include "server/api/convert.h"
#include "server/api/page_size.h"
#include "server/jobs/service_error.h"
#include "server/log/audit_log.h"

namespace npuc::api {
namespace {

constexpr size_t kDefaultAuditPage = 100;

absl::StatusOr<log::AuditQuery> ReadAuditQuery(const v1::ListAuditEntriesRequest& request) {
  jobs::FieldChecker check;
  log::AuditQuery query{.node = request.node(),
                        .action = request.action(),
                        .identity = request.identity(),
                        .tenant = request.tenant(),
                        .object = request.object(),
                        .result = request.result(),
                        .limit = ReadPageSize(request.page_size(), kDefaultAuditPage, check),
                        .page_token = request.page_token()};
  if (request.has_from_time()) query.from = FromProto(request.from_time());
  if (request.has_to_time()) query.to = FromProto(request.to_time());
  RETURN_IF_ERROR(check.ToStatus());
  return query;
}

void EntryToProto(const log::AuditEntry& entry, v1::AuditEntry* out) {
  api::ToProto(entry.time, out->mutable_time());
  out->set_node(entry.node);
  out->set_action(entry.action);
  out->set_identity(entry.identity);
  out->set_tenant(entry.tenant);
  out->set_peer(entry.peer);
  out->set_object(entry.object);
  out->set_result(entry.result);
  out->set_detail(entry.detail);
  out->set_left_out(static_cast<int64_t>(entry.left_out));
}

absl::Status ListAuditEntries(const ApiDependencies& deps, const auth::Caller& /*caller*/,
                              const v1::ListAuditEntriesRequest& request,
                              v1::ListAuditEntriesResponse* response) {
  ASSIGN_OR_RETURN(const log::AuditQuery query, ReadAuditQuery(request));
  const absl::StatusOr<log::AuditPage> page = deps.audit->Find(query);
  if (absl::IsInvalidArgument(page.status())) {
    jobs::FieldChecker check;
    check.Add("page_token", page.status().message());
    return check.ToStatus();
  }
  RETURN_IF_ERROR(page.status());
  for (const log::AuditEntry& entry : page->entries) EntryToProto(entry, response->add_entries());
  response->set_next_page_token(page->next_page_token);
  return absl::OkStatus();
}

}  // namespace

const Method<v1::ListAuditEntriesRequest, v1::ListAuditEntriesResponse> kListAuditEntries = {
    "ListAuditEntries", auth::Right::kAdmin, ListAuditEntries};

}  // namespace npuc::api
