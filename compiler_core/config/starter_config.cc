#include "compiler_core/config/starter_config.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/artifact_name.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/suggest.h"
#include "compiler_core/base/utf8.h"
#include "compiler_core/config/config_values.h"
#include "compiler_core/config/quant_config.h"
#include "compiler_core/target/core_spec.h"

namespace npuc {
namespace {

using Port = ModelOutline::Port;

// True for what a config can name, in one line of UTF-8.
bool IsWritable(absl::string_view name) {
  constexpr size_t kMaxBytes = 1000;
  if (name.empty() || name.size() > kMaxBytes || FirstInvalidUtf8(name) != absl::string_view::npos)
    return false;
  if (std::any_of(name.begin(), name.end(), [](char c) { return absl::ascii_iscntrl(c); })) {
    return false;
  }
  return IsTensorName(name);
}

// NAME is NAME:0: a config lists neither twice.
bool AreWritable(const std::vector<Port>& ports) {
  std::set<std::string> seen;
  return std::all_of(ports.begin(), ports.end(), [&](const Port& port) {
    return IsWritable(port.key) &&
           seen.insert(std::string(absl::StripSuffix(port.key, ":0"))).second;
  });
}

// A YAML scalar, quoted unless it is plainly a name or a path.
std::string Scalar(absl::string_view text) {
  const bool is_plain = !text.empty() && (absl::ascii_isalpha(text[0]) || text[0] == '_') &&
                        std::all_of(text.begin(), text.end(), [](char c) {
                          return absl::ascii_isalnum(c) || absl::StrContains("_/.-", c);
                        });
  if (is_plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (absl::ascii_iscntrl(c)) {
      absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

bool IsKnown(const Port& port) {
  return port.dims.has_value() &&
         std::all_of(port.dims->begin(), port.dims->end(), [](int64_t dim) { return dim >= 0; });
}

std::string DimsOf(const Port& port) {
  if (!port.dims.has_value()) return absl::StrCat("[", kFillIn, "]");
  return absl::StrCat("[",
                      absl::StrJoin(*port.dims, ", ",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(
                                          out, dim < 0 ? std::string(kFillIn) : absl::StrCat(dim));
                                    }),
                      "]");
}

// Writes the lines, one function a group of keys.
class Writer {
 public:
  Writer(const ModelOutline& outline, const StarterChoices& choices)
      : outline_(outline), choices_(choices) {}

  StarterConfig Write() {
    Line(absl::StrCat("# For ", Info().format, " model ", Printable(choices_.model_path),
                      outline_.producer.empty() ? "" : absl::StrCat(" (", outline_.producer, ")"),
                      ", written by npuc init."));
    Line(absl::StrCat("# Compile it: npuc ", Printable(choices_.config_path),
                      " -o out        All keys: npuc --config-help"));
    for (const std::string& note : outline_.notes) Line(absl::StrCat("# Note: ", note, "."));
    WriteTarget();
    WriteInputs();
    WriteOutputs();
    WriteQuant();
    WriteFurtherKeys();
    return std::move(config_);
  }

 private:
  const FrameworkInfo& Info() const { return InfoOf(outline_.framework); }
  void Line(absl::string_view text) { absl::StrAppend(&config_.text, text, "\n"); }
  void Key(absl::string_view key, absl::string_view value) {
    Line(absl::StrCat(key, ": ", Scalar(value)));
  }

  void WriteTarget() {
    const CoreSpec* core = FindCore(choices_.core);
    Key("CORENAME", choices_.core);
    if (core != nullptr && core->npu_units.size() > 1) Key("NPU_UNIT", core->npu_units[0]);
    Key("FRAMEWORK", Info().name);
    Key("MODEL_FILE", choices_.model_path);
    if (!outline_.data_file.empty()) {
      const size_t slash = choices_.model_path.rfind('/');
      const size_t folder = slash == std::string::npos ? 0 : slash + 1;
      Key(Info().data_key, choices_.model_path.substr(0, folder) + outline_.data_file);
    }
    Key("OUTPUT_FILE", choices_.output_path);
  }

  // An input of another type than a tensor is the model's to settle: a compile says so.
  bool IsWanted(const Port& port) const {
    return port.is_tensor && !(port.may_be_left_out && !IsKnown(port));
  }

  void WriteInputs() {
    Line("");
    if (outline_.inputs.empty()) return Line("# The model states no input.");
    if (!AreWritable(outline_.inputs)) {
      Line("# The inputs are those that the model states: a config cannot write their names.");
      return;
    }
    WriteConstants();
    Line("# Every input with its shape for one call.");
    const bool is_empty =
        std::none_of(outline_.inputs.begin(), outline_.inputs.end(),
                     [&](const Port& port) { return port.constant.empty() && IsWanted(port); });
    Line(is_empty ? "INPUT_OPS: {}" : "INPUT_OPS:");
    for (const Port& port : outline_.inputs) {
      if (!port.constant.empty()) continue;
      if (!IsWanted(port)) {
        Line(absl::StrCat("  # ", Printable(port.key), ": '", Printable(port.name), "', ",
                          port.type.empty() ? "left out: it has a default value" : port.type));
        continue;
      }
      std::string line = absl::StrCat("  ", KeyOf(port), ": ", DimsOf(port));
      std::vector<std::string> remarks;
      if (port.name != port.key) remarks.push_back(Printable(port.name));
      if (!port.type.empty()) remarks.push_back(port.type);
      if (!IsKnown(port)) {
        remarks.push_back(
            absl::StrCat("write numbers for ", kFillIn, ": the model does not state them"));
        config_.open.push_back(absl::StrCat("the shape of input '", Printable(port.name), "', ",
                                            OutlineShape(port.dims)));
      }
      if (!remarks.empty()) absl::StrAppend(&line, "  # ", absl::StrJoin(remarks, ", "));
      Line(line);
    }
  }

  void WriteConstants() {
    std::vector<std::string> values;
    for (const Port& port : outline_.inputs) {
      if (port.constant.empty()) continue;
      values.push_back(absl::StrCat(KeyOf(port), ": ", port.constant));
    }
    if (values.empty()) return;
    Line("# Inputs of one value, which are none of the compiled model.");
    Line(absl::StrCat("CONST_INPUTS: {", absl::StrJoin(values, ", "), "}"));
  }

  std::string KeyOf(const Port& port) const {
    return Info().has_port_names ? Scalar(port.key) : port.key;
  }

  void WriteOutputs() {
    if (!Info().has_port_names) {
      return Line("# The outputs are what forward returns, counted from 0.");
    }
    if (outline_.outputs.empty() && Info().needs_output_ops) {
      config_.open.emplace_back("the outputs: no node of the model ends it");
      return Line(absl::StrCat("OUTPUT_OPS: [", kFillIn, "]"));
    }
    if (outline_.outputs.empty() || !AreWritable(outline_.outputs)) {
      return Line("# The outputs are those that the model states.");
    }
    Line(absl::StrCat("OUTPUT_OPS: [",
                      absl::StrJoin(outline_.outputs, ", ",
                                    [](std::string* out, const Port& port) {
                                      absl::StrAppend(out, Scalar(port.key));
                                    }),
                      "]"));
  }

  void WriteQuant() {
    if (!choices_.needs_calibration) return;
    std::vector<Port> inputs;
    std::copy_if(outline_.inputs.begin(), outline_.inputs.end(), std::back_inserter(inputs),
                 [](const Port& port) { return port.constant.empty(); });
    const size_t count = inputs.size();
    Line("");
    Line(
        absl::StrCat("# ", choices_.core,
                     " computes in integers, so the model is quantized by samples of its inputs."));
    Line("# Only you have them: some hundred, stacked in the first dimension of a NumPy file,");
    Line(
        "# prepared as in training, or a folder of pictures with a pictures.yaml that says how to");
    Line("# prepare them. Take away the '# ' of these lines and name the file or folder:");
    Line("# QUANT:");
    if (count == 1) {
      Line(absl::StrCat("#   calibration_data: samples.npy   # ", SampleShape(inputs[0])));
    } else if (count > kMaxCalibrationFiles) {
      Line("#   calibration_data: samples.npz   # of numpy.savez, an array for each input:");
      for (const Port& port : inputs) {
        Line(absl::StrCat("#     # ", Scalar(port.name), ": ", SampleShape(port)));
      }
    } else {
      Line("#   calibration_data:");
      for (size_t i = 0; i < count; ++i) {
        const Port& port = inputs[i];
        Line(absl::StrCat("#     ", Scalar(port.name), ": samples_", i, ".npy   # ",
                          SampleShape(port)));
      }
    }
    if (choices_.quantizes_anew) {
      Line(
          "#   force_float_ir: true   # the model quantizes a part of its values: all of them "
          "anew");
    }
    const CoreSpec* core = FindCore(choices_.core);
    if (core != nullptr && IsFixedPoint(*core)) return;  // it settles by itself what a preset sets
    Line("#   preset: best   # or fast, or compass: its defaults");
  }

  static std::string SampleShape(const Port& port) {
    if (!port.dims.has_value() || port.dims->empty()) return "float32";
    Port samples = port;
    std::string rest = DimsOf(samples);
    const size_t first = rest.find(',');
    return absl::StrCat("float32 [N", first == std::string::npos ? "]" : rest.substr(first));
  }

  void WriteFurtherKeys() {
    const CoreSpec* core = FindCore(choices_.core);
    Line("");
    Line("# Worth knowing:");
    if (core != nullptr && core->limits != nullptr) {
      Line("# COMPRESS: true           # 8-bit weights of fully connected layers");
      Line("# CONV2D_COMPRESS: true    # 8-bit weights of convolutions");
      Line("# FUSE_BN: true            # batch normalisation into the convolution before it");
    }
    Line("# FP16_OUT_OPS: [...]      # outputs that are states, fed back as they are");
    if (Info().has_kept_states) {
      Line("# KEEP_STATES: ['*']       # recurrent layers go on where the call before ended");
    }
    Line("# MEMORY_PLAN: in_place    # less data memory");
  }

  const ModelOutline& outline_;
  const StarterChoices& choices_;
  StarterConfig config_;
};

}  // namespace

absl::StatusOr<StatedShape> ParseStatedShape(absl::string_view text) {
  StatedShape shape;
  const size_t equals = text.rfind('=');
  absl::string_view dims = text;
  if (equals != absl::string_view::npos) {
    shape.name = std::string(text.substr(0, equals));
    dims = text.substr(equals + 1);
  }
  for (const absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(dims), ',')) {
    int64_t dim = 0;
    if (!absl::SimpleAtoi(part, &dim) || dim < 1 || shape.dims.size() == kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--input-shape '", Printable(text), "' is no shape; write it like 1,40,98 or ",
          "NAME=1,40,98, with at most ", kMaxRank, " numbers above 0"));
    }
    shape.dims.push_back(dim);
  }
  return shape;
}

