#include "server/executor/usage_book.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cache/posix.h"
#include "compiler_core/base/status.h"

namespace npuc::executor {
namespace {

constexpr size_t kMaxBookBytes = size_t{256} << 20;

// In the order of a line's columns.
constexpr std::array<int64_t Usage::*, 7> kColumns = {&Usage::jobs,
                                                      &Usage::succeeded,
                                                      &Usage::failed,
                                                      &Usage::cache_hits,
                                                      &Usage::processor_micros,
                                                      &Usage::uploaded_bytes,
                                                      &Usage::downloaded_bytes};

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const auto column : kColumns) this->*column += other.*column;
  return *this;
}

absl::StatusOr<std::unique_ptr<UsageBook>> UsageBook::Open(std::string path,
                                                           std::function<absl::Time()> now,
                                                           observe::Metrics* metrics) {
  auto book = std::unique_ptr<UsageBook>(new UsageBook(std::move(path), std::move(now), metrics));
  const MutexLock lock(book->mutex_);
  RETURN_IF_ERROR(book->Read());
  return book;
}

// A line a day and tenant: day, tenant and the columns, separated by tabs.
absl::Status UsageBook::Read() {
  const auto file = cache::OpenFile(path_, O_RDONLY | O_NOFOLLOW);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  RETURN_IF_ERROR(file.status());
  ASSIGN_OR_RETURN(const std::string text, cache::ReadUpToAt(file->get(), 0, kMaxBookBytes, path_));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    bool is_good = parts.size() == kColumns.size() + 2;
    Usage usage;
    for (size_t i = 0; is_good && i < kColumns.size(); ++i) {
      is_good = absl::SimpleAtoi(parts[i + 2], &(usage.*kColumns[i]));
    }
    if (!is_good) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " is damaged; put it aside to begin a new one"));
    }
    days_[parts[0]][parts[1]] += usage;
  }
  return absl::OkStatus();
}

void UsageBook::Forget() {
  while (days_.size() > kMaxUsageDays) days_.erase(days_.begin());
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
  const MutexLock lock(mutex_);
  days_[day][std::string(tenant)] += usage;
  is_changed_ = true;
}

absl::Status UsageBook::Save() {
  std::string text;
  {
    const MutexLock lock(mutex_);
    if (!is_changed_) return absl::OkStatus();
    is_changed_ = false;
    Forget();
    for (const auto& [day, tenants] : days_) {
      for (const auto& [tenant, usage] : tenants) {
        absl::StrAppend(&text, day, "\t", tenant);
        for (const auto column : kColumns) absl::StrAppend(&text, "\t", usage.*column);
        absl::StrAppend(&text, "\n");
      }
    }
  }
  const std::string fresh = path_ + ".new";
  ASSIGN_OR_RETURN(const cache::UniqueFd file,
                   cache::OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW));
  RETURN_IF_ERROR(cache::WriteAllAt(file.get(), text, 0, fresh));
  if (std::rename(fresh.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  return cache::ErrnoStatus(errno, "cannot write", path_);
}

std::vector<UsageBook::Row> UsageBook::Find(absl::string_view from_day, absl::string_view to_day,
                                            absl::string_view tenant) {
  std::vector<Row> rows;
  const MutexLock lock(mutex_);
  for (const auto& [day, tenants] : days_) {
    if (day < from_day || (!to_day.empty() && day > to_day)) continue;
    for (const auto& [name, usage] : tenants) {
      if (tenant.empty() || name == tenant) rows.push_back({day, name, usage});
    }
  }
  return rows;
}

}  // namespace npuc::executor
