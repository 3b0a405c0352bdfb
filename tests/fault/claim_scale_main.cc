// The figures of claims in a large cluster, simulated: README.md says what must hold.
#include <cstdio>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/fault/sim_claims.h"

namespace npuc {
namespace {

constexpr double kTtlSeconds = 10;

// Prints a figure and its goal. Returns whether it is met.
bool Check(const char* what, double figure, bool is_met, const std::string& goal) {
  std::printf("FIGURE: %s: %.3f (%s)%s\n", what, figure, goal.c_str(), is_met ? "" : ": MISSED");
  return is_met;
}

bool CheckAll(const ClaimScaleOptions& options, double most_statements) {
  const ClaimScaleFigures figures = SimulateClaims(options);
  std::printf(
      "%d nodes of %d slots, %lld jobs of %d tenants and %lld guests in %.0f s, seed %llu\n",
      options.nodes, options.slots, static_cast<long long>(options.jobs), options.tenants,
      static_cast<long long>(figures.guests), figures.seconds,
      static_cast<unsigned long long>(options.seed));
  double all = 0;
  for (const auto& [kind, count] : figures.statements) {
    std::printf("statements a second: %-34s %8.1f\n", kind.c_str(), count);
    all += count;
  }
  std::printf("statements a second: %-34s %8.1f\n", "all", all);
  bool is_met = Check("jobs that did not end", static_cast<double>(figures.not_ended),
                      figures.not_ended == 0, "0");
  is_met &= Check("Jain index of the tenants' shares by their weights, least", figures.least_jain,
                  figures.least_jain >= 0.95, "at least 0.95");
  is_met &= Check("a weight's share off by, at most", figures.weights_error,
                  figures.weights_error <= 0.05, "0.05");
  const double guest_s = options.mean_s + 1.5;
  std::printf("a guest waited for %.2f s on average\n", figures.mean_guest_s);
  is_met &= Check("a guest waited for, at most, seconds", figures.worst_guest_s,
                  figures.guests > 0 && figures.worst_guest_s <= guest_s,
                  "a mean run and 1.5 s: " + std::to_string(guest_s));
  is_met &= Check("slots that were busy while jobs waited", figures.busy, figures.busy >= 0.98,
                  "at least 0.98");
  std::printf("%lld runs were lost with a tenth of the nodes\n",
              static_cast<long long>(figures.lost_runs));
  is_met &= Check("the last of them ran again after, seconds", figures.recovery_s,
                  figures.recovery_s > 0 && figures.recovery_s <= kTtlSeconds + 10,
                  "the time to live and 10 s: 20");
  is_met &= Check("statements a second, at most", figures.most_statements,
                  figures.most_statements <= most_statements,
                  std::to_string(static_cast<int>(most_statements)));
  return is_met;
}

}  // namespace
}  // namespace npuc

int main(int argc, char** argv) {
  npuc::ClaimScaleOptions options;
  double most_statements = 15000;
  CLI::App app("Simulates claims in a large cluster; exit 1 where a goal is missed.");
  app.add_option("--nodes", options.nodes);
  app.add_option("--slots", options.slots, "of a node");
  app.add_option("--jobs", options.jobs);
  app.add_option("--tenants", options.tenants);
  app.add_option("--mean-seconds", options.mean_s, "of a run");
  app.add_option("--guests-per-second", options.guests_per_s);
  app.add_option("--seed", options.seed);
  app.add_option("--most-statements", most_statements, "a second");
  using npuc::ClaimPlant;
  const std::map<std::string, ClaimPlant> plants = {{"least", ClaimPlant::kLeast},
                                                    {"old-views", ClaimPlant::kOldViews},
                                                    {"deaf", ClaimPlant::kDeaf}};
  app.add_option("--plant", options.plant, "a mistake that must be found")
      ->transform(CLI::CheckedTransformer(plants));
  CLI11_PARSE(app, argc, argv);
  return npuc::CheckAll(options, most_statements) ? 0 : 1;
}
