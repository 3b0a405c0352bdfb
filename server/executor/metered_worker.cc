#include "server/executor/metered_worker.h"

#include <string>
#include <utility>

namespace npuc {
namespace {

using Clock = std::function<absl::Time()>;

// Measures from one stage to the next.
class StageTimer : public ForwardingWorkerEvents {
 public:
  StageTimer(WorkerEvents& inner, Metrics* metrics, const Clock& now)
      : ForwardingWorkerEvents(inner), metrics_(metrics), now_(now) {}
  ~StageTimer() override { EndStage(); }

  void OnStage(absl::string_view stage, double fraction) override {
    if (stage != stage_) {
      EndStage();
      stage_ = std::string(stage);
      begin_ = now_();
    }
    ForwardingWorkerEvents::OnStage(stage, fraction);
  }

 private:
  void EndStage() {
    if (stage_.empty()) return;
    metrics_->Observe(Metric::kStageSeconds, {stage_}, absl::ToDoubleSeconds(now_() - begin_));
  }

  Metrics* const metrics_;
  const Clock& now_;
  std::string stage_;
  absl::Time begin_;
};

class MeteredWorkers : public WorkerRunner {
 public:
  MeteredWorkers(WorkerRunner* inner, Metrics* metrics, Clock now)
      : inner_(inner), metrics_(metrics), now_(std::move(now)) {}

  absl::StatusOr<WorkerOutcome> Run(const WorkerJob& job, WorkerEvents& events) override {
    absl::StatusOr<WorkerOutcome> outcome = [&] {
      StageTimer timer(events, metrics_, now_);
      return inner_->Run(job, timer);
    }();
    if (!outcome.ok()) {
      metrics_->Add(Metric::kWorkerRuns, {"not_started"}, 1);
      return outcome;
    }
    metrics_->Add(Metric::kWorkerRuns, {WorkerOutcomeKindName(outcome->kind)}, 1);
    metrics_->Observe(Metric::kWorkerSeconds, {}, absl::ToDoubleSeconds(outcome->wall_time));
    metrics_->Observe(Metric::kWorkerStartSeconds, {}, absl::ToDoubleSeconds(outcome->start_time));
    return outcome;
  }
  bool Cancel(absl::string_view run_id) override { return inner_->Cancel(run_id); }

 private:
  WorkerRunner* const inner_;
  Metrics* const metrics_;
  const Clock now_;
};

}  // namespace

std::unique_ptr<WorkerRunner> MeterWorkers(WorkerRunner* inner, Metrics* metrics,
                                           std::function<absl::Time()> steady_now) {
  return std::make_unique<MeteredWorkers>(inner, metrics, std::move(steady_now));
}

}  // namespace npuc