absl::StatusOr<std::pair<std::string, std::string>> ParseStatedValue(absl::string_view option,
                                                                     absl::string_view text) {
  const size_t equals = text.rfind('=');
  const bool is_pair = equals != absl::string_view::npos && equals > 0 && equals + 1 < text.size();
  if (is_pair) {
    return std::pair(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, " '", Printable(text), "' is no pair; write it like NAME=1"));
}

namespace {

// The input that an option names.
absl::StatusOr<Port*> InputOf(absl::string_view option, absl::string_view name,
                              ModelOutline& outline) {
  const auto port =
      std::find_if(outline.inputs.begin(), outline.inputs.end(),
                   [&](const Port& input) { return input.key == name || input.name == name; });
  if (port != outline.inputs.end()) return &*port;
  std::vector<absl::string_view> names;
  for (const Port& input : outline.inputs) names.push_back(input.name);
  return absl::InvalidArgumentError(
      absl::StrCat(option, " names '", Printable(name), "', which is no input of the model; ",
                   DidYouMean(name, names, absl::StrJoin(names, ", "))));
}

absl::Status SettleDim(absl::string_view name, absl::string_view text, ModelOutline& outline) {
  int64_t size = 0;
  if (!absl::SimpleAtoi(text, &size) || size < 1 || size > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dim '", Printable(name), "' is '", Printable(text), "', which is no size"));
  }
  std::vector<absl::string_view> names;
  bool is_found = false;
  for (Port& port : outline.inputs) {
    for (size_t i = 0; i < port.dim_names.size(); ++i) {
      if (!port.dim_names[i].empty()) names.push_back(port.dim_names[i]);
      if (port.dim_names[i] != name) continue;
      is_found = true;
      if ((*port.dims)[i] < 0) (*port.dims)[i] = size;
    }
  }
  if (is_found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--dim names '", Printable(name), "', which is no dimension of the model's inputs; ",
      DidYouMean(name, names, names.empty() ? "they have no names" : absl::StrJoin(names, ", "))));
}

