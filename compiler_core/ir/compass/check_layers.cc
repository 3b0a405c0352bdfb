#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/ir/compass/check.h"

namespace npuc::compass {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;  // of an attribute: products of a few stay exact

// What a layer type needs: attributes that are whole numbers, and how many bottoms (-1: any).
struct TypeRule {
  absl::string_view type;
  int bottoms;
  absl::string_view numbers;    // "kernel_x|kernel_y"
  absl::string_view constants;  // "weights|biases"
  absl::string_view methods;    // allowed values of `method`; empty: has none
  int tops = 1;                 // -1: any
};
constexpr absl::string_view kWindow =
    "kernel_x|kernel_y|stride_x|stride_y|dilation_x|dilation_y|pad_left|pad_right|pad_top|"
    "pad_bottom";
constexpr absl::string_view kConvolution =
    "kernel_x|kernel_y|stride_x|stride_y|dilation_x|dilation_y|pad_left|pad_right|pad_top|"
    "pad_bottom|group|num_output";
constexpr std::array<TypeRule, 22> kRules = {{
    {"Constant", 0, "", "weights", ""},
    {"Input", 0, "", "", ""},
    {"Convolution", 1, kConvolution, "weights|biases", ""},
    {"DepthwiseConv", 1, kConvolution, "weights|biases", ""},
    {"FullyConnected", 1, "num_output", "weights|biases", ""},
    {"Pooling", 1, kWindow, "", "AVG|MAX"},
    {"Reduce", 1, "", "", ""},
    {"Reshape", 1, "", "", ""},
    {"Softmax", 1, "axis", "", ""},
    {"Activation", 1, "", "",
     "ABS|CEIL|CLIP|ELU|EXP|FLOOR|GELU|HARDSIGMOID|HARDSWISH|LEAKYRELU|LOG|MISH|NEGATIVE|"
     "RECIPROCAL|RELU|RELU6|ROUND|RSQRT|SELU|SIGMOID|SIGN|SILU|SOFTPLUS|"
     "SOFTSIGN|SQRT|SQUARE|TANH"},
    {"Eltwise", 2, "", "", "ADD|SUB|MUL|MAX|MIN"},
    {"Concat", -1, "axis", "", ""},
    {"Transpose", 1, "", "", ""},
    {"ArgMinMax", 1, "axis", "", "MAX|MIN"},
    {"BatchNorm", 1, "axis", "weights|biases", ""},
    {"Gather", 2, "axis", "", ""},
    {"LRN", 1, "size", "", "ACROSS_CHANNELS|WITHIN_CHANNEL"},
    {"LogSoftmax", 1, "axis", "", ""},
    {"Pad", 1, "", "", ""},
    {"Slice", 1, "", "", ""},
    {"Split", 1, "axis", "", "", -1},
    {"Tile", 1, "", "", ""},
}};

// Layer types that give a result of their bottom's shape, beside those that are listed above.
constexpr absl::string_view kFunctions =
    "Abs|Ceil|Clip|ELU|Exp|Floor|GELU|HardSigmoid|Hardswish|LeakyRELU|Log|MISH|Negative|RELU|RELU6|"
    "Reciprocal|Round|Rsqrt|SELU|Sigmoid|Sign|Silu|Softplus|Softsign|Sqrt|Square|Tanh";

std::vector<absl::string_view> Words(absl::string_view list) {
  return absl::StrSplit(list, '|', absl::SkipEmpty());
}

class TypeChecker {
 public:
  TypeChecker(const LayerView& layer, LayerReporter& reporter)
      : layer_(layer), reporter_(reporter) {}

  void Run() {
    const auto* const rule = std::find_if(
        kRules.begin(), kRules.end(), [this](const TypeRule& r) { return r.type == layer_.type; });
    if (IsFunctionType(layer_.type)) {
      if (CheckCounts({layer_.type, 1, "", "", ""})) ExpectTop(layer_.bottoms[0]);
      return;
    }
    if (rule == kRules.end()) return;  // of the many others only the general keys are known here
    if (!CheckCounts(*rule) || !CheckAttributes(*rule)) return;
    const absl::string_view type = layer_.type;
    if (type == "Convolution" || type == "DepthwiseConv") CheckConvolution();
    if (type == "FullyConnected") CheckFullyConnected();
    if (type == "Pooling") ExpectTop(WindowTop(layer_.bottoms[0], Channels()));
    if (type == "Reshape") CheckReshape();
    if (type == "Softmax" || type == "Activation" || type == "LogSoftmax" || type == "LRN" ||
        type == "BatchNorm") {
      ExpectTop(layer_.bottoms[0]);
    }
    if (type == "ArgMinMax") CheckArgMinMax();
    if (type == "Pad") CheckPad();
    if (type == "Split") CheckSplit();
    if (type == "Tile") CheckTile();
    if (type == "Eltwise") CheckEltwise();
    if (type == "Concat") CheckConcat();
    if (type == "Transpose") CheckTranspose();
  }

