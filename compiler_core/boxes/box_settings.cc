#include "compiler_core/boxes/box_settings.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/mapping_reader.h"
#include "compiler_core/base/yaml_tree.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

// A value of `type`. With anchors, from the output with the fewest cells on, it is a net as it was
// published, of which no head has to be written; YOLO2's are in cells, of the net for COCO.
struct TypeRow {
  absl::string_view name;
  BoxKind kind;
  std::vector<std::vector<double>> anchors = {};
};
const std::vector<TypeRow>& Types() {
  static const auto& types = *new std::vector<TypeRow>{
      {"SSD", BoxKind::kSsd},
      {"SSD_RESNET", BoxKind::kSsd},
      {"YOLO2",
       BoxKind::kYolo2,
       {{0.57273, 0.677385, 1.87446, 2.06253, 3.33843, 5.47434, 7.88282, 3.52778, 9.77052,
         9.16828}}},
      {"YOLO3", BoxKind::kYolo3},
      {"YOLO3_TINY", BoxKind::kYolo3, {{81, 82, 135, 169, 344, 319}, {10, 14, 23, 27, 37, 58}}},
      {"YOLO3_FULL",
       BoxKind::kYolo3,
       {{116, 90, 156, 198, 373, 326}, {30, 61, 62, 45, 59, 119}, {10, 13, 16, 30, 33, 23}}},
      {"YOLO5", BoxKind::kYolo5},
      {"YOLO8", BoxKind::kYolo8},
      {"RPN", BoxKind::kRpn},
      {"RCNN", BoxKind::kRcnn},
  };
  return types;
}
constexpr absl::string_view kRegionsType = "CAFFE_FASTERRCNN";

constexpr size_t kMaxHeads = 16;
constexpr absl::string_view kWhat = "the settings of boxes";

class SettingsReader {
 public:
  SettingsReader(absl::string_view file, Diagnostics& diagnostics,
                 const std::optional<BoxSettings>& model)
      : file_(file), diagnostics_(diagnostics), has_model_(model.has_value()) {
    if (has_model_) settings_ = *model;
  }

  BoxSettings Read(const ConfigNode& root) {
    MappingReader reader(root, kWhat, file_, diagnostics_);
    if (!ReadKind(reader)) return {};
    const bool has_classes = settings_.kind != BoxKind::kRpn;
    if (!has_classes) settings_.classes = 1;
    if (has_classes && !has_model_ && settings_.preset.empty()) reader.Needed("classes");
    reader.Whole("classes", 1, 4096, settings_.classes);
    reader.Number("obj_threshold", 0, 1, settings_.obj_threshold);
    reader.Number("iou_threshold", 0, 1, settings_.iou_threshold);
    reader.Whole("max_box_num", 1, 4096, settings_.max_box_num);
    reader.Whole("max_candidates", 1, 1 << 16, settings_.max_candidates);
    ReadArithmetic(reader);
    if (settings_.kind == BoxKind::kSsd) {
      ReadSsd(reader, root);
    } else if (settings_.kind == BoxKind::kRcnn) {
      ReadRcnn(reader);
    } else {
      ReadHeads(reader);
    }
    reader.Finish();
    if (settings_.max_candidates < settings_.max_box_num && !reader.Has("max_candidates")) {
      settings_.max_candidates = settings_.max_box_num;
    }
    if (settings_.max_candidates < settings_.max_box_num) {
      reader.Report(DiagnosticKind::kConfigConflict, root,
                    absl::StrCat("max_candidates is ", settings_.max_candidates,
                                 ", below max_box_num, ", settings_.max_box_num),
                    "raise max_candidates");
    }
    return std::move(settings_);
  }

 private:
  // False: nothing else about the settings can be said.
  bool ReadKind(MappingReader& reader) {
    const ConfigNode* const value = has_model_ ? reader.Find("type") : reader.Needed("type");
    if (value == nullptr) return true;
    std::vector<absl::string_view> names;
    for (const TypeRow& row : Types()) {
      names.push_back(row.name);
      if (value->kind == Kind::kScalar && value->text == row.name) {
        return TakeType(reader, *value, row);
      }
    }
    if (value->kind == Kind::kScalar && value->text == kRegionsType) {
      reader.Report(DiagnosticKind::kConfigValueNotAllowed, *value,
                    absl::StrCat("type is '", kRegionsType,
                                 "': the second half of such a net reads regions that its first "
                                 "half finds at run time, so that its boxes are no post-processing "
                                 "of one program"),
                    "compile two models: one up to rpn_cls_prob_reshape and rpn_bbox_pred, with "
                    "type: RPN, and the layers behind the ROIPooling, with type: RCNN");
      return false;
    }
    reader.NotAllowed("type", *value, absl::StrJoin(names, ", "));
    return true;
  }

