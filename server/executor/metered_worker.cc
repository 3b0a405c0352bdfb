#include "server/executor/metered_worker.h"

#include <string>
#include <utility>

namespace npuc::executor {
namespace {

using Clock = std::function<absl::Time()>;

// Measures from one stage to the next.
class StageTimer : public worker::ForwardingWorkerEvents {
 public:
  StageTimer(worker::WorkerEvents& inner, observe::Metrics* metrics, const Clock& now)
      : worker::ForwardingWorkerEvents(inner), metrics_(metrics), now_(now) {}
  ~StageTimer() override { EndStage(); }

  void OnStage(absl::string_view stage, double fraction) override {
    if (stage != stage_) {
      EndStage();
      stage_ = std::string(stage);
      begin_ = now_();
    }
    worker::ForwardingWorkerEvents::OnStage(stage, fraction);
  }

 private:
  void EndStage() {
    if (stage_.empty()) return;
    metrics_->Observe(observe::Metric::kStageSeconds, {stage_},
                      absl::ToDoubleSeconds(now_() - begin_));
  }

  observe::Metrics* const metrics_;
  const Clock& now_;
  std::string stage_;
  absl::Time begin_;
};

class MeteredWorkers : public worker::WorkerRunner {
 public:
  MeteredWorkers(worker::WorkerRunner* inner, observe::Metrics* metrics, Clock now)
      : inner_(inner), metrics_(metrics), now_(std::move(now)) {}

  absl::StatusOr<worker::WorkerOutcome> Run(const worker::WorkerJob& job,
                                            worker::WorkerEvents& events) override {
    absl::StatusOr<worker::WorkerOutcome> outcome = [&] {
      StageTimer timer(events, metrics_, now_);
      return inner_->Run(job, timer);
    }();
    if (!outcome.ok()) {
      metrics_->Add(observe::Metric::kWorkerRuns, {"not_started"}, 1);
      return outcome;
    }
    metrics_->Add(observe::Metric::kWorkerRuns, {worker::WorkerOutcomeKindName(outcome->kind)}, 1);
    metrics_->Observe(observe::Metric::kWorkerSeconds, {},
                      absl::ToDoubleSeconds(outcome->wall_time));
    metrics_->Observe(observe::Metric::kWorkerStartSeconds, {},
                      absl::ToDoubleSeconds(outcome->start_time));
    return outcome;
  }
  bool Cancel(absl::string_view run_id) override { return inner_->Cancel(run_id); }

 private:
  worker::WorkerRunner* const inner_;
  observe::Metrics* const metrics_;
  const Clock now_;
};

}  // namespace

std::unique_ptr<worker::WorkerRunner> MeterWorkers(worker::WorkerRunner* inner,
                                                   observe::Metrics* metrics,
                                                   std::function<absl::Time()> steady_now) {
  return std::make_unique<MeteredWorkers>(inner, metrics, std::move(steady_now));
}

}  // namespace npuc::executor
