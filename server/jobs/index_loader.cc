#include "server/jobs/index_loader.h"

#include <utility>

namespace npuc::jobs {

IndexLoader::IndexLoader(IndexedJobStore* store, IndexLoaderOptions options)
    : store_(store), options_(std::move(options)), thread_([this] { Loop(); }) {}

IndexLoader::~IndexLoader() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void IndexLoader::Start() {
  {
    const MutexLock lock(mutex_);
    is_wanted_ = true;
  }
  changed_.NotifyAll();
}

void IndexLoader::Loop() {
  const auto is_stopping = [this] {
    const MutexLock lock(mutex_);
    return stopping_;
  };
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (!is_wanted_ && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      is_wanted_ = false;
    }
    const absl::Status loaded = store_->Load(is_stopping);
    if (is_stopping()) return;
    options_.on_try(loaded);
    if (loaded.ok()) continue;
    const SteadyTime next = SteadyTimeAfter(absl::ToChronoNanoseconds(options_.pause));
    const MutexLock lock(mutex_);
    is_wanted_ = true;
    while (!stopping_ && changed_.WaitUntil(mutex_, next)) {
    }
  }
}

}  // namespace npuc::jobs
