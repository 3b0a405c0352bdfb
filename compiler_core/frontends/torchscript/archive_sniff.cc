#include "compiler_core/frontends/torchscript/archive_sniff.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/frontends/common/sniff.h"

namespace npuc::pt {
namespace {

constexpr absl::string_view kScriptIt =
    "load the model in Python and save it by torch.jit.save(torch.jit.script(model), path), or by "
    "torch.jit.save(torch.jit.trace(model, example_inputs), path)";
constexpr absl::string_view kNewerTorch =
    "load it by torch.jit.load in PyTorch 1.10 or newer and save it again by torch.jit.save";
constexpr absl::string_view kNameAnArchive =
    "name a TorchScript archive, written by torch.jit.save, as MODEL_FILE";

struct Guess {
  absl::string_view what;
  absl::string_view fix;
};

void Add(const Guess& guess, absl::string_view file, Diagnostics& diagnostics) {
  diagnostics.Add(
      {.kind = DiagnosticKind::kNotATorchArchive,
       .message = absl::StrCat("the file is not a TorchScript archive; it looks like ", guess.what),
       .file = std::string(file),
       .fix = std::string(guess.fix)});
}

struct Magic {
  size_t at;
  absl::string_view bytes;
  Guess guess;
};

// The first that fits counts.
const Magic kMagics[] = {
    // torch.save before 1.6: a pickle of the number 0x1950a86a20f9469cfc6c comes first.
    {0,
     "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19",
     {"weights or a Python object saved by torch.save of PyTorch before 1.6", kScriptIt}},
    {257, "ustar", {"a tar archive, the format of PyTorch before 0.4", kScriptIt}},
    {4,
     "PTMF",
     {"a flatbuffer of PyTorch Mobile (.ptl)",
      "save the model by torch.jit.save, not by _save_for_lite_interpreter"}},
    {4, "TFL3", {"a TensorFlow Lite model", kNameAnArchive}},
    {0, "\x89HDF\r\n", {"an HDF5 file", kNameAnArchive}},
    {0, "\x1f\x8b", {"a gzip file", "unpack it first"}},
    {0,
     "\xfd"
     "7zXZ",
     {"an xz file", "unpack it first"}},
    {0, "BZh", {"a bzip2 file", "unpack it first"}},
    {0, "\x28\xb5\x2f\xfd", {"a zstd file", "unpack it first"}},
    {0, "Rar!", {"a rar file", "unpack it first"}},
    {0,
     "\x7f"
     "ELF",
     {"a program", kNameAnArchive}},
    {0,
     "version https://git-lfs",
     {"a Git LFS pointer, not the model itself", "fetch the file by git lfs pull"}},
    {0, "<!DOCTYPE", {"a web page", "download the model itself"}},
    {0, "<html", {"a web page", "download the model itself"}},
    {0, "\x80", {"a Python pickle", kScriptIt}},
};

Guess GuessFile(absl::string_view bytes) {
  for (const Magic& magic : kMagics) {
    if (bytes.size() > magic.at && absl::StartsWith(bytes.substr(magic.at), magic.bytes)) {
      return magic.guess;
    }
  }
  const bool text =
      std::all_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 512), [](char c) {
        const auto byte = static_cast<uint8_t>(c);
        return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
      });
  if (text) return {"a text file", kNameAnArchive};
  if (bytes[0] == 0x0a || bytes[0] == 0x08) {
    return {"protobuf, such as a TensorFlow or ONNX model",
            "name a TorchScript archive as MODEL_FILE, or set FRAMEWORK to the model's own"};
  }
  return {"no kind of file that npuc knows", kNameAnArchive};
}

// Whether an entry ends in `suffix`, as a whole path component where that starts with '/'.
bool AnyEndsWith(absl::Span<const absl::string_view> names, absl::string_view suffix) {
  return std::any_of(names.begin(), names.end(),
                     [&](absl::string_view name) { return absl::EndsWith(name, suffix); });
}

bool AnyContains(absl::Span<const absl::string_view> names, absl::string_view part) {
  return std::any_of(names.begin(), names.end(),
                     [&](absl::string_view name) { return absl::StrContains(name, part); });
}

}  // namespace

void AddNotATorchArchive(absl::string_view bytes, absl::string_view file,
                         Diagnostics& diagnostics) {
  if (bytes.empty()) {
    diagnostics.Add({.kind = DiagnosticKind::kEmptyModel,
                     .message = "the file has no bytes",
                     .file = std::string(file),
                     .fix = std::string(kNameAnArchive)});
    return;
  }
  if (absl::StartsWith(bytes, "PK\x03\x04")) {
    diagnostics.Add(
        {.kind = DiagnosticKind::kTorchArchiveDamaged,
         .message = absl::StrCat("the file begins as a zip archive, but its ", bytes.size(),
                                 " bytes end without the directory that closes one: it is cut "
                                 "short"),
         .file = std::string(file),
         .fix = "copy or download the whole file again"});
    return;
  }
  Add(GuessFile(bytes), file, diagnostics);
}

void AddOtherZip(absl::Span<const absl::string_view> names, absl::string_view file,
                 Diagnostics& diagnostics) {
  Guess guess{"a zip archive of another kind", kNameAnArchive};
  if (AnyEndsWith(names, "/model.json") && AnyContains(names, "/tensors/")) {
    guess = {"TorchScript of PyTorch 1.0 to 1.3 (model.json)", kNewerTorch};
  } else if (AnyEndsWith(names, ".data/extern_modules")) {
    guess = {"a package of torch.package", kScriptIt};
  } else if (AnyContains(names, "serialized_exported_program") ||
             AnyEndsWith(names, "/archive_format")) {
    guess = {"a program saved by torch.export (.pt2)", kScriptIt};
  } else if (AnyContains(names, "MAR-INF/")) {
    guess = {"a TorchServe archive (.mar)", "unpack it and name the model inside as MODEL_FILE"};
  } else if (AnyEndsWith(names, "/data.pkl")) {
    guess = {"weights or a Python object saved by torch.save: it has no code", kScriptIt};
  } else if (AnyEndsWith(names, ".npy")) {
    guess = {"a NumPy archive (.npz)", kNameAnArchive};
  } else if (AnyEndsWith(names, "model.weights.h5")) {
    guess = {"a Keras model", kExportKeras};
  } else if (names.empty()) {
    guess = {"an empty zip archive", kNameAnArchive};
  }
  Add(guess, file, diagnostics);
}

}  // namespace npuc::pt
