#include "server/worker/sandbox.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_join.h"

namespace npuc::worker {
namespace {

constexpr MechanismInfo kInfos[] = {
    {Mechanism::kUserNamespace, "user namespace",
     "workers are shut in with the daemon's own privileges, where it has any", false},
    {Mechanism::kPidNamespace, "pid namespace",
     "a worker can name other processes, and what it leaves behind is hunted by number", true},
    {Mechanism::kNetworkNamespace, "network namespace",
     "a worker is kept off the network by seccomp alone", true},
    {Mechanism::kIpcNamespace, "ipc namespace",
     "a worker shares System V objects and message queues with the host", true},
    {Mechanism::kFileView, "file view",
     "a worker sees the host's files, and its user's rights alone protect them", true},
    {Mechanism::kOutputFolder, "output folder",
     "output is limited by measuring it every 100 ms, not by the size of its file system", true},
    {Mechanism::kOwnUser, "own user", "workers run as root, without root's capabilities", true},
    {Mechanism::kSystemCalls, "seccomp", "a worker may make every system call", true},
    {Mechanism::kLandlock, "landlock", "there is no second wall behind the file view", false},
};
static_assert(std::size(kInfos) == kMechanismCount);

}  // namespace

absl::Span<const MechanismInfo> AllMechanisms() { return kInfos; }

const MechanismInfo& InfoOf(Mechanism mechanism) { return kInfos[static_cast<size_t>(mechanism)]; }

std::string SandboxReport::NamesInForce() const {
  std::vector<absl::string_view> names;
  for (const MechanismInfo& info : kInfos) {
    if (Has(info.mechanism)) names.push_back(info.name);
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace npuc::worker
