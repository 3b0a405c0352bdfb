#include "server/base/usage_store.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::base {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const auto column : kUsageColumns) this->*column += other.*column;
  return *this;
}

bool UsageFilter::Takes(absl::string_view day, absl::string_view of_tenant) const {
  return day >= from_day && (to_day.empty() || day <= to_day) &&
         (tenant.empty() || of_tenant == tenant);
}

// A line a day and tenant: day, tenant and the columns, separated by tabs.
absl::StatusOr<UsageDays> FileUsageStore::Read() {
  UsageDays days;
  const auto file = cache::OpenFile(path_, O_RDONLY | O_NOFOLLOW);
  if (absl::IsNotFound(file.status())) return days;
  RETURN_IF_ERROR(file.status());
  ASSIGN_OR_RETURN(const std::string text, cache::ReadUpToAt(file->get(), 0, kMaxFileBytes, path_));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    bool is_good = parts.size() == kUsageColumns.size() + 2;
    Usage usage;
    for (size_t i = 0; is_good && i < kUsageColumns.size(); ++i) {
      is_good = absl::SimpleAtoi(parts[i + 2], &(usage.*kUsageColumns[i]));
    }
    if (!is_good) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " is damaged; put it aside to begin a new one"));
    }
    days[parts[0]][parts[1]] += usage;
  }
  return days;
}

absl::Status FileUsageStore::Write(const UsageDays& days, const UsageDays& /*changed*/) {
  std::string text;
  for (const auto& [day, tenants] : days) {
    for (const auto& [tenant, usage] : tenants) {
      absl::StrAppend(&text, day, "\t", tenant);
      for (const auto column : kUsageColumns) absl::StrAppend(&text, "\t", usage.*column);
      absl::StrAppend(&text, "\n");
    }
  }
  const std::string fresh = path_ + ".new";
  ASSIGN_OR_RETURN(const cache::UniqueFd file,
                   cache::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), text, 0, fresh));
  if (std::rename(fresh.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  return cache::ErrnoStatus(errno, "cannot write", path_);
}

}  // namespace npuc::base
