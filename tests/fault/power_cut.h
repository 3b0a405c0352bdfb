#ifndef NPUC_TESTS_FAULT_POWER_CUT_H_
#define NPUC_TESTS_FAULT_POWER_CUT_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace npuc::fault {

// What a power cut would leave. A process that is killed leaves all that it wrote, since the kernel
// keeps it; power_cut_preload.so, put into npucd by LD_PRELOAD, notes which bytes of which file
// were synced, and DropUnsynced takes the others away once the process is dead.
//
// The table is a file that both map: it outlives a SIGKILL. One entry a file that was opened for
// writing, found by inode, since names change.
struct SyncedFile {
  std::atomic<uint64_t> inode;  // 0: free
  std::atomic<uint64_t> synced_bytes;
  std::atomic<uint64_t> folder;    // inode of the folder that has its name
  std::atomic<uint32_t> is_named;  // the folder was synced since it got the name
};
inline constexpr uint64_t kSyncTableSlots = 1 << 15;
inline constexpr char kSyncTableEnv[] = "NPUC_POWER_CUT_TABLE";
// Where it is set, syncs of files named *.log are not noted: a mistake for the test to find.
inline constexpr char kDeafToLogsEnv[] = "NPUC_POWER_CUT_DEAF_TO_LOGS";

struct CutReport {
  uint64_t files_cut = 0;
  uint64_t files_gone = 0;
  uint64_t bytes_dropped = 0;
};

// Takes from every regular file below `folder` what was not synced: files without a durable name go
// as a whole; of the bytes behind the last sync all go, or (as `random` decides) all but a prefix,
// as a disk may have had time for some. What the table does not know was never opened for writing
// and stays. Not taken back: renames, removals and new folders; a crash may keep those.
absl::StatusOr<CutReport> DropUnsynced(const std::string& table, const std::string& folder,
                                       uint64_t random);

}  // namespace npuc::fault

#endif  // NPUC_TESTS_FAULT_POWER_CUT_H_
