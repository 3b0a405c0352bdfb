// npucd that sleeps for a random while where threads meet, at cancel, finish and shutdown, so that
// orders come up that are rare otherwise. For the sanitizers.
#include <poll.h>

#include <random>

#include "server/daemon.h"

namespace npuc {
namespace {

// Mostly not at all, now and then long enough for others to overtake.
void Delay(absl::string_view point) {
  thread_local std::mt19937_64 random(std::random_device{}());
  if (random() % 3 == 0) poll(nullptr, 0, static_cast<int>(random() % 40));
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  return npuc::daemon::RunDaemon(argc, argv, {.pause = npuc::Delay});
}
