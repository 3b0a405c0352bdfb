#include "compiler_core/backends/dead_channels.h"

#include "absl/strings/str_cat.h"

namespace npuc {

std::string DeadChannelsNote(const KeptChannels& kept, const Graph& before, const Graph& after) {
  const ChannelWork all = WorkOfProducts(before);
  const ChannelWork left = WorkOfProducts(after);
  return absl::StrCat(kept.removed, " of ", kept.total,
                      " channels change no output and are left out: each always is one number, or "
                      "only zero weights read it; multiply-adds fall from ",
                      all.macs, " to ", left.macs, ", weights from ", all.weights, " to ",
                      left.weights, "; KEEP_DEAD: true compiles them");
}

}  // namespace npuc
