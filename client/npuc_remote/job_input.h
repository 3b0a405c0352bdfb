#ifndef NPUC_CLIENT_NPUC_REMOTE_JOB_INPUT_H_
#define NPUC_CLIENT_NPUC_REMOTE_JOB_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/lib/local_file.h"
#include "client/npuc_remote/options.h"
#include "compiler_core/base/diagnostic.h"
#include "npuc/v1/compile.pb.h"

namespace npuc::remote {

// What a config asks for, read from this machine.
struct JobInput {
  v1::CompileJobSpec spec;  // config, digests and names; nothing of the command line
  std::vector<client::LocalFile> files;
  std::string output_folder;  // that of OUTPUT_FILE, as npuc has it
};

void SetDigest(const client::LocalFile& file, v1::BlobDigest& digest);

// Reads the config at `path` ("-": standard input) and describes the files that it names, which are
// relative to the config's folder. Every problem goes to `diagnostics`; the status repeats the
// first.
absl::StatusOr<JobInput> ReadJobInput(const std::string& path, Diagnostics& diagnostics);

// Adds what the command line and SOURCE_DATE_EPOCH say. INVALID_ARGUMENT: a SOURCE_DATE_EPOCH that
// is no number of seconds.
absl::Status AddOptions(const Options& options, v1::CompileJobSpec& spec);

}  // namespace npuc::remote

#endif  // NPUC_CLIENT_NPUC_REMOTE_JOB_INPUT_H_
