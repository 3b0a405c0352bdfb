#include "server/executor/usage_book.h"

#include <string>

#include "compiler_core/base/status.h"

namespace npuc::executor {

using base::Usage;
using base::UsageDays;

absl::StatusOr<std::unique_ptr<UsageBook>> UsageBook::Open(std::unique_ptr<base::UsageStore> store,
                                                           std::function<absl::Time()> now,
                                                           observe::Metrics* metrics) {
  ASSIGN_OR_RETURN(UsageDays days, store->Read());
  return std::unique_ptr<UsageBook>(
      new UsageBook(std::move(store), std::move(now), metrics, std::move(days)));
}

void UsageBook::Forget() {
  while (days_.size() > base::kMaxUsageDays) days_.erase(days_.begin());
}

void UsageBook::Add(absl::string_view tenant, const Usage& usage) {
  metrics_.Add(observe::Metric::kTenantHits, {tenant}, static_cast<double>(usage.cache_hits));
  metrics_.Add(observe::Metric::kTenantProcessorSeconds, {tenant},
               static_cast<double>(usage.processor_micros) / 1e6);
  metrics_.Add(observe::Metric::kTenantUploadedBytes, {tenant},
               static_cast<double>(usage.uploaded_bytes));
  metrics_.Add(observe::Metric::kTenantDownloadedBytes, {tenant},
               static_cast<double>(usage.downloaded_bytes));
  const std::string day = absl::FormatTime("%Y-%m-%d", now_(), absl::UTCTimeZone());
  const std::string name(tenant);
  const MutexLock lock(mutex_);
  Usage& sum = days_[day][name];
  sum += usage;
  changed_[day][name] = sum;
}

absl::Status UsageBook::Save() {
  UsageDays days;
  UsageDays changed;
  {
    const MutexLock lock(mutex_);
    if (changed_.empty()) return absl::OkStatus();
    Forget();
    days = days_;
    changed.swap(changed_);
  }
  const absl::Status written = store_->Write(days, changed);
  if (written.ok()) return written;
  const MutexLock lock(mutex_);
  // Newer sums of the same day and tenant stay.
  for (auto& [day, tenants] : changed) changed_[day].merge(tenants);
  return written;
}

absl::StatusOr<UsageDays> UsageBook::Find(const base::UsageFilter& filter) {
  ASSIGN_OR_RETURN(UsageDays found, store_->ReadOthers(filter));
  const MutexLock lock(mutex_);
  for (const auto& [day, tenants] : days_) {
    for (const auto& [tenant, usage] : tenants) {
      if (filter.Takes(day, tenant)) found[day][tenant] += usage;
    }
  }
  return found;
}

}  // namespace npuc::executor
