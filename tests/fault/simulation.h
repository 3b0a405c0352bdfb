#ifndef NPUC_TESTS_FAULT_SIMULATION_H_
#define NPUC_TESTS_FAULT_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/fault/sim_store.h"

namespace npuc {

// One simulated life of the job service: the real state machine and scheduler under a random load
// of clients, workers, crashes, failing writes and jumping clocks, all drawn from one seed, in
// virtual time and in one thread. The same seed is the same life on every machine.
struct SimulationOptions {
  Plant plant = Plant::kNone;
  int daemons = 0;  // that share board and store: 1 to 5; 0: several in two lives of five
  // Gets a line for each thing that happens; null: nothing is written.
  std::function<void(const std::string& line)> trace = nullptr;
};

// Returns the first rule that was broken; nullopt where all held.
std::optional<std::string> Simulate(uint64_t seed, const SimulationOptions& options);

// Part of Simulate: tenants with weights that always have jobs waiting, and one that comes late.
std::optional<std::string> SimulateFairness(uint64_t seed, const SimulationOptions& options);

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_SIMULATION_H_
