#include "server/log/audit_log.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"

namespace npuc::log {
namespace {

constexpr size_t kMaxAuditTextBytes = 4000;
constexpr size_t kMaxBatch = 500;
// An operator's action is in the shared store before its answer.
constexpr char kOperatorsActions[] = "admin.";

}  // namespace

AuditLog::AuditLog(AuditOptions options, std::unique_ptr<AuditFile> file)
    : options_(std::move(options)),
      file_(std::move(file)),
      refusals_(options_.refusals_per_second) {}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(AuditOptions options) {
  if (options.syslog_socket.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of the syslog's socket, '",
                                                   options.syslog_socket, "', is too long"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<AuditFile> file, AuditFile::Open(options.file));
  auto log = std::unique_ptr<AuditLog>(new AuditLog(std::move(options), std::move(file)));
  if (!log->options_.syslog_socket.empty()) {
    const MutexLock lock(log->mutex_);
    log->syslog_fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  }
  if (log->options_.shared != nullptr) {
    log->sharer_ = std::thread([shared = log.get()] { shared->ShareLoop(); });
  }
  return log;
}

AuditLog::~AuditLog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (sharer_.joinable()) sharer_.join();
  const MutexLock lock(mutex_);
  if (syslog_fd_ >= 0) close(syslog_fd_);
}

void AuditLog::SendToSyslog(absl::string_view line) {
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
  const auto text = [](absl::string_view value) { return Printable(value, kMaxAuditTextBytes); };
  AuditEntry kept{.time = absl::FromUnixMicros(absl::ToUnixMicros(now)),
                  .node = options_.shared != nullptr ? options_.file.node : "",
                  .action = text(entry.action),
                  .identity = text(entry.identity),
                  .tenant = text(entry.tenant),
                  .peer = text(entry.peer),
                  .object = text(entry.object),
                  .result = text(entry.result),
                  .detail = text(entry.detail)};
  {
    const MutexLock lock(mutex_);
    if (entry.is_refusal && !refusals_.Takes(now)) return;
    if (entry.is_refusal) kept.left_out = refusals_.TakeLeftOut();
    if (syslog_fd_ >= 0) SendToSyslog(AuditFile::ToLine(kept));
    if (!file_->Append(0, {kept}).ok()) ++lost_;
    if (options_.shared == nullptr) return;
    Share(std::move(kept));
  }
  if (absl::StartsWith(entry.action, kOperatorsActions)) Flush(kPatience);
}

void AuditLog::Share(AuditEntry entry) {
  if (waiting_.size() >= options_.max_waiting) {
    waiting_.pop_front();
    ++first_number_;
    ++lost_;
  }
  waiting_.push_back(std::move(entry));
  if (waiting_.size() == kMaxBatch) changed_.NotifyAll();
}

void AuditLog::Flush(absl::Duration limit) {
  const SteadyTime end = SteadyTimeAfter(absl::ToChronoNanoseconds(limit));
  const MutexLock lock(mutex_);
  const uint64_t wanted = first_number_ + waiting_.size();
  ++waiters_;
  changed_.NotifyAll();
  while (first_number_ < wanted && sharer_.joinable() && changed_.WaitUntil(mutex_, end)) {
  }
  --waiters_;
}

void AuditLog::ShareLoop() {
  while (true) {
    std::vector<AuditEntry> batch;
    uint64_t first = 0;
    {
      const MutexLock lock(mutex_);
      const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.write_period));
      while (!stopping_ && waiting_.size() < kMaxBatch && (waiters_ == 0 || waiting_.empty()) &&
             changed_.WaitUntil(mutex_, next)) {
      }
      if (stopping_) return;
      if (waiting_.empty()) continue;
      first = first_number_;
      batch.assign(waiting_.begin(),
                   waiting_.begin() + static_cast<ptrdiff_t>(std::min(waiting_.size(), kMaxBatch)));
    }
    const bool is_written = options_.shared->Append(first, batch).ok();
    {
      const MutexLock lock(mutex_);
      // Meanwhile the oldest may have made room for newer ones.
      while (is_written && first_number_ < first + batch.size()) {
        waiting_.pop_front();
        ++first_number_;
      }
      const SteadyTime later = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.write_period));
      while (!is_written && !stopping_ && changed_.WaitUntil(mutex_, later)) {
      }
    }
    changed_.NotifyAll();
  }
}

absl::StatusOr<AuditPage> AuditLog::Find(const AuditQuery& query) {
  return options_.shared != nullptr ? options_.shared->Find(query) : file_->Find(query);
}

uint64_t AuditLog::lost() {
  const MutexLock lock(mutex_);
  return lost_;
}

uint64_t AuditLog::waiting() {
  const MutexLock lock(mutex_);
  return waiting_.size();
}

}  // namespace npuc::log
