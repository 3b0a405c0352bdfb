#include "compiler_core/tools/array_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler_core/base/archive.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/folder_archive.h"
#include "compiler_core/base/status.h"
#include "compiler_core/base/yaml_tree.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/quant/data/sample_forms.h"
#include "compiler_core/quant/data/sample_set.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "nlohmann/json.hpp"

namespace npuc {

using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kMaxNpyBytes = int64_t{1} << 31;
constexpr int64_t kPrintedValues = 16;
constexpr char kRawEnding[] = ".bin";

// File systems take 255 bytes, some for ".npy" and for the name until a file is complete.
constexpr size_t kMaxStemBytes = 200;

void PrintOutput(const NamedArray& output, const std::string& path) {
  const std::string type = TypeToString({output.array.dtype, output.array.shape});
  if (!path.empty()) {
    std::printf("%s %s -> %s\n", Printable(output.name).c_str(), type.c_str(), path.c_str());
    return;
  }
  std::printf("%s %s:", Printable(output.name).c_str(), type.c_str());
  const int64_t count = output.array.element_count();
  for (int64_t i = 0; i < std::min(count, kPrintedValues); ++i) {
    std::printf(" %g", ValueAt(output.array, i));
  }
  std::printf("%s\n", count > kPrintedValues ? " ..." : "");
}

}  // namespace

std::string FileStem(const std::string& name) {
  std::string stem = name.empty() ? "_" : name;
  for (char& c : stem) {
    if (c == '/' || c == ':' || c == '\0') c = '_';
  }
  if (stem.size() > kMaxStemBytes) {
    stem = absl::StrCat(stem.substr(0, kMaxStemBytes - 17), "_", Md5Hex(name).substr(0, 16));
  }
  return stem;
}

absl::Status WriteOutputs(const std::string& output_dir, bool print, const RunItemsResult& result,
                          Json& list) {
  std::map<std::string, std::string> written;  // path -> tensor name
  for (const NamedArray& output : result.outputs) {
    std::string path;
    if (!output_dir.empty()) {
      const std::string file = absl::StrCat(FileStem(output.name), ".npy");
      path = (std::filesystem::path(output_dir) / file).string();
      const auto [it, inserted] = written.emplace(path, output.name);
      if (!inserted) {
        return absl::InvalidArgumentError(absl::StrCat("outputs '", Printable(it->second),
                                                       "' and '", Printable(output.name),
                                                       "' would both be ", Printable(path)));
      }
      ASSIGN_OR_RETURN(const std::string bytes, WriteNpy(output.array));
      RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    }
    list.push_back({{"name", output.name},
                    {"dtype", output.array.dtype == DType::kFloat32 ? "float32" : "float16"},
                    {"shape", output.array.shape},
                    {"path", path}});
    if (print) PrintOutput(output, path);
  }
  return absl::OkStatus();
}

void AddFileProblem(const absl::Status& status, Diagnostics& diagnostics) {
  diagnostics.Add(
      {.kind = DiagnosticKind::kFileUnreadable, .message = std::string(status.message())});
}

namespace {

// The seed of "random" and "random:SEED"; nullopt: it is neither.
std::optional<uint32_t> RandomSeed(absl::string_view input) {
  if (input == "random") return 1;
  uint32_t seed = 0;
  if (!absl::ConsumePrefix(&input, "random:") || !absl::SimpleAtoi(input, &seed)) {
    return std::nullopt;
  }
  return seed;
}

// Reads the arguments of --input one by one.
class InputLoader {
 public:
  InputLoader(const FrameRunner& model, Diagnostics& diagnostics)
      : model_(model), inputs_(InputsToGive(model)), diagnostics_(diagnostics) {}

  std::vector<NamedArray> Load(const std::vector<std::string>& inputs) {
    std::optional<uint32_t> seed;
    for (const std::string& input : inputs) {
      if (RandomSeed(input).has_value()) {
        seed = RandomSeed(input);
      } else {
        LoadOne(input);
      }
    }
    if (seed.has_value()) FillWithRandom(*seed);
    return std::move(arrays_);
  }

