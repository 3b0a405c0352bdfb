#include "server/observe/process_stats.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace npuc::observe {
namespace {

std::string ReadProc(const char* path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// "btime 1700000000" of /proc/stat; 0 where it is not there.
double BootTime() {
  for (const absl::string_view line : absl::StrSplit(ReadProc("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double seconds = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &seconds)) {
      return seconds;
    }
  }
  return 0;
}

// proc(5): fields 20 (threads), 22 (start in ticks), 23 (bytes) and 24 (pages) of /proc/self/stat;
// the second is a name in parentheses, with any bytes in it.
void SampleStat(Metrics& metrics) {
  static const double boot_time = BootTime();
  const std::string text = ReadProc("/proc/self/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(text).substr(name_end + 1), ' ', absl::SkipWhitespace());
  constexpr size_t kFirst = 3;  // the number of fields[0]
  const auto set = [&](Metric metric, size_t field, double scale, double offset) {
    double value = 0;
    if (field - kFirst < fields.size() && absl::SimpleAtod(fields[field - kFirst], &value)) {
      metrics.Set(metric, {}, offset + scale * value);
    }
  };
  set(Metric::kProcessThreads, 20, 1, 0);
  set(Metric::kProcessStartSeconds, 22, 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK)), boot_time);
  set(Metric::kProcessVirtualBytes, 23, 1, 0);
  set(Metric::kProcessResidentBytes, 24, static_cast<double>(sysconf(_SC_PAGESIZE)), 0);
}

}  // namespace

void SampleProcess(Metrics& metrics) {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    metrics.Set(Metric::kProcessCpuSeconds, {}, Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  SampleStat(metrics);
  std::error_code error;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", error);
  if (!error) {
    // Without that of the look itself.
    const auto open = std::distance(begin(descriptors), end(descriptors)) - 1;
    metrics.Set(Metric::kProcessOpenFds, {}, static_cast<double>(open));
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    metrics.Set(Metric::kProcessMaxFds, {}, static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace npuc::observe