// A value that a config can hold in one place: what a number, a word or a list of these is made of.
absl::Status SettleConstant(absl::string_view name, absl::string_view text, ModelOutline& outline) {
  ASSIGN_OR_RETURN(Port* const port, InputOf("--const", name, outline));
  const bool is_value = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("+-., []", absl::string_view(&c, 1));
  });
  if (!is_value) {
    return absl::InvalidArgumentError(absl::StrCat("--const '", Printable(name), "' is '",
                                                   Printable(text),
                                                   "'; write a number, true, "
                                                   "false, or a list such as [1, 2]"));
  }
  port->constant = std::string(text);
  return absl::OkStatus();
}

absl::Status SettleShapes(absl::Span<const StatedShape> stated, ModelOutline& outline) {
  size_t next = 0;
  for (const StatedShape& shape : stated) {
    Port* port = nullptr;
    if (!shape.name.empty()) {
      ASSIGN_OR_RETURN(port, InputOf("--input-shape", shape.name, outline));
    } else if (next < outline.inputs.size()) {
      port = &outline.inputs[next++];
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--input-shape is given more often than the model has inputs, ", outline.inputs.size()));
    }
    port->dims = shape.dims;
  }
  return absl::OkStatus();
}

// A dimension that one input has a size for has it wherever its name stands.
void SettleSharedDims(ModelOutline& outline) {
  std::map<std::string, int64_t> sizes;
  const auto each = [&](const auto& what) {
    for (Port& port : outline.inputs) {
      if (!port.dims.has_value() || port.dims->size() != port.dim_names.size()) continue;
      for (size_t i = 0; i < port.dim_names.size(); ++i) {
        if (!port.dim_names[i].empty()) what(port.dim_names[i], (*port.dims)[i]);
      }
    }
  };
  each([&](const std::string& name, int64_t size) {
    if (size >= 0) sizes.emplace(name, size);
  });
  each([&](const std::string& name, int64_t& size) {
    const auto found = sizes.find(name);
    if (size < 0 && found != sizes.end()) size = found->second;
  });
}

}  // namespace

