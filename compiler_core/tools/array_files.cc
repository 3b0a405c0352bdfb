#include "compiler_core/tools/array_files.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/digest.h"
#include "compiler_core/base/status.h"
#include "compiler_core/quant/data/npy.h"
#include "compiler_core/tools/diagnostics_output.h"
#include "compiler_core/tools/files.h"
#include "nlohmann/json.hpp"

namespace npuc {

using Json = nlohmann::ordered_json;

namespace {

constexpr int64_t kMaxNpyBytes = int64_t{1} << 31;
constexpr int64_t kPrintedValues = 16;

// File systems take 255 bytes, some for ".npy" and for the name until a file is complete.
constexpr size_t kMaxStemBytes = 200;

// NAME of NAME.npy: '/' and ':' written as '_', and what cannot stand in a file name too. Of a
// longer name than a file can have its beginning and 16 digits of its MD5.
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

std::vector<NamedArray> LoadInputs(const std::vector<std::string>& inputs,
                                   Diagnostics& diagnostics) {
  std::vector<NamedArray> arrays;
  for (const std::string& input : inputs) {
    const size_t equals = input.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                       .message = absl::StrCat("'", Printable(input), "' is no NAME=FILE.npy")});
      continue;
    }
    const std::string path = input.substr(equals + 1);
    const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxNpyBytes);
    if (!bytes.ok()) {
      AddFileProblem(bytes.status(), diagnostics);
      continue;
    }
    absl::StatusOr<NpyArray> array = ReadNpy(*bytes);
    if (!array.ok()) {
      diagnostics.Add({.kind = DiagnosticKind::kRunInputInvalid,
                       .message = std::string(array.status().message()),
                       .file = path});
      continue;
    }
    arrays.push_back({input.substr(0, equals), *std::move(array)});
  }
  return arrays;
}

int Finish(const absl::Status& status, const Diagnostics& diagnostics) {
  PrintDiagnostics(diagnostics);
  if (!status.ok() && !diagnostics.has_errors()) {
    std::fprintf(stderr, "npuc: %s\n", std::string(status.message()).c_str());
  }
  return status.ok() && !diagnostics.has_errors() ? 0 : 1;
}

}  // namespace npuc
