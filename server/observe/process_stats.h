#ifndef NPUC_SERVER_OBSERVE_PROCESS_STATS_H_
#define NPUC_SERVER_OBSERVE_PROCESS_STATS_H_

#include "server/observe/metrics.h"

namespace npuc::observe {

// Sets the metrics process_* of this process, as Prometheus' client libraries name them, from
// /proc/self. What cannot be read is left out.
void SampleProcess(Metrics& metrics);

}  // namespace npuc::observe

#endif  // NPUC_SERVER_OBSERVE_PROCESS_STATS_H_
