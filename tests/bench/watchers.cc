#include "tests/bench/watchers.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace npuc::bench {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(5);

}  // namespace

class Watchers::Watcher : public grpc::ClientReadReactor<v1::WatchCompileJobResponse> {
 public:
  Watcher(v1::CompileService::Stub& stub, const std::string& job_id, Watchers* all) : all_(all) {
    request_.set_job_id(job_id);
    stub.async()->WatchCompileJob(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (!first_.HasBeenNotified()) {
      ++all_->attached_;
      first_.Notify();
    }
    if (response_.event().has_heartbeat()) ++all_->heartbeats_;
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    error_ = absl::StrCat(status.error_code(), " ", status.error_message());
    if (!first_.HasBeenNotified()) first_.Notify();
    done_.Notify();
  }

  bool has_ended() const { return done_.HasBeenNotified(); }
  const std::string& error() const { return error_; }  // once it has ended
  void Cancel() { context_.TryCancel(); }
  // The first event, or the end without one.
  bool AwaitFirst() const { return first_.WaitForNotificationWithTimeout(kPatience); }
  bool AwaitEnd() const { return done_.WaitForNotificationWithTimeout(kPatience); }

 private:
  Watchers* const all_;
  grpc::ClientContext context_;
  v1::WatchCompileJobRequest request_;
  v1::WatchCompileJobResponse response_;
  std::string error_;
  absl::Notification first_;
  absl::Notification done_;
};

Watchers::Watchers() = default;
Watchers::~Watchers() { End().IgnoreError(); }

void Watchers::Add(v1::CompileService::Stub& stub, const std::string& job_id) {
  all_.push_back(std::make_unique<Watcher>(stub, job_id, this));
}

absl::Status Watchers::AwaitFirstEvents() {
  for (const auto& watcher : all_) {
    if (!watcher->AwaitFirst()) {
      return absl::DeadlineExceededError("not every watcher had an event");
    }
  }
  return absl::OkStatus();
}

absl::Status Watchers::End() {
  int broken = 0;
  std::string why;
  for (const auto& watcher : all_) {
    if (watcher->has_ended()) {
      ++broken;
      why = watcher->error();
    }
  }
  for (const auto& watcher : all_) watcher->Cancel();
  for (const auto& watcher : all_) {
    if (!watcher->AwaitEnd()) return absl::DeadlineExceededError("a stream did not end");
  }
  all_.clear();
  if (broken == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(broken, " watchers were broken off: ", why));
}

}  // namespace npuc::bench
