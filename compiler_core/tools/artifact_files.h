#ifndef NPUC_COMPILER_CORE_TOOLS_ARTIFACT_FILES_H_
#define NPUC_COMPILER_CORE_TOOLS_ARTIFACT_FILES_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler_core/base/helper_threads.h"
#include "compiler_core/pipeline/compile.h"
#include "compiler_core/tools/files.h"

namespace npuc {

// Writes the artifacts of a compile: each to a temporary file beside its place as soon as it is
// complete, by a helper thread while the compile makes the next one. `helpers` must outlive this.
class ArtifactFiles : public CompileObserver {
 public:
  struct Options {
    std::filesystem::path folder;
    bool quantization_alone = false;  // no other artifacts than the quantization files
    bool with_sha256 = false;
  };
  ArtifactFiles(Options options, HelperThreads& helpers)
      : options_(std::move(options)), helpers_(helpers) {}

  void OnArtifact(Artifact artifact) override;

  // An artifact in its place.
  struct Written {
    std::string name;
    std::string path;
    uint64_t size_bytes = 0;
    std::string sha256;  // with_sha256
  };
  // Once, when the compile has succeeded. Puts no file in place before all are written, so that a
  // full disk leaves old ones of one compile. Without this call no file is left.
  absl::StatusOr<std::vector<Written>> PutInPlace();

 private:
  struct Pending {
    Written written;
    std::optional<absl::StatusOr<PendingFile>> file;  // once the task is done
    std::optional<HelperThreads::Task> task;          // last, so that it ends before the rest
  };
  void Write(const Artifact& artifact, Pending& pending) const;

  const Options options_;
  HelperThreads& helpers_;
  std::deque<Pending> pending_;
};

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_ARTIFACT_FILES_H_
