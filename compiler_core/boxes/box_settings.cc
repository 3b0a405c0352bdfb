#include "compiler_core/boxes/box_settings.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler_core/base/mapping_reader.h"
#include "compiler_core/base/yaml_tree.h"

namespace npuc {
namespace {

using Kind = ConfigNode::Kind;

constexpr absl::string_view kKindNames[] = {"SSD", "YOLO2", "YOLO3", "YOLO5", "YOLO8"};
constexpr size_t kMaxHeads = 16;
constexpr absl::string_view kWhat = "the settings of boxes";

class SettingsReader {
 public:
  SettingsReader(absl::string_view file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {}

  BoxSettings Read(const ConfigNode& root) {
    MappingReader reader(root, kWhat, file_, diagnostics_);
    ReadKind(reader);
    reader.Needed("classes");
    reader.Whole("classes", 1, 4096, settings_.classes);
    reader.Number("obj_threshold", 0, 1, settings_.obj_threshold);
    reader.Number("iou_threshold", 0, 1, settings_.iou_threshold);
    reader.Whole("max_box_num", 1, 4096, settings_.max_box_num);
    reader.Whole("max_candidates", 1, 1 << 16, settings_.max_candidates);
    if (settings_.kind == BoxKind::kSsd) {
      ReadSsd(reader);
    } else {
      ReadYolo(reader);
    }
    reader.Finish();
    if (settings_.max_candidates < settings_.max_box_num) {
      reader.Report(DiagnosticKind::kConfigConflict, root,
                    absl::StrCat("max_candidates is ", settings_.max_candidates,
                                 ", below max_box_num, ", settings_.max_box_num),
                    "raise max_candidates");
    }
    return std::move(settings_);
  }

 private:
  void ReadKind(MappingReader& reader) {
    const ConfigNode* const value = reader.Needed("type");
    if (value == nullptr) return;
    for (size_t i = 0; i < std::size(kKindNames); ++i) {
      if (value->kind == Kind::kScalar && value->text == kKindNames[i]) {
        settings_.kind = static_cast<BoxKind>(i);
        return;
      }
    }
    reader.NotAllowed("type", *value, absl::StrJoin(kKindNames, ", "));
  }

  void ReadYolo(MappingReader& reader) {
    settings_.xy_scale = settings_.kind == BoxKind::kYolo5 ? 2 : 1;
    const bool has_anchors = settings_.kind != BoxKind::kYolo8;
    if (has_anchors) reader.Number("xy_scale", 0, 4, settings_.xy_scale);
    if (settings_.kind == BoxKind::kYolo3 || settings_.kind == BoxKind::kYolo5) {
      reader.Wholes("image_size", 2, 1 << 16, settings_.image_size);
    }
    reader.Mappings("heads", kMaxHeads, [&](MappingReader& one, const ConfigNode& at) {
      BoxHead& head = settings_.heads.emplace_back();
      one.Text("output", head.output);
      if (!has_anchors) return;
      if (one.Needed("anchors") == nullptr) return;
      one.Numbers("anchors", 0, 1 << 16, head.anchors);
      if (head.anchors.empty() || head.anchors.size() % 2 != 0) {
        one.WrongType("anchors", at, "pairs of width and height");
      }
    });
  }

  void ReadSsd(MappingReader& reader) {
    reader.Wholes("image_size", 2, 1 << 16, settings_.image_size);
    reader.Text("location", settings_.location);
    reader.Text("confidence", settings_.confidence);
    reader.Numbers("variances", 0, 1000, settings_.variances);
    if (settings_.variances.size() != 4) {
      reader.WrongType("variances", *reader.Needed("variances"), "four numbers");
    }
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

  absl::string_view file_;
  Diagnostics& diagnostics_;
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

int64_t PriorCount(const BoxSettings& settings) {
  int64_t count = 0;
  for (const BoxPriors& layer : settings.priors) {
    count += layer.feature[0] * layer.feature[1] * static_cast<int64_t>(SizesOf(layer).size());
  }
  return count;
}

std::vector<float> PriorsOf(const BoxSettings& settings) {
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
                                            Diagnostics& diagnostics) {
  Diagnostics found;
  BoxSettings settings;
  std::optional<ConfigNode> root;
  if (CheckConfigText(text, file, found)) root = ParseConfigYaml(text, file, found);
  if (root.has_value() && root->kind == Kind::kMapping) {
    settings = SettingsReader(file, found).Read(*root);
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
