#include "compiler_core/frontends/darknet/net_plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/rule_table.h"
#include "compiler_core/frontends/darknet/layer_import.h"
#include "compiler_core/ir/graph/types.h"

namespace npuc::darknet {
namespace {

// Floats that all layers of a net may have: more cannot be in a file that is read.
constexpr int64_t kMaxWeights = int64_t{1} << 40;

// Keys, as "section.key" or ".key" for any section, and sections that the fork alone writes.
constexpr absl::string_view kForkMarks[] = {"Gaussian_yolo",
                                            "local_avg",
                                            "local_avgpool",
                                            "reorg3d",
                                            "empty",
                                            "silence",
                                            "implicit",
                                            "scale_channels",
                                            "sam",
                                            "conv_lstm",
                                            "history",
                                            "contrastive",
                                            ".stride_x",
                                            ".stride_y",
                                            ".dilation",
                                            ".antialiasing",
                                            ".share_index",
                                            ".assisted_excitation",
                                            "route.groups",
                                            ".group_id",
                                            ".maxpool_depth",
                                            ".weights_type",
                                            ".weights_normalization",
                                            ".scale_x_y",
                                            ".new_coords",
                                            ".iou_loss",
                                            ".iou_thresh",
                                            ".iou_normalizer",
                                            ".cls_normalizer",
                                            ".obj_normalizer",
                                            ".uc_normalizer",
                                            ".beta_nms",
                                            ".nms_kind",
                                            ".max_delta",
                                            ".counters_per_class",
                                            ".label_smooth_eps",
                                            ".grad_centr",
                                            "net.mosaic",
                                            "net.cutmix",
                                            "net.mixup",
                                            "net.letter_box",
                                            "net.optimized_memory",
                                            "net.ema_alpha",
                                            "net.blur",
                                            "net.gaussian_noise",
                                            "net.use_cuda_graph",
                                            "net.track",
                                            "net.dynamic_minibatch",
                                            "net.mosaic_bound",
                                            "rnn.hidden",
                                            "crnn.hidden"};
constexpr absl::string_view kForkActivations[] = {"swish",
                                                  "mish",
                                                  "hard_mish",
                                                  "relu6",
                                                  "gelu",
                                                  "revleaky",
                                                  "normalize_channels",
                                                  "normalize_channels_softmax",
                                                  "normalize_channels_softmax_maxval"};

template <typename List, typename Entry>
bool Holds(const List& list, const Entry& word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool HasForkMark(const Section& section) {
  if (Holds(kForkMarks, section.type)) return true;
  const std::string type = section.type == "network" ? "net" : section.type;
  return std::any_of(section.options.begin(), section.options.end(), [&](const Option& option) {
    return Holds(kForkMarks, absl::StrCat(".", option.key)) ||
           Holds(kForkMarks, absl::StrCat(type, ".", option.key)) ||
           (option.key == "activation" && Holds(kForkActivations, option.value));
  });
}

// Keys of training, streams and printing, which every section may have.
bool IsIgnored(absl::string_view key) {
  constexpr absl::string_view kKeys[] = {"stopbackward",
                                         "onlyforward",
                                         "learning_rate",
                                         "dont_update",
                                         "burnin_update",
                                         "train_only_bn",
                                         "clip",
                                         "stream",
                                         "wait_stream",
                                         "smooth",
                                         "jitter",
                                         "random",
                                         "cost",
                                         "flip",
                                         "angle",
                                         "saturation",
                                         "exposure",
                                         "shift",
                                         "probability",
                                         "dropblock",
                                         "dropblock_size_rel",
                                         "dropblock_size_abs",
                                         "noloss",
                                         "grad_centr",
                                         "dot",
                                         "assisted_excitation",
                                         "sway",
                                         "rotate",
                                         "stretch",
                                         "stretch_sway",
                                         "reverse",
                                         "coordconv",
                                         "bin_output",
                                         "debug",
                                         "type",
                                         "scale",
                                         "ratio",
                                         "thresh",
                                         "noobj"};
  return Holds(kKeys, key);
}

// A name that a short form of Darknet stands for.
absl::string_view FullType(absl::string_view type) {
  constexpr std::pair<absl::string_view, absl::string_view> kShort[] = {
      {"conv", "convolutional"}, {"deconv", "deconvolutional"},
      {"conn", "connected"},     {"max", "maxpool"},
      {"avg", "avgpool"},        {"local_avg", "local_avgpool"},
      {"lrn", "normalization"},  {"soft", "softmax"},
      {"silence", "empty"}};
  for (const auto& [shorter, full] : kShort) {
    if (shorter == type) return full;
  }
  return type;
}

void ReportUnread(const LayerOptions& options, const std::string& name, const std::string& file,
                  Diagnostics& diagnostics) {
  for (const Option* option : options.Unread()) {
    if (IsIgnored(option->key)) continue;
    diagnostics.Add(
        {.kind = DiagnosticKind::kDarknetUnknownKey,
         .message = absl::StrCat("[", Printable(options.section().type, 40), "] has no key '",
                                 Printable(option->key, 40), "'; Darknet skips it"),
         .file = file,
         .line = option->line,
         .node = name,
         .fix = "correct its name, or remove the line"});
  }
}

// Says which order of weights was taken where the .cfg alone cannot tell.
void NoteTwoOrders(const NetPlan& plan, const std::string& file, Diagnostics& diagnostics) {
  for (const Layer& layer : plan.layers) {
    if (layer.type == nullptr || !layer.type->has_two_orders) continue;
    const bool is_fork = plan.dialect == Dialect::kFork;
    diagnostics.Add(
        {.kind = DiagnosticKind::kDarknetTwoOrders,
         .message = absl::StrCat(
             "the two programs named Darknet store the weights of this layer in "
             "different orders; they are read as ",
             is_fork ? "AlexeyAB's fork" : "the original, by pjreddie",
             ", writes them, since the .cfg has ", is_fork ? "keys" : "no key", " of the fork"),
         .file = file,
         .line = layer.section->line,
         .node = layer.name,
         .op = layer.section->type,
         .fix = "compare npuc reference with the program that trained the net"});
    return;
  }
}

// The layers that nothing reads on: of heads the layer in front, else the last one that computes.
void FindOutputs(NetPlan& plan) {
  const auto add = [&](int layer) {
    while (layer >= 0 && plan.layers[static_cast<size_t>(layer)].type->role != LayerRole::kComputes)
      layer = plan.layers[static_cast<size_t>(layer)].sources[0];
    if (layer >= 0 && !Holds(plan.outputs, layer)) plan.outputs.push_back(layer);
  };
  for (const int head : plan.heads) add(plan.layers[static_cast<size_t>(head)].sources[0]);
  add(static_cast<int>(plan.layers.size()) - 1);
}

}  // namespace

Size Size::Image(int64_t c, int64_t h, int64_t w) {
  // Each is at most kMaxOption times a size before it, so a product could leave 64 bits.
  const __int128 count = static_cast<__int128>(c) * h * w;
  return {c, h, w, count > kMaxElements ? kMaxElements + 1 : static_cast<int64_t>(count)};
}

std::vector<int64_t> Size::Dims(int64_t batch) const {
  if (!is_image()) return {batch, count};
  return {batch, c, h, w};
}

void LayerPlanner::AddWeights(std::initializer_list<int64_t> dims) {
  __int128 product = 1;
  for (const int64_t dim : dims) {
    product = std::min<__int128>(product * dim, kMaxWeights);
  }
  layer_.weight_count =
      std::min<int64_t>(layer_.weight_count + static_cast<int64_t>(product), kMaxWeights);
}

Size LayerPlanner::ImageIn() {
  if (in().is_image()) return in();
  FailSize(absl::StrCat("the layer in front gives a row of ", in().count,
                        " values; this one takes an image"));
  return Size::Image(1, 1, 1);
}

void LayerPlanner::FailSize(std::string message) {
  options_.Fail(DiagnosticKind::kOperandMismatch, "", std::move(message),
                "correct the layer, or the size of the input");
}

void LayerPlanner::TakeSources(absl::string_view key, bool with_previous) {
  layer_.sources.clear();
  if (with_previous) layer_.sources.push_back(index() - 1);
  for (const int64_t number : options_.Ints(key)) {
    const int64_t source = number < 0 ? index() + number : number;
    if (source < 0 || source >= index()) {
      options_.Fail(
          DiagnosticKind::kMissingProducer, key,
          absl::StrCat(key, " names layer ", source, "; those in front are 0 to ", index() - 1),
          "correct the number; a negative one counts back from this layer");
      continue;
    }
    layer_.sources.push_back(static_cast<int>(source));
  }
  if (layer_.sources.size() > (with_previous ? 1U : 0U)) return;
  options_.Fail(DiagnosticKind::kBadAttribute, key, absl::StrCat(key, " names no layer"),
                absl::StrCat("write ", key, "=-1 for the layer in front"));
  if (layer_.sources.empty()) layer_.sources.push_back(index() - 1);
}

namespace {

// Runs the plan of one layer, and checks what holds for all types.
void PlanLayer(const NetPlan& plan, Layer& layer, LayerOptions& options) {
  options.Refuse("dontload", "its weights would be random");
  options.Refuse("dontloadscales", "its weights would be random");
  options.Refuse("numload", "its weights would be partly random");
  LayerPlanner planner(&plan, &layer, &options);
  layer.type->plan(planner);
  if (layer.out.count < 1 || layer.out.count > kMaxElements) {
    planner.FailSize(absl::StrCat("the layer gives ", ShapeToString(layer.out.Dims()), "; 1 to ",
                                  kMaxElements, " values are allowed"));
    layer.out = Size::Image(1, 1, 1);
  }
  if (layer.type->role != LayerRole::kComputes) return;
  for (const int source : layer.sources) {
    if (source < 0) continue;
    const Layer& from = plan.layers[static_cast<size_t>(source)];
    if (from.type == nullptr || from.type->role == LayerRole::kComputes) continue;
    planner.FailMode("", absl::StrCat("the layer reads layer ", source, ", [", from.section->type,
                                      "], which is no part of the program"));
  }
}

}  // namespace

std::string LayerName(const CfgFile& cfg, size_t index) {
  std::string name;
  for (const char c : cfg.layers[index].type.substr(0, 64)) {
    name.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_');
  }
  return absl::StrCat(name, "_", index);
}

Size InputSize(const CfgFile& cfg, const std::string& file, Diagnostics& diagnostics) {
  const std::string name = kInputName;
  LayerOptions net(&cfg.net, &name, &file, &diagnostics);
  const int64_t h = net.Int("height", 0);
  const int64_t w = net.Int("width", 0);
  const int64_t c = net.Int("channels", 0);
  const Size image = Size::Image(c, h, w);
  const int64_t inputs = net.Int("inputs", image.count, 0, kMaxElements);
  if (image.count > 0 && inputs == image.count && inputs <= kMaxElements) return image;
  if (image.count == 0 && inputs > 0) return Size::Row(inputs);
  net.Fail(
      DiagnosticKind::kBadAttribute, "inputs",
      absl::StrCat("[net] states height ", h, ", width ", w, ", channels ", c, ", inputs ", inputs,
                   "; an image has at most ", kMaxElements, " values, and inputs is their number"),
      "state height, width and channels, or inputs alone");
  return Size::Image(1, 1, 1);
}

NetPlan PlanNet(const CfgFile& cfg, size_t count, const Size& input, const std::string& file,
                Diagnostics& diagnostics) {
  NetPlan plan;
  plan.input = input;
  const bool is_fork =
      HasForkMark(cfg.net) || std::any_of(cfg.layers.begin(), cfg.layers.end(), HasForkMark);
  plan.dialect = is_fork ? Dialect::kFork : Dialect::kOriginal;
  const frontend::RuleTable<LayerType> types = AllLayerTypes();
  plan.layers.reserve(count);
  bool all_known = true;
  for (size_t i = 0; i < count; ++i) {
    const Section& section = cfg.layers[i];
    Layer layer{.section = &section, .name = LayerName(cfg, i)};
    layer.type = types.Find(FullType(section.type));
    layer.sources = {static_cast<int>(i) - 1};
    layer.in = i == 0 ? input : plan.layers.back().out;
    layer.out = layer.in;
    layer.weights_at = plan.weight_count;
    LayerOptions options(&section, &layer.name, &file, &diagnostics);
    if (layer.type == nullptr) {
      all_known = false;
      options.Fail(DiagnosticKind::kUnsupportedOperator, "",
                   absl::StrCat("layers of type [", Printable(section.type, 40),
                                "] are not supported", types.NearestText(section.type)),
                   "train the net without the layer: behind it no weight can be found");
    } else {
      PlanLayer(plan, layer, options);
      if (layer.type->role == LayerRole::kDecodesBoxes) {
        plan.heads.push_back(static_cast<int>(i));
      } else {
        ReportUnread(options, layer.name, file, diagnostics);
      }
    }
    plan.weight_count = std::min(plan.weight_count + layer.weight_count, kMaxWeights);
    plan.layers.push_back(std::move(layer));
  }
  NoteTwoOrders(plan, file, diagnostics);
  if (all_known) FindOutputs(plan);
  return plan;
}

}  // namespace npuc::darknet
