#ifndef NPUC_SERVER_OBSERVE_PROMETHEUS_METRICS_H_
#define NPUC_SERVER_OBSERVE_PROMETHEUS_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/observe/metrics.h"

namespace npuc::observe {

// Metrics on prometheus-cpp's core library. Thread-safe.
class PrometheusMetrics : public Metrics {
 public:
  // A metric has at most so many combinations of label values; whatever comes later is counted with
  // all of them "other", since some values come from tenants and workers.
  static constexpr size_t kMaxSeries = 500;

  PrometheusMetrics();
  ~PrometheusMetrics() override;

  void Add(Metric metric, Labels labels, double amount) override;
  void Set(Metric metric, Labels labels, double value) override;
  void Observe(Metric metric, Labels labels, double seconds) override;

  // Called at the begin of each Text, for what is looked up and not counted. Set before the first.
  void SetSampler(std::function<void(Metrics&)> sampler);
  // Prometheus' text format.
  std::string Text();

  // name, kind, labels, help: what deploy/METRICS.md must list.
  struct Description {
    std::string name;
    std::string kind;
    std::string labels;
    std::string help;
  };
  static std::vector<Description> List();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_PROMETHEUS_METRICS_H_