 private:
  void Report(absl::string_view key, const std::string& message) {
    reporter_.Report(layer_, layer_.block->Find(key), message);
  }

  bool CheckCounts(const TypeRule& rule) {
    const int bottoms = static_cast<int>(layer_.bottoms.size());
    const bool tops_fit = rule.tops < 0 ? !layer_.tops.empty() : layer_.tops.size() == 1;
    if (tops_fit && (rule.bottoms < 0 ? bottoms > 0 : bottoms == rule.bottoms)) return true;
    reporter_.Report(
        layer_, nullptr,
        absl::StrCat("has ", bottoms, " bottoms and ", layer_.tops.size(), " tops; ", rule.type,
                     " has ", rule.bottoms < 0 ? "some" : absl::StrCat(rule.bottoms), " and ",
                     rule.tops < 0 ? "some" : "one"));
    return false;
  }

  bool CheckAttributes(const TypeRule& rule) {
    bool sound = true;
    const auto miss = [&](absl::string_view what) {
      reporter_.Report(layer_, nullptr, absl::StrCat("has no ", what));
      sound = false;
    };
    for (const absl::string_view key : Words(rule.numbers)) {
      const Entry* const entry = layer_.block->Find(key);
      if (entry == nullptr) {
        miss(key);
        continue;
      }
      const std::optional<int64_t> value = ParseInt(entry->value);
      if (value.has_value() && std::abs(*value) < kLargest) continue;
      Report(key, absl::StrCat("'", Printable(entry->value), "' is no whole number below 2^31"));
      sound = false;
    }
    for (const absl::string_view name : Words(rule.constants)) {
      if (layer_.block->Find(absl::StrCat(name, "_offset")) == nullptr) miss(name);
    }
    if (rule.methods.empty()) return sound;
    const Entry* const method = layer_.block->Find("method");
    if (method == nullptr) {
      miss("method");
    } else {
      const std::vector<absl::string_view> known = Words(rule.methods);
      if (std::find(known.begin(), known.end(), method->value) == known.end()) {
        Report("method", absl::StrCat("'", Printable(method->value), "' is none of ",
                                      absl::StrJoin(known, ", ")));
        sound = false;
      }
    }
    return sound;
  }

  int64_t Number(absl::string_view key) const { return *ParseInt(layer_.block->Find(key)->value); }
  int64_t Channels() const { return layer_.bottoms[0].empty() ? 0 : layer_.bottoms[0].back(); }

  void ExpectTop(const std::optional<Shape>& expected) {
    if (!expected.has_value() || layer_.tops[0] == *expected) return;
    Report("layer_top_shape",
           absl::StrCat(PrintShape(layer_.tops[0]), " is written, ", PrintShape(*expected),
                        " follows from the attributes and bottoms"));
  }

  // [n,h,w,channels] behind the windows; nullopt, with the reason told, where there is none.
  std::optional<Shape> WindowTop(const Shape& bottom, int64_t channels) {
    if (bottom.size() != 4) {
      Report("layer_bottom_shape", absl::StrCat(PrintShape(bottom), " is no [n,h,w,c]"));
      return std::nullopt;
    }
    Shape top = {bottom[0], 0, 0, channels};
    const bool ceil = layer_.block->ValueOr("ceil_mode", "false") == "true";
    constexpr std::array<std::array<absl::string_view, 5>, 2> kKeys = {
        {{"kernel_y", "stride_y", "dilation_y", "pad_top", "pad_bottom"},
         {"kernel_x", "stride_x", "dilation_x", "pad_left", "pad_right"}}};
    for (size_t d = 0; d < 2; ++d) {
      const auto& [kernel, stride, dilation, before, after] = kKeys[d];
      if (Number(kernel) < 1 || Number(stride) < 1 || Number(dilation) < 1 || Number(before) < 0 ||
          Number(after) < 0) {
        Report(kernel, "kernel, stride and dilation are at least 1, pads at least 0");
        return std::nullopt;
      }
      const int64_t room = bottom[d + 1] + Number(before) + Number(after) -
                           ((Number(kernel) - 1) * Number(dilation) + 1);
      if (room < 0) {
        Report(kernel, absl::StrCat("the window does not fit ", bottom[d + 1], " with its pads"));
        return std::nullopt;
      }
      top[d + 1] = (room + (ceil ? Number(stride) - 1 : 0)) / Number(stride) + 1;
    }
    return top;
  }

