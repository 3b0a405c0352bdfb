#ifndef NPUC_COMPILER_CORE_IR_COMPASS_CHECK_H_
#define NPUC_COMPILER_CORE_IR_COMPASS_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "compiler_core/ir/compass/document.h"

namespace npuc::compass {

// Everything that is wrong with a document, each with line and layer. bin_bytes: the length of its
// .bin; nullopt where that is not there, and constants are only compared with each other.
absl::Status CheckDocument(const Document& document, std::optional<int64_t> bin_bytes,
                           absl::string_view file_name, Diagnostics& diagnostics);

// True for a layer type that is a function of each element of its one bottom, and that needs no
// attribute: "Exp". Case counts.
bool IsFunctionType(absl::string_view type);

// --- what check.cc and check_layers.cc share ---

// A layer as far as its general keys could be read.
struct LayerView {
  const Block* block = nullptr;
  std::string name;
  std::string type;
  std::vector<Shape> bottoms;  // shapes as written
  std::vector<Shape> tops;
};

class LayerReporter {
 public:
  LayerReporter(absl::string_view file_name, Diagnostics& diagnostics)
      : file_name_(file_name), diagnostics_(diagnostics) {}
  // `entry` null: of the whole layer.
  void Report(const LayerView& layer, const Entry* entry, std::string message,
              std::string fix = {});

 private:
  std::string file_name_;
  Diagnostics& diagnostics_;
};

// Attributes of the layer types that this project knows, and shapes that follow from them.
void CheckLayerType(const LayerView& layer, LayerReporter& reporter);

}  // namespace npuc::compass

#endif  // NPUC_COMPILER_CORE_IR_COMPASS_CHECK_H_
