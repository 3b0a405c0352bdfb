#include "compiler_core/tools/artifact_files.h"

#include <utility>

#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"

namespace npuc {

void ArtifactFiles::OnArtifact(Artifact artifact) {
  const bool is_quantization =
      artifact.name == "opt_template.json" || artifact.name == "statistics.json";
  if (options_.quantization_alone && !is_quantization) return;
  Pending& pending = pending_.emplace_back();
  pending.task.emplace(helpers_.Start(
      [this, &pending, artifact = std::move(artifact)] { Write(artifact, pending); }));
}

void ArtifactFiles::Write(const Artifact& artifact, Pending& pending) const {
  Written& written = pending.written;
  written.name = artifact.name;
  written.path = (options_.folder / artifact.name).string();
  std::optional<Sha256Stream> digest;
  if (options_.with_sha256) digest.emplace();
  pending.file.emplace(PendingFile::Write(written.path, [&](const ByteSink& sink) {
    return artifact.write([&](absl::string_view piece) {
      written.size_bytes += piece.size();
      if (digest.has_value()) digest->Update(piece);
      return sink(piece);
    });
  }));
  if (digest.has_value()) written.sha256 = digest->FinishHex();
}

absl::StatusOr<std::vector<ArtifactFiles::Written>> ArtifactFiles::PutInPlace() {
  for (Pending& pending : pending_) pending.task->Wait();
  for (const Pending& pending : pending_) RETURN_IF_ERROR(pending.file->status());
  std::vector<Written> written;
  for (Pending& pending : pending_) {
    RETURN_IF_ERROR((*pending.file)->PutInPlace());
    written.push_back(std::move(pending.written));
  }
  return written;
}

}  // namespace npuc
