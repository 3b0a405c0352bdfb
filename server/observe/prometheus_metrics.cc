#include "server/observe/prometheus_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_split.h"
#include "compiler_core/base/mutex.h"
#include "compiler_core/base/status.h"

namespace npuc::observe {
namespace {

enum class Kind { kCounter, kGauge, kHistogram };

struct Spec {
  Kind kind;
  const char* kind_name;
  const char* name;
  const char* labels;
  const char* help;
};

constexpr Spec kSpecs[] = {
#define NPUC_METRIC(id, kind, name, labels, help) {Kind::k##kind, #kind, name, labels, help},
#include "server/observe/metric_list.inc"
#undef NPUC_METRIC
};

// From a cache hit to the longest compile.
const prometheus::Histogram::BucketBoundaries& Buckets() {
  static const auto* const buckets = new prometheus::Histogram::BucketBoundaries{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,   0.25,
      0.5,    1.0,   2.5,    5.0,   10.0, 30.0,  60.0, 300.0, 600.0};
  return *buckets;
}

// Finds label values without making strings of them.
struct LabelsLess {
  using is_transparent = void;
  template <typename Left, typename Right>
  bool operator()(const Left& left, const Right& right) const {
    return std::lexicographical_compare(
        left.begin(), left.end(), right.begin(), right.end(),
        [](absl::string_view a, absl::string_view b) { return a < b; });
  }
};

// One metric: its family, and its series by their label values.
struct Family {
  prometheus::Family<prometheus::Counter>* counters = nullptr;
  prometheus::Family<prometheus::Gauge>* gauges = nullptr;
  prometheus::Family<prometheus::Histogram>* histograms = nullptr;
  std::vector<std::string> label_names;
  std::map<std::vector<std::string>, void*, LabelsLess> series;
};

}  // namespace

struct PrometheusMetrics::Impl {
  Impl() {
    for (const Spec& spec : kSpecs) {
      Family family;
      if (spec.labels[0] != '\0') family.label_names = absl::StrSplit(spec.labels, ',');
      switch (spec.kind) {
        case Kind::kCounter:
          family.counters =
              &prometheus::BuildCounter().Name(spec.name).Help(spec.help).Register(registry);
          break;
        case Kind::kGauge:
          family.gauges =
              &prometheus::BuildGauge().Name(spec.name).Help(spec.help).Register(registry);
          break;
        case Kind::kHistogram:
          family.histograms =
              &prometheus::BuildHistogram().Name(spec.name).Help(spec.help).Register(registry);
          break;
      }
      families.push_back(std::move(family));
    }
  }

  static void* Make(Family& family, const prometheus::Labels& labels) {
    if (family.counters != nullptr) return &family.counters->Add(labels);
    if (family.gauges != nullptr) return &family.gauges->Add(labels);
    return &family.histograms->Add(labels, Buckets());
  }

  // The series of these label values.
  void* Series(Metric metric, Labels values) NPUC_REQUIRES(mutex) {
    Family& family = families[static_cast<size_t>(metric)];
    NPUC_CHECK(values.size() == family.label_names.size());
    auto found = family.series.find(values);
    if (found != family.series.end()) return found->second;
    std::vector<std::string> key(values.begin(), values.end());
    if (family.series.size() >= kMaxSeries) {
      key.assign(key.size(), "other");
      found = family.series.find(key);
      if (found != family.series.end()) return found->second;
    }
    prometheus::Labels labels;
    for (size_t i = 0; i < key.size(); ++i) labels[family.label_names[i]] = key[i];
    return family.series[key] = Make(family, labels);
  }

  prometheus::Registry registry;
  Mutex mutex;
  std::vector<Family> families NPUC_GUARDED_BY(mutex);  // by Metric
  std::function<void(Metrics&)> sampler;
  Mutex text_mutex;  // one scrape at a time
};

PrometheusMetrics::PrometheusMetrics() : impl_(std::make_unique<Impl>()) {}
PrometheusMetrics::~PrometheusMetrics() = default;

void PrometheusMetrics::Add(Metric metric, Labels labels, double amount) {
  NPUC_CHECK(kSpecs[static_cast<size_t>(metric)].kind == Kind::kCounter);
  const MutexLock lock(impl_->mutex);
  static_cast<prometheus::Counter*>(impl_->Series(metric, labels))->Increment(amount);
}

void PrometheusMetrics::Set(Metric metric, Labels labels, double value) {
  const MutexLock lock(impl_->mutex);
  void* const series = impl_->Series(metric, labels);
  if (kSpecs[static_cast<size_t>(metric)].kind == Kind::kGauge) {
    static_cast<prometheus::Gauge*>(series)->Set(value);
    return;
  }
  auto* const counter = static_cast<prometheus::Counter*>(series);
  if (value > counter->Value()) counter->Increment(value - counter->Value());
}

void PrometheusMetrics::Observe(Metric metric, Labels labels, double seconds) {
  NPUC_CHECK(kSpecs[static_cast<size_t>(metric)].kind == Kind::kHistogram);
  const MutexLock lock(impl_->mutex);
  static_cast<prometheus::Histogram*>(impl_->Series(metric, labels))->Observe(seconds);
}

void PrometheusMetrics::SetSampler(std::function<void(Metrics&)> sampler) {
  impl_->sampler = std::move(sampler);
}

std::string PrometheusMetrics::Text() {
  const MutexLock lock(impl_->text_mutex);
  if (impl_->sampler) impl_->sampler(*this);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

std::vector<PrometheusMetrics::Description> PrometheusMetrics::List() {
  std::vector<Description> list;
  for (const Spec& spec : kSpecs) {
    list.push_back({spec.name, spec.kind_name, spec.labels, spec.help});
  }
  return list;
}

}  // namespace npuc::observe
