#ifndef NPUC_TESTS_FAULT_SIM_CLAIMS_H_
#define NPUC_TESTS_FAULT_SIM_CLAIMS_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/scheduler/claim_planner.h"

namespace npuc {

// A mistake that the simulation must find.
enum class ClaimPlant : uint8_t {
  kNone,
  kLeast,     // nodes take the tenant that was the least in their views
  kOldViews,  // a view is read once
  kDeaf,      // a node does not hear of the jobs that it accepts
};

struct ClaimScaleOptions {
  int nodes = 1000;
  int slots = 8;  // of a node
  int64_t jobs = 10'000'000;
  int tenants = 1000;
  double mean_s = 6;  // of a run
  double guests_per_s = 2;
  uint64_t seed = 1;
  ClaimPlant plant = ClaimPlant::kNone;
};

struct ClaimScaleFigures {
  int64_t ended = 0;
  int64_t not_ended = 0;  // in three times the time that the slots need
  int64_t guests = 0;
  double seconds = 0;        // of virtual time
  double least_jain = 1;     // of the tenants that had work all along, by windows
  double weights_error = 0;  // of a weight's share, the worst of all windows
  double worst_guest_s = 0;  // from a guest's submit to its start
  double mean_guest_s = 0;
  double busy = 0;  // share of the slots that were busy while jobs waited
  int64_t lost_runs = 0;
  double recovery_s = 0;       // from the loss of nodes until the last lost job runs again
  double most_statements = 0;  // in a second, the worst of all windows
  std::map<std::string, double> statements;  // in a second, on average, by kind
};

// Many nodes that claim jobs by ClaimPlanner from a model of `server/pg`'s board, in virtual time.
// A tenth of the nodes dies midway.
ClaimScaleFigures SimulateClaims(const ClaimScaleOptions& options);

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_SIM_CLAIMS_H_
