#ifndef NPUC_SERVER_OBSERVE_SAMPLER_H_
#define NPUC_SERVER_OBSERVE_SAMPLER_H_

#include <functional>
#include <vector>

#include "compiler_core/base/mutex.h"
#include "server/observe/metrics.h"

namespace npuc::observe {

// Metrics that are looked up at each scrape rather than counted. A part of the daemon adds what it
// knows once it is there, and may be asked from then on, on any thread. Thread-safe.
class Sampler {
 public:
  using Source = std::function<void(Metrics& metrics)>;

  // Everything that `source` uses must outlive the scrapes.
  void Add(Source source) {
    const MutexLock lock(mutex_);
    sources_.push_back(std::move(source));
  }

  // Sets every sampled metric. The sources are asked in the order in which they came.
  void Sample(Metrics& metrics) const {
    std::vector<Source> sources;
    {
      const MutexLock lock(mutex_);
      sources = sources_;
    }
    for (const Source& source : sources) source(metrics);
  }

 private:
  mutable Mutex mutex_;
  std::vector<Source> sources_ NPUC_GUARDED_BY(mutex_);
};

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_SAMPLER_H_
