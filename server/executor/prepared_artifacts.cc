#include "server/executor/prepared_artifacts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cache/packed_artifact.h"

namespace npuc {

PreparedArtifacts::PreparedArtifacts(std::vector<WorkerArtifact> artifacts, const Check& check,
                                     HelperThreads& helpers)
    : artifacts_(std::move(artifacts)) {
  std::vector<std::shared_ptr<ArtifactPacker>> longest_first;
  for (const WorkerArtifact& artifact : artifacts_) {
    const auto packer = std::make_shared<ArtifactPacker>(artifact.name, *artifact.bytes);
    views_.push_back({artifact.name, *artifact.bytes, packer->packed()});
    longest_first.push_back(packer);
  }
  std::stable_sort(longest_first.begin(), longest_first.end(), [](const auto& a, const auto& b) {
    return a->packed()->item.info.size_bytes > b->packed()->item.info.size_bytes;
  });
  for (const std::shared_ptr<ArtifactPacker>& packer : longest_first) {
    for (size_t piece = 0; piece < packer->pieces(); ++piece) {
      packing_.push_back(helpers.Start([packer, piece] { packer->Pack(piece); }));
    }
    if (checking_.has_value() || !check) continue;
    checking_.emplace(helpers.Start([this, check] {
      for (const WorkerArtifact& artifact : artifacts_) {
        checked_.Update(check(artifact.name, *artifact.bytes));
      }
    }));
  }
}

const std::vector<ArtifactView>& PreparedArtifacts::Packed() {
  // From the end that the helpers have not come to.
  while (!packing_.empty()) {
    packing_.back().Wait();
    packing_.pop_back();
  }
  return views_;
}

absl::Status PreparedArtifacts::Checked() {
  if (checking_.has_value()) checking_->Wait();
  return checked_;
}

}  // namespace npuc
