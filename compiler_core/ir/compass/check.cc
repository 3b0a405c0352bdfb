#include "compiler_core/ir/compass/check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace npuc::compass {
namespace {

// The bytes of a constant; nullopt where its shape has more than can be stored.
std::optional<int64_t> BytesOf(DType dtype, const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  constexpr int64_t kMostOfOne = int64_t{1} << 31;  // so that sums of them are exact
  int64_t bytes = SizeOf(dtype);
  for (const int64_t dim : shape) {
    if (dim < 0 || dim > kMostOfOne || (dim > 0 && bytes > kMost / dim)) return std::nullopt;
    bytes *= dim;
  }
  return bytes;
}

struct Value {
  Shape shape;
  std::string type;
  std::string layer;
};

class Checker {
 public:
  Checker(const Document& document, std::optional<int64_t> bin_bytes, absl::string_view file_name)
      : document_(document),
        bin_bytes_(bin_bytes),
        file_name_(file_name),
        reporter_(file_name, found_) {}

  void Run() {
    CheckHead();
    for (size_t i = 0; i < document_.layers.size(); ++i) CheckLayer(static_cast<int64_t>(i));
    CheckEnds();
    CheckOverlaps();
  }

  const Diagnostics& found() const { return found_; }

 private:
  void ReportHead(const Entry* entry, std::string message) {
    found_.Add({.kind = DiagnosticKind::kModelFileInvalid,
                .message = std::move(message),
                .file = file_name_,
                .line = entry == nullptr ? document_.head.line : entry->line});
  }

  void CheckHead() {
    for (const absl::string_view key :
         {"model_name", "layer_number", "input_tensors", "output_tensors"}) {
      if (document_.head.Find(key) == nullptr) {
        ReportHead(nullptr, absl::StrCat("the head has no ", key));
      }
    }
    const Entry* count = document_.head.Find("layer_number");
    const int64_t layers = static_cast<int64_t>(document_.layers.size());
    if (count != nullptr && ParseInt(count->value) != layers) {
      ReportHead(count, absl::StrCat("layer_number is ", Printable(count->value), ", but ", layers,
                                     " layers follow"));
    }
  }

  void CheckLayer(int64_t index) {
    LayerView layer;
    layer.block = &document_.layers[static_cast<size_t>(index)];
    layer.name = layer.block->ValueOr("layer_name", absl::StrCat("#", index));
    layer.type = layer.block->ValueOr("layer_type", "");
    for (const absl::string_view key :
         {"layer_id", "layer_name", "layer_type", "layer_bottom", "layer_bottom_shape",
          "layer_bottom_type", "layer_top", "layer_top_shape", "layer_top_type"}) {
      if (layer.block->Find(key) == nullptr) {
        reporter_.Report(layer, nullptr, absl::StrCat("has no ", key));
      }
    }
    const Entry* id = layer.block->Find("layer_id");
    if (id != nullptr && ParseInt(id->value) != index) {
      reporter_.Report(layer, id,
                       absl::StrCat("layer_id is ", Printable(id->value),
                                    "; layers are counted, and this is number ", index));
    }
    if (layer.block->Find("layer_name") != nullptr && !names_.insert(layer.name).second) {
      reporter_.Report(layer, layer.block->Find("layer_name"), "a second layer of this name");
    }
    const size_t before = found_.error_count();
    const std::vector<Value> bottoms = ReadValues(layer, "layer_bottom", layer.bottoms, nullptr);
    std::vector<std::string> names;
    const std::vector<Value> tops = ReadValues(layer, "layer_top", layer.tops, &names);
    CheckBottoms(layer, bottoms);
    for (size_t i = 0; i < tops.size(); ++i) {
      if (!values_.emplace(names[i], tops[i]).second) {
        reporter_.Report(layer, layer.block->Find("layer_top"),
                         absl::StrCat("'", Printable(names[i]), "' is made a second time"));
      }
    }
    CheckQuantization(layer, tops.size());
    CheckConstants(layer);
    if (found_.error_count() == before) CheckLayerType(layer, reporter_);
  }

