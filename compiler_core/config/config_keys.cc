#include "compiler_core/config/config_keys.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

using T = ConfigType;
using S = ConfigStatus;

constexpr int64_t kNpuSramBytesMax = 128 * 1024;
constexpr int64_t kMaxComparedFrames = 256;
constexpr char kIntegerCores[] =
    "Z2_0901|Z2_1002|Z2_1004|Z2_1104|Z3_0901|Z3_1104|X1_1204|X2_1204|X2_1204MP3|APUS";
constexpr int64_t kAnyInt = int64_t{1} << 31;

// name, type, status, required for, default, choices, supported, lo, hi, cores, frameworks,
// example, meaning
constexpr ConfigKey kKeys[] = {
    {"CORENAME", T::kChoice, S::kSupported, "*", "",
     "GRUS|V150|LEO|V100|APUS|V120|Z2_0901|Z2_1002|Z2_1004|Z2_1104|Z3_0901|Z3_1104|X1_1204|X2_1204|"
     "X2_1204MP3",
     "GRUS|V150|APUS|V120|Z2_0901|Z2_1002|Z2_1004|Z2_1104|Z3_0901|Z3_1104|X1_1204|X2_1204|X2_"
     "1204MP3",
     0, 0, "", "", "GRUS", "the NPU core, by name or alias"},
    {"NPU_UNIT", T::kChoice, S::kSupported, "", "", "NPU16|NPU32|NPU64", "", 0, 0, "", "", "NPU32",
     "the NPU unit of that core; a core with a single unit needs no mention of it"},
    {"FRAMEWORK", T::kChoice, S::kSupported, "", "TF", "TF|PT|TFLITE|ONNX|CAFFE|COMPASS",
     "TF|PT|TFLITE|ONNX|COMPASS", 0, 0, "", "", "TF", "the framework that the model comes from"},
    {"MODEL_FILE", T::kPath, S::kSupported, "*", "", "", "", 0, 0, "", "", "model.pb", "the model"},
    {"PB_FILE", T::kPath, S::kSupported, "", "", "", "", 0, 0, "", "", "model.pb",
     "older name of MODEL_FILE"},
    {"PROTOTXT", T::kPath, S::kLater, "CAFFE", "", "", "", 0, 0, "", "CAFFE", "model.prototxt",
     "the network definition beside a Caffe model"},
    {"MODEL_BIN", T::kPath, S::kSupported, "", "", "", "", 0, 0, "", "COMPASS", "model.bin",
     "the constants beside a Compass IR's text, which MODEL_FILE names; without it MODEL_FILE with "
     ".bin for its ending"},
    {"OUTPUT_TYPE", T::kChoice, S::kSupported, "", "c_code", "c_code|raw|json", "", 0, 0, "", "",
     "c_code", "the form of the output"},
    {"OUTPUT_FILE", T::kPath, S::kSupported, "*", "", "", "", 0, 0, "", "", "model.h",
     "the name of the output"},
    {"INPUT_OPS", T::kShapes, S::kSupported, "TF|PT", "", "", "", 0, 0, "", "", "{input: [1, 64]}",
     "every model input with its shape at inference time"},
    {"OUTPUT_OPS", T::kNames, S::kSupported, "TF", "", "", "", 0, 0, "",
     "TF|TFLITE|ONNX|CAFFE|COMPASS", "[result]",
     "every output, state outputs before the prediction outputs; NAME:K is output K"},
    {"INPUT_NCX_TO_NXC", T::kIndices, S::kSupported, "", "", "", "", 0, 0, "", "PT", "[0]",
     "inputs that are fed already transposed, channels last"},
    {"FP16_OUT_OPS", T::kNames, S::kSupported, "", "", "", "", 0, 0, "", "", "[state_out]",
     "outputs left in fp16 (recurrent states)"},
    {"FUSE_BN", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "", "", "false",
     "fold batch normalisation into the convolution before it"},
    {"FUSE_BIASADD", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "GRUS", "", "false",
     "fold a bias into the convolution before it: its command adds the bias to the sums before "
     "they "
     "are rounded, and with CONV2D_COMPRESS the bias shares the weight's codes. Without it the "
     "bias "
     "is a command of its own, as it always is behind a fully connected operator"},
    {"COMPRESS", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "", "", "true",
     "compress fully connected weights"},
    {"CONV2D_COMPRESS", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "", "", "true",
     "compress convolution weights"},
    {"EXCLUDE_COMPRESS_OPS", T::kNames, S::kSupported, "", "", "", "", 0, 0, "", "",
     "[dense/kernel]", "weights that stay uncompressed"},
    {"EXCLUDE_CONV2D_COMPRESS_OPS", T::kNames, S::kSupported, "", "", "", "", 0, 0, "GRUS", "",
     "[conv/kernel]", "convolution weights that stay uncompressed"},
    {"WEIGHT_MIN_MAX", T::kRanges, S::kSupported, "", "", "", "", 0, 0, "", "",
     "{dense/kernel: [-0.5, 0.5]}",
     "the range used when a weight is compressed, in place of its own least and greatest value"},
    {"WEIGHT_CACHE_SIZE", T::kInteger, S::kSupported, "", "0", "", "", 0, kNpuSramBytesMax, "", "",
     "10240",
     "bytes of SRAM given to hold weights; the report says which would fit. The command stream is "
     "the same: how the chip caches weights is not public"},
    {"MODEL_INFO", T::kText, S::kSupported, "", "", "", "", 0, 0, "", "", "kws-v1",
     "text added to the header's model_info"},
    {"OPT_CONFIG", T::kPath, S::kSupported, "", "", "", "", 0, 0, "", "", "opt_template.json",
     "a template that an earlier compile wrote, edited: for the weights that it names it overrides "
     "COMPRESS, CONV2D_COMPRESS, EXCLUDE_COMPRESS_OPS and WEIGHT_MIN_MAX, on integer cores for its "
     "layers QUANT"},
    {"MEMORY_PLAN", T::kChoice, S::kSupported, "", "compatible", "compatible|in_place", "", 0, 0,
     "", "", "compatible",
     "where data buffers lie: compatible never puts a command's result over its operands, as "
     "published headers never do; in_place lets an element-wise command overwrite an operand that "
     "is not used again"},
    {"LAYER_ERROR_FRAMES", T::kInteger, S::kSupported, "", "0", "", "", 0, kMaxComparedFrames,
     "GRUS", "", "4",
     "compares what each layer gives in the simulator with float32 over so many frames of noise in "
     "[-1, 1), for the report's error columns; 0: not at all"},
    {"STRICT_OPS", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "GRUS", "", "true",
     "refuse operators that the vendor's list lacks, also those that this compiler rewrites into "
     "listed ones"},
    {"QUANT", T::kMapping, S::kSupported, "", "", "", "", 0, 0, kIntegerCores, "",
     "{calibration_data: samples.npy}",
     "how a float model is quantized, with Compass's keys; they are listed below"},
    {"MAX_CACHE_SIZE", T::kInteger, S::kSupported, "", "", "", "", 0, kAnyInt, "APUS", "", "65536",
     "bytes of SRAM for cached weights and data; this compiler's commands cache nothing"},
    {"USE_DATA_CACHE", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "APUS", "", "false",
     "cache data in SRAM; this compiler's commands cache nothing"},
    {"SPLIT_CMD", T::kBool, S::kSupported, "", "false", "", "", 0, 0, "APUS", "", "false",
     "split commands; this compiler's commands need no splitting"},
    {"COMPRESS_QUANT_BITS", T::kInteger, S::kLater, "", "8", "", "", 4, 8, "LEO", "", "8",
     "bits of a compressed weight"},
    {"COMPRESS_TYPE", T::kChoice, S::kLater, "", "LINEAR", "LINEAR|GAUSSIAN", "", 0, 0, "LEO", "",
     "LINEAR", "how compressed weights are spaced"},
    {"INPUT_DATA", T::kPath, S::kLater, "", "", "", "", 0, 0, "LEO", "", "input.npy",
     "data to run the model on"},
    {"SPACE_OPTIMIZATION", T::kBool, S::kLater, "", "false", "", "", 0, 0, "LEO", "", "false",
     "optimise for space"},
    {"MEAN_SHRINK_OPS", T::kNames, S::kLater, "", "", "", "", 0, 0, "LEO", "", "[mean]",
     "mean operators to shrink"},
    {"FLOAT16", T::kBool, S::kLater, "", "false", "", "", 0, 0, "LEO", "", "false",
     "compute in 16-bit floating point"},
    {"FLOAT16_EXP_BITS", T::kInteger, S::kLater, "", "5", "", "", 1, 15, "LEO", "", "5",
     "exponent bits of the 16-bit floating-point format"},
};

}  // namespace

