#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_HEADS_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_HEADS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "compiler_core/boxes/box_settings.h"
#include "compiler_core/frontends/darknet/layer_options.h"
#include "compiler_core/frontends/darknet/net_plan.h"

namespace npuc::darknet {

// The facts that [yolo], [region] and their kin state of the values that they decode.
struct Head {
  int64_t boxes = 1;  // at each place
  int64_t classes = 20;
  int64_t coords = 4;
  std::string mask;     // as written; empty: all anchors
  std::string anchors;  // as written
  int64_t values() const { return coords + 1 + classes; }
};
Head ReadHead(LayerOptions& options);
bool IsHead(absl::string_view type);

// Adds the settings by which the layer's boxes are decoded, from `output`. False: the decoder does
// not have its form, or not beside the heads that are there already.
bool AddHeadTo(LayerOptions& options, const std::string& output, bool is_first,
               BoxSettings& settings);

// A sentence about a layer that decodes boxes: the output that it would read, and what that holds.
std::string DescribeHead(LayerOptions& options, const Layer& layer, absl::string_view output);

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_HEADS_H_
