#ifndef NPUC_CLIENT_NPUC_REMOTE_BATCH_H_
#define NPUC_CLIENT_NPUC_REMOTE_BATCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/lib/client.h"
#include "client/npuc_remote/commands.h"
#include "client/npuc_remote/console.h"
#include "client/npuc_remote/options.h"

namespace npuc::remote {

// One config of many: the file, and the folder below `-o DIR` that its artifacts go to.
struct BatchItem {
  std::string config;
  std::string folder;
};

// The configs that paths stand for: a file for itself, a folder for its *.yaml, *.yml and *.cfg
// files in order of their names (folders in it are not entered). Folders of artifacts are the
// files' names without the ending, with the names of folders above in front where two would be the
// same. INVALID_ARGUMENT: a folder without configs, "-" among others, one file twice, more than
// 10,000.
absl::StatusOr<std::vector<BatchItem>> ExpandConfigs(const std::vector<std::string>& paths);

// compile and submit of many configs. Keeps options.jobs of them on the server at a time, waits for
// them in order, fetches, and prints a line for each and a table at the end; with --json an object
// a job (JobJson, and `config`), and at last {"summary": {...}}. A config that is refused or fails
// does not keep the others from their ends. Returns the weightiest exit code: 4, 2, 3, 5, 1, 0.
ExitCode RunBatch(client::Client& client, const std::vector<BatchItem>& items,
                  const Options& options, Console& console);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_BATCH_H_