 private:
  void Refuse(std::string message, std::string fix) {
    diagnostics_.Add({.kind = DiagnosticKind::kRunInputInvalid,
                      .message = std::move(message),
                      .fix = std::move(fix)});
  }

  void LoadOne(const std::string& input) {
    const size_t equals = input.find('=');
    if (equals == 0) {
      return Refuse(absl::StrCat("'", Printable(input), "' is no NAME=FILE.npy"), "");
    }
    if (equals != std::string::npos)
      return ReadArray(input.substr(0, equals), input.substr(equals + 1));
    if (inputs_.size() == 1) return ReadArray(inputs_[0]->name, input);
    if (HoldsSamples(input)) return ReadSamples("", input);
    Refuse(absl::StrCat("'", Printable(input), "' is no NAME=FILE.npy, and the model has ",
                        inputs_.size(), " inputs"),
           absl::StrCat("write NAME=", Printable(input), " with NAME one of ",
                        absl::StrJoin(inputs_, ", ", [](std::string* out, const PortTensor* port) {
                          absl::StrAppend(out, Printable(port->name));
                        })));
  }

  void RefuseFile(const std::string& path, const absl::Status& status) {
    diagnostics_.Add({.kind = DiagnosticKind::kRunInputInvalid,
                      .message = std::string(status.message()),
                      .file = path});
  }

  // True for a folder, a zip file, a picture and a sound.
  static bool HoldsSamples(const std::string& path) {
    if (IsFolder(path)) return true;
    const auto file = OpenFile(path, kMaxNpyBytes);
    if (!file.ok()) return false;  // reported by its reader
    std::string start(static_cast<size_t>(std::min<int64_t>(16, (*file)->size())), '\0');
    return (*file)->Read(0, absl::MakeSpan(start.data(), start.size())).ok() &&
           (LooksLikeZip(start) || LooksLikeRecording(start));
  }

