#ifndef NPUC_SERVER_WORKER_SANDBOX_H_
#define NPUC_SERVER_WORKER_SANDBOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace npuc::worker {

// What shuts a worker in, beside what every Linux has (rlimits, no new privileges, no descriptors
// but its own). Each is tried when the warm parent starts; what works is then used for every run,
// and a run for which it fails does not start. README.md says how each is built.
enum class Mechanism : uint8_t {
  kUserNamespace = 0,
  kPidNamespace = 1,
  kNetworkNamespace = 2,
  kIpcNamespace = 3,  // and the host's name
  kFileView = 4,
  kOutputFolder = 5,
  kOwnUser = 6,
  kSystemCalls = 7,
  kLandlock = 8,
};
inline constexpr uint32_t kMechanismCount = 9;
inline constexpr uint32_t kAllMechanisms = (1u << kMechanismCount) - 1;

constexpr uint32_t Bit(Mechanism mechanism) { return 1u << static_cast<uint32_t>(mechanism); }

struct MechanismInfo {
  Mechanism mechanism;
  absl::string_view name;  // as in the log and the documentation: "seccomp"
  absl::string_view lost;  // what a host without it loses, one clause
  // SandboxMode::kRequire refuses a host without it. The others are second walls.
  bool required;
};

// In the order of the enumeration.
absl::Span<const MechanismInfo> AllMechanisms();
const MechanismInfo& InfoOf(Mechanism mechanism);

// What a warm parent found on its host.
struct SandboxReport {
  struct Missing {
    Mechanism mechanism = Mechanism::kUserNamespace;
    std::string why;  // "clone: Operation not permitted"
  };
  uint32_t in_force = 0;  // bits
  // One that is neither in force nor missing has no meaning here: a user of its own, where the
  // daemon is not root.
  std::vector<Missing> missing;

  bool Has(Mechanism mechanism) const { return (in_force & Bit(mechanism)) != 0; }
  // "user namespace, pid namespace": those in force.
  std::string NamesInForce() const;
};

// What to do on a host that lacks a mechanism.
enum class SandboxMode : uint8_t {
  kRequire,     // start only where every required mechanism works
  kBestEffort,  // use what there is; the caller tells what is missing
};

}  // namespace npuc::worker

#endif  // NPUC_SERVER_WORKER_SANDBOX_H_