  void ReadArithmetic(MappingReader& reader) {
    if (!reader.Has("arithmetic")) return;
    const ConfigNode& value = *reader.Needed("arithmetic");
    settings_.is_fixed = value.text == "fixed";
    if (value.kind == Kind::kScalar && (settings_.is_fixed || value.text == "float")) return;
    reader.NotAllowed("arithmetic", value, "float, fixed");
  }

  bool TakeType(MappingReader& reader, const ConfigNode& at, const TypeRow& row) {
    if (has_model_ && settings_.kind != row.kind) {
      reader.Report(DiagnosticKind::kConfigConflict, at,
                    absl::StrCat("type is ", row.name, ", and the model's own layers are ",
                                 NameOf(settings_.kind)),
                    "remove the type");
      return false;
    }
    if (has_model_) return true;
    settings_.kind = row.kind;
    settings_.preset = row.anchors;
    if (settings_.kind == BoxKind::kYolo5) settings_.xy_scale = 2;
    return true;
  }

  // True for a key whose value comes from the settings, the model stating none.
  bool IsAsked(MappingReader& reader, absl::string_view key) {
    return !has_model_ || reader.Has(key);
  }

  void ReadHeads(MappingReader& reader) {
    const BoxKind kind = settings_.kind;
    if (kind != BoxKind::kYolo8 && kind != BoxKind::kRpn) {
      reader.Number("xy_scale", 0, 4, settings_.xy_scale);
    }
    const bool has_pixels = kind != BoxKind::kYolo2 && kind != BoxKind::kYolo8;
    if ((has_pixels && IsAsked(reader, "image_size")) || reader.Has("image_size")) {
      settings_.image_size.clear();
      reader.Wholes("image_size", 2, 1 << 16, settings_.image_size);
    }
    if ((has_model_ || !settings_.preset.empty()) && !reader.Has("heads")) return;
    settings_.heads.clear();
    settings_.preset.clear();
    if (!has_model_ && kind != BoxKind::kRpn) reader.Needed("classes");
    reader.Mappings("heads", kMaxHeads, [&](MappingReader& one, const ConfigNode& at) {
      ReadHead(one, at, settings_.heads.emplace_back());
    });
  }

  void ReadHead(MappingReader& one, const ConfigNode& at, BoxHead& head) {
    if (settings_.kind == BoxKind::kRpn) {
      one.Text("scores", head.output);
      one.Text("deltas", head.deltas);
      one.Number("stride", 0, 4096, head.stride);
      one.Number("offset", -4096, 4096, head.offset);
    } else {
      one.Text("output", head.output);
      if (settings_.kind != BoxKind::kYolo8) one.Number("xy_scale", 0, 4, head.xy_scale);
    }
    if (settings_.kind == BoxKind::kYolo8 || one.Needed("anchors") == nullptr) return;
    one.Numbers("anchors", 0, 1 << 16, head.anchors);
    if (head.anchors.empty() || head.anchors.size() % 2 != 0) {
      one.WrongType("anchors", at, "pairs of width and height");
    }
  }