  // Reads the files that say what pictures and sounds become in the folder of `path`.
  static absl::StatusOr<SampleForms> FormsBeside(const std::string& path) {
    SampleForms forms;
    for (const absl::string_view name : kFormFiles) {
      const std::filesystem::path form =
          std::filesystem::path(path).parent_path() / std::string(name);
      std::error_code error;
      if (!std::filesystem::exists(form, error)) continue;
      ASSIGN_OR_RETURN(const std::string text, ReadFile(form.string(), kMaxYamlBytes));
      const absl::Status status = ReadForm(name, text, forms);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(Printable(form.string()), ": ", status.message()));
      }
    }
    return forms;
  }

  // Samples of the input `name`, or of all where it is "".
  void ReadSamples(const std::string& name, const std::string& path) {
    const auto bytes = OpenInput(path, kMaxNpyBytes);
    if (!bytes.ok()) return AddFileProblem(bytes.status(), diagnostics_);
    const absl::StatusOr<SampleForms> forms = FormsBeside(path);
    if (!forms.ok()) return RefuseFile(path, forms.status());
    std::vector<SampledInput> inputs;
    for (const PortTensor* port : inputs_) {
      const bool is_other = !name.empty() && FileStem(port->name) != FileStem(name);
      inputs.push_back({port->name, port->shape, is_other});
    }
    const absl::StatusOr<SampleSet> set = SampleSet::Open({{name, path, *bytes, *forms}}, inputs);
    if (!set.ok()) return RefuseFile(path, set.status());
    const absl::Status status = AddSamples(*set, inputs);
    if (!status.ok()) RefuseFile(path, status);
  }

  absl::Status AddSamples(const SampleSet& set, const std::vector<SampledInput>& inputs) {
    int64_t elements = 0;
    for (const SampledInput& input : inputs) elements += ElementCount(input.shape);
    if (elements > 0 && set.size() > kMaxNpyBytes / 4 / elements) {
      return absl::ResourceExhaustedError(
          absl::StrCat("its ", set.size(), " samples take more than ", kMaxNpyBytes, " bytes"));
    }
    std::vector<NpyArray> arrays(inputs.size());
    std::vector<std::vector<float>> values;
    for (int64_t sample = 0; sample < set.size(); ++sample) {
      RETURN_IF_ERROR(set.Read(sample, values));
      for (size_t i = 0; i < inputs.size(); ++i) {
        arrays[i].bytes.append(reinterpret_cast<const char*>(values[i].data()),
                               values[i].size() * sizeof(float));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!set.HasSamples(i)) continue;
      arrays[i].dtype = DType::kFloat32;
      arrays[i].shape = inputs[i].shape;
      arrays[i].shape.insert(arrays[i].shape.begin(), set.size());
      arrays_.push_back({inputs[i].name, std::move(arrays[i])});
    }
    return absl::OkStatus();
  }

  void ReadArray(const std::string& name, const std::string& path) {
    if (HoldsSamples(path)) return ReadSamples(name, path);
    absl::StatusOr<std::string> bytes = ReadFile(path, kMaxNpyBytes);
    if (!bytes.ok()) return AddFileProblem(bytes.status(), diagnostics_);
    absl::StatusOr<NpyArray> array =
        absl::EndsWith(path, kRawEnding) ? RawArray(name, *std::move(bytes)) : ReadNpy(*bytes);
    if (array.ok()) {
      arrays_.push_back({name, *std::move(array)});
      return;
    }
    RefuseFile(path, array.status());
  }

  // The bytes of a port's stored values, one item or several after each other.
  absl::StatusOr<NpyArray> RawArray(const std::string& name, std::string bytes) const {
    const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const PortTensor* port) {
      return port->name == name || FileStem(port->name) == FileStem(name);
    });
    if (found == inputs_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is for input '", Printable(name), "', which the model has not"));
    }
    const PortTensor& port = **found;
    const int64_t item_bytes = ElementCount(port.shape) * SizeOf(port.dtype);
    const auto size = static_cast<int64_t>(bytes.size());
    if (item_bytes == 0 || size == 0 || size % item_bytes != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("has ", size, " bytes; input '", Printable(port.name), "' ",
                       TypeToString({port.dtype, port.shape}), " takes ", item_bytes,
                       " an item, as they are stored"));
    }
    NpyArray array{.dtype = port.dtype, .shape = port.shape, .bytes = std::move(bytes)};
    if (size != item_bytes) array.shape.insert(array.shape.begin(), size / item_bytes);
    return array;
  }

  void FillWithRandom(uint32_t seed) {
    for (const PortTensor* port : inputs_) {
      const auto is_it = [&](const NamedArray& array) { return array.name == port->name; };
      if (std::any_of(arrays_.begin(), arrays_.end(), is_it)) continue;
      std::fprintf(stderr, "input '%s': random values, seed %u\n", Printable(port->name).c_str(),
                   seed);
      const DType stated = model_.StatedType(static_cast<size_t>(port - model_.inputs().data()));
      arrays_.push_back({port->name, RandomInput(*port, stated, seed)});
    }
  }

  const FrameRunner& model_;
  const std::vector<const PortTensor*> inputs_;
  Diagnostics& diagnostics_;
  std::vector<NamedArray> arrays_;
};

}  // namespace

std::vector<NamedArray> LoadInputs(const std::vector<std::string>& inputs, const FrameRunner& model,
                                   Diagnostics& diagnostics) {
  return InputLoader(model, diagnostics).Load(inputs);
}

int Finish(const absl::Status& status, const Diagnostics& diagnostics) {
  Diagnostics shown;  // notes are the compile's
  for (const Diagnostic& diagnostic : diagnostics.list()) {
    if (diagnostic.severity() != Severity::kNote) shown.Add(diagnostic);
  }
  PrintDiagnostics(diagnostics.dropped_count() > 0 ? diagnostics : shown);
  if (!status.ok() && !diagnostics.has_errors()) {
    std::fprintf(stderr, "npuc: %s\n", std::string(status.message()).c_str());
  }
  return status.ok() && !diagnostics.has_errors() ? 0 : 1;
}

}  // namespace npuc
