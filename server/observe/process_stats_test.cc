#include "server/observe/process_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "gtest/gtest.h"

namespace npuc::observe {
namespace {

class Kept : public NoMetrics {
 public:
  void Set(Metric metric, Labels labels, double value) override { values[metric] = value; }
  std::map<Metric, double> values;
};

std::map<Metric, double> Look() {
  Kept kept;
  SampleProcess(kept);
  return kept.values;
}

TEST(ProcessStatsTest, SaysWhatTheKernelSays) {
  auto before = Look();
  EXPECT_GT(before[Metric::kProcessResidentBytes], 1 << 20);
  EXPECT_GT(before[Metric::kProcessVirtualBytes], before[Metric::kProcessResidentBytes]);
  EXPECT_GT(before[Metric::kProcessMaxFds], before[Metric::kProcessOpenFds]);
  const double now = static_cast<double>(std::chrono::duration_cast<std::chrono::seconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count());
  EXPECT_NEAR(before[Metric::kProcessStartSeconds], now, 3600);
  EXPECT_LT(before[Metric::kProcessStartSeconds], now + 2);

  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  // Counted beside a first thread, with which ThreadSanitizer starts one of its own.
  double one = 0;
  double two = 0;
  std::thread([&] {
    one = Look()[Metric::kProcessThreads];
    std::thread([&] { two = Look()[Metric::kProcessThreads]; }).join();
  }).join();
  auto after = Look();
  close(fd);
  EXPECT_EQ(after[Metric::kProcessOpenFds], before[Metric::kProcessOpenFds] + 1);
  EXPECT_EQ(two, one + 1);
  EXPECT_GE(after[Metric::kProcessCpuSeconds], before[Metric::kProcessCpuSeconds]);
}

}  // namespace
}  // namespace npuc::observe