  void ExpectConstant(absl::string_view name, const Shape& expected) {
    const std::string key = absl::StrCat(name, "_shape");
    const Entry* const entry = layer_.block->Find(key);
    if (entry == nullptr || ParseInts(entry->value) == expected) return;
    Report(key, absl::StrCat(Printable(entry->value), " is written, ", PrintShape(expected),
                             " follows from the attributes"));
  }

  // Requantization has one factor in all, or one a result channel.
  void CheckFactors(int64_t channels) {
    for (const absl::string_view key : {"scale_shape", "shift_shape"}) {
      const Entry* const entry = layer_.block->Find(key);
      if (entry == nullptr) continue;
      const auto shape = ParseInts(entry->value);
      if (shape.has_value() && (*shape == Shape{1} || *shape == Shape{channels})) continue;
      Report(key, absl::StrCat(Printable(entry->value), " is neither [1] nor [", channels, "]"));
    }
  }

  void CheckConvolution() {
    const int64_t outputs = Number("num_output");
    const int64_t group = Number("group");
    const Shape& bottom = layer_.bottoms[0];
    ExpectTop(WindowTop(bottom, outputs));
    if (group < 1 || Channels() % group != 0 || outputs % group != 0) {
      return Report("group", absl::StrCat(group, " does not divide ", Channels(), " and ", outputs,
                                          " channels"));
    }
    ExpectConstant("weights",
                   {outputs, Number("kernel_y"), Number("kernel_x"), Channels() / group});
    ExpectConstant("biases", {outputs});
    CheckFactors(outputs);
  }

  void CheckFullyConnected() {
    const int64_t outputs = Number("num_output");
    const Shape& bottom = layer_.bottoms[0];
    if (bottom.size() < 2) {
      return Report("layer_bottom_shape",
                    absl::StrCat(PrintShape(bottom), " is no [...,features]"));
    }
    Shape top = bottom;
    top.back() = outputs;
    ExpectTop(top);
    ExpectConstant("weights", {outputs, bottom.back()});
    ExpectConstant("biases", {outputs});
    CheckFactors(outputs);
  }

  void CheckReshape() {
    const auto elements = [](const Shape& shape) {
      return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    };
    if (elements(layer_.bottoms[0]) != elements(layer_.tops[0])) {
      Report("layer_top_shape",
             absl::StrCat(PrintShape(layer_.bottoms[0]), " cannot become ",
                          PrintShape(layer_.tops[0]), ": the elements are not as many"));
    }
    const Entry* const entry = layer_.block->Find("shape");
    if (entry == nullptr) return reporter_.Report(layer_, nullptr, "has no shape");
    if (ParseInts(entry->value) != layer_.tops[0]) {
      Report("shape", absl::StrCat(Printable(entry->value), " is not the top's ",
                                   PrintShape(layer_.tops[0])));
    }
  }

  void CheckEltwise() {
    const Shape& a = layer_.bottoms[0];
    const Shape& b = layer_.bottoms[1];
    Shape top(std::max(a.size(), b.size()), 1);
    for (size_t d = 0; d < top.size(); ++d) {  // from the last dimension on
      const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1;
      const int64_t y = d < b.size() ? b[b.size() - 1 - d] : 1;
      if (x != y && x != 1 && y != 1) {
        return Report("layer_bottom_shape",
                      absl::StrCat(PrintShape(a), " and ", PrintShape(b), " do not go together"));
      }
      top[top.size() - 1 - d] = x == 1 ? y : x;
    }
    ExpectTop(top);
  }

  // The axis from 0 on; nullopt, with the reason told, where the bottom has no such dimension.
  std::optional<size_t> Axis() {
    const int64_t rank = static_cast<int64_t>(layer_.bottoms[0].size());
    const int64_t axis = Number("axis") < 0 ? Number("axis") + rank : Number("axis");
    if (axis >= 0 && axis < rank) return static_cast<size_t>(axis);
    Report("axis", absl::StrCat("is outside the ", rank, " dimensions"));
    return std::nullopt;
  }

  void CheckArgMinMax() {
    const std::optional<size_t> axis = Axis();
    if (!axis.has_value()) return;
    Shape top = layer_.bottoms[0];
    top[*axis] = 1;
    ExpectTop(top);
  }

