// job_simulation: many simulated lives of the job service (simulation.h), to find one that breaks a
// rule.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fault/sim_board.h"
#include "tests/fault/simulation.h"

namespace npuc {
namespace {

constexpr char kHelp[] = R"(job_simulation: simulated lives of the job service, one a seed

  --seeds N     how many (10000)
  --first N     the first seed (1)
  --jobs N      threads (1)
  --daemons N   that share a board: 1 to 5, or 0, several in two lives of five (0)
  --trace SEED  tells what happens in one life, and ends
  --plant NAME  with a planted mistake, which must be found; "list" names them

Exit code 0: no rule was broken. 1: some were; the first ones are told, one in full. 2: usage.
)";

constexpr int64_t kToldViolations = 20;
constexpr uint64_t kSeedsAtOnce = 50;
constexpr uint64_t kSeedsPerReport = 100000;

struct Arguments {
  uint64_t seeds = 10000;
  uint64_t first = 1;
  uint64_t jobs = 1;
  std::optional<uint64_t> trace = std::nullopt;
  SimulationOptions options;
};

std::optional<Plant> PlantOf(absl::string_view name) {
  for (int i = 0; i < kPlants; ++i) {
    if (name == PlantName(static_cast<Plant>(i))) return static_cast<Plant>(i);
  }
  return std::nullopt;
}

// nullopt: the help was asked for, or is needed.
std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    uint64_t number = 0;
    if (name == "--plant") {
      const auto plant = PlantOf(argv[i + 1]);
      if (!plant.has_value()) {
        for (int p = 0; p < kPlants; ++p) std::cout << PlantName(static_cast<Plant>(p)) << "\n";
        return std::nullopt;
      }
      arguments.options.plant = *plant;
      continue;
    }
    if (!absl::SimpleAtoi(argv[i + 1], &number)) return std::nullopt;
    if (name == "--seeds") {
      arguments.seeds = number;
    } else if (name == "--first") {
      arguments.first = number;
    } else if (name == "--jobs" && number >= 1 && number <= 256) {
      arguments.jobs = number;
    } else if (name == "--daemons" && number <= kMaxDaemons) {
      arguments.options.daemons = static_cast<int>(number);
    } else if (name == "--trace") {
      arguments.trace = number;
    } else {
      return std::nullopt;
    }
  }
  if (argc % 2 == 0) return std::nullopt;
  return arguments;
}

std::optional<std::string> Tell(uint64_t seed, SimulationOptions options) {
  options.trace = [](const std::string& line) { std::cout << "  " << line << "\n"; };
  std::cout << "seed " << seed << ":\n";
  const auto broken = Simulate(seed, options);
  std::cout << "seed " << seed << ": " << broken.value_or("every rule held") << "\n";
  return broken;
}

int RunAll(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;
  int64_t violations = 0;
  uint64_t first_seed = 0;
  const auto work = [&] {
    while (true) {
      const uint64_t from = next.fetch_add(kSeedsAtOnce);
      if (from >= arguments.seeds) return;
      if (from > 0 && from % kSeedsPerReport == 0) {
        std::lock_guard<std::mutex> lock(mutex);
        std::cout << from << " seeds, " << violations << " violations" << std::endl;
      }
      for (uint64_t i = from; i < std::min(from + kSeedsAtOnce, arguments.seeds); ++i) {
        const uint64_t seed = arguments.first + i;
        const auto broken = Simulate(seed, arguments.options);
        if (!broken.has_value()) continue;
        std::lock_guard<std::mutex> lock(mutex);
        if (violations == 0) first_seed = seed;
        if (++violations <= kToldViolations)
          std::cout << "seed " << seed << ": " << *broken << "\n";
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < arguments.jobs; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (violations > 0) (void)Tell(first_seed, arguments.options);
  std::printf("%llu seeds, %lld violations, %.1f s, %.0f seeds/s\n",
              static_cast<unsigned long long>(arguments.seeds), static_cast<long long>(violations),
              seconds, static_cast<double>(arguments.seeds) / seconds);
  return violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  const auto arguments = npuc::Parse(argc, argv);
  if (!arguments.has_value()) {
    std::cerr << npuc::kHelp;
    return 2;
  }
  if (arguments->trace.has_value()) {
    return npuc::Tell(*arguments->trace, arguments->options).has_value() ? 1 : 0;
  }
  return npuc::RunAll(*arguments);
}
