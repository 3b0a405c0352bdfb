#ifndef NPUC_SERVER_BACKUP_BACKUP_H_
#define NPUC_SERVER_BACKUP_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace npuc::backup {

// Copies of a data directory. A backup is a folder: the parts of the data directory, and
// backup.json, which lists every file with its size and SHA-256 and is written last, so that a
// backup without it is none. The directory's lock is taken where no daemon has it.

inline constexpr char kManifestName[] = "backup.json";
inline constexpr int kBackupFormat = 1;

struct CopiedFiles {
  int64_t files = 0;
  int64_t bytes = 0;
};

struct BackupOptions {
  std::string data_dir;
  std::string version = {};                      // of this program, for backup.json
  absl::Duration patience = absl::Seconds(120);  // for a running daemon's snapshot
};

// Writes a backup into `target`, which must not exist or be empty; it is durable when this returns
// OK. Where a daemon runs on the data directory it makes the snapshot, and serves meanwhile: what
// it had accepted before this call is in the backup. Where none runs the stores are opened here.
// FAILED_PRECONDITION: target is in use. DEADLINE_EXCEEDED: the daemon did not answer.
absl::StatusOr<CopiedFiles> WriteBackup(const BackupOptions& options, const std::string& target);

// Copies a backup into the data directory, which must not exist or be empty. Each file is compared
// with its digest as it is copied. DATA_LOSS names the first file that differs; nothing is left.
absl::StatusOr<CopiedFiles> RestoreBackup(const std::string& source, const std::string& data_dir);

// The findings of a check. Mended: removed, so that jobs compile again and clients upload again.
struct CheckReport {
  int64_t jobs = 0;
  int64_t live_jobs = 0;
  int64_t events = 0;
  int64_t blobs = 0;
  int64_t results = 0;
  int64_t mended = 0;         // damaged blobs and results
  int64_t beyond_repair = 0;  // records of jobs that cannot be read
};

// Reads everything of a data directory on which no daemon runs: each job with its config and its
// events, each upload and each result by its digests. `say` gets a line for each thing that is
// wrong. FAILED_PRECONDITION: a daemon runs. DATA_LOSS: the jobs' database cannot be opened.
absl::StatusOr<CheckReport> CheckData(const std::string& data_dir,
                                      const std::function<void(absl::string_view line)>& say);

}  // namespace npuc::backup

#endif  // NPUC_SERVER_BACKUP_BACKUP_H_