absl::Status SettleInputs(const StatedFacts& stated, ModelOutline& outline) {
  RETURN_IF_ERROR(SettleShapes(stated.shapes, outline));
  for (const auto& [name, text] : stated.dims) RETURN_IF_ERROR(SettleDim(name, text, outline));
  for (const auto& [name, text] : stated.constants) {
    RETURN_IF_ERROR(SettleConstant(name, text, outline));
  }
  SettleSharedDims(outline);
  for (Port& port : outline.inputs) {
    if (!port.constant.empty() || !port.dims.has_value() || !OnlyBatchIsUnknown(*port.dims)) {
      continue;
    }
    port.dims->front() = 1;
    outline.notes.push_back(absl::StrCat("the first dimension of input '", Printable(port.name),
                                         "' is open; it is taken as 1, one item a call"));
  }
  return absl::OkStatus();
}

std::string HeaderNameFor(absl::string_view stem) {
  constexpr absl::string_view kEnding = ".h";
  std::string name(stem.substr(0, kMaxOutputFileBytes - kEnding.size()));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_-.+", absl::string_view(&c, 1))) c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return absl::StrCat(name.substr(0, kMaxOutputFileBytes - kEnding.size()), kEnding);
}

StarterConfig WriteStarterConfig(const ModelOutline& outline, const StarterChoices& choices) {
  return Writer(outline, choices).Write();
}

}  // namespace npuc
