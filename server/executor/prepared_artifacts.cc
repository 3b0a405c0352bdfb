#include "server/executor/prepared_artifacts.h"

#include <algorithm>
#include <utility>

#include "cache/packed_artifact.h"

namespace npuc {

PreparedArtifacts::PreparedArtifacts(std::vector<WorkerArtifact> artifacts, const Check& check,
                                     HelperThreads& helpers)
    : artifacts_(std::move(artifacts)) {
  std::vector<const WorkerArtifact*> longest_first;
  for (const WorkerArtifact& artifact : artifacts_) longest_first.push_back(&artifact);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [](const WorkerArtifact* a, const WorkerArtifact* b) {
                     return a->bytes->size() > b->bytes->size();
                   });
  for (const WorkerArtifact* artifact : longest_first) {
    const auto packer = std::make_shared<ArtifactPacker>(artifact->name, *artifact->bytes);
    packed_[artifact] = packer->packed();
    for (size_t piece = 0; piece < packer->pieces(); ++piece) {
      packing_.push_back(helpers.Start([packer, piece] { packer->Pack(piece); }));
    }
    if (checking_.has_value() || !check) continue;
    checking_.emplace(helpers.Start([this, check] {
      for (const WorkerArtifact& whole : artifacts_) {
        checked_.Update(check(whole.name, *whole.bytes));
      }
    }));
  }
}

std::vector<ArtifactView> PreparedArtifacts::Packed() {
  // From the end that the helpers have not come to.
  while (!packing_.empty()) {
    packing_.back().Wait();
    packing_.pop_back();
  }
  std::vector<ArtifactView> views;
  for (const WorkerArtifact& artifact : artifacts_) {
    views.push_back({artifact.name, *artifact.bytes, packed_.at(&artifact)});
  }
  return views;
}

absl::Status PreparedArtifacts::Checked() {
  if (checking_.has_value()) checking_->Wait();
  return checked_;
}

}  // namespace npuc