  // The three lists of bottoms or tops; empty where they do not fit together.
  std::vector<Value> ReadValues(const LayerView& layer, const std::string& key,
                                std::vector<Shape>& shapes, std::vector<std::string>* names) {
    const Entry* const name_entry = layer.block->Find(key);
    const Entry* const shape_entry = layer.block->Find(absl::StrCat(key, "_shape"));
    const Entry* const type_entry = layer.block->Find(absl::StrCat(key, "_type"));
    if (name_entry == nullptr || shape_entry == nullptr || type_entry == nullptr) return {};
    const auto list = ParseList(name_entry->value);
    const auto shape_list = ParseIntLists(shape_entry->value);
    const auto types = ParseList(type_entry->value);
    if (!list.has_value()) reporter_.Report(layer, name_entry, "is no list [a,b]");
    if (!shape_list.has_value()) reporter_.Report(layer, shape_entry, "is no list [[1,2],[3]]");
    if (!types.has_value()) reporter_.Report(layer, type_entry, "is no list [a,b]");
    if (!list.has_value() || !shape_list.has_value() || !types.has_value()) return {};
    if (list->size() != shape_list->size() || list->size() != types->size()) {
      reporter_.Report(layer, name_entry,
                       absl::StrCat("has ", list->size(), " names, ", shape_list->size(),
                                    " shapes and ", types->size(), " types"));
      return {};
    }
    std::vector<Value> values;
    for (size_t i = 0; i < list->size(); ++i) {
      const DType dtype = TypeFromName((*types)[i]);
      if (dtype == DType::kInvalid) {
        reporter_.Report(layer, type_entry,
                         absl::StrCat("'", Printable((*types)[i]), "' is no type"));
      } else if (!BytesOf(dtype, (*shape_list)[i]).has_value()) {
        reporter_.Report(layer, shape_entry, "has a negative or too large dimension");
      }
      values.push_back({(*shape_list)[i], (*types)[i], layer.name});
    }
    shapes = *shape_list;
    if (names != nullptr) *names = *list;
    return values;
  }

  void CheckBottoms(const LayerView& layer, const std::vector<Value>& bottoms) {
    const Entry* const entry = layer.block->Find("layer_bottom");
    if (entry == nullptr || bottoms.empty()) return;
    const std::vector<std::string> names = *ParseList(entry->value);
    for (size_t i = 0; i < bottoms.size(); ++i) {
      const auto made = values_.find(names[i]);
      if (made == values_.end()) {
        reporter_.Report(
            layer, entry,
            absl::StrCat("'", Printable(names[i]), "' is made by no layer before this one"));
        continue;
      }
      if (made->second.shape != bottoms[i].shape) {
        reporter_.Report(
            layer, layer.block->Find("layer_bottom_shape"),
            absl::StrCat("'", Printable(names[i]), "' is ", PrintShape(bottoms[i].shape),
                         " here, and ", PrintShape(made->second.shape), " in layer '",
                         Printable(made->second.layer), "', which makes it"));
      }
      if (made->second.type != bottoms[i].type) {
        reporter_.Report(layer, layer.block->Find("layer_bottom_type"),
                         absl::StrCat("'", Printable(names[i]), "' is ", Printable(bottoms[i].type),
                                      " here, and ", Printable(made->second.type), " in layer '",
                                      Printable(made->second.layer), "', which makes it"));
      }
    }
  }

  // Scales, zero points and ranges come together, one a top.
  void CheckQuantization(const LayerView& layer, size_t tops) {
    const Entry* const scale = layer.block->Find("layer_top_scale");
    for (const absl::string_view key : {"layer_top_scale", "layer_top_zp"}) {
      const Entry* const entry = layer.block->Find(key);
      if (entry == nullptr) {
        if (scale != nullptr) reporter_.Report(layer, scale, absl::StrCat("stands without ", key));
        continue;
      }
      const auto list = ParseList(entry->value);
      if (!list.has_value() || list->size() != tops) {
        reporter_.Report(layer, entry, absl::StrCat("is no list of ", tops, " items, one a top"));
      }
    }
    const Entry* const range = layer.block->Find("layer_top_range");
    if (range == nullptr) return;
    const auto list = ParseIntLists(range->value);
    const bool sound = list.has_value() && list->size() == tops &&
                       std::all_of(list->begin(), list->end(), [](const auto& pair) {
                         return pair.size() == 2 && pair[0] <= pair[1];
                       });
    if (!sound) {
      reporter_.Report(layer, range,
                       absl::StrCat("is no list of ", tops, " pairs [least,greatest]"));
    }
  }