  // Lists of whole numbers below 2^31 under a key, as many as the bottom has dimensions.
  std::optional<std::vector<Shape>> ListsOfDims(absl::string_view key) {
    const Entry* const entry = layer_.block->Find(key);
    auto lists = entry == nullptr ? std::nullopt : ParseIntLists(entry->value);
    const auto is_small = [](const Shape& list) {
      return std::all_of(list.begin(), list.end(),
                         [](int64_t number) { return std::abs(number) < kLargest; });
    };
    if (lists.has_value() && lists->size() == layer_.bottoms[0].size() &&
        std::all_of(lists->begin(), lists->end(), is_small)) {
      return lists;
    }
    reporter_.Report(layer_, entry,
                     absl::StrCat(key, " has no entry below 2^31 for each dimension"));
    return std::nullopt;
  }

  void CheckPad() {
    const auto pads = ListsOfDims("pads");
    if (!pads.has_value()) return;
    Shape top = layer_.bottoms[0];
    for (size_t d = 0; d < top.size(); ++d) {
      const Shape& pad = (*pads)[d];
      if (pad.size() != 2 || pad[0] < 0 || pad[1] < 0) {
        return Report("pads", "has no two numbers from 0 on for each dimension");
      }
      top[d] += pad[0] + pad[1];
    }
    ExpectTop(top);
  }

  void CheckTile() {
    const Entry* const entry = layer_.block->Find("repeats");
    const auto repeats = entry == nullptr ? std::nullopt : ParseInts(entry->value);
    Shape top = layer_.bottoms[0];
    if (!repeats.has_value() || repeats->size() != top.size() ||
        !std::all_of(repeats->begin(), repeats->end(),
                     [](int64_t n) { return n > 0 && n < kLargest; })) {
      return reporter_.Report(layer_, entry, "repeats has no number above 0 for each dimension");
    }
    for (size_t d = 0; d < top.size(); ++d) {
      if (top[d] > kLargest) return Report("layer_bottom_shape", "is too large");
      top[d] *= (*repeats)[d];
    }
    ExpectTop(top);
  }

  void CheckSplit() {
    const std::optional<size_t> axis = Axis();
    if (!axis.has_value()) return;
    const Entry* const entry = layer_.block->Find("splits");
    const auto splits = entry == nullptr ? std::nullopt : ParseInts(entry->value);
    const Shape& bottom = layer_.bottoms[0];
    if (!splits.has_value() || splits->size() != layer_.tops.size()) {
      return reporter_.Report(layer_, entry, "splits has no size for each top");
    }
    int64_t left = bottom[*axis];
    for (size_t i = 0; i < splits->size(); ++i) {
      Shape top = bottom;
      top[*axis] = (*splits)[i];
      if (top[*axis] < 0 || top[*axis] > left) break;
      left -= top[*axis];
      if (layer_.tops[i] == top) continue;
      Report("layer_top_shape", absl::StrCat(PrintShape(layer_.tops[i]), " is written, ",
                                             PrintShape(top), " follows from splits"));
    }
    if (left != 0) {
      Report("splits", absl::StrCat("do not add up to the dimension's ", bottom[*axis]));
    }
  }

  void CheckConcat() {
    const std::optional<size_t> axis = Axis();
    if (!axis.has_value()) return;
    const size_t at = *axis;
    Shape top = layer_.bottoms[0];
    top[at] = 0;
    for (const Shape& bottom : layer_.bottoms) {
      Shape others = bottom;
      if (others.size() == top.size()) others[at] = top[at];
      if (others != top) {
        return Report("layer_bottom_shape",
                      absl::StrCat(PrintShape(bottom), " differs in more than dimension ", at));
      }
      top[at] += bottom[at];
    }
    ExpectTop(top);
  }

  void CheckTranspose() {
    const Entry* const entry = layer_.block->Find("perm");
    const auto perm = entry == nullptr ? std::nullopt : ParseInts(entry->value);
    const Shape& bottom = layer_.bottoms[0];
    Shape top;
    std::set<int64_t> seen;
    for (size_t i = 0; perm.has_value() && i < perm->size(); ++i) {
      const int64_t from = (*perm)[i];
      if (from < 0 || from >= static_cast<int64_t>(bottom.size()) || !seen.insert(from).second) {
        break;
      }
      top.push_back(bottom[static_cast<size_t>(from)]);
    }
    if (!perm.has_value() || perm->size() != bottom.size() || top.size() != bottom.size()) {
      return reporter_.Report(layer_, entry, "perm is no order of the bottom's dimensions");
    }
    ExpectTop(top);
  }

  const LayerView& layer_;
  LayerReporter& reporter_;
};

}  // namespace

bool IsFunctionType(absl::string_view type) {
  const std::vector<absl::string_view> functions = Words(kFunctions);
  return std::find(functions.begin(), functions.end(), type) != functions.end();
}

void CheckLayerType(const LayerView& layer, LayerReporter& reporter) {
  TypeChecker(layer, reporter).Run();
}

}  // namespace npuc::compass
