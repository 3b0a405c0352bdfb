#ifndef NPUC_SERVER_API_AUDIT_H_
#define NPUC_SERVER_API_AUDIT_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/api/dependencies.h"
#include "server/auth/caller.h"

namespace npuc::api {

// A line of the audit log, where there is one: the caller did `action` to `object`, with that
// result.
void Audit(const ApiDependencies& deps, const auth::Caller& caller, absl::string_view action,
           absl::string_view object, const absl::Status& status, absl::string_view detail = "");

// A call was refused for who calls, or for the right that the caller lacks.
void AuditRefusal(const ApiDependencies& deps, absl::string_view peer, absl::string_view method,
                  const absl::Status& status);

}  // namespace npuc::api

#endif  // NPUC_SERVER_API_AUDIT_H_
