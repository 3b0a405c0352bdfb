#ifndef NPUC_COMPILER_CORE_FRONTENDS_DARKNET_NET_PLAN_H_
#define NPUC_COMPILER_CORE_FRONTENDS_DARKNET_NET_PLAN_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/frontends/darknet/cfg_file.h"
#include "compiler_core/frontends/darknet/layer_options.h"

namespace npuc::darknet {

// The result of a layer for one item: an image of c channels, or where c is 0 a row of `count`
// values.
struct Size {
  int64_t c = 0;
  int64_t h = 0;
  int64_t w = 0;
  int64_t count = 0;

  static Size Image(int64_t c, int64_t h, int64_t w);
  static Size Row(int64_t count) { return {0, 0, 0, count}; }
  bool is_image() const { return c > 0; }
  bool SamePlaces(const Size& other) const { return h == other.h && w == other.w; }
  std::vector<int64_t> Dims(int64_t batch = 1) const;
  bool operator==(const Size&) const = default;
};

struct LayerType;

// One layer, as it follows from the .cfg alone: sizes, what it reads, where its weights lie.
struct Layer {
  const Section* section = nullptr;
  const LayerType* type = nullptr;  // null: there is no such type
  std::string name;                 // "convolutional_0"
  std::vector<int> sources = {};    // layers whose results it reads; -1 is the net's input
  Size in = {};                     // what the layer in front of it gives
  Size out = {};
  int64_t weights_at = 0;  // in floats, behind the file's head
  int64_t weight_count = 0;
};

// The two programs that write such files. They agree but for the order of the weights of
// [batchnorm], [gru] and [lstm], and keys that the fork alone has.
enum class Dialect : uint8_t { kOriginal, kFork };

struct NetPlan {
  Dialect dialect = Dialect::kOriginal;
  Size input;
  std::vector<Layer> layers;
  int64_t weight_count = 0;  // floats of all layers
  std::vector<int> outputs;  // the layers that the net's user wants: in front of heads, the last
  std::vector<int> heads;    // layers that decode boxes
};

// The plan of a net for an input of another size than [net] states, or for that (Size()). What
// cannot be is reported, and so are keys that nobody reads; a plan with errors is of no use.
// `count`: how many layers are planned, from the first; those behind are not looked at.
NetPlan PlanNet(const CfgFile& cfg, size_t count, const Size& input, const std::string& file,
                Diagnostics& diagnostics);
// "convolutional_0"
std::string LayerName(const CfgFile& cfg, size_t index);
// The size that [net] states.
Size InputSize(const CfgFile& cfg, const std::string& file, Diagnostics& diagnostics);

inline constexpr char kInputName[] = "input";

// A layer as its type's `plan` function sees it, which sets size, weights and sources.
class LayerPlanner {
 public:
  LayerPlanner(const NetPlan* plan, Layer* layer, LayerOptions* options)
      : plan_(*plan), layer_(*layer), options_(*options) {}

  LayerOptions& options() { return options_; }
  Dialect dialect() const { return plan_.dialect; }
  const Size& in() const { return layer_.in; }
  int index() const { return static_cast<int>(plan_.layers.size()); }
  const Size& SizeOf(int source) const {
    return source < 0 ? plan_.input : plan_.layers[static_cast<size_t>(source)].out;
  }

  void SetOut(const Size& out) { layer_.out = out; }
  // So many more floats, the product of the numbers.
  void AddWeights(std::initializer_list<int64_t> dims);
  // Reports a layer that needs an image and gets a row. The size is one for the rest to go on with.
  Size ImageIn();
  // The layers that `key` names, relative ones counted from this one; those that are no layers in
  // front of this one are reported and left out. They become sources.
  void TakeSources(absl::string_view key, bool with_previous);
  const std::vector<int>& sources() const { return layer_.sources; }
  // Reports what the type cannot be.
  void FailMode(absl::string_view key, std::string message) {
    options_.FailMode(key, std::move(message));
  }
  void FailSize(std::string message);

 private:
  const NetPlan& plan_;
  Layer& layer_;
  LayerOptions& options_;
};

}  // namespace npuc::darknet

#endif  // NPUC_COMPILER_CORE_FRONTENDS_DARKNET_NET_PLAN_H_
