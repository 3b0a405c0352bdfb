#include "server/observe/readiness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace npuc::observe {

void Readiness::Set(absl::string_view condition, const absl::Status& status) {
  {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = conditions_.try_emplace(std::string(condition), status);
    const bool changed = is_new ? !status.ok() : found->second.code() != status.code();
    found->second = status;
    if (!changed) return;
  }
  if (on_change_) on_change_(condition, status);
}

bool Readiness::ready() const {
  const MutexLock lock(mutex_);
  return !conditions_.empty() &&
         std::all_of(conditions_.begin(), conditions_.end(),
                     [](const auto& condition) { return condition.second.ok(); });
}

std::map<std::string, absl::Status> Readiness::Conditions() const {
  const MutexLock lock(mutex_);
  return conditions_;
}

std::string Readiness::Json() const {
  std::string out = absl::StrCat("{\"ready\":", ready() ? "true" : "false", ",\"conditions\":{");
  const MutexLock lock(mutex_);
  const char* separator = "";
  for (const auto& [name, status] : conditions_) {
    absl::StrAppend(&out, separator, log::JsonString(name), ":",
                    log::JsonString(status.ok() ? "ok" : status.message()));
    separator = ",";
  }
  absl::StrAppend(&out, "}}\n");
  return out;
}

std::string Readiness::Reason() const {
  std::string out;
  const MutexLock lock(mutex_);
  for (const auto& [name, status] : conditions_) {
    if (!status.ok()) absl::StrAppend(&out, out.empty() ? "" : "; ", name, ": ", status.message());
  }
  return out;
}

}  // namespace npuc::observe
