#include "server/executor/prepared_artifacts.h"

#include <memory>

#include "cache/packed_artifact.h"

namespace npuc::executor {
namespace {

// From the end that the helpers have not come to.
void WaitFor(std::vector<HelperThreads::Task>& tasks) {
  for (; !tasks.empty(); tasks.pop_back()) tasks.back().Wait();
}

}  // namespace

void PreparedArtifacts::Add(const worker::WorkerArtifact& artifact) {
  Item& item = items_.emplace_back(Item{.artifact = artifact, .found = {}});
  const absl::string_view name = item.artifact.name, bytes = *item.artifact.bytes;
  const auto packer = std::make_shared<cache::ArtifactPacker>(name, bytes);
  views_.push_back({name, bytes, packer->packed()});
  for (size_t piece = 0; piece < packer->pieces(); ++piece) {
    packing_.push_back(helpers_.Start([packer, piece] { packer->Pack(piece); }));
  }
  if (!check_) return;
  checking_.push_back(
      helpers_.Start([this, &item, name, bytes] { item.found = check_(name, bytes); }));
}

const std::vector<cache::ArtifactView>& PreparedArtifacts::Packed() {
  WaitFor(packing_);
  return views_;
}

absl::Status PreparedArtifacts::Checked() {
  WaitFor(checking_);
  absl::Status first;
  for (const Item& item : items_) first.Update(item.found);
  return first;
}

}  // namespace npuc::executor
