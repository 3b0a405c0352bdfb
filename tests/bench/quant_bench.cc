// What quantizing a net of the shape of MLPerf Tiny's keyword net costs (seeded weights, 2.7 MMAC a
// sample), every strategy tried: processor time, and peak memory, which must not grow with samples.
//
//   quant_bench [--smoke] [SAMPLES ...]      default: 128 10000
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "compiler_core/base/byte_source.h"
#include "compiler_core/quant/quantize.h"
#include "compiler_core/quant/test_nets_test_util.h"

namespace {

class FileSource : public npuc::ByteSource {
 public:
  explicit FileSource(int fd) : fd_(fd), size_(lseek(fd, 0, SEEK_END)) {}
  int64_t size() const override { return size_; }
  absl::Status Read(int64_t offset, absl::Span<char> to) const override {
    const ssize_t got = pread(fd_, to.data(), to.size(), offset);
    return got == static_cast<ssize_t>(to.size()) ? absl::OkStatus()
                                                  : absl::OutOfRangeError("short read");
  }

 private:
  int fd_;
  int64_t size_;
};

npuc::Graph KeywordGraph() {
  return npuc::MakeKeywordNet(
      {.height = 49, .width = 10, .channels = 64, .blocks = 4, .classes = 12}, 1);
}

// Samples on disk, made by a process of its own, so that making them is not in the peak.
int MakeFile(int64_t samples) {
  char path[] = "/tmp/quant_bench_XXXXXX";
  const int fd = mkstemp(path);
  unlink(path);
  const pid_t child = fork();
  if (child == 0) {
    const std::string bytes = npuc::MakeSamples(KeywordGraph(), samples, 2);
    _exit(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? fd : -1;
}

int Measure(int64_t samples) {
  const int fd = MakeFile(samples);
  if (fd < 0) return 1;
  npuc::Graph graph = KeywordGraph();
  npuc::QuantizeInput input = npuc::InputOf(graph, "");
  input.calibration = {{"", "samples.npy", std::make_shared<FileSource>(fd)}};
  input.options.weight_method = npuc::QuantMethod::kPerChannelSymmetricRestricted;
  input.options.activation_method = npuc::QuantMethod::kPerTensorAsymmetric;
  input.options.activation_strategy = {npuc::QuantStrategy::Kind::kAuto, 0};
  npuc::Diagnostics diagnostics;
  const clock_t start = clock();
  const auto result = npuc::Quantize(input, diagnostics);
  const double seconds = static_cast<double>(clock() - start) / CLOCKS_PER_SEC;
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", std::string(result.status().message()).c_str());
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%lld samples: %.2f s of one processor, peak %.1f MiB, output cosine %.6f\n",
              static_cast<long long>(samples), seconds, static_cast<double>(usage.ru_maxrss) / 1024,
              result->outputs[0].cosine());
  for (const std::string& line : result->log) std::printf("  %s\n", line.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> counts;
  for (int i = 1; i < argc; ++i) {
    counts.push_back(std::strcmp(argv[i], "--smoke") == 0 ? 4 : std::atoll(argv[i]));
  }
  if (counts.empty()) counts = {128, 10000};
  int failed = 0;
  for (const int64_t count : counts) {  // each in a process of its own: peaks do not mix
    const pid_t child = fork();
    if (child == 0) _exit(Measure(count) + (std::fflush(stdout) != 0 ? 1 : 0));
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  return failed;
}
