#include "server/log/audit_log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"
#include "server/log/log.h"

namespace npuc::log {

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(AuditOptions options) {
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  auto log = std::unique_ptr<AuditLog>(new AuditLog(std::move(options)));
  const MutexLock lock(log->mutex_);
  RETURN_IF_ERROR(log->OpenNewest());
  return log;
}

AuditLog::~AuditLog() {
  const MutexLock lock(mutex_);
  if (fd_ >= 0) close(fd_);
}

std::string AuditLog::PathOf(int number) const {
  return number == 0 ? options_.dir + "/audit.log"
                     : absl::StrCat(options_.dir, "/audit.", number, ".log");
}

absl::Status AuditLog::OpenNewest() {
  const std::string path = PathOf(0);
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat info = {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot append to the audit log ", path, ": ", strerror(errno)));
  }
  bytes_ = static_cast<uint64_t>(info.st_size);
  return absl::OkStatus();
}

void AuditLog::Rotate() {
  for (int number = options_.files - 1; number > 0; --number) {
    std::rename(PathOf(number - 1).c_str(), PathOf(number).c_str());
  }
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool AuditLog::TakesRefusal(absl::Time now) {
  const int64_t second = absl::ToUnixSeconds(now);
  if (second != refusal_second_) {
    refusal_second_ = second;
    refusals_ = 0;
  }
  if (refusals_ < options_.refusals_per_second) {
    ++refusals_;
    return true;
  }
  ++left_out_;
  return false;
}

void AuditLog::Write(const Entry& entry) {
  const absl::Time now = options_.now();
  const MutexLock lock(mutex_);
  if (entry.is_refusal && !TakesRefusal(now)) return;
  std::string line = absl::StrCat(
      "{\"time\":\"", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now, absl::UTCTimeZone()),
      "\",\"action\":", JsonString(entry.action));
  const auto add = [&line](absl::string_view key, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&line, ",\"", key, "\":", JsonString(value));
  };
  add("identity", entry.identity);
  add("tenant", entry.tenant);
  add("peer", entry.peer);
  add("object", entry.object);
  add("result", entry.result);
  add("detail", entry.detail);
  if (entry.is_refusal && left_out_ > 0) {
    absl::StrAppend(&line, ",\"left_out\":", std::exchange(left_out_, 0));
  }
  absl::StrAppend(&line, "}\n");
  if (fd_ >= 0 && bytes_ + line.size() > options_.max_bytes) Rotate();
  if (fd_ < 0 && !OpenNewest().ok()) {
    ++lost_;
    return;
  }
  // One write: a line is whole, and appended whoever else has the file.
  if (write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ++lost_;
  bytes_ += line.size();
}

uint64_t AuditLog::lost() {
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace npuc::log