absl::Span<const ConfigKey> AllConfigKeys() { return kKeys; }

const ConfigKey* FindConfigKey(absl::string_view name) {
  for (const ConfigKey& key : kKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

absl::string_view ConfigTypeName(ConfigType type) {
  switch (type) {
    case ConfigType::kChoice:
      return "one of a few words";
    case ConfigType::kBool:
      return "true or false";
    case ConfigType::kInteger:
      return "an integer";
    case ConfigType::kText:
      return "one line of text";
    case ConfigType::kPath:
      return "a file name";
    case ConfigType::kNames:
      return "a list of names";
    case ConfigType::kIndices:
      return "a list of indices";
    case ConfigType::kShapes:
      return "a mapping of names to shapes";
    case ConfigType::kRanges:
      return "a mapping of names to [min, max]";
    case ConfigType::kMapping:
      return "a mapping";
  }
  NPUC_CHECK(false);
  return "";
}

bool ListHolds(absl::string_view list, absl::string_view item) {
  if (item.empty()) return false;
  for (absl::string_view part : absl::StrSplit(list, '|')) {
    if (part == item) return true;
  }
  return false;
}

std::string ConfigHelp() {
  const auto words = [](absl::string_view list) {
    return absl::StrReplaceAll(list, {{"|", ", "}});
  };
  std::string out;
  for (const ConfigKey& key : kKeys) {
    absl::StrAppend(&out, key.name, ": ", key.example, "\n    ", key.meaning, "\n    ",
                    key.type == ConfigType::kChoice ? words(key.choices)
                                                    : std::string(ConfigTypeName(key.type)));
    if (key.type == ConfigType::kInteger) absl::StrAppend(&out, ", ", key.lo, "..", key.hi);
    if (!key.required_for.empty()) {
      absl::StrAppend(&out, "; required",
                      key.required_for == "*" ? "" : " for " + words(key.required_for));
    }
    if (!key.default_value.empty()) absl::StrAppend(&out, "; default ", key.default_value);
    if (!key.cores.empty()) absl::StrAppend(&out, "; only core ", words(key.cores));
    if (!key.frameworks.empty()) {
      absl::StrAppend(&out, "; only framework ", words(key.frameworks));
    }
    if (!key.supported.empty()) {
      absl::StrAppend(&out, "; supported by this version: ", words(key.supported));
    }
    if (key.status == ConfigStatus::kLater) absl::StrAppend(&out, "; not supported yet");
    absl::StrAppend(&out, "\n");
  }
  return out;
}

}  // namespace npuc
