#include "server/executor/prepared_artifacts.h"

#include <algorithm>
#include <utility>

#include "cache/packed_artifact.h"

namespace npuc {

PreparedArtifacts::PreparedArtifacts(std::vector<WorkerArtifact> artifacts, const Check& check,
                                     HelperThreads& helpers)
    : artifacts_(std::move(artifacts)) {
  for (const WorkerArtifact& artifact : artifacts_) {
    views_.push_back({artifact.name, *artifact.bytes});
  }
  std::vector<ArtifactView*> longest_first;
  for (ArtifactView& view : views_) longest_first.push_back(&view);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [](const ArtifactView* a, const ArtifactView* b) {
                     return a->bytes.size() > b->bytes.size();
                   });
  for (ArtifactView* view : longest_first) {
    packing_.push_back(
        helpers.Start([view] { view->packed = PackArtifact(view->name, view->bytes); }));
    if (checking_.has_value() || !check) continue;
    checking_.emplace(helpers.Start([this, check] {
      for (const WorkerArtifact& artifact : artifacts_) {
        checked_.Update(check(artifact.name, *artifact.bytes));
      }
    }));
  }
}

const std::vector<ArtifactView>& PreparedArtifacts::Packed() {
  // From the end that the helper has not come to.
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
