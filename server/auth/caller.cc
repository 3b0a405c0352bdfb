#include "server/auth/caller.h"

#include "absl/strings/str_cat.h"
#include "server/jobs/service_error.h"

namespace npuc::auth {

absl::string_view RightName(Right right) {
  switch (right) {
    case Right::kSubmit:
      return "submit";
    case Right::kRead:
      return "read";
    case Right::kCancel:
      return "cancel";
    case Right::kAdmin:
      return "admin";
  }
  return "";
}

Rights Rights::All() {
  Rights rights;
  for (const Right right : kAllRights) rights.Add(right);
  return rights;
}

absl::Status Caller::Require(Right right) const {
  if (rights.Has(right)) return absl::OkStatus();
  if (rights.Has(Right::kAdmin) && right != Right::kSubmit) return absl::OkStatus();
  const std::string name(RightName(right));
  return jobs::ServiceError(
      absl::StatusCode::kPermissionDenied,
      absl::StrCat("identity '", identity, "' of tenant '", tenant, "' lacks the right '", name,
                   "'"),
      {.reason = "RIGHT_MISSING",
       .metadata = {{"identity", identity}, {"tenant", tenant}, {"right", name}}});
}

}  // namespace npuc::auth