  void ReadSsd(MappingReader& reader, const ConfigNode& root) {
    const bool has_priors = reader.Has("priors") || reader.Has("prior_boxes");
    if (!has_model_ && !has_priors) {
      reader.Report(DiagnosticKind::kConfigMissingKey, root,
                    "the priors of the SSD are not known: the settings have none, and the model "
                    "has no layer that states them",
                    "write a file with location, confidence and priors, and name it in "
                    "DETECTION_POSTPROCESS (in a .cfg: detection_postprocess = FILE.yaml)");
      for (const char* key : {"image_size", "location", "confidence"}) (void)reader.Has(key);
      return;
    }
    if (IsAsked(reader, "location")) reader.Text("location", settings_.location);
    if (IsAsked(reader, "confidence")) reader.Text("confidence", settings_.confidence);
    reader.Numbers("variances", 0, 1000, settings_.variances);
    if (settings_.variances.size() != 4) {
      reader.WrongType("variances", *reader.Needed("variances"), "four numbers");
    }
    reader.Flag("rows_first", settings_.rows_first);
    reader.Flag("background", settings_.background);
    reader.Whole("first_label", 0, 4096, settings_.first_label);
    reader.Flag("best_class_only", settings_.best_class_only);
    reader.Flag("across_classes", settings_.across_classes);
    const bool keeps_boxes = has_model_ && !settings_.prior_boxes.empty();
    const bool has_boxes = reader.Has("prior_boxes");
    if (reader.Has("image_size") || !(has_model_ || has_boxes)) {
      settings_.image_size.clear();
      reader.Wholes("image_size", 2, 1 << 16, settings_.image_size);
    }
    if (has_boxes) return ReadPriorBoxes(reader);
    if (has_model_ && !reader.Has("priors") && (keeps_boxes || !settings_.priors.empty())) return;
    settings_.prior_boxes.clear();
    settings_.priors.clear();
    reader.Mappings("priors", kMaxHeads, [&](MappingReader& one, const ConfigNode& at) {
      BoxPriors& priors = settings_.priors.emplace_back();
      one.Wholes("feature", 2, 4096, priors.feature);
      one.Needed("min_sizes");
      one.Numbers("min_sizes", 0, 1 << 16, priors.min_sizes);
      one.Numbers("max_sizes", 0, 1 << 16, priors.max_sizes);
      one.Numbers("aspect_ratios", 0, 1000, priors.aspect_ratios);
      one.Flag("flip", priors.flip);
      one.Flag("clip", priors.clip);
      one.Numbers("step", 0, 1 << 16, priors.step);
      one.Number("offset", -1, 1, priors.offset);
      if (!priors.max_sizes.empty() && priors.max_sizes.size() != priors.min_sizes.size()) {
        one.WrongType("max_sizes", at, "as many numbers as min_sizes");
      }
      if (!priors.step.empty() && priors.step.size() != 2) {
        one.WrongType("step", at, "two numbers");
      }
    });
    if (diagnostics_.has_errors() || PriorCount(settings_) <= kMaxBoxPriors) return;
    reader.Report(DiagnosticKind::kConfigValueNotAllowed, *reader.Needed("priors"),
                  absl::StrCat("the layers have ", PriorCount(settings_), " priors, more than ",
                               kMaxBoxPriors),
                  "write those of the model");
  }

  void ReadRcnn(MappingReader& reader) {
    reader.Text("location", settings_.location);
    reader.Text("confidence", settings_.confidence);
    settings_.variances = {1, 1, 1, 1};
    reader.Numbers("variances", 0, 1000, settings_.variances);
    if (settings_.variances.size() != 4) {
      reader.WrongType("variances", *reader.Needed("variances"), "four numbers");
    }
  }

