// Clang must refuse this file: see the test unguarded_access_is_refused.
#include "compiler_core/base/mutex.h"

namespace npuc {

struct Counter {
  Mutex mutex;
  int count NPUC_GUARDED_BY(mutex) = 0;
};

int Count(const Counter& counter) { return counter.count; }

}  // namespace npuc
