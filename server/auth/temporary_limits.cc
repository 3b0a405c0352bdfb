#include "server/auth/temporary_limits.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::auth {
namespace {

constexpr size_t kMaxShownBytes = 4096;
constexpr char kUnset[] = "-";

// In the order of a line's columns.
constexpr std::array<std::optional<int64_t> TenantQuota::*, 7> kQuotas = {
    &TenantQuota::queued_jobs,  &TenantQuota::running_jobs, &TenantQuota::job_bytes,
    &TenantQuota::stored_bytes, &TenantQuota::result_bytes, &TenantQuota::upload_rate,
    &TenantQuota::call_rate};
// Before them: tenant, end in microseconds since 1970, identity, reason, weight.
constexpr size_t kQuotaColumn = 5;

template <typename Number>
std::string NumberText(const std::optional<Number>& number) {
  return number.has_value() ? absl::StrCat(*number) : kUnset;
}

template <typename Number>
bool ReadNumber(absl::string_view text, std::optional<Number>& number) {
  if (text == kUnset) return true;
  Number value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 1) return false;
  number = value;
  return true;
}

}  // namespace

bool TemporaryLimits::Entry::sets_any() const {
  return weight.has_value() || std::any_of(kQuotas.begin(), kQuotas.end(), [&](const auto limit) {
           return (quota.*limit).has_value();
         });
}

std::string TemporaryLimits::Format(const Entries& entries) {
  std::string text;
  for (const auto& [tenant, entry] : entries) {
    absl::StrAppend(&text, tenant, "\t", absl::ToUnixMicros(entry.end), "\t", entry.by, "\t",
                    entry.reason, "\t", NumberText(entry.weight));
    for (const auto limit : kQuotas) absl::StrAppend(&text, "\t", NumberText(entry.quota.*limit));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

absl::StatusOr<TemporaryLimits::Entries> TemporaryLimits::Parse(absl::string_view text) {
  Entries entries;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    Entry entry;
    int64_t micros = 0;
    bool is_good = parts.size() == kQuotaColumn + kQuotas.size() &&
                   absl::SimpleAtoi(parts[1], &micros) && ReadNumber(parts[4], entry.weight);
    for (size_t i = 0; is_good && i < kQuotas.size(); ++i) {
      is_good = ReadNumber(parts[kQuotaColumn + i], entry.quota.*kQuotas[i]);
    }
    if (!is_good) {
      return absl::FailedPreconditionError(
          "the limits that an operator set for a time (tenant_limits) are damaged; delete them, "
          "and set them again");
    }
    entry.end = absl::FromUnixMicros(micros);
    entry.by = parts[2];
    entry.reason = parts[3];
    entries[parts[0]] = std::move(entry);
  }
  return entries;
}

absl::Status TemporaryLimits::Attach(base::KeptText* text) {
  const MutexLock lock(mutex_);
  return entries_.Attach(text);
}

absl::StatusOr<bool> TemporaryLimits::Refresh() {
  const absl::Time now = now_();
  const auto has_ended = [now](const auto& entry) { return entry.second.end <= now; };
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const bool is_new, entries_.Read());
  const Entries& entries = entries_.Get();
  if (std::none_of(entries.begin(), entries.end(), has_ended)) return is_new;
  const absl::Status kept = entries_.Change([&](Entries& changed) {
    std::erase_if(changed, has_ended);
    return absl::OkStatus();
  });
  // Another node does the same, or more; the next look sees it.
  if (!kept.ok() && !absl::IsAborted(kept)) return kept;
  return true;
}

absl::Status TemporaryLimits::Set(const std::string& tenant, Entry entry) {
  entry.by = Printable(entry.by, kMaxShownBytes);
  entry.reason = Printable(entry.reason, kMaxShownBytes);
  const MutexLock lock(mutex_);
  return entries_.Change([&](Entries& entries) -> absl::Status {
    entries.erase(tenant);
    if (!entry.sets_any()) return absl::OkStatus();
    if (entries.size() >= kMaxEntries) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "limits of ", entries.size(), " tenants are set for a time, the most allowed"));
    }
    entries[tenant] = entry;
    return absl::OkStatus();
  });
}

std::optional<TemporaryLimits::Entry> TemporaryLimits::Find(absl::string_view tenant) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.Get().find(tenant);
  if (found == entries_.Get().end() || found->second.end <= now_()) return std::nullopt;
  return found->second;
}

Tenant TemporaryLimits::Apply(Tenant tenant) const {
  const std::optional<Entry> entry = Find(tenant.name);
  if (!entry.has_value()) return tenant;
  tenant.weight = entry->weight.value_or(tenant.weight);
  for (const auto limit : kQuotas) {
    if ((entry->quota.*limit).has_value()) tenant.quota.*limit = entry->quota.*limit;
  }
  return tenant;
}

}  // namespace npuc::auth
