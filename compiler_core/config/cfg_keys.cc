#include "compiler_core/config/cfg_keys.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler_core/base/framework.h"
#include "compiler_core/config/cfg_config.h"

namespace npuc {
namespace {

using Become = CfgBecome;

constexpr char kProfile[] = "a profile counts every unit";
constexpr char kSamples[] = "the simulator counts every command, so that there are no samples";
constexpr char kMemories[] = "results lie in one arena; other memories would change no result";
constexpr char kWorkers[] = "samples are read one after the other";

constexpr CfgKey kCfgKeys[] = {
    {"Common", "mode", Become::kTask, "", "build|run",
     "run: what was built runs on the simulator, too; default run where there are inputs"},
    {"Parser", "model_type", Become::kFormat, "FRAMEWORK", "", ""},
    {"Parser", "model_name", Become::kValue, "", "", "OUTPUT_FILE, with .h, without outputs"},
    {"Parser", "model_domain", Become::kChecked, "",
     "image_classification|object_detection|keyword_spotting|speech_recognition|"
     "image_segmentation",
     "it is a word about the model"},
    {"Parser", "input_model", Become::kValue, "MODEL_FILE", "", ""},
    {"Parser", "input_bin", Become::kValue, "MODEL_BIN", "", ""},
    {"Parser", "caffe_prototxt", Become::kValue, "PROTOTXT", "", ""},
    {"Parser", "input", Become::kShapes, "INPUT_OPS", "", ""},
    {"Parser", "input_shape", Become::kShapes, "INPUT_OPS", "", ""},
    {"Parser", "output", Become::kNames, "OUTPUT_OPS", "", ""},
    {"Parser", "plugins", Become::kNames, "PLUGINS", "", "files between commas; npuc's own key"},
    {"Parser", "force_float_ir", Become::kQuant, "force_float_ir", "", ""},
    {"Parser", "preprocess_type", Become::kSteps, "PREPROCESS", "", ""},
    {"Parser", "preprocess_params", Become::kSteps, "PREPROCESS", "", ""},
    {"Parser", "detection_postprocess", Become::kBoxes, "type",
     "SSD|SSD_RESNET|YOLO2|YOLO3_TINY|YOLO3_FULL|YOLO5|YOLO8|CAFFE_FASTERRCNN",
     "or FILE.yaml, which becomes DETECTION_POSTPROCESS"},
    {"Parser", "iou_threshold", Become::kBoxes, "iou_threshold", "", ""},
    {"Parser", "obj_threshold", Become::kBoxes, "obj_threshold", "", ""},
    {"Parser", "max_box_num", Become::kBoxes, "max_box_num", "", ""},
    {"Parser", "image_width", Become::kBoxes, "image_size", "", ""},
    {"Parser", "image_height", Become::kBoxes, "image_size", "", ""},
    {"Optimizer", "model_name", Become::kNothing, "", "", "[Parser] names the result"},
    {"Optimizer", "quant_ir_name", Become::kNothing, "", "",
     "a build writes no IR; a .cfg of aipuopt or npuc ir write does"},
    {"Optimizer", "output_dir", Become::kNothing, "", "", "-o names the folder of a build"},
    {"Optimizer", "calibration_strategy_for_weighth", Become::kQuant,
     "calibration_strategy_for_weight", "", ""},
    {"Optimizer", "dataloader_workers", Become::kNothing, "", "", kWorkers},
    {"Optimizer", "data_loader_workers", Become::kNothing, "", "", kWorkers},
    {"GBuilder", "target", Become::kValue, "CORENAME", "", ""},
    {"GBuilder", "inputs", Become::kTask, "", "", "with mode = run: the simulator's input files"},
    {"GBuilder", "outputs", Become::kValue, "OUTPUT_FILE", "",
     "with mode = run the simulator's output file"},
    {"GBuilder", "simulator", Become::kNothing, "", "", "this program has its simulator"},
    {"GBuilder", "local_lib", Become::kNothing, "", "", "there is no operator library"},
    {"GBuilder", "profile", Become::kTask, "", "true|false",
     "graph.json beside the result, and with mode = run profile_data.bin beside the output"},
    {"GBuilder", "prof_unit", Become::kChecked, "", "TPC|DMA|AIFF", kProfile},
    {"GBuilder", "fast_perf", Become::kNothing, "", "", kProfile},
    {"GBuilder", "max_sample_point_num", Become::kNothing, "", "", kSamples},
    {"GBuilder", "max_aiff_sample_point_num", Become::kNothing, "", "", kSamples},
    {"GBuilder", "max_dma_sample_point_num", Become::kNothing, "", "", kSamples},
    {"GBuilder", "max_custom_sample_point_num", Become::kNothing, "", "", kSamples},
    {"GBuilder", "png", Become::kTask, "", "", "a picture of the graph; needs Graphviz"},
    {"GBuilder", "svg", Become::kTask, "", "", "a picture of the graph"},
    {"GBuilder", "stack_size", Become::kNothing, "", "", "the command stream uses no stack"},
    {"GBuilder", "tcm_size", Become::kNothing, "", "", kMemories},
    {"GBuilder", "gm_size", Become::kNothing, "", "", kMemories},
    {"GBuilder", "ocm_size", Become::kNothing, "", "", kMemories},
    {"GBuilder", "ocm_addr", Become::kNothing, "", "", kMemories},
    {"GBuilder", "tiling", Become::kChecked, "", "fps",
     "the most frames a second are the default: OPTIMIZE: speed, and each layer shared by all "
     "cores "
     "that the target has"},
    {kParseTool, "output_dir", Become::kTask, "", "",
     "the folder of the IR; default: the config's"},
    {kQuantizeTool, "graph", Become::kValue, "MODEL_FILE", "", ""},
    {kQuantizeTool, "bin", Become::kValue, "MODEL_BIN", "", ""},
    {kQuantizeTool, "model_name", Become::kTask, "", "", "the name of the IR"},
    {kQuantizeTool, "quant_ir_name", Become::kTask, "", "", "the name of the IR's files"},
    {kQuantizeTool, "output_dir", Become::kTask, "", "",
     "the folder of the IR and of opt_template.json; default: the config's"},
};

// ", TFLite=TFLITE, ONNX=ONNX": which word becomes which FRAMEWORK.
std::string FormatHelp() {
  std::string out;
  for (const FrameworkInfo& format : AllFrameworks()) {
    if (format.cfg_word.empty()) continue;
    absl::StrAppend(&out, ", ", format.cfg_word, "=", format.name);
  }
  return absl::StrCat(out, "; default TensorFlow");
}

std::string HelpOf(const CfgKey& key) {
  const std::string words = WordsOf(key.words);
  const std::string target =
      key.name == "target" ? absl::StrCat("; default ", kDefaultCfgTarget) : "";
  switch (key.become) {
    case Become::kFormat:
      return absl::StrCat(key.to, FormatHelp());
    case Become::kQuant:
      return absl::StrCat("QUANT: ", key.to);
    case Become::kBoxes:
      return absl::StrCat("BOXES: ", key.to, words.empty() ? "" : ", ", words,
                          key.why.empty() ? "" : "; ", key.why);
    case Become::kTask:
      return absl::StrCat(words, words.empty() ? "" : "; ", key.why);
    case Become::kChecked:
      return absl::StrCat(words, "; changes nothing, ", key.why);
    case Become::kNothing:
      return absl::StrCat("changes nothing, ", key.why);
    default:
      return absl::StrCat(key.to, key.to.empty() || key.why.empty() ? "" : "; ", key.why, target);
  }
}

}  // namespace

absl::Span<const CfgKey> AllCfgKeys() { return kCfgKeys; }

const CfgKey* FindCfgKey(absl::string_view section, absl::string_view name) {
  for (const CfgKey& key : kCfgKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string CfgConfigHelp() {
  std::string out;
  absl::string_view section;
  for (const CfgKey& key : kCfgKeys) {
    if (section != key.section) {
      section = key.section;
      const bool is_tool = section == kParseTool || section == kQuantizeTool;
      absl::StrAppend(
          &out, "  ",
          is_tool ? absl::StrCat("[Common] of ", section) : absl::StrCat("[", section, "]"), "\n");
      if (section == kParseTool) absl::StrAppend(&out, "    the keys of [Parser]\n");
      if (section == "Optimizer") absl::StrAppend(&out, "    the keys of QUANT\n");
      if (section == kQuantizeTool) absl::StrAppend(&out, "    the keys of [Optimizer]\n");
    }
    absl::StrAppend(&out, "    ", key.name, ": ", HelpOf(key), "\n");
  }
  return out;
}

}  // namespace npuc