  // A text of numbers, since a list of so many nodes is more than a config may have.
  void ReadPriorBoxes(MappingReader& reader) {
    const ConfigNode& value = *reader.Needed("prior_boxes");
    settings_.priors.clear();
    settings_.prior_boxes.clear();
    for (const absl::string_view word :
         absl::StrSplit(value.text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
      float number = 0;
      if (!absl::SimpleAtof(word, &number) || !(std::fabs(number) <= 1000)) {
        return reader.NotAllowed("prior_boxes", value, "numbers of at most 1000 between spaces");
      }
      settings_.prior_boxes.push_back(number);
    }
    const size_t count = settings_.prior_boxes.size();
    if (count == 0 || count % 4 != 0 || count / 4 > static_cast<size_t>(kMaxBoxPriors)) {
      reader.WrongType("prior_boxes", value,
                       absl::StrCat("a text of centre x, centre y, width and height of 1 to ",
                                    kMaxBoxPriors, " boxes"));
    }
  }

  absl::string_view file_;
  Diagnostics& diagnostics_;
  const bool has_model_;
  BoxSettings settings_;
};

// The aspect ratios besides 1, each once, as Caffe collects them.
std::vector<double> RatiosOf(const BoxPriors& layer) {
  std::vector<double> all = {1};
  const auto add = [&](double ratio) {
    for (const double known : all) {
      if (std::fabs(ratio - known) < 1e-6) return;
    }
    all.push_back(ratio);
  };
  for (const double ratio : layer.aspect_ratios) {
    add(ratio);
    if (layer.flip) add(1 / ratio);
  }
  all.erase(all.begin());
  return all;
}

// Width and height of the priors of a cell, in pixels: of each size the square, the one between it
// and its greater size, then the ratios.
std::vector<std::array<double, 2>> SizesOf(const BoxPriors& layer) {
  std::vector<std::array<double, 2>> sizes;
  for (size_t i = 0; i < layer.min_sizes.size(); ++i) {
    const double size = layer.min_sizes[i];
    sizes.push_back({size, size});
    if (!layer.max_sizes.empty()) {
      const double between = std::sqrt(size * layer.max_sizes[i]);
      sizes.push_back({between, between});
    }
    for (const double ratio : RatiosOf(layer)) {
      sizes.push_back({size * std::sqrt(ratio), size / std::sqrt(ratio)});
    }
  }
  return sizes;
}

}  // namespace

absl::string_view NameOf(BoxKind kind) {
  for (const TypeRow& row : Types()) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

int64_t PriorCount(const BoxSettings& settings) {
  auto count = static_cast<int64_t>(settings.prior_boxes.size() / 4);
  for (const BoxPriors& layer : settings.priors) {
    count += layer.feature[0] * layer.feature[1] * static_cast<int64_t>(SizesOf(layer).size());
  }
  return count;
}

std::vector<float> PriorsOf(const BoxSettings& settings) {
  if (!settings.prior_boxes.empty()) return settings.prior_boxes;
  std::vector<float> priors;
  const double height = static_cast<double>(settings.image_size[0]);
  const double width = static_cast<double>(settings.image_size[1]);
  for (const BoxPriors& layer : settings.priors) {
    const std::vector<std::array<double, 2>> sizes = SizesOf(layer);
    const bool has_step = !layer.step.empty();
    const double down = has_step ? layer.step[0] : height / static_cast<double>(layer.feature[0]);
    const double across = has_step ? layer.step[1] : width / static_cast<double>(layer.feature[1]);
    for (int64_t row = 0; row < layer.feature[0]; ++row) {
      for (int64_t column = 0; column < layer.feature[1]; ++column) {
        for (const std::array<double, 2>& size : sizes) {
          const double x = (static_cast<double>(column) + layer.offset) * across;
          const double y = (static_cast<double>(row) + layer.offset) * down;
          double corners[] = {(x - size[0] / 2) / width, (y - size[1] / 2) / height,
                              (x + size[0] / 2) / width, (y + size[1] / 2) / height};
          for (double& corner : corners) {
            if (layer.clip) corner = std::fmin(std::fmax(corner, 0), 1);
          }
          priors.push_back(static_cast<float>((corners[0] + corners[2]) / 2));
          priors.push_back(static_cast<float>((corners[1] + corners[3]) / 2));
          priors.push_back(static_cast<float>(corners[2] - corners[0]));
          priors.push_back(static_cast<float>(corners[3] - corners[1]));
        }
      }
    }
  }
  return priors;
}

std::optional<BoxSettings> ParseBoxSettings(absl::string_view text, absl::string_view file,
                                            Diagnostics& diagnostics,
                                            const std::optional<BoxSettings>& model) {
  Diagnostics found;
  BoxSettings settings;
  std::optional<ConfigNode> root;
  if (CheckConfigText(text, file, found)) root = ParseConfigYaml(text, file, found);
  if (root.has_value() && root->kind == Kind::kMapping) {
    settings = SettingsReader(file, found, model).Read(*root);
  } else if (!found.has_errors()) {
    found.Add({.kind = DiagnosticKind::kConfigSyntax,
               .message = "the settings of boxes are no mapping",
               .file = std::string(file),
               .fix = "write lines KEY: value, as type: YOLO3"});
  }
  diagnostics.Append(found);
  if (found.has_errors()) return std::nullopt;
  return settings;
}

}  // namespace npuc
