#ifndef NPUC_SERVER_OBSERVE_METRICS_H_
#define NPUC_SERVER_OBSERVE_METRICS_H_

#include <initializer_list>

#include "absl/strings/string_view.h"

namespace npuc::observe {

enum class Metric {
#define NPUC_METRIC(id, kind, name, labels, help) id,
#include "server/observe/metric_list.inc"
#undef NPUC_METRIC
};

// Where the daemon's parts count what they do; no type of a metrics library shows. Label values
// come in the order of metric_list.inc; one more or less is a mistake of the caller. Thread-safe;
// quick, and never blocks on anything but its own lock.
class Metrics {
 public:
  using Labels = std::initializer_list<absl::string_view>;

  virtual ~Metrics() = default;
  // To a counter.
  virtual void Add(Metric metric, Labels labels, double amount) = 0;
  // Of a gauge; or of a counter that is kept elsewhere, whose value never falls.
  virtual void Set(Metric metric, Labels labels, double value) = 0;
  // To a histogram.
  virtual void Observe(Metric metric, Labels labels, double seconds) = 0;
};

// Counts nothing; for tests and for parts without metrics.
class NoMetrics : public Metrics {
 public:
  void Add(Metric, Labels, double) override {}
  void Set(Metric, Labels, double) override {}
  void Observe(Metric, Labels, double) override {}
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_METRICS_H_
