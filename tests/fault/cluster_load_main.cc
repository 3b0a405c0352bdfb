// Clients of a cluster, which the test that started this program brings down piece by piece;
// README.md says what must hold. Commands come by standard input, a line each: `count` prints how
// many jobs were accepted, `finish` lets each client end its job and reads all again.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/lib/client.h"
#include "compiler_core/base/status.h"
#include "tests/fault/service_load.h"

namespace npuc::fault {
namespace {

struct Settings {
  std::vector<std::string> configs;
  LoadOptions load;
};

bool Print(const ServiceLoad::Report& report, absl::Duration ending) {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  for (const auto& [error, count] : report.errors) {
    std::printf("  clients saw %lld x %s\n", number(count), error.c_str());
  }
  for (const std::string& what : report.broken) std::printf("BROKEN: %s\n", what.c_str());
  std::printf(
      "%lld jobs accepted, %lld succeeded, %lld cancelled, %lld given up after 10 deaths, each "
      "once; %lld run again, %lld cache hits, %lld sends repeated; %lld events without gap, "
      "repeat or change over %lld changes of the node; artifacts as in the quiet run, %lld of them "
      "fetched; the last job ended %.1f s after the last fault; %lld promises broken\n",
      number(report.accepted), number(report.succeeded), number(report.cancelled),
      number(report.given_up), number(report.run_again), number(report.cache_hits),
      number(report.repeated_sends), number(report.events), number(report.reconnects),
      number(report.fetched), absl::ToDoubleSeconds(ending), number(report.broken_count));
  return report.broken_count == 0;
}

absl::StatusOr<bool> Run(const Settings& settings) {
  ASSIGN_OR_RETURN(std::vector<LoadVariant> variants, ReadVariants(settings.configs));
  const std::string& first = settings.load.addresses.front();
  RETURN_IF_ERROR(CompileQuietly(first, variants));
  ServiceLoad load(settings.load, &variants);
  load.Start();
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "finish") {
      const absl::Time begin = absl::Now();
      load.Finish();
      const absl::Duration ending = absl::Now() - begin;
      load.Audit();
      return Print(load.report(), ending);
    }
    std::printf("%lld\n", static_cast<long long>(load.report().accepted));
    std::fflush(stdout);
  }
  return absl::CancelledError("standard input ended without `finish`");
}

int Main(int argc, char** argv) {
  Settings settings;
  settings.load.seed = std::random_device{}();
  CLI::App app("clients of a cluster that breaks", "cluster_load");
  app.add_option("configs", settings.configs, "what to compile")->required();
  app.add_option("--nodes", settings.load.addresses, "addresses, separated by commas")
      ->delimiter(',')
      ->required();
  app.add_option("--clients", settings.load.clients, "at once")->check(CLI::Range(1, 256));
  app.add_flag("--only-retryable", settings.load.only_retryable,
               "nodes stop by the rules: each error must invite a retry");
  app.add_option("--seed", settings.load.seed, "of all that is drawn (default: random)");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<bool> kept = Run(settings);
  if (!kept.ok()) std::fprintf(stderr, "cluster_load: %s\n", kept.status().ToString().c_str());
  return kept.ok() && *kept ? 0 : 1;
}

}  // namespace
}  // namespace npuc::fault

int main(int argc, char** argv) { return npuc::fault::Main(argc, argv); }
