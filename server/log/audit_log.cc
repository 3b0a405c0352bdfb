#include "server/log/audit_log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

AuditLog::AuditLog(AuditOptions options)
    : options_(std::move(options)), refusals_(options_.refusals_per_second) {}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(AuditOptions options) {
  if (options.syslog_socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of the syslog's socket, '",
                                                   options.syslog_socket, "', is too long"));
  }
  std::error_code error;
  std::filesystem::create_directories(options.dir, error);
  auto log = std::unique_ptr<AuditLog>(new AuditLog(std::move(options)));
  const MutexLock lock(log->mutex_);
  RETURN_IF_ERROR(log->OpenNewest());
  if (!log->options_.syslog_socket.empty()) {
    log->syslog_fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  }
  return log;
}

AuditLog::~AuditLog() {
  const MutexLock lock(mutex_);
  if (fd_ >= 0) close(fd_);
  if (syslog_fd_ >= 0) close(syslog_fd_);
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

void AuditLog::SendToSyslog(absl::string_view line) {
  if (syslog_fd_ < 0) return;
  constexpr int kAuthprivInfo = 10 * 8 + 6;
  const std::string text = absl::StrCat("<", kAuthprivInfo, ">npucd[", getpid(), "]: ", line);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options_.syslog_socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const ssize_t sent = sendto(syslog_fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (sent != static_cast<ssize_t>(text.size())) ++lost_;
}

void AuditLog::Write(const Entry& entry) {
  const absl::Time now = options_.now();
  const MutexLock lock(mutex_);
  if (entry.is_refusal && !refusals_.Takes(now)) return;
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
  const uint64_t left_out = entry.is_refusal ? refusals_.TakeLeftOut() : 0;
  if (left_out > 0) absl::StrAppend(&line, ",\"left_out\":", left_out);
  absl::StrAppend(&line, "}");
  SendToSyslog(line);
  absl::StrAppend(&line, "\n");
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