  // X_offset, X_size, X_type and X_shape.
  void CheckConstants(const LayerView& layer) {
    for (const Entry& entry : layer.block->entries) {
      if (!absl::EndsWith(entry.key, "_offset")) continue;
      const std::string name(absl::StripSuffix(entry.key, "_offset"));
      const Entry* const size_entry = layer.block->Find(absl::StrCat(name, "_size"));
      const std::string type = layer.block->ValueOr(absl::StrCat(name, "_type"), "");
      const Entry* const shape_entry = layer.block->Find(absl::StrCat(name, "_shape"));
      const auto shape = shape_entry == nullptr ? std::nullopt : ParseInts(shape_entry->value);
      const std::optional<int64_t> offset = ParseInt(entry.value);
      const auto size = size_entry == nullptr ? std::nullopt : ParseInt(size_entry->value);
      const DType dtype = TypeFromName(type);
      // The end is summed up below, and must be a number.
      if (!offset.has_value() || *offset < 0 || !size.has_value() || *size < 0 ||
          *offset > INT64_MAX - *size || !shape.has_value() || dtype == DType::kInvalid) {
        reporter_.Report(layer, &entry,
                         absl::StrCat(name, " lacks a sound _offset, _size, _type or _shape"));
        continue;
      }
      if (BytesOf(dtype, *shape) != *size) {
        reporter_.Report(layer, size_entry,
                         absl::StrCat(name, "_size is ", *size, ", which ", PrintShape(*shape),
                                      " of ", type, " does not have"));
      } else if (bin_bytes_.has_value() &&
                 (*offset > *bin_bytes_ || *size > *bin_bytes_ - *offset)) {
        reporter_.Report(
            layer, &entry,
            absl::StrCat(name, " ends at byte ", *offset + *size, ", the .bin at ", *bin_bytes_));
      }
      if (*size > 0) places_.push_back({*offset, *size, name, layer, &entry});
    }
  }

  void CheckEnds() {
    for (const absl::string_view key : {"input_tensors", "output_tensors"}) {
      const Entry* const entry = document_.head.Find(key);
      if (entry == nullptr) continue;
      const auto list = ParseList(entry->value);
      if (!list.has_value()) {
        ReportHead(entry, absl::StrCat(key, " is no list [a,b]"));
        continue;
      }
      for (const std::string& name : *list) {
        if (values_.contains(name)) continue;
        ReportHead(entry,
                   absl::StrCat(key, " names '", Printable(name), "', which no layer makes"));
      }
    }
  }

  // Constants may be shared whole, but not in part.
  void CheckOverlaps() {
    std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return std::tuple(a.offset, a.size) < std::tuple(b.offset, b.size);
    });
    for (size_t i = 1; i < places_.size(); ++i) {
      const Place& a = places_[i - 1];
      const Place& b = places_[i];
      if (a.offset + a.size <= b.offset || (a.offset == b.offset && a.size == b.size)) continue;
      reporter_.Report(b.layer, b.entry,
                       absl::StrCat(b.name, " begins within ", a.name, " of layer '",
                                    Printable(a.layer.name), "'"));
    }
  }

  struct Place {
    int64_t offset;
    int64_t size;
    std::string name;
    LayerView layer;
    const Entry* entry;
  };

  const Document& document_;
  const std::optional<int64_t> bin_bytes_;
  std::string file_name_;
  Diagnostics found_;
  LayerReporter reporter_;
  std::set<std::string> names_;
  std::map<std::string, Value> values_;
  std::vector<Place> places_;
};

}  // namespace

void LayerReporter::Report(const LayerView& layer, const Entry* entry, std::string message,
                           std::string fix) {
  diagnostics_.Add(
      {.kind = DiagnosticKind::kModelFileInvalid,
       .message = entry == nullptr ? std::move(message) : absl::StrCat(entry->key, ": ", message),
       .file = file_name_,
       .line = entry == nullptr ? layer.block->line : entry->line,
       .node = layer.name,
       .op = layer.type,
       .fix = std::move(fix)});
}

absl::Status CheckDocument(const Document& document, std::optional<int64_t> bin_bytes,
                           absl::string_view file_name, Diagnostics& diagnostics) {
  Checker checker(document, bin_bytes, file_name);
  checker.Run();
  diagnostics.Append(checker.found());
  return checker.found().ToStatus();
}

}  // namespace npuc::compass
